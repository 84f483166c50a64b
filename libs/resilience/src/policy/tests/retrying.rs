//! Retries inside a policy: who, how often, and what the result says.

use std::{cell::RefCell, sync::Mutex};

use super::*;
use crate::{NoRetry, Observe};

/// Three attempts with pauses of exactly 50 and 100 ms.
fn retry() -> RetrySettings {
    RetrySettings { jitter: Jitter::Off, ..RetrySettings::default() }
}

/// Answers one after another, and how often it was asked.
struct Script(RefCell<Vec<Result<u32, Failure>>>);

impl Script {
    fn new(answers: impl IntoIterator<Item = Result<u32, Failure>>) -> Self {
        Self(RefCell::new(answers.into_iter().collect()))
    }

    fn next(&self) -> Result<u32, Failure> {
        self.0.borrow_mut().remove(0)
    }

    fn left(&self) -> usize {
        self.0.borrow().len()
    }

    async fn call(&self, policy: Policy, cx: &CallContext, op: Op) -> Result<u32, CallError<Failure>> {
        policy.call(cx, op, async |_| self.next()).await
    }
}

const READ: Op = Op::idempotent("whoami");

#[tokio::test(start_paused = true)]
async fn the_owner_tries_again_after_growing_pauses_and_numbers_its_attempts() {
    let policy = payments().retry(retry()).build().expect("good settings");
    let (began, mut seen) = (Instant::now(), Vec::new());
    let answer = policy
        .call(&owner(3000 * MS), READ, |cx| {
            seen.push((began.elapsed(), cx.attempt(), cx.retry_owner().is_here()));
            let answer = if seen.len() < 3 { Err(LOST) } else { Ok(7) };
            async { answer }
        })
        .await;
    assert_eq!(answer.expect("the third"), 7);
    assert_eq!(seen, [(Duration::ZERO, 1, false), (50 * MS, 2, false), (150 * MS, 3, false)]);
    let calls = policy.snapshot().calls;
    assert_eq!((calls.ok, calls.attempts, calls.retries), (1, 3, 2));
}

