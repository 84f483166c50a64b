//! What each drill promises, and whether it held. A promise that cannot be looked at is not kept.

use crate::cli::Drill;
use crate::phase::Phase;
use crate::scenario::{LIMIT, Shown};
use crate::settle::SETTLED_WITHIN;
use crate::traffic::Kind;

/// A promise, and what was seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Promise {
    pub(crate) text: String,
    pub(crate) kept: bool,
    pub(crate) seen: String,
}

/// What the drill promises.
pub(crate) fn promises(drill: Drill, shown: &Shown) -> Vec<Promise> {
    let mut list = common(shown);
    if shown.stopped {
        // What was to come later did not come.
        return list;
    }
    list.extend(match drill {
        Drill::Steady => steady(shown),
        Drill::PaymentsKilled => payments_killed(shown),
    });
    list
}

fn promise(text: impl Into<String>, kept: bool, seen: impl Into<String>) -> Promise {
    Promise { text: text.into(), kept, seen: seen.into() }
}

fn common(shown: &Shown) -> Vec<Promise> {
    let record = &shown.record;
    let mut list = Vec::new();
    for kind in Kind::ALL {
        let counts = record.sum(|_, of| of == kind);
        let seen = format!("{} of {} failed", counts.failed, counts.all());
        list.push(promise(format!("no {} fails", kind.name()), counts.failed == 0 && counts.all() > 0, seen));
    }
    let refused = record.sum(|_, _| true).refused;
    list.push(promise("nothing is refused at this rate", refused == 0, format!("{refused} refused")));
    let not_sent: u64 = record.not_sent.values().sum();
    list.push(promise("all that was due could be sent", not_sent == 0, format!("{not_sent} were not sent")));
    let slow: u64 = record.cells.values().map(|cell| cell.slow).sum();
    let longest = record.cells.values().map(|cell| cell.latencies.max_ms()).fold(0.0, f64::max);
    let text = format!("every answer within {} ms", LIMIT.as_millis());
    list.push(promise(text, slow == 0, format!("{slow} were slower; the longest {longest:.1} ms")));
    if let Some(fault) = &shown.fault {
        list.push(promise("what was to be done to the shop was done", false, fault));
    }
    if let Some(settled) = &shown.settled {
        let text = format!("every accepted order is paid once, within {} s", SETTLED_WITHIN.as_secs());
        let (paid, accepted) = (settled.paid, settled.accepted);
        let seen = format!("{paid} of {accepted}");
        list.push(promise(text, settled.wrong.is_empty() && paid == accepted && accepted > 0, seen));
    }
    if let Some((agree, said)) = &shown.audit {
        let seen = if *agree { "they do" } else { said };
        list.push(promise("the books agree to the cent", *agree, seen));
    }
    list
}

fn steady(shown: &Shown) -> Vec<Promise> {
    let degraded = shown.record.sum(|phase, _| phase == Phase::Steady).degraded;
    vec![promise("every answer is live", degraded == 0, format!("{degraded} were degraded"))]
}

