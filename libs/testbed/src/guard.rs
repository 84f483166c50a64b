//! The guard: whatever ends us, even `kill -9`, ends what we started.
//!
//! The obvious ways do not hold. `kill_on_drop` runs no code in a killed process. `PR_SET_PDEATHSIG` goes to
//! one child, not to the children it forks, and fires when the *thread* that spawned it ends. Killing the
//! process group misses whoever left it: every Postgres backend calls `setsid`. Watching standard input is no
//! help to a program that is stopped.
//!
//! So every program is started through a few lines of `sh` (`guard.sh`), which any binary can do, a test
//! binary included:
//!
//! 1. The shell's standard input is a pipe. We hold its only writing end, the **lifeline**, for as long as the
//!    program shall live. The kernel closes it when we die, however we die.
//! 2. The shell starts a **watcher** in the background, then becomes the program by `exec`: so the child's
//!    number is the program's own, and the program has no child that it does not know.
//! 3. The watcher waits for the end of the pipe. Then it stops and kills the program and the whole tree below
//!    it, and whoever still holds the program's log open as its standard output or error: those are descendants
//!    that lost their parent (a stopped backend of a killed Postgres).
//! 4. The watcher holds the writing end of a second pipe, the **all-clear**. It ends once nothing is left, and
//!    tells us that the program may be started again on the same port and data.
//!
//! It is free of races: the watcher exists before the program does, and the shell says so with a line on the
//! second pipe, before which nobody is told of the program. By then the watcher is an orphan, so it is not in the
//! tree of the program and a pause does not reach it. It does not depend on process numbers that
//! may have been given to others: the watcher stays in the program's process group, whose number is the
//! program's, and the kernel gives a number to nobody while a group bears it. For that reason, and because a
//! signal to the group would reach the watcher too, signals go to processes and never to groups.
//! A log belongs to one program, else the third step would end a stranger.

use std::fs::OpenOptions;
use std::io::{PipeReader, PipeWriter, Read as _};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use tokio::process::{Child, Command};

use crate::spec::Spec;

/// The wrapper, see above.
const SCRIPT: &str = include_str!("guard.sh");

/// How long a shell may need to begin. It needs milliseconds; the bound is for a machine that is nearly dead.
const GUARD_WITHIN: Duration = Duration::from_secs(10);

/// A program that was started under the guard.
pub(crate) struct Guarded {
    /// The program itself: the shell has become it.
    pub(crate) child: Child,
    /// Its process number.
    pub(crate) pid: i32,
    /// Dropping it ends the program and all below it.
    pub(crate) lifeline: PipeWriter,
    /// Ends when nothing is left.
    pub(crate) all_clear: AllClear,
}

/// The reading end of the pipe that the watcher holds open until nothing of the program is left.
#[derive(Debug)]
pub(crate) struct AllClear(PipeReader);

/// Starts a program under the guard, its output going to its log.
pub(crate) fn spawn(spec: &Spec) -> anyhow::Result<Guarded> {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&spec.log)
        .with_context(|| format!("cannot open the log {}", spec.log.display()))?;
    let (life_read, lifeline) = std::io::pipe().context("no pipe for the guard")?;
    let (clear_read, clear_write) = std::io::pipe().context("no pipe for the guard")?;

    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(SCRIPT).arg("guard").arg(&spec.program).args(&spec.args);
    if spec.own_environment {
        command.env_clear();
    }
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::from(life_read)).stdout(Stdio::from(clear_write)).stderr(Stdio::from(log));
    // A group of its own: Ctrl-C in a terminal is for us, and we end our parts in order.
    command.process_group(0);
    if let Some(account) = &spec.account {
        // As root this also drops the supplementary groups.
        command.uid(account.uid).gid(account.gid);
    }
    if let Some(dir) = &spec.dir {
        command.current_dir(dir);
    }
    let child = command.spawn().with_context(|| format!("cannot start {}", spec.name))?;
    // The command still holds our copy of the all-clear's writing end.
    drop(command);
    let pid = child.id().context("the child is gone before it was waited for")?;
    let all_clear = AllClear(clear_read);
    all_clear.wait_for_guard()?;
    Ok(Guarded { child, pid: i32::try_from(pid)?, lifeline, all_clear })
}

impl AllClear {
    /// Blocks until the watcher stands: as long as a shell needs to begin, some milliseconds.
    fn wait_for_guard(&self) -> anyhow::Result<()> {
        self.poll(GUARD_WITHIN).context("the guard does not start")?;
        let mut line = [0_u8; 1];
        let read = (&self.0).read(&mut line).context("cannot hear the guard")?;
        ensure!(read == 1, "the guard ended at its start");
        Ok(())
    }

    /// Blocks until nothing is left, at most so long.
    pub(crate) fn wait(&self, within: Duration) -> anyhow::Result<()> {
        self.poll(within).context("some of its processes are still there")
    }

    fn poll(&self, within: Duration) -> anyhow::Result<()> {
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        let limit = PollTimeout::try_from(within).unwrap_or(PollTimeout::MAX);
        loop {
            match nix::poll::poll(&mut fds, limit) {
                Ok(0) => bail!("waited {within:?}"),
                Ok(_) => return Ok(()),
                Err(nix::errno::Errno::EINTR) => {}
                Err(fault) => return Err(fault).context("cannot wait for the guard"),
            }
        }
    }

    /// Another handle on the same pipe.
    pub(crate) fn another(&self) -> anyhow::Result<Self> {
        Ok(Self(self.0.try_clone().context("no handle on the guard's pipe")?))
    }
}