#[tokio::test(start_paused = true)]
async fn three_levels_make_three_attempts_and_not_twenty_seven() {
    let [edge, middle, bottom] = [(); 3].map(|()| payments().retry(retry()).build().expect("good settings"));
    let asked = RefCell::new(0);
    let result = edge
        .call(&owner(3000 * MS), READ, async |cx| {
            // Once in this process by the context, once as another process sees it on the wire.
            let middle = middle.call(&cx, READ, async |cx| {
                let owner = cx.retry_owner().name().map(Into::into);
                let cx = CallContext::from_caller(cx.deadline(), owner, cx.attempt());
                let bottom = bottom.call(&cx, READ, async |_| {
                    *asked.borrow_mut() += 1;
                    Err::<(), _>(DOWN)
                });
                bottom.await.map_err(|error| Failure(error.class()))
            });
            middle.await.map_err(|error| Failure(error.class()))
        })
        .await;
    assert!(result.is_err());
    assert_eq!(asked.into_inner(), 3);
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_anew_for_each_call() {
    let policy = payments().retry(retry()).build().expect("good settings");
    for _ in 0..3 {
        let script = Script::new([Err(LOST), Err(LOST), Ok(1)]);
        assert_eq!(script.call(policy, &owner(3000 * MS), READ).await.expect("the third"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_counted_by_the_breaker_and_a_retry_is_refused_by_it() {
    let policy = payments().retry(retry()).breaker(breaker()).build().expect("good settings");
    let script = Script::new([Err(DOWN), Err(DOWN), Err(DOWN), Err(DOWN), Ok(1)]);
    script.call(policy, &owner(3000 * MS), READ).await.expect_err("down");
    assert_eq!(policy.snapshot().breaker.expect("set").failures, 3);
    let error = script.call(policy, &owner(3000 * MS), READ).await.expect_err("down");
    assert_eq!(script.left(), 1, "the fourth failure opened it, and the retry was not sent");
    assert!(matches!(error, CallError::Refused { refusal: Refusal::BreakerOpen { .. }, .. }), "{error}");
    let began = Instant::now();
    script.call(policy, &owner(3000 * MS), READ).await.expect_err("open");
    assert_eq!((began.elapsed(), script.left()), (Duration::ZERO, 1), "our own no is not repeated");
}

#[tokio::test(start_paused = true)]
async fn what_may_have_happened_stays_so_when_the_retry_is_refused_or_not_executed() {
    let settings = BreakerSettings { consecutive_failures: Some(1), ..breaker() };
    let policy = payments().retry(retry()).breaker(settings).build().expect("good settings");
    let error = Script::new([Err(LOST)]).call(policy, &owner(3000 * MS), READ).await.expect_err("lost");
    assert_eq!(error.class().outcome, Outcome::Unknown, "{error}");
    assert_eq!((policy.snapshot().calls.unknown, policy.snapshot().calls.breaker_open), (1, 0));

    let policy = payments().retry(retry()).build().expect("good settings");
    let script = Script::new([Err(LOST), Err(DOWN), Err(DOWN)]);
    let error = script.call(policy, &owner(3000 * MS), READ).await.expect_err("lost");
    assert_eq!(error.class().outcome, Outcome::Unknown, "{error}");
    let busy = Failure(Class { transient: true, ..Class::rejected() });
    let error =
        Script::new([Err(LOST), Err(busy)]).call(policy, &owner(3000 * MS), READ).await.expect_err("lost");
    assert_eq!(error.class().outcome, Outcome::Unknown, "too busy to say is no answer: {error}");
    let error =
        Script::new([Err(LOST), Err(NO)]).call(policy, &owner(3000 * MS), READ).await.expect_err("no");
    assert_eq!(error.class().outcome, Outcome::Rejected, "a definite no about the same key is one: {error}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_idempotent_is_not_sent_twice() {
    let policy = payments().retry(retry()).build().expect("good settings");
    let script = Script::new([Err(LOST), Ok(1)]);
    script.call(policy, &owner(3000 * MS), Op::once("charge")).await.expect_err("lost");
    assert_eq!(script.left(), 1);
    let script = Script::new([Err(DOWN), Ok(1)]);
    assert_eq!(script.call(policy, &owner(3000 * MS), Op::once("charge")).await.expect("surely not sent"), 1);
}

#[tokio::test(start_paused = true)]
async fn pauses_and_retries_never_outlast_the_deadline() {
    for millis in (5..1_000).step_by(7) {
        let policy =
            payments().retry(RetrySettings { attempts: 10, ..retry() }).build().expect("good settings");
        let began = Instant::now();
        policy.call(&owner(millis * MS), READ, hung).await.expect_err("hung");
        assert!(began.elapsed() <= millis * MS, "{:?} of {millis} ms", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_neighbour_that_asks_for_time_is_given_it_or_not_asked_again() {
    let policy = payments().retry(retry()).build().expect("good settings");
    let busy = |pause| Err(Failure(Class::not_executed().after(Some(pause))));
    let began = Instant::now();
    let script = Script::new([busy(800 * MS), Ok(1)]);
    script.call(policy, &owner(3000 * MS), READ).await.expect("the second");
    assert_eq!(began.elapsed(), 800 * MS);
    let script = Script::new([busy(5000 * MS), Ok(1)]);
    let began = Instant::now();
    script.call(policy, &owner(3000 * MS), READ).await.expect_err("busy for longer than there is time");
    assert_eq!((began.elapsed(), script.left()), (Duration::ZERO, 1));
}

#[tokio::test(start_paused = true)]
async fn in_the_whole_policy_the_budget_really_ends_the_retries() {
    let policy = payments().retry(retry()).build().expect("good settings");
    for _ in 0..1_000 {
        let script = Script::new([Err(DOWN), Err(DOWN), Err(DOWN)]);
        script.call(policy, &owner(60 * MS), READ).await.expect_err("down");
    }
    let calls = policy.snapshot().calls;
    // A tenth, twenty saved up, and one a second while the pauses passed.
    let seconds = calls.retries * 50 / 1000 + 1;
    assert!(calls.retries <= 100 + 20 + seconds, "{} retries", calls.retries);
    assert!(calls.retries >= 100, "{} retries", calls.retries);
    assert_eq!(policy.snapshot().retry_budget.expect("set").available, 0);
}

#[tokio::test(start_paused = true)]
async fn the_observer_is_told_what_was_tried_and_why_it_ended() {
    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);
    impl Log {
        fn say(&self, line: String) {
            self.0.lock().expect("not poisoned").push(line);
        }
    }
    impl Observe for Log {
        fn attempt_finished(&self, attempt: &Attempt) {
            let outcome = attempt.outcome.map_or("ok", Outcome::as_str);
            self.say(format!("{} {} {outcome} {:?}", attempt.op.name(), attempt.number, attempt.elapsed));
        }
        fn refused(&self, _: &'static str, _: Op, refusal: Refusal) {
            self.say(format!("refused {}", refusal.as_str()));
        }
        fn retrying(&self, _: &'static str, _: Op, attempt: u32, pause: Duration) {
            self.say(format!("attempt {attempt} in {pause:?}"));
        }
        fn not_retried(&self, _: &'static str, _: Op, why: NoRetry) {
            self.say(why.to_string());
        }
    }
    let log: &'static Log = Box::leak(Box::default());
    let settings = BreakerSettings { minimum_calls: 2, ..breaker() };
    let policy = payments().retry(retry()).breaker(settings).observer(log).build().expect("good settings");
    let answer = async |cx: CallContext| match cx.attempt() {
        1 => Err::<(), _>(DOWN),
        _ => hung(cx).await,
    };
    policy.call(&owner(3000 * MS), READ, answer).await.expect_err("hung");
    let told = log.0.lock().expect("not poisoned").join("\n");
    let expected = "whoami 1 not-executed 0ns\nattempt 2 in 50ms\nwhoami 2 unknown 200ms\nattempt 3 in 100ms\n\
                    refused breaker-open\nit was refused on this side";
    assert_eq!(told, expected);
}
