//! What was seen: counts and latencies of each phase and kind, in HDR histograms.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::judge::Grade;
use crate::phase::{Phase, Timeline};
use crate::traffic::Kind;

/// The longest latency that is told apart, in microseconds. Nobody waits so long.
const LONGEST: u64 = 60_000_000;
/// Kinds of failure that are kept apart; the rest is counted as one.
const REASONS: usize = 20;

/// How many answers were how good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) live: u64,
    pub(crate) degraded: u64,
    pub(crate) refused: u64,
    pub(crate) failed: u64,
}

/// Latencies, in microseconds, with three digits.
#[derive(Clone, Debug)]
pub(crate) struct Latencies(Histogram<u64>);

/// One phase and kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) counts: Counts,
    /// Of all answers, whatever they said, and of those that never came.
    pub(crate) latencies: Latencies,
    /// Answers that took longer than the shop promises.
    pub(crate) slow: u64,
}

/// One answer.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) kind: Kind,
    pub(crate) intended: Instant,
    /// How much later than intended it was sent: the fault of this program.
    pub(crate) late: Duration,
    pub(crate) grade: Grade,
}

/// All that was seen.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) timeline: Timeline,
    pub(crate) cells: BTreeMap<(Phase, Kind), Cell>,
    /// Requests that found no place among those in flight.
    pub(crate) not_sent: BTreeMap<Phase, u64>,
    /// How late this program was.
    pub(crate) late: Latencies,
    /// Why answers failed, and how often.
    pub(crate) reasons: BTreeMap<(Kind, String), u64>,
    /// After the healing: the first purchase that was paid at once, and the last that was not.
    pub(crate) first_live: Option<Duration>,
    pub(crate) last_deferred: Option<Duration>,
    in_flight: usize,
    second: Cell,
    limit: Duration,
}

impl Counts {
    /// All answers.
    pub(crate) fn all(&self) -> u64 {
        self.live + self.degraded + self.refused + self.failed
    }

    fn add(&mut self, grade: &Grade) {
        *match grade {
            Grade::Live => &mut self.live,
            Grade::Degraded => &mut self.degraded,
            Grade::Refused => &mut self.refused,
            Grade::Failed(_) => &mut self.failed,
        } += 1;
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.live += other.live;
        self.degraded += other.degraded;
        self.refused += other.refused;
        self.failed += other.failed;
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST, 3).expect("bounds that hold"))
    }
}

impl Latencies {
    fn add(&mut self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.0.saturating_record(micros.max(1));
    }

    /// The latency that `share` of all do not exceed, in milliseconds.
    pub(crate) fn ms(&self, share: f64) -> f64 {
        millis(self.0.value_at_quantile(share))
    }

    /// The longest, in milliseconds.
    pub(crate) fn max_ms(&self) -> f64 {
        millis(self.0.max())
    }
}

fn millis(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64() * 1000.0
}

impl Cell {
    fn add(&mut self, grade: &Grade, latency: Duration, limit: Duration) {
        self.counts.add(grade);
        self.latencies.add(latency);
        self.slow += u64::from(latency > limit);
    }
}

impl Record {
    /// Nothing yet. An answer that takes longer than `limit` is slow.
    pub(crate) fn new(timeline: Timeline, limit: Duration) -> Self {
        Self {
            timeline,
            cells: BTreeMap::new(),
            not_sent: BTreeMap::new(),
            late: Latencies::default(),
            reasons: BTreeMap::new(),
            first_live: None,
            last_deferred: None,
            in_flight: 0,
            second: Cell::default(),
            limit,
        }
    }

    /// A request is sent.
    pub(crate) fn sent(&mut self) {
        self.in_flight += 1;
    }

    /// An answer is whole, now.
    pub(crate) fn answered(&mut self, sample: &Sample) {
        let Sample { kind, intended, late, grade } = sample;
        let now = Instant::now();
        let latency = now.saturating_duration_since(*intended);
        self.in_flight -= 1;
        self.late.add(*late);
        let cell = self.cells.entry((self.timeline.of(*intended, now), *kind)).or_default();
        cell.add(grade, latency, self.limit);
        self.second.add(grade, latency, self.limit);
        if let Grade::Failed(why) = grade {
            let known = self.reasons.len() < REASONS || self.reasons.contains_key(&(*kind, why.clone()));
            let why = if known { why.as_str() } else { "other reasons" };
            *self.reasons.entry((*kind, why.to_owned())).or_default() += 1;
        }
        if let (Kind::Purchase, Some(healed)) = (*kind, self.timeline.healed) {
            let since = now.saturating_duration_since(healed);
            match grade {
                Grade::Live => self.first_live = self.first_live.or(Some(since)),
                Grade::Degraded => self.last_deferred = Some(since),
                Grade::Refused | Grade::Failed(_) => {}
            }
        }
    }

