//! How a policy is put together, and what is refused.

use std::time::Duration;

use super::{Inner, LATE, Policy};
use crate::{
    Breaker, BreakerSettings, Bulkhead, BulkheadSettings, Clock, Faults, Observe, RetrySettings, Timeouts,
    clock::Timeline, observe::Observer, retry::Retry, settings::Fault, snapshot::Counters,
};

/// Less time than this is not worth sending a request for: a local round trip alone takes a part of
/// it. Default of [`Builder::min_attempt`].
const MIN_ATTEMPT: Duration = Duration::from_millis(5);

/// Collects the settings of a [`Policy`].
#[derive(Debug, Clone)]
pub struct Builder {
    name: &'static str,
    timeouts: Timeouts,
    min_attempt: Duration,
    retry: Option<RetrySettings>,
    breaker: Option<BreakerChoice>,
    bulkhead: Option<BulkheadSettings>,
    clock: Clock,
    observer: Observer,
}

#[derive(Debug, Clone, Copy)]
enum BreakerChoice {
    Own(BreakerSettings),
    Shared(Breaker),
}

impl Policy {
    /// Begins a policy for the neighbour called `name`; the name is its label everywhere.
    pub fn builder(name: &'static str, timeouts: Timeouts) -> Builder {
        Builder {
            name,
            timeouts,
            min_attempt: MIN_ATTEMPT,
            retry: None,
            breaker: None,
            bulkhead: None,
            clock: Clock::default(),
            observer: Observer::default(),
        }
    }
}

impl Builder {
    /// The least time that is worth an attempt. Default: 5 ms.
    #[must_use]
    pub fn min_attempt(mut self, least: Duration) -> Self {
        self.min_attempt = least;
        self
    }

    /// Repeats calls that this process owns. Default: never.
    #[must_use]
    pub fn retry(mut self, settings: RetrySettings) -> Self {
        self.retry = Some(settings);
        self
    }

    /// A breaker of its own. Default: none.
    #[must_use]
    pub fn breaker(mut self, settings: BreakerSettings) -> Self {
        self.breaker = Some(BreakerChoice::Own(settings));
        self
    }

    /// The breaker of another policy for the same neighbour, in place of its own.
    #[must_use]
    pub fn shared_breaker(mut self, breaker: Breaker) -> Self {
        self.breaker = Some(BreakerChoice::Shared(breaker));
        self
    }

    /// Places of its own. Default: as many as there are callers.
    #[must_use]
    pub fn bulkhead(mut self, settings: BulkheadSettings) -> Self {
        self.bulkhead = Some(settings);
        self
    }

    /// The clock that its own breaker reads and attempts are measured by. Default:
    /// [`Clock::Coarse`]. Timers are always precise.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Who is told what happens. A breaker that is shared tells its own observer. Default: nobody.
    #[must_use]
    pub fn observer(mut self, observer: &'static dyn Observe) -> Self {
        self.observer = Observer(Some(observer));
        self
    }

    /// The policy.
    ///
    /// # Errors
    /// Every refused setting, by name.
    pub fn build(self) -> Result<Policy, Faults> {
        Faults(self.check()).into_result()?;
        let Self { name, timeouts, min_attempt, retry, breaker, bulkhead, clock, observer } = self;
        let breaker = match breaker {
            Some(BreakerChoice::Shared(breaker)) => Some(breaker),
            Some(BreakerChoice::Own(settings)) => {
                let builder = Breaker::builder(name, settings).clock(clock);
                let builder = match observer.0 {
                    Some(observer) => builder.observer(observer),
                    None => builder,
                };
                Some(builder.build()?)
            }
            None => None,
        };
        let inner = Inner {
            name,
            timeouts,
            min_attempt,
            retry: retry.map(Retry::new),
            breaker,
            bulkhead: bulkhead.map(|settings| Bulkhead::new(name, settings)).transpose()?,
            timeline: Timeline::start(clock),
            observer,
            counters: Counters::new(),
        };
        Ok(Policy { inner: Box::leak(Box::new(inner)) })
    }

    fn check(&self) -> Vec<Fault> {
        let mut faults = self.timeouts.check(self.name);
        if self.min_attempt >= self.timeouts.attempt {
            let name = format!("{}.min_attempt", self.name);
            faults.push(Fault::new(name, self.min_attempt, "must be less than the attempt timeout"));
        }
        faults.extend(self.retry.iter().flat_map(|retry| retry.check(self.name)));
        faults.extend(self.bulkhead.iter().flat_map(|bulkhead| bulkhead.check(self.name)));
        let settings = match self.breaker {
            Some(BreakerChoice::Own(settings)) => {
                faults.extend(settings.check(self.name));
                Some(settings)
            }
            Some(BreakerChoice::Shared(breaker)) => Some(breaker.settings()),
            None => None,
        };
        // A probe that is still within its own timeouts must not be taken for a hung one.
        let longest = self.timeouts.attempt.saturating_add(self.timeouts.place).saturating_add(LATE);
        if let Some(settings) = settings
            && settings.probe_lease < longest
        {
            let rule = "must be more than attempt and place timeout together, by 250 ms";
            faults.push(Fault::new(format!("{}.breaker.probe_lease", self.name), settings.probe_lease, rule));
        }
        faults
    }
}
