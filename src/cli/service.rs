//! The service's address and key: from the command line, the environment or a file, never from a manifest.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::args::{ManifestArgs, RunArgs, ServiceArgs};
use super::exit::{Failure, failure};
use super::manifest::catalog;
use super::program::variable;
use crate::domain::with_causes;
use crate::files::read_text;
use crate::plan::{Plan, ServiceView};
use crate::service::{ApiKey, Credentials, Endpoint, GatewayHeader};
use crate::session::{Connection, ConnectionError, ConnectionOptions, Refusal};

const KEY_VARIABLE: &str = "SHOTLIST_API_KEY";
/// The maximum wait for a key, because a password manager may prompt for its password.
const KEY_TIMEOUT: Duration = Duration::from_mins(1);
/// A key file of more bytes than this is no key file.
const MAX_KEY_FILE: u64 = 8 * 1024;
/// Time to read output after the program exits: a child process may keep the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The address that the user gave.
pub(super) fn endpoint(args: &ServiceArgs) -> Result<Endpoint, Failure> {
    let Some(base_url) = &args.base_url else {
        return Err(failure!(UrlMissing, "the base URL is not set";
            "pass `--base-url`, or set `SHOTLIST_BASE_URL`; `--sandbox` needs none"));
    };
    Endpoint::parse(base_url, args.allow_http).map_err(|error| {
        let help = match error {
            crate::service::InvalidEndpoint::PlainHttp(_) => "write `https`, or pass `--allow-http` to accept that",
            crate::service::InvalidEndpoint::Versioned(_) => "leave out the version",
            _ => "write, for example, `https://api.example.com`",
        };
        failure!(UrlInvalid, "`--base-url`: {error}").with_help(help)
    })
}

/// The key that the user gave.
pub(super) fn key(args: &ServiceArgs) -> Result<ApiKey, Failure> {
    let (text, source) = if let Some(path) = &args.api_key_file {
        (read(path)?, format!("key file `{}`", path.display()))
    } else if let Some(command) = &args.api_key_command {
        (printed_by(command)?, "the output of `--api-key-command`".to_owned())
    } else if let Some(text) = variable(KEY_VARIABLE) {
        // A key that is not UTF-8 is reported as invalid.
        (text.to_string_lossy().into_owned(), format!("`{KEY_VARIABLE}`"))
    } else {
        return Err(failure!(KeyMissing, "the API key is not set";
            "set `{KEY_VARIABLE}`, or name a file with `--api-key-file`"));
    };
    keep_out_of_dumps();
    ApiKey::new(&text).map_err(|error| {
        failure!(KeyInvalid, "{source} must contain an API key: {error}";
            "copy the key again, as one line and without quotes")
    })
}

/// The key, and the headers for a gateway.
pub(super) fn credentials(args: &ServiceArgs, key: ApiKey) -> Result<Credentials, Failure> {
    let refused = |error: String| failure!(OptionInvalid, "`--header`: {error}");
    // A variable of several lines ends in one that is empty.
    let said = args.header.iter().filter(|header| !header.trim().is_empty());
    let headers = said.map(|header| GatewayHeader::parse(header)).collect::<Result<Vec<_>, _>>();
    let headers = headers.map_err(|error| refused(error.to_string()))?;
    let mut names = HashSet::new();
    if let Some(twice) = headers.iter().find(|header| !names.insert(header.name())) {
        return Err(refused(format!("`{}` is set twice", twice.name())));
    }
    Ok(Credentials::new(key, headers))
}

/// Refuses a plan that would show a known secret. A plan needs no key, and starts no program for one.
pub(super) fn check_secrets(args: &RunArgs, plan: &Plan) -> Result<(), Failure> {
    let ServiceArgs { api_key_file, api_key_command, .. } = &args.service;
    let text = match api_key_file {
        // A pipe is left to the run.
        Some(path) => read_text(path, MAX_KEY_FILE).ok(),
        None => variable(KEY_VARIABLE).map(|text| text.to_string_lossy().into_owned()),
    };
    let is_named = !args.manifest.sandbox && (api_key_file.is_some() || api_key_command.is_none());
    let Some(key) = text.filter(|_| is_named).and_then(|text| ApiKey::new(&text).ok()) else { return Ok(()) };
    keep_out_of_dumps();
    let credentials = credentials(&args.service, key)?;
    let shown = plan.job_with_secret(|body| credentials.are_in(body));
    shown.map_or(Ok(()), |job| Err(Refusal::KeyInRequest { job: job.clone() }.into()))
}

/// Keeps the memory and the environment of this process from other processes of the user, and out of core dumps, while it has a key.
fn keep_out_of_dumps() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::warn!(
            code = crate::domain::NoticeCode::KeyUnprotected.code(),
            "can't keep the key out of core dumps: {error}"
        );
    }
}

