//! The door for commands: a Unix socket in the shop's folder, one JSON line in, one out.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::shop::Shop;
use crate::status::Status;

/// No command is longer, in bytes.
const LONGEST_REQUEST: u64 = 64 * 1024;

/// What can be done to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Act {
    /// SIGKILL.
    Kill,
    /// SIGSTOP.
    Pause,
    /// SIGCONT.
    Resume,
    /// Again, on the same port and data.
    Start,
}

/// A command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Request {
    /// How is each part?
    Status,
    /// Do something to a part.
    Act {
        /// What.
        act: Act,
        /// To which.
        part: String,
    },
    /// Where is the database of a service?
    Database {
        /// Which service.
        name: String,
    },
    /// End the shop.
    Down,
}

/// The answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reply {
    /// How each part is.
    Status(Status),
    /// What was done, in words.
    Done(String),
    /// Why it was not done.
    Error(String),
    /// The shop is not open yet.
    Starting,
}

/// What the door leads to.
#[derive(Clone, Default)]
pub(crate) struct Door {
    /// The shop, once it is open.
    pub(crate) shop: Arc<OnceLock<Arc<Shop>>>,
    /// Cancelled by whoever wants the end.
    pub(crate) end: CancellationToken,
    /// Those who wait for it. They see it when this goes.
    pub(crate) waiting: Arc<Mutex<Vec<OwnedWriteHalf>>>,
}

/// Answers commands for as long as it is polled.
pub(crate) async fn serve(listener: UnixListener, door: Door) {
    let mut talks = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    talks.spawn(talk(stream, door.clone()));
                }
                // It comes from too many open files; in a while one may be to spare.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = talks.join_next() => {}
        }
    }
}

/// One command of one caller. A caller that goes away meanwhile does not stop what it asked for.
async fn talk(stream: UnixStream, door: Door) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut line = String::new();
    BufReader::new(read.take(LONGEST_REQUEST)).read_line(&mut line).await?;
    let reply = match serde_json::from_str(&line) {
        Ok(Request::Down) => {
            door.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(write);
            door.end.cancel();
            return Ok(());
        }
        Ok(request) => answer(request, &door).await,
        Err(fault) => Reply::Error(format!("not a command: {fault}")),
    };
    let mut line = serde_json::to_string(&reply)?;
    line.push('\n');
    write.write_all(line.as_bytes()).await
}

async fn answer(request: Request, door: &Door) -> Reply {
    let Some(shop) = door.shop.get() else {
        return Reply::Starting;
    };
    let done = match request {
        Request::Status => return Reply::Status(shop.status()),
        Request::Act { act, part } => shop.act(act, &part).await,
        Request::Database { name } => shop.database(&name),
        Request::Down => Ok("the shop is closing".into()),
    };
    done.map_or_else(|fault| Reply::Error(format!("{fault:#}")), Reply::Done)
}
