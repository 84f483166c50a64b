//! The processes below a process, as `/proc` tells them: listing, pausing, resuming and killing them together.
//!
//! A server is rarely one process: Postgres has a child for each connection, RabbitMQ's start script has the
//! virtual machine below it. A pause that stops the parent alone leaves the children answering.

use std::fmt;
use std::fs;

use anyhow::Context as _;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What a process is doing, as far as a drill cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It runs, or waits for something.
    Running,
    /// It is gone, or about to be (a zombie runs no code).
    Stopped,
    /// It was stopped by SIGSTOP: it holds its connections and answers nothing.
    Paused,
}

impl State {
    /// `running`, `stopped` or `paused`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Paused => "paused",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the process of this number is doing.
pub fn state(pid: i32) -> State {
    // The name stands in brackets and may hold anything, brackets too: the state comes after the last one.
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let letter = stat.iter().rposition(|byte| *byte == b')').and_then(|at| stat.get(at + 2));
    match letter {
        None | Some(b'Z' | b'X' | b'x') => State::Stopped,
        Some(b'T' | b't') => State::Paused,
        Some(_) => State::Running,
    }
}

/// The processes below this one, itself not included, parents before their children.
///
/// One that lost its parent is no longer below it: read the tree before you end its root.
pub fn below(root: i32) -> Vec<i32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        for child in children(pid) {
            if !found.contains(&child) {
                found.push(child);
            }
        }
        next += 1;
    }
    found.remove(0);
    found
}

/// The children of a process. Each of its threads has a list of its own.
fn children(pid: i32) -> Vec<i32> {
    // A process that ends while it is looked at has no children: what it had went to another parent.
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        .collect()
}

/// Sends a signal to one process. One that is gone already is no error.
pub fn signal(pid: i32, signal: Signal) -> anyhow::Result<()> {
    match kill(Pid::from_raw(pid), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(fault) => Err(fault).with_context(|| format!("cannot send {signal} to process {pid}")),
    }
}

/// Stops a process and all below it, and returns them.
///
/// Parents first, and again until nobody new turns up: a stopped process starts no more children.
pub(crate) fn pause(root: i32) -> anyhow::Result<Vec<i32>> {
    let mut stopped = vec![root];
    signal(root, Signal::SIGSTOP)?;
    loop {
        let fresh: Vec<i32> = below(root).into_iter().filter(|pid| !stopped.contains(pid)).collect();
        if fresh.is_empty() {
            return Ok(stopped);
        }
        for pid in fresh {
            signal(pid, Signal::SIGSTOP)?;
            stopped.push(pid);
        }
    }
}

/// Lets a process and all below it go on. Children first, so that no parent finds one missing.
pub(crate) fn resume(root: i32) -> anyhow::Result<()> {
    for pid in below(root).into_iter().rev() {
        signal(pid, Signal::SIGCONT)?;
    }
    signal(root, Signal::SIGCONT)
}

/// Kills a process and all below it, as the end of a container does.
pub(crate) fn kill_all(root: i32) -> anyhow::Result<()> {
    for pid in pause(root)? {
        signal(pid, Signal::SIGKILL)?;
    }
    Ok(())
}
