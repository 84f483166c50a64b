//! The parts of a run, and to which of them an answer belongs.
//!
//! What overlaps the fault belongs to the fault: a request that was under way when it struck, and one that
//! began before it was healed. So neither "before" nor "after" is blamed for it, nor made better by it.

use tokio::time::Instant;

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Connections are opened and caches filled, and breakers may still be open from what was before.
    WarmUp,
    /// All is well, and nothing is going to break.
    Steady,
    /// All is well still.
    Before,
    /// Something is broken.
    During,
    /// It is healed.
    After,
}

impl Phase {
    /// Its name in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm-up",
            Self::Steady => "steady",
            Self::Before => "before",
            Self::During => "during",
            Self::After => "after",
        }
    }
}

/// When what happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    /// What follows the warm-up: [`Phase::Steady`] or [`Phase::Before`].
    pub(crate) well: Phase,
    /// When the run began.
    pub(crate) began: Instant,
    /// The end of the warm-up.
    pub(crate) warm: Option<Instant>,
    /// Just before the fault was asked for.
    pub(crate) broken: Option<Instant>,
    /// Just after it was healed.
    pub(crate) healed: Option<Instant>,
    /// When the last request was due.
    pub(crate) ended: Option<Instant>,
}

impl Timeline {
    /// A run that begins now.
    pub(crate) fn new(well: Phase) -> Self {
        Self { well, began: Instant::now(), warm: None, broken: None, healed: None, ended: None }
    }

    /// The phase of a request that was to start at `intended` and ends now.
    pub(crate) fn of(&self, intended: Instant, ended: Instant) -> Phase {
        match (self.broken, self.healed) {
            (Some(_), Some(healed)) if intended >= healed => Phase::After,
            (Some(broken), _) if ended >= broken => Phase::During,
            _ if self.warm.is_some_and(|warm| intended >= warm) => self.well,
            _ => Phase::WarmUp,
        }
    }

    /// The phase that it is now.
    pub(crate) fn now(&self) -> Phase {
        self.of(Instant::now(), Instant::now())
    }

    /// The phases of the run so far, each with its length in seconds.
    pub(crate) fn phases(&self) -> Vec<(Phase, f64)> {
        let starts = [
            (Phase::WarmUp, Some(self.began)),
            (self.well, self.warm),
            (Phase::During, self.broken),
            (Phase::After, self.healed),
        ];
        let begun: Vec<_> = starts.into_iter().filter_map(|(phase, at)| Some((phase, at?))).collect();
        let end = self.ended.unwrap_or_else(Instant::now);
        let ends = begun.iter().skip(1).map(|&(_, at)| at).chain([end]);
        begun
            .iter()
            .zip(ends)
            .map(|(&(phase, from), to)| (phase, to.saturating_duration_since(from).as_secs_f64()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_overlaps_the_fault_belongs_to_it() {
        let mut line = Timeline::new(Phase::Before);
        let at = |seconds| line.began + Duration::from_secs(seconds);
        let (warm, broken, healed) = (at(3), at(10), at(20));
        assert_eq!(line.of(at(1), at(2)), Phase::WarmUp);
        line.warm = Some(warm);
        assert_eq!(line.of(at(2), at(4)), Phase::WarmUp);
        assert_eq!(line.of(at(3), at(4)), Phase::Before);
        line.broken = Some(broken);
        assert_eq!(line.of(at(8), at(9)), Phase::Before);
        assert_eq!(line.of(at(8), at(10)), Phase::During, "it was under way when the fault struck");
        assert_eq!(line.of(at(12), at(13)), Phase::During);
        line.healed = Some(healed);
        assert_eq!(line.of(at(19), at(22)), Phase::During, "it began before the fault was healed");
        assert_eq!(line.of(at(20), at(21)), Phase::After);
        line.ended = Some(at(30));
        let phases =
            [(Phase::WarmUp, 3.0), (Phase::Before, 7.0), (Phase::During, 10.0), (Phase::After, 10.0)];
        assert_eq!(line.phases(), phases);
    }

    #[tokio::test(start_paused = true)]
    async fn a_steady_run_has_one_phase_and_its_warm_up() {
        let mut line = Timeline::new(Phase::Steady);
        line.warm = Some(line.began + Duration::from_secs(1));
        line.ended = Some(line.began + Duration::from_secs(5));
        assert_eq!(line.phases(), [(Phase::WarmUp, 1.0), (Phase::Steady, 4.0)]);
        assert_eq!(line.of(line.began + Duration::from_secs(2), Instant::now()), Phase::Steady);
    }
}
