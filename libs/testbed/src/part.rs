//! A part of the shop: one program, which can be killed, paused, resumed, stopped and started again.
//!
//! A part keeps its [`Spec`], so a start after a kill gives the same program the same port, data and log.
//! It is shared by reference: whoever wants to know how it is can look while another starts or breaks it.

use std::io::PipeWriter;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{anyhow, bail};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::guard::{self, AllClear, Guarded};
use crate::spec::{Spec, Stop};
use crate::tree::{self, State};
use crate::{log, poll};

/// How long the end of a killed part may take: the kernel's work, not the program's.
const KILL_WITHIN: Duration = Duration::from_secs(10);
/// How long the guard may take for that. It takes some milliseconds; then we do its work.
const GUARD_WITHIN: Duration = Duration::from_secs(3);
/// How long until every process of a paused part is seen stopped.
const PAUSE_WITHIN: Duration = Duration::from_secs(5);
/// How much of the log an error shows.
const LOG_LINES: usize = 12;

/// Where a part is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Life {
    /// It was never started.
    New,
    /// It runs, or is paused: [`Part::state`] tells.
    Alive {
        /// Its process number.
        pid: i32,
        /// Whether we have asked it to end.
        asked: bool,
    },
    /// It ended, and what it left behind is being ended.
    Leaving {
        /// The process number it had.
        pid: i32,
    },
    /// Nothing of it is left.
    Ended(Ended),
}

/// How a part ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The process number it had.
    pub pid: i32,
    /// Whether we had asked for it: false is a death of its own.
    pub asked: bool,
    /// In words, such as `exit status: 1` or `signal: 9 (SIGKILL)`.
    pub how: String,
    /// Whether the program ended by itself with status 0.
    pub success: bool,
}

/// A program under the guard. Dropping it kills the program and all below it.
#[derive(Debug)]
pub struct Part {
    spec: Spec,
    life: Arc<watch::Sender<Life>>,
    /// What keeps the present run alive.
    hold: Mutex<Option<Hold>>,
    /// One start at a time.
    starting: tokio::sync::Mutex<()>,
    retired: AtomicBool,
}

#[derive(Debug)]
struct Hold {
    pid: i32,
    /// Shared with the task that waits for the child, which lets go of it when the child has ended.
    lifeline: Lifeline,
    all_clear: AllClear,
}

/// The writing end of the guard's pipe, until the run is let go.
type Lifeline = Arc<Mutex<Option<PipeWriter>>>;

fn cut(lifeline: &Lifeline) {
    lifeline.lock().unwrap_or_else(PoisonError::into_inner).take();
}

impl Part {
    /// A part that is not started yet.
    pub fn new(spec: Spec) -> Self {
        Self {
            spec,
            life: Arc::new(watch::channel(Life::New).0),
            hold: Mutex::new(None),
            starting: tokio::sync::Mutex::new(()),
            retired: AtomicBool::new(false),
        }
    }

    /// How it is run.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Its process number while it is there.
    pub fn pid(&self) -> Option<i32> {
        match *self.life.borrow() {
            Life::Alive { pid, .. } => Some(pid),
            _ => None,
        }
    }

    /// What it is doing right now, as the kernel says.
    pub fn state(&self) -> State {
        self.pid().map_or(State::Stopped, tree::state)
    }

    /// Follows its life, over every start and end.
    pub fn life(&self) -> watch::Receiver<Life> {
        self.life.subscribe()
    }

    /// Starts it, the first time or again, and waits until it is ready.
    ///
    /// # Errors
    /// When it is there already, cannot be started, ends at once, or is not ready in time. The error shows the
    /// end of its log. A part that is there but not ready goes on.
    pub async fn start(&self) -> anyhow::Result<()> {
        let _one_at_a_time = self.starting.lock().await;
        if self.pid().is_some() {
            bail!("{} is {} already", self.name(), self.state());
        }
        // What a run before left must be gone, else the port is taken.
        self.wait_until_gone(KILL_WITHIN).await?;
        self.spawn()?;
        let mut life = self.life();
        let waited = format!("{} to be ready", self.name());
        tokio::select! {
            ended = Self::end_of(&mut life) => Err(anyhow!("{} ended at its start ({})", self.name(), ended.how)),
            ready = poll::until(&waited, self.spec.ready_within, || self.spec.ready.ask()) => ready,
        }
        .map_err(|fault| self.with_log(&fault))
    }

