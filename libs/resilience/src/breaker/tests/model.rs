//! The whole machine against a naive one: plain variables, one thing after another.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const WINDOW: usize = 6;
const MINIMUM: usize = 4;
const IN_A_ROW: u32 = 3;
const PROBES: u32 = 2;
const LEASE_MS: u64 = 700;
const OPEN_MS: u64 = 1000;
const OPEN_AT_MOST_MS: u64 = 4000;

#[derive(Debug, Clone)]
enum Step {
    Admit,
    Finish(usize, Verdict, bool),
    Drop(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let verdict = prop_oneof![Just(Verdict::Healthy), Just(Verdict::Failure), Just(Verdict::Neutral)];
    prop_oneof![
        4 => Just(Step::Admit),
        4 => (any::<usize>(), verdict, prop::bool::weighted(0.2)).prop_map(|(at, it, slow)| Step::Finish(at, it, slow)),
        1 => any::<usize>().prop_map(Step::Drop),
        2 => (1u64..1500).prop_map(Step::Wait),
    ]
}

#[derive(Debug, Default)]
struct Model {
    now: u64,
    generation: u64,
    state: Naive,
    openings_in_a_row: u32,
    window: VecDeque<(bool, bool)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Naive {
    Closed { in_a_row: u32 },
    Open { until: u64 },
    HalfOpen { out: u32, succeeded: u32, lease: u64 },
}

impl Default for Naive {
    fn default() -> Self {
        Self::Closed { in_a_row: 0 }
    }
}

impl Model {
    fn enter(&mut self, state: Naive) {
        self.generation += 1;
        self.state = state;
    }

    fn open(&mut self) {
        let open_for = (OPEN_MS << self.openings_in_a_row.min(10)).min(OPEN_AT_MOST_MS);
        self.openings_in_a_row += 1;
        self.enter(Naive::Open { until: self.now + open_for });
    }

    fn admit(&mut self) -> Option<u64> {
        let lease = self.now + LEASE_MS;
        match self.state.clone() {
            Naive::Closed { .. } => {}
            Naive::Open { until } if self.now < until => return None,
            Naive::Open { .. } => self.enter(Naive::HalfOpen { out: 1, succeeded: 0, lease }),
            Naive::HalfOpen { out, succeeded, .. } if out < PROBES => {
                self.state = Naive::HalfOpen { out: out + 1, succeeded, lease };
            }
            Naive::HalfOpen { lease, .. } => {
                if self.now >= lease {
                    self.open();
                }
                return None;
            }
        }
        Some(self.generation)
    }

    fn finish(&mut self, generation: u64, verdict: Verdict, slow: bool) {
        if generation != self.generation {
            return;
        }
        let failed = verdict == Verdict::Failure;
        match self.state.clone() {
            Naive::Open { .. } => unreachable!("nothing is admitted in this generation"),
            Naive::Closed { .. } if verdict == Verdict::Neutral => {}
            Naive::Closed { in_a_row } => {
                let in_a_row = if failed { in_a_row + 1 } else { 0 };
                self.state = Naive::Closed { in_a_row };
                if in_a_row >= IN_A_ROW {
                    return self.open();
                }
                self.window.push_back((failed, slow));
                if self.window.len() > WINDOW {
                    self.window.pop_front();
                }
                let failures = self.window.iter().filter(|(failed, _)| *failed).count();
                let slow = self.window.iter().filter(|(_, slow)| *slow).count();
                let calls = self.window.len();
                if calls >= MINIMUM && (failures * 2 >= calls || slow * 2 >= calls) {
                    self.open();
                }
            }
            Naive::HalfOpen { out, succeeded, lease } if verdict == Verdict::Neutral => {
                self.state = Naive::HalfOpen { out: out - 1, succeeded, lease };
            }
            Naive::HalfOpen { out, succeeded, lease } if !failed && !slow => {
                if succeeded + 1 == PROBES {
                    self.window.clear();
                    self.openings_in_a_row = 0;
                    self.enter(Naive::default());
                } else {
                    self.state = Naive::HalfOpen { out, succeeded: succeeded + 1, lease };
                }
            }
            Naive::HalfOpen { .. } => self.open(),
        }
    }
}

fn seen(breaker: Breaker) -> Naive {
    let it = breaker.snapshot();
    match it.state {
        State::Closed => Naive::Closed { in_a_row: u32::try_from(it.failures_in_a_row).expect("small") },
        State::Open => Naive::Open { until: 0 },
        State::HalfOpen => {
            let (out, succeeded) = it.probes.expect("half-open");
            Naive::HalfOpen { out: out as u32, succeeded: succeeded as u32, lease: 0 }
        }
    }
}

fn without_times(state: Naive) -> Naive {
    match state {
        Naive::Open { .. } => Naive::Open { until: 0 },
        Naive::HalfOpen { out, succeeded, .. } => Naive::HalfOpen { out, succeeded, lease: 0 },
        closed => closed,
    }
}

async fn compare(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let breaker = breaker(BreakerSettings {
        window: Window::Calls(WINDOW as u32),
        minimum_calls: MINIMUM as u32,
        failure_percent: Some(50),
        slow: Some(SlowCalls { longer_than: 100 * MS, percent: 50 }),
        consecutive_failures: Some(IN_A_ROW),
        open_for: Duration::from_millis(OPEN_MS),
        open_for_at_most: Duration::from_millis(OPEN_AT_MOST_MS),
        jitter: crate::Jitter::Off,
        probes: PROBES,
        probe_lease: Duration::from_millis(LEASE_MS),
    });
    let mut model = Model::default();
    let mut permits: Vec<(Permit, u64)> = Vec::new();
    for step in steps {
        match step {
            Step::Admit => match (breaker.admit(), model.admit()) {
                (Ok(permit), Some(generation)) => permits.push((permit, generation)),
                (Err(_), None) => {}
                (ours, theirs) => prop_assert!(false, "{ours:?}, but the model says {theirs:?}"),
            },
            Step::Finish(at, verdict, slow) if !permits.is_empty() => {
                let (permit, generation) = permits.swap_remove(at % permits.len());
                permit.finish(verdict, if slow { 100 * MS } else { MS });
                model.finish(generation, verdict, slow);
            }
            Step::Drop(at) if !permits.is_empty() => {
                let (permit, generation) = permits.swap_remove(at % permits.len());
                drop(permit);
                model.finish(generation, Verdict::Neutral, false);
            }
            Step::Finish(..) | Step::Drop(_) => {}
            Step::Wait(millis) => {
                advance(Duration::from_millis(millis)).await;
                model.now += millis;
            }
        }
        prop_assert_eq!(seen(breaker), without_times(model.state.clone()));
        prop_assert_eq!(breaker.snapshot().generation, model.generation);
    }
    Ok(())
}

proptest! {
    #[test]
    fn it_does_what_the_naive_machine_does(steps in prop::collection::vec(step(), 0..300)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(compare(steps))?;
    }
}
