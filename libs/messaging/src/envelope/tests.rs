//! What is a message, and what is poison: the cases people have met, and then anything at all.

use lapin::types::{AMQPValue, ByteArray};
use proptest::{collection::vec, option, prelude::*};
use serde_json::json;

use super::*;

const QUEUE: &str = "charges.deferred";

fn known() -> [Accepts; 1] {
    [Accepts { kind: "charge.deferred", versions: 1..=2 }]
}

fn good() -> Message {
    let body = json!({"order": "o-1"});
    Message::new(Uuid::from_u128(7), "charge.deferred", 1, &body).unwrap()
}

fn properties(message: &Message) -> BasicProperties {
    message.properties().unwrap()
}

/// The properties of a good message with one header replaced, or taken out.
fn with_header(name: &str, value: Option<AMQPValue>) -> BasicProperties {
    let properties = properties(&good());
    let mut table = properties.headers().as_ref().unwrap().inner().clone();
    match value {
        Some(value) => table.insert(name.into(), value),
        None => table.remove(name),
    };
    properties.with_headers(table.into())
}

fn refused(properties: &BasicProperties, body: &[u8]) -> Poison {
    open(QUEUE, &known(), properties, body).unwrap_err()
}

#[test]
fn what_was_written_is_read() {
    let mut message = good();
    let (read, attempt) = open(QUEUE, &known(), &properties(&message), &message.body).unwrap();
    message.trace = Some(TraceContext::default());
    assert_eq!((read, attempt), (message, 1));
}

#[test]
fn each_poison_has_its_reason() {
    let body = good().body;
    let at = |name, value| refused(&with_header(name, value), &body);
    assert_eq!(refused(&BasicProperties::default(), &body), Poison::NoHeaders);
    assert_eq!(at(headers::VERSION, None), Poison::Missing("x-version"));
    for value in [
        AMQPValue::LongString("1".into()),
        AMQPValue::LongInt(-1),
        AMQPValue::LongLongInt(i64::MAX),
        AMQPValue::Void,
    ] {
        assert_eq!(at(headers::VERSION, Some(value.clone())), Poison::WrongType("x-version"));
        assert_eq!(at(headers::ATTEMPT, Some(value)), Poison::WrongType("x-attempt"));
    }
    assert!(matches!(at("traceparent", Some(AMQPValue::LongUInt(3))), Poison::WrongType(_)));
    assert!(matches!(
        at(headers::VERSION, Some(AMQPValue::LongUInt(3))),
        Poison::UnknownVersion { version: 3, .. }
    ));
    let stranger = properties(&good()).with_type("order.paid".into());
    assert!(matches!(refused(&stranger, &body), Poison::UnknownType(_)));
    let anonymous = properties(&good()).with_message_id("seven".into());
    assert_eq!(refused(&anonymous, &body), Poison::WrongType("message-id"));
    for text in ["", "{", "not JSON", "{} {}", "\u{0}"] {
        assert!(matches!(refused(&properties(&good()), text.as_bytes()), Poison::NotJson(_)), "{text:?}");
    }
    let deep = "[".repeat(100_000);
    assert!(matches!(refused(&properties(&good()), deep.as_bytes()), Poison::NotJson(_)));
    let large = vec![b' '; 1024 * 1024];
    assert_eq!(refused(&properties(&good()), &large), Poison::TooLarge(1024 * 1024));
}

#[test]
fn an_integer_of_any_size_is_a_version() {
    let body = good().body;
    for value in [
        AMQPValue::ShortShortInt(2),
        AMQPValue::ShortShortUInt(2),
        AMQPValue::ShortInt(2),
        AMQPValue::ShortUInt(2),
        AMQPValue::LongInt(2),
        AMQPValue::LongUInt(2),
        AMQPValue::LongLongInt(2),
    ] {
        let (message, _) = open(QUEUE, &known(), &with_header(headers::VERSION, Some(value)), &body).unwrap();
        assert_eq!(message.version, 2);
    }
}

fn value() -> impl Strategy<Value = AMQPValue> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(AMQPValue::Boolean),
        any::<i8>().prop_map(AMQPValue::ShortShortInt),
        any::<u32>().prop_map(AMQPValue::LongUInt),
        any::<i64>().prop_map(AMQPValue::LongLongInt),
        any::<f64>().prop_map(AMQPValue::Double),
        any::<u64>().prop_map(AMQPValue::Timestamp),
        vec(any::<u8>(), 0..40).prop_map(|bytes| AMQPValue::LongString(bytes.into())),
        vec(any::<u8>(), 0..40).prop_map(|bytes| AMQPValue::ByteArray(ByteArray::from(bytes))),
        Just(AMQPValue::Void),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|values| AMQPValue::FieldArray(values.into())),
            vec((name(), inner), 0..4).prop_map(|pairs| AMQPValue::FieldTable(table(pairs))),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z-]{0,12}",
        Just("x-version".to_owned()),
        Just("x-attempt".to_owned()),
        Just("x-death".to_owned()),
        Just("traceparent".to_owned()),
        Just("queue".to_owned()),
        Just("reason".to_owned()),
        Just("count".to_owned()),
    ]
}

fn table(pairs: Vec<(String, AMQPValue)>) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in pairs {
        table.insert(name.into(), value);
    }
    table
}

fn any_properties() -> impl Strategy<Value = BasicProperties> {
    let id = prop_oneof!["\\PC{0,40}", Just(Uuid::from_u128(1).to_string())];
    let kind = prop_oneof!["\\PC{0,40}", Just("charge.deferred".to_owned())];
    (option::of(id), option::of(kind), option::of(vec((name(), value()), 0..6))).prop_map(
        |(id, kind, pairs)| {
            let mut properties = BasicProperties::default();
            if let Some(id) = id {
                properties = properties.with_message_id(id.into());
            }
            if let Some(kind) = kind {
                properties = properties.with_type(kind.into());
            }
            if let Some(pairs) = pairs {
                properties = properties.with_headers(table(pairs));
            }
            properties
        },
    )
}

proptest! {
    #[test]
    fn anything_is_a_message_or_has_a_short_reason(
        properties in any_properties(),
        body in prop_oneof![vec(any::<u8>(), 0..64), Just(b"{\"order\":1}".to_vec())],
    ) {
        match open(QUEUE, &known(), &properties, &body) {
            Ok((message, attempt)) => {
                prop_assert!(attempt >= 1);
                prop_assert!(message.properties().is_some());
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&message.body).is_ok());
            }
            Err(poison) => prop_assert!(poison.to_string().len() < 500),
        }
    }

    #[test]
    fn a_message_of_ours_survives_its_envelope(
        id in any::<u128>(),
        version in 1..=2_u32,
        order in "\\PC{0,30}",
        parent in option::of("[0-9a-f-]{0,55}"),
    ) {
        let trace = TraceContext { parent, state: None };
        let body = json!({"order": order});
        let message = Message::new(Uuid::from_u128(id), "charge.deferred", version, &body)
            .unwrap()
            .in_trace(trace);
        let (read, attempt) = open(QUEUE, &known(), &properties(&message), &message.body).unwrap();
        prop_assert_eq!((read, attempt), (message, 1));
    }
}