    /// Runs a program to its end under the guard, such as one that prepares a server's data.
    ///
    /// # Errors
    /// When it cannot be started, fails, or takes too long; the error shows the end of its log.
    pub async fn run(spec: Spec, within: Duration) -> anyhow::Result<()> {
        let part = Self::new(spec);
        let mut life = part.life();
        part.spawn()?;
        match timeout(within, Self::end_of(&mut life)).await {
            Ok(ended) if ended.success => Ok(()),
            Ok(ended) => Err(part.with_log(&anyhow!("{} failed ({})", part.name(), ended.how))),
            Err(_) => Err(part.with_log(&anyhow!("{} took more than {within:?}", part.name()))),
        }
    }

    /// Kills it with SIGKILL, all its processes at once, as the end of a container does.
    /// Returns when nothing of it is left; true if it was there.
    ///
    /// # Errors
    /// When the kernel refuses, or something is left after 10 s.
    pub async fn kill(&self) -> anyhow::Result<bool> {
        let Some(pid) = self.while_alive(true, Ok)? else {
            self.wait_until_gone(KILL_WITHIN).await?;
            return Ok(false);
        };
        self.let_go(pid);
        if self.wait_until_gone(GUARD_WITHIN).await.is_err() {
            tracing::warn!(part = self.name(), "its guard does not answer");
            self.while_alive(true, tree::kill_all)?;
            self.wait_until_gone(KILL_WITHIN).await?;
        }
        Ok(true)
    }

    /// Asks it to end, and kills it when that takes too long. A paused part is resumed first: it could not
    /// hear. True if it was there.
    ///
    /// # Errors
    /// When the kernel refuses, or something is left after all.
    pub async fn stop(&self) -> anyhow::Result<bool> {
        let mut life = self.life();
        let Stop { signal, within } = self.spec.stop;
        let asked = self.while_alive(true, |pid| {
            tree::resume(pid)?;
            tree::signal(pid, signal)
        })?;
        if asked.is_none() {
            self.wait_until_gone(KILL_WITHIN).await?;
            return Ok(false);
        }
        if timeout(within, Self::end_of(&mut life)).await.is_err() {
            tracing::warn!(part = self.name(), ?within, "did not end in time; killing it");
            self.kill().await?;
        }
        Ok(true)
    }

    /// Stops all its processes with SIGSTOP: it keeps its connections and answers nothing, like a machine that
    /// hangs. Returns when they stand still.
    ///
    /// # Errors
    /// When it is not there, or the kernel refuses.
    pub async fn pause(&self) -> anyhow::Result<()> {
        let mut paused = Vec::new();
        let there = self.while_alive(false, |pid| {
            paused = tree::pause(pid)?;
            Ok(())
        })?;
        if there.is_none() {
            bail!("{} is stopped", self.name());
        }
        poll::until_true(&format!("{} to stand still", self.name()), PAUSE_WITHIN, || {
            paused.iter().all(|pid| tree::state(*pid) != State::Running)
        })
        .await
    }

    /// Lets it go on after a pause. Does nothing to a part that runs.
    ///
    /// # Errors
    /// When it is not there, or the kernel refuses.
    pub fn resume(&self) -> anyhow::Result<()> {
        if self.while_alive(false, tree::resume)?.is_none() {
            bail!("{} is stopped", self.name());
        }
        Ok(())
    }

    /// From now on it cannot be started. For a shutdown that others might cross with a start.
    pub fn retire(&self) {
        let _with_no_spawn = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        self.retired.store(true, Ordering::Release);
    }

    /// Does something to the process while it is sure to be ours; `None` when it is not there.
    ///
    /// The look holds a lock that the end of the process needs to be told, and until it is told the guard keeps
    /// the process's number: so no stranger gets our signal.
    fn while_alive<T>(
        &self,
        asked: bool,
        act: impl FnOnce(i32) -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        if asked {
            self.life.send_if_modified(|life| match life {
                Life::Alive { asked, .. } => !std::mem::replace(asked, true),
                _ => false,
            });
        }
        match *self.life.borrow() {
            Life::Alive { pid, .. } => act(pid).map(Some),
            _ => Ok(None),
        }
    }

