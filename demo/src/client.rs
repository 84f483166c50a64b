//! The commands from a second terminal.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::control::{Act, Reply, Request};
use crate::home::Home;
use crate::say::{command, print};
use crate::status::Status;

/// A start may wait 20 s for its part, Postgres 30 s, an orderly end for both kinds.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Shows how the parts are.
pub(crate) fn status(home: &Option<PathBuf>, json: bool) -> anyhow::Result<ExitCode> {
    let status = match exchange(&Home::new(home.clone())?, &Request::Status)? {
        Reply::Status(status) => status,
        other => return finish(other),
    };
    print(&if json { serde_json::to_string(&status)? } else { status.table() });
    Ok(ExitCode::SUCCESS)
}

/// Has something done to a part.
pub(crate) fn act(home: &Option<PathBuf>, act: Act, part: String) -> anyhow::Result<ExitCode> {
    ask(home, &Request::Act { act, part })
}

/// Sends a command and shows what came of it.
pub(crate) fn ask(home: &Option<PathBuf>, request: &Request) -> anyhow::Result<ExitCode> {
    finish(exchange(&Home::new(home.clone())?, request)?)
}

/// The address of a service's database in the running shop.
pub(crate) fn database(home: &Option<PathBuf>, name: &str) -> anyhow::Result<String> {
    match exchange(&Home::new(home.clone())?, &Request::Database { name: name.to_owned() })? {
        Reply::Done(address) => Ok(address),
        Reply::Error(text) => bail!("{text}"),
        other => finish(other).and_then(|_| bail!("the shop answered something else")),
    }
}

/// Ends the shop and waits until nothing of it is left.
pub(crate) fn down(home: &Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let home = Home::new(home.clone())?;
    let mut stream = connect(&home)?;
    send(&mut stream, &Request::Down)?;
    // The keeper lets go of this connection last of all.
    stream.read_to_end(&mut Vec::new()).context("the shop does not end")?;
    print("the shop is closed");
    Ok(ExitCode::SUCCESS)
}

/// The status of the shop that runs in this folder, or `None` while it is starting.
pub(crate) fn running(home: &Home) -> anyhow::Result<Option<Status>> {
    match exchange(home, &Request::Status)? {
        Reply::Status(status) => Ok(Some(status)),
        Reply::Starting => Ok(None),
        Reply::Done(text) | Reply::Error(text) => bail!("{text}"),
    }
}

fn finish(reply: Reply) -> anyhow::Result<ExitCode> {
    match reply {
        Reply::Done(text) => print(&text),
        Reply::Error(text) => bail!("{text}"),
        Reply::Starting => bail!("the shop is still starting: try again in a moment"),
        Reply::Status(_) => bail!("the shop answered something else"),
    }
    Ok(ExitCode::SUCCESS)
}

fn exchange(home: &Home, request: &Request) -> anyhow::Result<Reply> {
    let mut stream = connect(home)?;
    send(&mut stream, request)?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).context("the shop does not answer")?;
    if line.is_empty() {
        bail!("the shop is closing");
    }
    serde_json::from_str(&line).context("the shop's answer is not understood; is it another version?")
}

fn connect(home: &Home) -> anyhow::Result<UnixStream> {
    let stream = match UnixStream::connect(home.socket()) {
        Ok(stream) => stream,
        Err(fault) if matches!(fault.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            let start = if command() == "watertight" { "watertight" } else { "cargo run" };
            bail!("no shop is running in {}: start one with `{start}`", home.path().display());
        }
        Err(fault) => return Err(fault).context("cannot reach the shop"),
    };
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    Ok(stream)
}

fn send(stream: &mut UnixStream, request: &Request) -> anyhow::Result<()> {
    let line = format!("{}\n", serde_json::to_string(request)?);
    stream.write_all(line.as_bytes()).context("the shop does not take the command")
}
