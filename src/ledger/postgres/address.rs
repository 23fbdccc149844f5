//! The URL of the database, with its password and certificate.
//!
//! `postgres://USER@HOST:PORT/DATABASE`, as libpq reads it. The password is in the URL, in `PGPASSWORD`, or in a
//! password file (`PGPASSFILE`, `~/.pgpass`). The connection is encrypted and the server's certificate verified, unless
//! the server is local or the URL has `sslmode=disable`; `sslrootcert=FILE` names an authority, and `system` the machine's store.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::domain::displayed;
use crate::ledger::AddressError;

/// The longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time after which a connection with unacknowledged bytes counts as broken.
const SILENCE: Duration = Duration::from_secs(20);
/// The port of PostgreSQL.
const PORT: u16 = 5432;

/// A database that can be connected to. `Debug` prints no password: the client's configuration hides its own.
#[derive(Clone, Debug)]
pub struct PostgresAddress {
    pub(super) config: Box<Config>,
    /// The address as given, without a password.
    shown: Box<str>,
    /// The file with the authority that is trusted in place of this machine's.
    pub(super) root_cert: Option<PathBuf>,
    has_password: bool,
}

impl PostgresAddress {
    /// Reads an address, and finds its password. `environment` gives the value of a variable.
    pub fn new(text: &str, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, AddressError> {
        let (plain, sslmode, root_cert) = without_own_options(text);
        // The client knows the scheme in small letters.
        let plain = plain.split_once("://").map_or_else(String::new, |(_, rest)| format!("postgres://{rest}"));
        if text.contains("sslcert=") || text.contains("sslkey=") {
            return Err(AddressError::NotOne("client certificates are not supported: use a password".to_owned()));
        }
        let config: Result<Config, _> = plain.parse();
        let mut config = config.map_err(|error: tokio_postgres::Error| {
            // The cause names the part of the URL, and never quotes a password.
            let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            AddressError::NotOne(why)
        })?;
        let hosts = config.get_hosts();
        let faults = [
            (hosts.iter().any(|host| host_name(host).contains('@')), "write an @ in a password as %40, and a / as %2F"),
            (config.get_options().is_some(), "`options` is not supported: each transaction has settings of its own"),
            (hosts.is_empty(), "it names no host"),
            (config.get_dbname().is_none(), "it names no database"),
        ];
        if let Some((_, why)) = faults.into_iter().find(|(is_so, _)| *is_so) {
            return Err(AddressError::NotOne(why.to_owned()));
        }
        let has_password = config.get_password().is_some();
        if config.get_user().is_none() {
            let user = ["PGUSER", "USER"].iter().find_map(|name| environment(name));
            config.user(user.unwrap_or_else(|| "postgres".into()).to_string_lossy());
        }
        let is_near = config.get_hosts().iter().all(is_near);
        config.ssl_mode(match sslmode {
            Some("disable") => SslMode::Disable,
            None if is_near => SslMode::Disable,
            None | Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            Some(_) => {
                let known = "sslmode is disable, require, verify-ca or verify-full, and each but the first verifies";
                return Err(AddressError::NotOne(known.to_owned()));
            }
        });
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.tcp_user_timeout(SILENCE).keepalives_idle(SILENCE).application_name("shotlist");
        if config.get_password().is_none()
            && let Some(password) = password(&config, environment)?
        {
            config.password(password);
        }
        let shown = without_password(text).into();
        Ok(Self { config: Box::new(config), shown, root_cert, has_password })
    }

    /// Returns whether the text contains a password, which every user of a machine can read on a command line.
    pub fn has_password(&self) -> bool {
        self.has_password
    }
}

// The address as given, with every host and option, and never with a password.
displayed!(PostgresAddress(it): it.shown);

/// A valid address without the password, which follows the user or is an option. As for the client, the first `@` ends the user.
fn without_password(text: &str) -> String {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let (user, rest) = match rest.split_once('@') {
        Some((user, rest)) => (format!("{}@", user.split(':').next().unwrap_or_default()), rest),
        None => (String::new(), rest),
    };
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    // A name may be encoded.
    let is_shown =
        |option: &&str| option.split('=').next().is_some_and(|name| name != "password" && !name.contains('%'));
    let options: Vec<&str> = options.split('&').filter(|option| !option.is_empty()).filter(is_shown).collect();
    let mark = if options.is_empty() { "" } else { "?" };
    format!("postgres://{user}{place}{mark}{}", options.join("&"))
}

/// The URL without the options of libpq that the client does not have, and their values: `sslmode` and `sslrootcert`.
fn without_own_options(text: &str) -> (String, Option<&str>, Option<PathBuf>) {
    let Some((address, query)) = text.split_once('?') else { return (text.to_owned(), None, None) };
    let (own, rest): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|option| option.starts_with("sslmode=") || option.starts_with("sslrootcert="));
    let value = |name: &str| own.iter().rev().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
    // As for libpq, `system` is the certificate store of this machine.
    let root = value("sslrootcert").filter(|value| *value != "system");
    let root = root.map(|value| value.replace("%2F", "/").replace("%2f", "/").into());
    let rest = if rest.is_empty() { address.to_owned() } else { format!("{address}?{}", rest.join("&")) };
    (rest, value("sslmode"), root)
}

fn is_near(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn host_name(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    }
}