    /// A request that was due found no place.
    pub(crate) fn not_sent(&mut self) {
        *self.not_sent.entry(self.timeline.now()).or_default() += 1;
    }

    /// The sum over some cells.
    pub(crate) fn sum(&self, which: impl Fn(Phase, Kind) -> bool) -> Counts {
        let mut sum = Counts::default();
        for cell in self.cells.iter().filter(|(key, _)| which(key.0, key.1)).map(|(_, cell)| cell) {
            sum += cell.counts;
        }
        sum
    }

    /// What one line shows of the time since the last one.
    pub(crate) fn line(&mut self) -> String {
        let second = std::mem::take(&mut self.second);
        let Counts { live, degraded, refused, failed } = second.counts;
        format!(
            "{:6.1}s  {:<8} live {live:<5} degraded {degraded:<5} refused {refused:<5} failed {failed:<5} \
             in flight {:<5} p50 {:7.1} ms  max {:7.1} ms",
            self.timeline.began.elapsed().as_secs_f64(),
            self.timeline.now().name(),
            self.in_flight,
            second.latencies.ms(0.5),
            second.latencies.max_ms(),
        )
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn record() -> Record {
        Record::new(Timeline::new(Phase::Before), Duration::from_secs(3))
    }

    fn sample(intended: Instant, kind: Kind, grade: Grade) -> Sample {
        Sample { kind, intended, late: Duration::ZERO, grade }
    }

    #[tokio::test(start_paused = true)]
    async fn latency_counts_from_the_intended_start_and_slow_ones_are_counted() {
        let mut record = record();
        let intended = Instant::now();
        advance(Duration::from_millis(100)).await;
        record.sent();
        record.answered(&sample(intended, Kind::Page, Grade::Live));
        advance(Duration::from_secs(3)).await;
        record.sent();
        record.answered(&sample(intended, Kind::Page, Grade::Refused));
        let cell = &record.cells[&(Phase::WarmUp, Kind::Page)];
        assert_eq!(cell.counts, Counts { live: 1, refused: 1, ..Counts::default() });
        assert_eq!(cell.slow, 1);
        assert!((99.0..101.0).contains(&cell.latencies.ms(0.5)), "{}", cell.latencies.ms(0.5));
        assert!((3098.0..3103.0).contains(&cell.latencies.max_ms()), "{}", cell.latencies.max_ms());
        let line = record.line();
        assert!(line.contains("warm-up") && line.contains("live 1") && line.contains("refused 1"), "{line}");
        assert!(record.line().contains("live 0"), "a line shows what is new");
    }

    #[tokio::test(start_paused = true)]
    async fn the_recovery_is_seen_in_the_purchases() {
        let mut record = record();
        record.timeline.broken = Some(Instant::now());
        let answer = |record: &mut Record, kind, grade| {
            record.sent();
            record.answered(&sample(Instant::now(), kind, grade));
        };
        answer(&mut record, Kind::Purchase, Grade::Degraded);
        assert_eq!((record.first_live, record.last_deferred), (None, None), "not healed yet");
        record.timeline.healed = Some(Instant::now());
        answer(&mut record, Kind::Page, Grade::Live);
        for (grade, seconds) in
            [(Grade::Degraded, 1), (Grade::Live, 1), (Grade::Degraded, 1), (Grade::Live, 1)]
        {
            advance(Duration::from_secs(seconds)).await;
            answer(&mut record, Kind::Purchase, grade);
        }
        let seconds = |n| Some(Duration::from_secs(n));
        assert_eq!((record.first_live, record.last_deferred), (seconds(2), seconds(3)));
        assert_eq!(record.sum(|phase, _| phase == Phase::After).all(), 5);
        assert_eq!(record.sum(|phase, kind| phase == Phase::During && kind == Kind::Purchase).degraded, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn reasons_are_counted_and_bounded() {
        let mut record = record();
        for number in 0..100 {
            for _ in 0..2 {
                record.sent();
                let why = Grade::Failed(format!("reason {number}"));
                record.answered(&sample(Instant::now(), Kind::Page, why));
            }
        }
        assert_eq!(record.reasons[&(Kind::Page, "reason 0".into())], 2);
        assert_eq!(record.reasons.len(), REASONS + 1);
        assert_eq!(record.reasons.values().sum::<u64>(), 200);
    }
}
