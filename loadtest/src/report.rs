//! What people and programs read at the end.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use crate::cli::Run;
use crate::phase::Phase;
use crate::promise::Promise;
use crate::record::{Cell, Counts, Record};
use crate::scenario::Shown;
use crate::traffic::Kind;

/// Orders that are named one by one when something is wrong with them.
const NAMED: usize = 10;

/// A line while the run goes on.
///
/// It is said beside the report, so that the report can be kept alone. A terminal that was closed does not end
/// the run half-way, with the shop still broken.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// The whole report.
pub(crate) fn report(options: &Run, shown: &Shown, promises: &[Promise]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut text, options, shown, promises);
    text
}

fn write_report(out: &mut String, options: &Run, shown: &Shown, promises: &[Promise]) -> std::fmt::Result {
    let record = &shown.record;
    writeln!(out, "{} at {} requests a second", options.drill.name(), options.rate)?;
    writeln!(
        out,
        "milliseconds count from when a request was due; all answers are in, whatever they said\n"
    )?;
    table(out, record)?;
    let late = &record.late;
    writeln!(
        out,
        "\nthis program itself was late by {:.1} ms (p50), {:.1} ms (p99)",
        late.ms(0.5),
        late.ms(0.99)
    )?;
    for ((kind, why), times) in &record.reasons {
        writeln!(out, "failed {times} times: {}: {why}", kind.name())?;
    }
    for (id, why) in shown.settled.iter().flat_map(|settled| settled.wrong.iter().take(NAMED)) {
        writeln!(out, "order {id}: {why}")?;
    }
    if shown.stopped {
        writeln!(out, "stopped by hand: the orders were not followed up, and nothing is proved")?;
    } else if shown.audit.is_none() {
        writeln!(out, "no audit: whoever holds this shop has none")?;
    }
    writeln!(out)?;
    for Promise { text, kept, seen } in promises {
        writeln!(out, "{}  {text}: {seen}", if *kept { "kept  " } else { "BROKEN" })?;
    }
    writeln!(out)?;
    results(out, options, shown, promises)
}

fn table(out: &mut String, record: &Record) -> std::fmt::Result {
    let heads = ["live", "degraded", "refused", "failed", "p50", "p90", "p99", "max"];
    writeln!(out, "phase          s  kind    {}", heads.map(|head| format!("{head:>9}")).concat())?;
    for (phase, seconds) in record.timeline.phases() {
        let mut first = format!("{:<9} {seconds:>6.1}", phase.name());
        for kind in Kind::ALL {
            let Some(Cell { counts, latencies: took, .. }) = record.cells.get(&(phase, kind)) else {
                continue;
            };
            let counts = grades(*counts).map(|(_, number)| format!("{number:>9}")).concat();
            let times = [took.ms(0.5), took.ms(0.9), took.ms(0.99), took.max_ms()];
            let times = times.map(|ms| format!("{ms:>9.1}")).concat();
            writeln!(out, "{first:<16}  {:<8}{counts}{times}", kind.name())?;
            first.clear();
        }
    }
    Ok(())
}

fn results(out: &mut String, options: &Run, shown: &Shown, promises: &[Promise]) -> std::fmt::Result {
    let (drill, record) = (options.drill.name(), &shown.record);
    // The warm-up is in the sums only: its times say nothing about the shop.
    let timed = || record.cells.iter().filter(|((phase, _), _)| *phase != Phase::WarmUp);
    let mut count = |name: &str, number: u64| writeln!(out, "RESULT {drill}.{name} {number} count");
    for ((phase, kind), cell) in timed() {
        for (grade, number) in grades(cell.counts) {
            count(&format!("{}.{}.{grade}", phase.name(), kind.name()), number)?;
        }
    }
    for (grade, number) in grades(record.sum(|_, _| true)) {
        count(&format!("all.{grade}"), number)?;
    }
    count("all.slow", record.cells.values().map(|cell| cell.slow).sum())?;
    count("all.not_sent", record.not_sent.values().sum())?;
    if let Some(settled) = &shown.settled {
        count("orders.accepted", settled.accepted as u64)?;
        count("orders.paid_once", settled.paid as u64)?;
    }
    count("promises.broken", promises.iter().filter(|promise| !promise.kept).count() as u64)?;
    for ((phase, kind), cell) in timed() {
        let name = format!("{drill}.{}.{}", phase.name(), kind.name());
        writeln!(out, "RESULT {name}.p50 {:.2} ms", cell.latencies.ms(0.5))?;
        writeln!(out, "RESULT {name}.p99 {:.2} ms", cell.latencies.ms(0.99))?;
        writeln!(out, "RESULT {name}.max {:.2} ms", cell.latencies.max_ms())?;
    }
    writeln!(out, "RESULT {drill}.late.p99 {:.2} ms", record.late.ms(0.99))?;
    let mut seconds = |name: &str, time: Option<Duration>| match time {
        Some(time) => writeln!(out, "RESULT {drill}.{name} {:.2} s", time.as_secs_f64()),
        None => Ok(()),
    };
    seconds("recovery.first_paid_at_once", record.first_live)?;
    seconds("recovery.last_deferred", record.last_deferred)?;
    seconds("recovery.last_paid", shown.settled.as_ref().and_then(|settled| settled.slowest))
}

fn grades(counts: Counts) -> [(&'static str, u64); 4] {
    let Counts { live, degraded, refused, failed } = counts;
    [("live", live), ("degraded", degraded), ("refused", refused), ("failed", failed)]
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use tokio::time::{Instant, advance};

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::judge::Grade;
    use crate::phase::Timeline;
    use crate::record::Sample;

    #[tokio::test(start_paused = true)]
    async fn it_shows_each_phase_and_ends_with_lines_for_programs() {
        let Command::Run(options) = Cli::try_parse_from(["loadtest", "run", "steady"]).unwrap().command;
        let mut record = Record::new(Timeline::new(Phase::Steady), Duration::from_secs(3));
        record.timeline.warm = Some(Instant::now());
        let intended = Instant::now();
        advance(Duration::from_millis(20)).await;
        for grade in [Grade::Live, Grade::Failed("status 500".into())] {
            record.sent();
            record.answered(&Sample { kind: Kind::Page, intended, late: Duration::from_millis(1), grade });
        }
        record.timeline.ended = Some(Instant::now());
        let shown = Shown { record, settled: None, audit: None, fault: None, stopped: false };
        let promise = Promise { text: "no page fails".into(), kept: false, seen: "1 of 2 failed".into() };
        let text = report(&options, &shown, &[promise]);
        for line in [
            "BROKEN  no page fails: 1 of 2 failed",
            "failed 1 times: page: status 500",
            "RESULT steady.steady.page.live 1 count",
            "RESULT steady.steady.page.failed 1 count",
            "RESULT steady.all.failed 1 count",
            "RESULT steady.steady.page.p99 20.02 ms",
            "RESULT steady.promises.broken 1 count",
        ] {
            assert!(text.lines().any(|is| is == line), "{line} is not in:\n{text}");
        }
        let row = text.lines().find(|line| line.starts_with("steady  ")).unwrap();
        let words: Vec<_> = row.split_whitespace().collect();
        assert_eq!(words, ["steady", "0.0", "page", "1", "0", "0", "1", "20.0", "20.0", "20.0", "20.0"]);
    }
}