/// The password of the environment, or of the first line of the password file that is about this database.
fn password(config: &Config, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Option<String>, AddressError> {
    if let Some(password) = environment("PGPASSWORD").filter(|password| !password.is_empty()) {
        return Ok(Some(password.to_string_lossy().into_owned()));
    }
    let usual = || Some(Path::new(&environment("HOME")?).join(".pgpass"));
    let Some(path) = environment("PGPASSFILE").map(PathBuf::from).or_else(usual) else { return Ok(None) };
    // A missing password is valid: a server may need none.
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if std::fs::metadata(&path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0) {
            return Err(AddressError::OpenPasswordFile(path));
        }
    }
    let host = config.get_hosts().first().map(host_name).unwrap_or_default();
    let port = config.get_ports().first().unwrap_or(&PORT).to_string();
    let wanted = [&host, &port, config.get_dbname().unwrap_or_default(), config.get_user().unwrap_or_default()];
    Ok(text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, about) = fields.split_last()?;
        let is_meant = about.len() == wanted.len() && about.iter().zip(wanted).all(|(it, own)| it == "*" || it == own);
        is_meant.then(|| password.clone())
    }))
}

/// The fields of a line, between colons; a backslash escapes the next character.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let taken = match character {
            // The password is the rest of the line.
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                continue;
            }
            '\\' => characters.next(),
            other => Some(other),
        };
        if let Some(last) = fields.last_mut() {
            last.extend(taken);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, variables: &[(&str, &str)]) -> Result<PostgresAddress, AddressError> {
        PostgresAddress::new(text, &|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn password_of_environment_or_file_is_never_shown() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pgpass");
        std::fs::write(&file, "# of the team\nother:5432:books:ann:no\ndb.example:*:books:ann:a\\:b:c\n")
            .expect("a file");
        let file = file.to_str().expect("a path");
        let books = "postgres://ann@db.example/books";
        let found = |variables: &[(&str, &str)]| {
            read(books, variables).map(|it| it.config.get_password().map(|it| String::from_utf8_lossy(it).into_owned()))
        };
        assert_eq!(found(&[]), Ok(None));
        assert_eq!(found(&[("PGPASSWORD", "p")]), Ok(Some("p".to_owned())));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let open = found(&[("PGPASSFILE", file)]);
            assert_eq!(open, Err(AddressError::OpenPasswordFile(file.into())));
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        }
        assert_eq!(found(&[("PGPASSFILE", file)]), Ok(Some("a:b:c".to_owned())));
        let with = "postgres://ann:secret@db.example/books";
        let address = read(with, &[]).expect("an address");
        let by_variable = read(books, &[("PGPASSWORD", "secret")]).expect("an address");
        assert!(address.has_password() && !by_variable.has_password());
        assert_eq!(address.to_string(), books);
        assert!(!format!("{address:?} {by_variable:?}").contains("secret"));
        for (given, shown) in [
            ("postgres://ann:se?cret@db/books", "postgres://ann@db/books"),
            (
                "postgres://ann:secret@a:6000,b/books?target_session_attrs=read-write",
                "postgres://ann@a:6000,b/books?target_session_attrs=read-write",
            ),
            (
                "postgres://db/books?user=ann&password=secret&sslrootcert=ca.pem",
                "postgres://db/books?user=ann&sslrootcert=ca.pem",
            ),
        ] {
            let address = read(given, &[]).expect("an address");
            assert_eq!(address.to_string(), shown);
        }
    }

    #[test]
    fn remote_connections_are_encrypted_and_verified() {
        let mode = |text: &str| read(text, &[]).map(|address| address.config.get_ssl_mode());
        assert_eq!(mode("postgres://ann@db.example/books"), Ok(SslMode::Require));
        assert_eq!(mode("postgres://ann@db.example/books?sslmode=require"), Ok(SslMode::Require));
        assert_eq!(mode("postgres://ann@db.example/books?sslmode=disable"), Ok(SslMode::Disable), "as it was said");
        assert_eq!(mode("postgres://ann@127.0.0.1:6000/books"), Ok(SslMode::Disable));
        assert_eq!(mode("postgres://ann@[::1]/books?sslmode=verify-full"), Ok(SslMode::Require));
        #[cfg(unix)]
        assert_eq!(mode("postgresql://ann@/books?host=/run/postgresql"), Ok(SslMode::Disable));
        let own = read("postgres://ann@db/books?sslrootcert=/etc/ca.pem&connect_timeout=3", &[]).expect("an address");
        assert_eq!(own.root_cert.as_deref(), Some(Path::new("/etc/ca.pem")));
        let system = read("postgres://ann@db/books?sslrootcert=system", &[]).expect("an address");
        assert_eq!((system.root_cert, system.config.get_ssl_mode()), (None, SslMode::Require));
        assert_eq!(
            read("POSTGRES://ann@db/books", &[]).map(|it| it.to_string()),
            Ok("postgres://ann@db/books".to_owned())
        );
        for wrong in [
            "postgres://",
            "postgres://ann@h:port/x",
            "postgres:///books",
            "postgres://ann@db",
            "postgres://ann@db/x?sslmode=prefer",
            "postgres://ann:a@b@db/x",
            "postgres://ann@db/x?sslcert=ann.pem&sslkey=ann.key",
            "postgres://ann@db/x?options=-csearch_path%3Dother",
        ] {
            assert!(matches!(read(wrong, &[]), Err(AddressError::NotOne(_))), "{wrong}");
        }
    }
}
