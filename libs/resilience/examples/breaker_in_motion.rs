//! The classic twelve seconds of a circuit breaker: a dependency that is down for the first seven,
//! a breaker that opens at three failures in a row and stays open for five seconds.
//!
//! The clock is tokio's paused one: it prints at once.

use std::{fmt, time::Duration};

use resilience::{Breaker, BreakerSettings, Class, Classify, Clock, Jitter};
use tokio::time::advance;

#[derive(Debug)]
struct Down;

impl Classify for Down {
    fn class(&self) -> Class {
        Class::not_executed()
    }
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection refused")
    }
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    print!("{}", twelve_seconds().await?);
    Ok(())
}

async fn twelve_seconds() -> Result<String, Box<dyn std::error::Error>> {
    let settings = BreakerSettings {
        consecutive_failures: Some(3),
        failure_percent: None,
        open_for: Duration::from_secs(5),
        open_for_at_most: Duration::from_secs(5),
        jitter: Jitter::Off,
        probes: 1,
        ..BreakerSettings::default()
    };
    let breaker = Breaker::builder("dependency", settings).clock(Clock::Precise).build()?;
    let mut table = String::from("second  dependency  call                 breaker\n");
    for second in 0..12 {
        let up = second >= 7;
        let before = breaker.state();
        let mut sent = false;
        let result = breaker
            .call(async {
                sent = true;
                if up { Ok(()) } else { Err(Down) }
            })
            .await;
        let call = match (&result, sent) {
            (Ok(()), _) => "answered",
            (Err(_), true) => "failed",
            (Err(_), false) => "refused at once",
        };
        let mut states = vec![before.as_str()];
        if sent && before.as_str() == "open" {
            states.push("half-open");
        }
        if states.last() != Some(&breaker.state().as_str()) {
            states.push(breaker.state().as_str());
        }
        let states = states.join(" -> ").to_uppercase().replace("HALF-OPEN", "HALF_OPEN");
        table += &format!("{second:>6}  {:<10}  {call:<19}  {states}\n", if up { "up" } else { "down" });
        advance(Duration::from_secs(1)).await;
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_the_classic_table() {
        let table = twelve_seconds().await.expect("good settings");
        let states: Vec<_> = table.lines().skip(1).map(|line| line[41..].trim()).collect();
        let mut expected = vec!["CLOSED", "CLOSED", "CLOSED -> OPEN"];
        expected.extend(["OPEN"; 4]);
        expected.push("OPEN -> HALF_OPEN -> CLOSED");
        expected.extend(["CLOSED"; 4]);
        assert_eq!(states, expected);
        assert_eq!(table.matches("refused at once").count(), 4);
    }
}
