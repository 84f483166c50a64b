//! A run from its first request to its last: the load, the fault in the middle of it, and what became of the
//! orders.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use chrono::Utc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep};
use tokio_util::sync::CancellationToken;

use crate::cli::Run;
use crate::control::{ANSWER_WITHIN, Control};
use crate::judge::{Grade, Verdict, judge};
use crate::phase::{Phase, Timeline};
use crate::record::{Record, Sample};
use crate::report::say;
use crate::schedule::{Due, Pace, offer};
use crate::settle::{Accepted, Placed, Settled, settle};
use crate::traffic::{Ask, Door, Mix, Shelf};

/// The shop's promise: 3000 ms from the first byte to the last, and a little for a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_millis(3300);

/// All that a run has shown.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) record: Record,
    /// `None` when it was not looked at, since the run was stopped by hand.
    pub(crate) settled: Option<Settled>,
    /// Whether the books agree, and what the audit said; `None` without an audit.
    pub(crate) audit: Option<(bool, String)>,
    /// What could not be done to the shop.
    pub(crate) fault: Option<String>,
    /// It was stopped by hand.
    pub(crate) stopped: bool,
}

/// What the load and the story share.
#[derive(Debug)]
struct Shop {
    door: Door,
    shelf: Shelf,
    record: Mutex<Record>,
    accepted: Mutex<Accepted>,
}

/// Runs the drill against the shop at `door`.
///
/// # Errors
/// When the shop cannot be asked for its products, or this program cannot do its work.
pub(crate) async fn run(options: &Run, door: Door, control: &Control) -> anyhow::Result<Shown> {
    let shelf = door.shelf().await?;
    let well = if options.drill.victim().is_some() { Phase::Before } else { Phase::Steady };
    let record = Mutex::new(Record::new(Timeline::new(well), LIMIT));
    let shared = Arc::new(Shop { door, shelf, record, accepted: Mutex::default() });
    let stop = CancellationToken::new();
    let load = load(options, Arc::clone(&shared), stop.clone());
    let progress = tokio::spawn(progress(Arc::clone(&shared), stop.clone()));

    let mut broken = None;
    let told = tokio::select! {
        told = story(options, &shared, control, &mut broken) => Some(told),
        by_hand = by_hand() => { by_hand?; None }
    };
    let stopped = told.is_none();
    let mut fault = told.and_then(Result::err);
    if let Some(victim) = broken {
        // The shop is left as it was found, whatever happened.
        say("the run is over before the healing: healing now");
        fault = fault.or(control.act("start", victim).await.err());
    }
    shared.with(|record| record.timeline.ended = Some(Instant::now()));
    stop.cancel();
    load.await.context("the load has stopped by itself")?;
    progress.await.context("the progress has stopped by itself")?;

    let (mut settled, mut audit) = (None, None);
    if !stopped {
        say("the load is over: looking at every order that was accepted");
        let accepted = std::mem::take(&mut *locked(&shared.accepted));
        let healed = shared.with(|record| record.timeline.healed).map(|at| Utc::now() - at.elapsed());
        settled = Some(settle(&shared.door, accepted, healed).await);
        audit = control.audit().await.unwrap_or_else(|fault| Some((false, format!("{fault:#}"))));
    }
    let shared = Arc::into_inner(shared).context("the load goes on")?;
    let record = shared.record.into_inner().unwrap_or_else(PoisonError::into_inner);
    let fault = fault.map(|fault| format!("{fault:#}"));
    Ok(Shown { record, settled, audit, fault, stopped })
}

/// What happens while the load goes on. `broken` names what is broken at the moment.
async fn story(
    options: &Run,
    shared: &Shop,
    control: &Control,
    broken: &mut Option<&'static str>,
) -> anyhow::Result<()> {
    sleep(options.warm_up).await;
    shared.with(|record| record.timeline.warm = Some(Instant::now()));
    let Some(victim) = options.drill.victim() else {
        sleep(options.span).await;
        return Ok(());
    };
    let third = options.span / 3;
    sleep(third).await;
    say(&format!("kill {victim}"));
    *broken = Some(victim);
    shared.with(|record| record.timeline.broken = Some(Instant::now()));
    control.act("kill", victim).await?;
    sleep(third).await;
    say(&format!("start {victim}"));
    control.act("start", victim).await?;
    *broken = None;
    shared.with(|record| record.timeline.healed = Some(Instant::now()));
    say(&format!("{victim} is started"));
    sleep(third).await;
    Ok(())
}

fn load(options: &Run, shared: Arc<Shop>, stop: CancellationToken) -> JoinHandle<()> {
    // The story waits for two commands at most; what is longer is a fault of its own.
    let longest = options.warm_up + options.span + 2 * ANSWER_WITHIN;
    let most = (options.rate * longest.as_secs_f64()) as u64;
    let pace = Pace { rate: options.rate, in_flight: options.in_flight as usize, most };
    let mut mix = Mix::new(options.seed);
    tokio::spawn(async move {
        let start = |due: Due| {
            let known = locked(&shared.accepted).any();
            let ask = mix.next(due.number, &shared.shelf, known);
            shared.with(Record::sent);
            request(Arc::clone(&shared), due, ask)
        };
        offer(pace, stop, start, |_| shared.with(Record::not_sent)).await;
    })
}

/// One request, from when it is due to its judgement.
async fn request(shared: Arc<Shop>, due: Due, ask: Ask) {
    let late = due.intended.elapsed();
    let verdict = match shared.door.ask(&ask).await {
        Ok(reply) => judge(&ask, &reply, &shared.shelf),
        Err(fault) => Grade::Failed(format!("no answer: {}", why(&fault))).into(),
    };
    let Verdict { mut grade, placed } = verdict;
    if let (Some(id), Ask::Buy(purchase)) = (placed, &ask) {
        let placed = Placed { total: purchase.total.clone(), at: Utc::now() };
        if !locked(&shared.accepted).add(id, placed) {
            grade = Grade::Failed("two purchases became one order".into());
        }
    }
    shared.with(|record| record.answered(&Sample { kind: ask.kind(), intended: due.intended, late, grade }));
}

/// The innermost reason, without the address.
fn why(fault: &reqwest::Error) -> String {
    let mut innermost: &dyn std::error::Error = fault;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

async fn progress(shared: Arc<Shop>, stop: CancellationToken) {
    let mut seconds = interval(Duration::from_secs(1));
    seconds.tick().await;
    while stop.run_until_cancelled(seconds.tick()).await.is_some() {
        say(&shared.with(Record::line));
    }
}

async fn by_hand() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    Ok(())
}

impl Shop {
    fn with<T>(&self, look: impl FnOnce(&mut Record) -> T) -> T {
        look(&mut locked(&self.record))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
