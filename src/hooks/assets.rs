//! `--asset-command`: uploads a local image, and returns a URL for the service.
//!
//! The service must get the planned image: a changed one has no URL.

use super::program::{Program, ProgramError};
use crate::domain::{LocalImage, has_password, why_no_web_address};
use crate::files::{ReadError, on_a_thread, read_at_most};

/// The maximum length of a URL, in bytes, as of common servers.
const MAX_ADDRESS: usize = 8 << 10;

/// The upload program.
#[derive(Clone, Debug)]
pub struct AssetCommand {
    /// The program. It gets the path of the image, and prints one URL.
    pub program: Program,
}

/// The reason why an image has no URL.
#[derive(Debug, thiserror::Error)]
pub enum NoAddress {
    /// The command failed.
    #[error("`--asset-command`")]
    Program(#[from] ProgramError),
    /// It succeeded, and printed something else.
    #[error("`--asset-command` printed {0}")]
    Nonsense(String),
    /// The image has changed since the manifest was read.
    #[error("it changed during the run; the next run plans with the new content")]
    Changed,
    /// The image is unreadable now.
    #[error("can't read the file again")]
    Gone(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl NoAddress {
    /// Returns whether the command is the cause, and not the image.
    pub fn is_of_the_command(&self) -> bool {
        matches!(self, Self::Program(_) | Self::Nonsense(_))
    }
}

impl AssetCommand {
    /// Uploads an image, and returns its URL.
    pub async fn address(&self, image: &LocalImage) -> Result<String, NoAddress> {
        is_unchanged(image).await?;
        let said = self.program.run(&image.path, &[]).await?;
        let address = address_in(&said.output).map_err(NoAddress::Nonsense)?;
        // The image may have changed during the upload.
        is_unchanged(image).await?;
        Ok(address)
    }
}

async fn is_unchanged(image: &LocalImage) -> Result<(), NoAddress> {
    let path = image.path.clone();
    let read =
        on_a_thread(move || read_at_most(&path, LocalImage::MAX_BYTES).map(|bytes| LocalImage::new(path, &bytes)));
    let now = match read.await {
        Ok(Ok(now)) => now,
        Ok(Err(ReadError::Io(error))) | Err(error) => return Err(NoAddress::Gone(error.into())),
        Ok(Err(error)) => return Err(NoAddress::Gone(error.into())),
    };
    if now == *image { Ok(()) } else { Err(NoAddress::Changed) }
}

/// The URL, if it is the whole output.
fn address_in(output: &str) -> Result<String, String> {
    let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    let Some(address) = lines.next() else { return Err("nothing, and one address is expected".to_owned()) };
    let more = lines.count();
    if more > 0 {
        return Err(format!("{} lines, and one address is expected", more + 1));
    }
    if address.len() > MAX_ADDRESS {
        return Err(format!("an address of {} bytes, and no server takes that", address.len()));
    }
    if let Some(fault) = why_no_web_address(address) {
        let shown: String = crate::domain::text::one_line(address).chars().take(100).collect();
        return Err(format!("`{shown}`, which {fault}"));
    }
    if has_password(address) {
        return Err("an address with a password in it, which the service and the ledger would get to know".to_owned());
    }
    Ok(address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_is_expected_and_nothing_else() {
        assert_eq!(address_in("https://x/a.png\r\n").as_deref(), Ok("https://x/a.png"));
        for bad in [
            "",
            "\n",
            "https://x/a\nhttps://x/b\n",
            "file:///tmp/a.png",
            "uploaded: https://x/a",
            "a.png",
            "s3://b/a",
            "https://x/\u{1b}[31m1",
            "https://x/a b.png",
            "https://me:secret@x/a.png",
        ] {
            assert!(address_in(bad).is_err(), "{bad:?}");
        }
        assert!(address_in(&format!("https://x/{}", "a".repeat(MAX_ADDRESS))).is_err());
    }
}