/// The service as a saved plan names it. Needs no key; the simulator has no URL.
pub(super) fn service_view(args: &RunArgs) -> Result<ServiceView, Failure> {
    if args.manifest.sandbox {
        return Ok(ServiceView::default());
    }
    let given = &args.service;
    let base_url = given.base_url.as_ref().map(|_| endpoint(given)).transpose()?.map(|endpoint| endpoint.to_string());
    let names = given.header.iter().filter_map(|header| Some(header.split_once('=')?.0.trim().to_ascii_lowercase()));
    let mut headers: Vec<String> = names.filter(|name| !name.is_empty()).collect();
    headers.sort_unstable();
    Ok(ServiceView { base_url, headers })
}

/// The first line that a program prints, which is no argument and no part of any message. A password manager may print more below it.
fn printed_by(command: &str) -> Result<String, Failure> {
    let refused = |why: String| {
        failure!(KeyInvalid, "`--api-key-command`: {why}";
            "name a program that prints the key and exits with 0; run it by itself to see its errors")
    };
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| refused("it names no program".to_owned()))?;
    let mut command = std::process::Command::new(&words[0]);
    let child =
        command.args(&words[1..]).stdin(Stdio::inherit()).stderr(Stdio::inherit()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| refused(format!("can't start it: {error}")))?;
    let (tell, printed) = std::sync::mpsc::channel();
    let output = child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout.take(MAX_KEY_FILE)).lines());
    // On threads: a password manager may wait for an answer that never comes, and leave an agent behind that keeps the output open.
    std::thread::spawn(move || output.map_while(Result::ok).try_for_each(|line| tell.send(line)));
    let ended = in_time(move || child.wait());
    let ended = ended.ok_or_else(|| refused(format!("no key after {} s", KEY_TIMEOUT.as_secs())))?;
    let status = ended.map_err(|error| refused(error.to_string()))?;
    if !status.success() {
        return Err(refused(format!("it ended with {status}")));
    }
    Ok(printed.recv_timeout(LAST_WORDS).unwrap_or_default())
}

/// Waits for work on a thread as long as for a key.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, done) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(work()));
    done.recv_timeout(KEY_TIMEOUT).ok()
}

/// The text of a key file, which may be a pipe from another program.
fn read(path: &Path) -> Result<String, Failure> {
    let failure = |why: String, help: &str| {
        failure!(KeyInvalid, "can't read key file `{}`: {why}", path.display()).with_help(help)
    };
    let from = path.to_owned();
    // A pipe without a writer never ends.
    let read = in_time(move || {
        let file = std::fs::File::open(&from)?;
        warn_of_readers(&from, &file);
        std::io::read_to_string(file.take(MAX_KEY_FILE + 1))
    });
    let read = read.unwrap_or_else(|| Err(std::io::ErrorKind::TimedOut.into()));
    let text = read.map_err(|error| failure(with_causes(&error), "check the path and its permissions"))?;
    if text.len() as u64 > MAX_KEY_FILE {
        let why = format!("must have at most {MAX_KEY_FILE} bytes");
        return Err(failure(why, "name a file that contains only the key"));
    }
    Ok(text)
}

/// Warns if all users of this machine may read the key.
fn warn_of_readers(path: &Path, file: &std::fs::File) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let is_open = file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o004 != 0);
        if is_open {
            tracing::warn!(
                code = crate::domain::NoticeCode::KeyReadable.code(),
                "every user of this machine can read key file `{}`: run `chmod 600` on it",
                path.display()
            );
        }
    }
    #[cfg(not(unix))]
    let _nobody_else_by_default = (path, file);
}

/// The service's URL and credentials, read once: a key may come through a pipe. `None` for the simulator.
pub(crate) struct Address(Option<(Endpoint, Credentials)>);

/// Reads the address and the key. Reports a missing one before it creates a file.
pub(crate) fn address(manifest: &ManifestArgs, args: &ServiceArgs) -> Result<Address, Failure> {
    if manifest.sandbox {
        return Ok(Address(None));
    }
    let endpoint = endpoint(args)?;
    let credentials = credentials(args, key(args)?)?;
    Ok(Address(Some((endpoint, credentials))))
}

/// Connects to the service at an address that was read early, or is read now; or starts a simulator for jobs that take the service `simulated_wall`. Sends
/// nothing yet.
pub(crate) async fn connect(
    early: Option<Address>,
    manifest: &ManifestArgs,
    args: &ServiceArgs,
    simulated_wall: Duration,
) -> Result<Connection, Failure> {
    let Address(address) = early.map_or_else(|| address(manifest, args), Ok)?;
    let options = ConnectionOptions {
        same_account: args.same_account,
        allow_private_hosts: args.allow_private_hosts,
        allow_http: args.allow_http,
        catalog: catalog(manifest.catalog.as_deref())?,
        simulated_wall,
    };
    match address {
        None => Ok(Connection::to_simulator(options).await?),
        Some((endpoint, credentials)) => {
            Ok(Connection::to(endpoint, credentials, options).map_err(ConnectionError::from)?)
        }
    }
}