fn payments_killed(shown: &Shown) -> Vec<Promise> {
    let record = &shown.record;
    let during = record.sum(|phase, kind| phase == Phase::During && kind == Kind::Purchase);
    let before = record.sum(|phase, _| phase == Phase::Before);
    let pages = record.sum(|_, kind| matches!(kind, Kind::Page | Kind::Product));
    let again = record.first_live;
    let seen = again.map_or("never".into(), |time| format!("after {:.1} s", time.as_secs_f64()));
    vec![
        // Without this the drill would have measured nothing.
        promise("purchases are deferred while payments is gone", during.degraded > 0, {
            format!("{} of {} were", during.degraded, during.all())
        }),
        promise("every answer before is live", before.degraded == 0, format!("{} degraded", before.degraded)),
        promise("every page is live", pages.degraded == 0, format!("{} degraded", pages.degraded)),
        promise(
            format!("purchases are paid at once again within {} s", SETTLED_WITHIN.as_secs()),
            again.is_some_and(|time| time <= SETTLED_WITHIN),
            seen,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, advance};

    use super::*;
    use crate::judge::Grade;
    use crate::phase::Timeline;
    use crate::record::{Record, Sample};
    use crate::settle::Settled;

    fn answer(record: &mut Record, kind: Kind, grade: Grade) {
        record.sent();
        record.answered(&Sample { kind, intended: Instant::now(), late: Duration::ZERO, grade });
    }

    /// A run in which all went well.
    async fn good() -> Shown {
        let mut record = Record::new(Timeline::new(Phase::Before), LIMIT);
        let second = Duration::from_secs(1);
        record.timeline.warm = Some(Instant::now());
        for kind in Kind::ALL {
            answer(&mut record, kind, Grade::Live);
        }
        advance(second).await;
        record.timeline.broken = Some(Instant::now());
        answer(&mut record, Kind::Purchase, Grade::Degraded);
        advance(second).await;
        record.timeline.healed = Some(Instant::now());
        advance(second).await;
        answer(&mut record, Kind::Purchase, Grade::Live);
        let settled = Settled { accepted: 3, paid: 3, ..Settled::default() };
        let audit = Some((true, String::new()));
        Shown { record, settled: Some(settled), audit, fault: None, stopped: false }
    }

    fn broken(shown: &Shown) -> Vec<String> {
        let list = promises(Drill::PaymentsKilled, shown);
        list.into_iter().filter(|promise| !promise.kept).map(|promise| promise.text).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn each_promise_is_broken_by_what_breaks_it() {
        assert_eq!(broken(&good().await), Vec::<String>::new());
        type Spoil = fn(&mut Shown);
        let cases: [(&str, Spoil); 12] = [
            ("no page fails", |s| answer(&mut s.record, Kind::Page, Grade::Failed("x".into()))),
            ("no purchase fails", |s| answer(&mut s.record, Kind::Purchase, Grade::Failed("x".into()))),
            ("nothing is refused at this rate", |s| answer(&mut s.record, Kind::Lookup, Grade::Refused)),
            ("all that was due could be sent", |s| s.record.not_sent()),
            ("every answer within 3300 ms", |s| {
                let intended = Instant::now() - Duration::from_secs(4);
                let (late, grade) = (Duration::ZERO, Grade::Live);
                s.record.sent();
                s.record.answered(&Sample { kind: Kind::Page, intended, late, grade });
            }),
            ("what was to be done to the shop was done", |s| s.fault = Some("no such part".into())),
            ("every accepted order is paid once, within 30 s", |s| {
                s.settled = Some(Settled { accepted: 3, paid: 2, ..Settled::default() });
            }),
            ("the books agree to the cent", |s| s.audit = Some((false, "a cent is missing".into()))),
            ("every answer before is live", |s| {
                s.record.cells.entry((Phase::Before, Kind::Lookup)).or_default().counts.degraded += 1;
            }),
            ("every page is live", |s| answer(&mut s.record, Kind::Page, Grade::Degraded)),
            ("purchases are paid at once again within 30 s", |s| s.record.first_live = None),
            ("purchases are deferred while payments is gone", |s| {
                s.record.cells.remove(&(Phase::During, Kind::Purchase));
            }),
        ];
        for (text, spoil) in cases {
            let mut shown = good().await;
            spoil(&mut shown);
            assert_eq!(broken(&shown), [text]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_was_stopped_breaks_no_promise_about_its_end() {
        let mut shown = good().await;
        shown.record.first_live = None;
        (shown.settled, shown.audit, shown.stopped) = (None, None, true);
        assert_eq!(broken(&shown), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn steady_promises_that_all_is_live_once_it_is_warm() {
        let mut shown = good().await;
        shown.record.timeline = Timeline::new(Phase::Steady);
        answer(&mut shown.record, Kind::Page, Grade::Degraded);
        shown.record.timeline.warm = Some(Instant::now());
        answer(&mut shown.record, Kind::Page, Grade::Degraded);
        let broken: Vec<_> =
            promises(Drill::Steady, &shown).into_iter().filter(|promise| !promise.kept).collect();
        assert_eq!(broken, [promise("every answer is live", false, "1 were degraded")]);
    }
}
