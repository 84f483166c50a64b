//! The headers of a message, read with suspicion: any program that may publish can put anything there.

use std::collections::BTreeMap;

use lapin::types::{AMQPValue, FieldTable, ShortString};

/// The version of the message's body.
pub(crate) const VERSION: &str = "x-version";
/// Which attempt at the message it is, counted from 1.
pub(crate) const ATTEMPT: &str = "x-attempt";
/// Why a message is among the dead letters.
pub(crate) const DEAD_REASON: &str = "x-dead-reason";
/// The queue of work it died in.
pub(crate) const FIRST_QUEUE: &str = "x-first-queue";
/// The broker's own account of rejected and expired messages.
const DEATHS: &str = "x-death";

/// A header that is there with a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongType;

/// The header as text; `None` when it is not there.
pub(crate) fn text<'a>(table: &'a FieldTable, name: &str) -> Result<Option<&'a str>, WrongType> {
    match table.inner().get(name) {
        None => Ok(None),
        Some(AMQPValue::LongString(value)) => {
            std::str::from_utf8(value.as_bytes()).map(Some).map_err(|_| WrongType)
        }
        Some(AMQPValue::ShortString(value)) => Ok(Some(value.as_str())),
        Some(_) => Err(WrongType),
    }
}

/// The header as a number that is not negative and no larger than ours; `None` when it is not there. Programs
/// in other languages pick the size of an integer by its value, so every size is taken.
pub(crate) fn number(table: &FieldTable, name: &str) -> Result<Option<u32>, WrongType> {
    table.inner().get(name).map(|value| whole(value).ok_or(WrongType)).transpose()
}

fn whole(value: &AMQPValue) -> Option<u32> {
    match *value {
        AMQPValue::ShortShortInt(value) => u32::try_from(value).ok(),
        AMQPValue::ShortShortUInt(value) => Some(value.into()),
        AMQPValue::ShortInt(value) => u32::try_from(value).ok(),
        AMQPValue::ShortUInt(value) => Some(value.into()),
        AMQPValue::LongInt(value) => u32::try_from(value).ok(),
        AMQPValue::LongUInt(value) => Some(value),
        AMQPValue::LongLongInt(value) => u32::try_from(value).ok(),
        _ => None,
    }
}

/// How often the broker itself took the message out of `queue` because it was rejected, or delivered too often.
/// What is not as the broker writes it counts nothing: anyone can write this header.
pub(crate) fn deaths(table: &FieldTable, queue: &str) -> u32 {
    let Some(AMQPValue::FieldArray(deaths)) = table.inner().get(DEATHS) else {
        return 0;
    };
    let counts = deaths.as_slice().iter().filter_map(|death| {
        let AMQPValue::FieldTable(death) = death else {
            return None;
        };
        let there = text(death, "queue").ok()? == Some(queue);
        let how = text(death, "reason").ok()??;
        let counted = there && matches!(how, "rejected" | "delivery_limit");
        counted.then(|| number(death, "count").ok().flatten()).flatten()
    });
    counts.fold(0, u32::saturating_add)
}

/// The same headers for another journey: without what the broker wrote about the last one, with these.
pub(crate) fn for_another_journey(
    headers: Option<&FieldTable>,
    more: impl IntoIterator<Item = (&'static str, AMQPValue)>,
) -> FieldTable {
    let mut kept: BTreeMap<ShortString, AMQPValue> =
        headers.map(|table| table.inner().clone()).unwrap_or_default();
    kept.retain(|name, _| !is_the_brokers(name.as_str()));
    kept.extend(more.into_iter().map(|(name, value)| (name.into(), value)));
    kept.into()
}

fn is_the_brokers(name: &str) -> bool {
    name == DEATHS
        || name == "x-delivery-count"
        || name.starts_with("x-first-death-")
        || name.starts_with("x-last-death-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn death(queue: &str, reason: &str, count: AMQPValue) -> AMQPValue {
        let mut table = FieldTable::default();
        table.insert("queue".into(), AMQPValue::LongString(queue.into()));
        table.insert("reason".into(), AMQPValue::LongString(reason.into()));
        table.insert("count".into(), count);
        AMQPValue::FieldTable(table)
    }

    #[test]
    fn only_rejections_from_the_queue_itself_count_as_attempts() {
        let mut table = FieldTable::default();
        let deaths_of = vec![
            death("work", "rejected", AMQPValue::LongLongInt(3)),
            death("work", "delivery_limit", AMQPValue::LongLongInt(1)),
            death("work", "expired", AMQPValue::LongLongInt(10)),
            death("work.later.500ms", "expired", AMQPValue::LongLongInt(4)),
            death("work", "rejected", AMQPValue::LongLongInt(-5)),
            AMQPValue::Void,
        ];
        table.insert(DEATHS.into(), AMQPValue::FieldArray(deaths_of.into()));
        assert_eq!(deaths(&table, "work"), 4);
        assert_eq!(deaths(&FieldTable::default(), "work"), 0);
    }

    #[test]
    fn another_journey_keeps_what_the_publisher_said() {
        let mut table = FieldTable::default();
        table.insert("traceparent".into(), AMQPValue::LongString("00-..".into()));
        table.insert(ATTEMPT.into(), AMQPValue::LongUInt(1));
        table.insert(DEATHS.into(), AMQPValue::FieldArray(Vec::new().into()));
        table.insert("x-first-death-queue".into(), AMQPValue::LongString("work".into()));
        let next = for_another_journey(Some(&table), [(ATTEMPT, AMQPValue::LongUInt(2))]);
        let names: Vec<&str> = next.inner().keys().map(ShortString::as_str).collect();
        assert_eq!(names, ["traceparent", ATTEMPT]);
        assert_eq!(number(&next, ATTEMPT), Ok(Some(2)));
    }
}