    /// Lets the guard end the run of this number, if that is the present one.
    fn let_go(&self, pid: i32) {
        let hold = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hold) = hold.as_ref().filter(|hold| hold.pid == pid) {
            cut(&hold.lifeline);
        }
    }

    /// The error, and below it the end of the log, where the reason usually stands.
    fn with_log(&self, fault: &anyhow::Error) -> anyhow::Error {
        let log = &self.spec.log;
        anyhow!("{fault:#}\nthe end of {}:\n{}", log.display(), log::tail(log, LOG_LINES))
    }

    async fn end_of(life: &mut watch::Receiver<Life>) -> Ended {
        // The sender lives in the part that we were called on.
        match life.wait_for(|life| matches!(life, Life::Ended(_))).await.map(|life| life.clone()) {
            Ok(Life::Ended(ended)) => ended,
            _ => std::future::pending().await,
        }
    }

    /// Waits until nothing of the present run is left. A run that somebody starts meanwhile is another one.
    async fn wait_until_gone(&self, within: Duration) -> anyhow::Result<()> {
        let mut life = self.life();
        let present = match *life.borrow() {
            Life::Alive { pid, .. } | Life::Leaving { pid } => pid,
            Life::New | Life::Ended(_) => return Ok(()),
        };
        let gone = life.wait_for(|life| match life {
            Life::Alive { pid, .. } | Life::Leaving { pid } => *pid != present,
            Life::New | Life::Ended(_) => true,
        });
        match timeout(within, gone).await {
            Ok(_) => Ok(()),
            Err(_) => bail!("{} is not gone after {within:?}", self.name()),
        }
    }

    fn spawn(&self) -> anyhow::Result<()> {
        let mut hold = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        if self.retired.load(Ordering::Acquire) {
            bail!("the shop is closing, {} is not started again", self.name());
        }
        let guarded = guard::spawn(&self.spec)?;
        let all_clear = guarded.all_clear.another()?;
        let Guarded { child, pid, lifeline, all_clear: for_task } = guarded;
        let lifeline = Arc::new(Mutex::new(Some(lifeline)));
        *hold = Some(Hold { pid, lifeline: Arc::clone(&lifeline), all_clear });
        self.life.send_replace(Life::Alive { pid, asked: false });
        tokio::spawn(attend(child, pid, lifeline, for_task, Arc::clone(&self.life)));
        Ok(())
    }
}

/// Waits for the end of the program, lets the guard end what it left, and tells.
async fn attend(
    mut child: tokio::process::Child,
    pid: i32,
    lifeline: Lifeline,
    all_clear: AllClear,
    life: Arc<watch::Sender<Life>>,
) {
    let status: std::io::Result<ExitStatus> = child.wait().await;
    let before = life.send_replace(Life::Leaving { pid });
    cut(&lifeline);
    let cleared = tokio::task::spawn_blocking(move || all_clear.wait(KILL_WITHIN)).await;
    if let Ok(Err(fault)) = cleared {
        tracing::warn!(pid, "{fault:#}");
    }
    let asked = matches!(before, Life::Alive { asked: true, .. });
    let success = status.as_ref().is_ok_and(ExitStatus::success);
    let how = match status {
        Ok(status) => status.to_string(),
        Err(fault) => format!("its status is not known: {fault}"),
    };
    life.send_replace(Life::Ended(Ended { pid, asked, how, success }));
}

impl Drop for Part {
    /// Blocks for the few milliseconds that the kernel needs to end the processes: whoever removes the data
    /// next must find nobody writing there.
    fn drop(&mut self) {
        let hold = self.hold.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(hold) = hold else { return };
        cut(&hold.lifeline);
        if let Err(fault) = hold.all_clear.wait(KILL_WITHIN) {
            tracing::warn!(part = self.name(), "{fault:#}");
        }
        // Nothing is there any more, unless somebody has killed the guard.
        if let Err(fault) = self.while_alive(true, tree::kill_all) {
            tracing::warn!(part = self.name(), "{fault:#}");
        }
    }
}
