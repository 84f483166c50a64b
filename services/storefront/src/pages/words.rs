//! Ages and times in the words people use. All times are told in UTC, and say so: the server cannot
//! know a visitor's clock.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

/// `3 minutes ago`.
pub fn ago(age: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let (number, unit) = match age.as_secs() {
        0..2 => return "a moment ago".to_owned(),
        s @ 2..MINUTE => (s, "second"),
        s @ MINUTE..HOUR => (s / MINUTE, "minute"),
        s @ HOUR..DAY => (s / HOUR, "hour"),
        s => (s / DAY, "day"),
    };
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {unit}{plural} ago")
}

/// `12:03 UTC (3 minutes ago)`, with the day where it was not today's.
pub fn as_of(now: DateTime<Utc>, age: Duration) -> String {
    let then = chrono::TimeDelta::from_std(age).ok().and_then(|age| now.checked_sub_signed(age));
    let Some(then) = then else {
        return ago(age);
    };
    let time = if then.date_naive() == now.date_naive() {
        then.format("%H:%M UTC").to_string()
    } else {
        then.format("%-d %B, %H:%M UTC").to_string()
    };
    format!("{time} ({})", ago(age))
}

/// `3 May 2026, 12:03 UTC`.
pub fn moment(at: &DateTime<Utc>) -> String {
    at.format("%-d %B %Y, %H:%M UTC").to_string()
}

/// `12:03:07 UTC`.
pub fn second(at: &DateTime<Utc>) -> String {
    at.format("%H:%M:%S UTC").to_string()
}

/// The form that machines read, for `<time datetime>`.
pub fn machine(at: &DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// `1 piece`, `3 pieces`.
pub fn pieces(number: &u32) -> String {
    let plural = if *number == 1 { "" } else { "s" };
    format!("{number} piece{plural}")
}

/// `Brass compass` for `brass-compass`: what to call a product when the catalogue cannot tell.
pub fn readable_id(id: &str) -> String {
    sentence(&id.replace('-', " "))
}

/// The text with its first letter as a capital.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
