//! Connecting, with a hand on the socket.
//!
//! lapin runs a thread for each connection, and that thread cannot be told to stop: a connect that was given up
//! goes on for as long as its peer keeps the socket open, and a stopped broker does that for hours. Twenty such
//! connects left 21 threads and 20 sockets behind. So the socket is made here, and a second handle on it is kept:
//! shutting it down makes the thread's next read return nothing, and the thread ends.

use std::{
    io,
    net::{Shutdown, TcpStream},
    os::fd::AsFd as _,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use lapin::{
    Connection, ConnectionProperties,
    tcp::{AMQPUriTcpExt as _, AsyncTcpStream},
};
use tokio::time::timeout;

use crate::settings::Settings;

/// A server on the same network answers a connect within milliseconds, or is not there.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);

/// Ends a connection from outside, however it is: dropping it cuts the socket.
#[derive(Debug, Default)]
pub(crate) struct Cutter(Arc<Mutex<Socket>>);

#[derive(Debug, Default)]
enum Socket {
    #[default]
    None,
    Open(TcpStream),
    Cut,
}

/// Opens a connection. Dropping the cutter ends it, and ends a connect that is under way.
pub(crate) async fn connect(settings: &Settings, cutter: &Cutter) -> lapin::Result<Connection> {
    let properties = ConnectionProperties::default().with_connection_name(settings.name.into());
    let socket = Arc::clone(&cutter.0);
    let runtime = lapin::runtime::default_runtime()?;
    Connection::connector(
        settings.uri.clone(),
        runtime,
        async move |uri, runtime| {
            let stream =
                timeout(CONNECT_WITHIN, uri.connect_async(&runtime)).await.map_err(io::Error::from)??;
            let AsyncTcpStream::Plain(plain) = &stream else {
                // The settings refuse TLS.
                return Err(io::Error::from(io::ErrorKind::Unsupported).into());
            };
            let handle = plain.get_ref().as_fd().try_clone_to_owned()?;
            let mut socket = socket.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(*socket, Socket::Cut) {
                return Err(io::Error::from(io::ErrorKind::ConnectionAborted).into());
            }
            *socket = Socket::Open(handle.into());
            drop(socket);
            Ok(stream)
        },
        properties,
    )
    .await
}

impl Cutter {
    /// Shuts the socket down now. Whoever waits on it gets an error.
    pub(crate) fn cut(&self) {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Socket::Open(stream) = std::mem::replace(&mut *socket, Socket::Cut) {
            // It fails when the peer was first, and then there is nothing to do.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.cut();
    }
}
