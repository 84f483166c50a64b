//! On the real coarse clock, which the unit tests replace by the paused one: open times end, and
//! not before their time.

use std::time::Duration;

use resilience::{Breaker, BreakerSettings, Clock, Jitter, Verdict, breaker::State};
use tokio::time::{Instant, timeout};

#[tokio::test]
async fn an_open_time_ends_by_the_coarse_clock() {
    let open_for = Duration::from_millis(60);
    let settings = BreakerSettings {
        consecutive_failures: Some(1),
        open_for,
        jitter: Jitter::Off,
        probes: 1,
        ..BreakerSettings::default()
    };
    let breaker = Breaker::builder("payments", settings).clock(Clock::Coarse).build().expect("good settings");
    let began = Instant::now();
    breaker.admit().expect("closed").finish(Verdict::Failure, Duration::from_millis(1));
    assert_eq!(breaker.state(), State::Open);
    timeout(Duration::from_secs(10), breaker.admitting()).await.expect("it ends");
    // The clock's step may be as coarse as 10 ms.
    assert!(began.elapsed() >= open_for - Duration::from_millis(12), "{:?}", began.elapsed());
    breaker.admit().expect("a probe").finish(Verdict::Healthy, Duration::from_millis(1));
    assert_eq!(breaker.state(), State::Closed);
}
