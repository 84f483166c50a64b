//! When a part counts as started: it answers in its own protocol.
//!
//! An open port is no answer. Postgres accepts connections while it recovers and refuses them one by one;
//! a service listens before it says that it is ready.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What to ask a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    /// Nothing: to be spawned is enough.
    Spawned,
    /// `GET path` answers 200.
    Http {
        /// Where to ask.
        address: SocketAddr,
        /// What to ask for, such as `/ready`.
        path: String,
    },
    /// Postgres asks for a password, or lets in: it accepts sessions.
    Postgres {
        /// Where to ask.
        address: SocketAddr,
        /// On whose behalf.
        user: String,
    },
    /// RabbitMQ opens a session: it takes connections.
    Amqp {
        /// Where to ask.
        address: SocketAddr,
    },
    /// Erlang's port mapper answers.
    Epmd {
        /// Where to ask.
        address: SocketAddr,
    },
}

impl Ready {
    /// Asks once.
    ///
    /// # Errors
    /// Tells why the part is not ready.
    pub async fn ask(&self) -> anyhow::Result<()> {
        match self {
            Self::Spawned => Ok(()),
            Self::Http { address, path } => http(*address, path).await,
            Self::Postgres { address, user } => postgres(*address, user).await,
            Self::Amqp { address } => amqp(*address).await,
            Self::Epmd { address } => epmd(*address).await,
        }
    }
}

async fn connect(address: SocketAddr) -> anyhow::Result<TcpStream> {
    TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))
}

async fn http(address: SocketAddr, path: &str) -> anyhow::Result<()> {
    let mut stream = connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // The bound is for whoever is on that port instead of the part.
    stream.take(16 * 1024).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let line = answer.lines().next().unwrap_or_default();
    match line.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => bail!("{address}{path} answered {line:?}"),
    }
}

/// Sends the first message of a session and looks at the first byte of the answer.
/// No password is sent and no session begins.
async fn postgres(address: SocketAddr, user: &str) -> anyhow::Result<()> {
    let mut stream = connect(address).await?;
    let mut body = 196_608_i32.to_be_bytes().to_vec(); // protocol 3.0
    for text in ["user", user, "database", "postgres"] {
        body.extend_from_slice(text.as_bytes());
        body.push(0);
    }
    body.push(0);
    let length = i32::try_from(body.len() + 4)?;
    stream.write_all(&length.to_be_bytes()).await?;
    stream.write_all(&body).await?;
    match stream.read_u8().await.context("closed without an answer")? {
        b'R' => {
            // Read to its end: a socket closed with something unread is reset, and the server's log says so.
            let rest = stream.read_i32().await?.clamp(4, 64) - 4;
            stream.read_exact(&mut vec![0; usize::try_from(rest)?]).await?;
            Ok(())
        }
        b'E' => bail!("the server does not take sessions yet"),
        other => bail!("{address} answered {other:#04x}, which is not Postgres"),
    }
}

/// Says which protocol it speaks and reads the head of the answer, which has to be `Connection.Start`: a method
/// frame of channel 0 that holds the method 10 of class 10. A broker of another version answers with its own
/// protocol header.
async fn amqp(address: SocketAddr) -> anyhow::Result<()> {
    let mut stream = connect(address).await?;
    stream.write_all(b"AMQP\0\0\x09\x01").await?;
    let mut head = [0_u8; 11];
    stream.read_exact(&mut head).await.context("closed without an answer")?;
    match head {
        [1, 0, 0, _, _, _, _, 0, 10, 0, 10] => Ok(()),
        other => bail!("{address} answered {other:?}, which is not RabbitMQ"),
    }
}

/// Asks for the names that are registered. The answer begins with the port that was asked.
async fn epmd(address: SocketAddr) -> anyhow::Result<()> {
    const NAMES: &[u8] = &[0, 1, b'n'];
    let mut stream = connect(address).await?;
    stream.write_all(NAMES).await?;
    let port = stream.read_u32().await.context("closed without an answer")?;
    if port != u32::from(address.port()) {
        bail!("{address} answered {port}, which is not epmd");
    }
    Ok(())
}
