//! The way from one directory to another, as a report writes it.

use std::path::{Component, Path, PathBuf};

/// The path from a directory to another one, with `/` between and after its parts; empty from a directory to itself.
/// Without such a path, as from one drive to another, it is the whole other directory.
pub(super) fn relative_path(from: &Path, to: &Path) -> String {
    let (from, to) = (real(from), real(to));
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    if shared == 0 {
        return format!("{}/", to.display()).replace('\\', "/");
    }
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    let down = to.components().skip(shared);
    up.chain(down).flat_map(|part| [part.as_os_str().to_string_lossy(), "/".into()]).collect()
}

/// The directory without links on the way to it; as it is written, if it is not there.
fn real(directory: &Path) -> PathBuf {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let real = directory.canonicalize().or_else(|_| std::path::absolute(directory));
    without_mark(real.unwrap_or_else(|_| directory.to_owned()))
}

/// A path on a drive of Windows without the mark of canonical paths, `\\?\`, which an absolute path does not have.
fn without_mark(path: PathBuf) -> PathBuf {
    let plain = path.to_str().and_then(|text| text.strip_prefix(r"\\?\"));
    plain.filter(|plain| plain.get(1..2) == Some(":")).map(PathBuf::from).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leads_from_directory_to_directory() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |path: &str| root.path().join(path);
        std::fs::create_dir_all(at("a/b")).expect("directories");
        for (from, to, expected) in
            [("a", "a", ""), ("a", "a/b", "b/"), ("a/b", "a", "../"), ("a/b", "c/d", "../../c/d/"), ("", "a", "a/")]
        {
            assert_eq!(relative_path(&at(from), &at(to)), expected, "from {from} to {to}");
        }
        assert_eq!(relative_path(Path::new(""), Path::new(".")), "");
    }
}
