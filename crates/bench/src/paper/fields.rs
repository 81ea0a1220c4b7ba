//! Single values of a workload file: draws, shares, sizes, settings.
//!
//! Owns: what each may be, and the words of its error. The place in the file
//! comes from the parser, which knows which value it was reading.

use super::experiment::{Read, Setting};
use crate::draws::Draws;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A distribution of records.
pub(super) fn draws<'de, D: Deserializer<'de>>(from: D) -> Result<Draws, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

/// A kind of read: `get`, or `seek(N)` with the number of nexts.
pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Read, D::Error> {
    let text = String::deserialize(from)?;
    let nexts = || text.strip_prefix("seek(")?.strip_suffix(')')?.parse().ok();
    match (text.as_str(), nexts()) {
        ("get", _) => Ok(Read::Get),
        (_, Some(nexts)) => Ok(Read::Seek(nexts)),
        _ => Err(D::Error::custom(format!("`{text}` is not a read: get, seek(NEXTS)"))),
    }
}

/// A number from 0 to 1.
pub(super) fn share<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let share = f64::deserialize(from)?;
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err(D::Error::custom(format!("{share} is not a share from 0 to 1"))),
    }
}

/// A count of one or more.
pub(super) fn positive<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    match u64::deserialize(from)? {
        0 => Err(D::Error::custom("must be 1 or more")),
        count => Ok(count),
    }
}

/// A small count of one or more.
pub(super) fn positive_u32<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u32::deserialize(from)? {
        0 => Err(D::Error::custom("must be 1 or more")),
        count => Ok(count),
    }
}

/// A length of time.
pub(super) fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let seconds = f64::deserialize(from)?;
    match 0.0 < seconds && seconds <= 86_400.0 {
        true => Ok(seconds),
        false => Err(D::Error::custom(format!("{seconds} s is not above 0 and at most a day"))),
    }
}

/// Bytes of a key: its first 16 tell records apart.
pub(super) fn key_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let bytes = usize::deserialize(from)?;
    match (16..=65_536).contains(&bytes) {
        true => Ok(bytes),
        false => Err(D::Error::custom(format!("keys have 16 to 65536 bytes, not {bytes}"))),
    }
}

/// Bytes of values: a number, or the least and the most in brackets.
pub(super) fn value_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<(usize, usize), D::Error> {
    struct Sizes;
    impl<'de> Visitor<'de> for Sizes {
        type Value = (usize, usize);
        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("a number of bytes, or [LEAST, MOST]")
        }
        fn visit_i64<E: Error>(self, bytes: i64) -> Result<Self::Value, E> {
            let bytes = usize::try_from(bytes).map_err(E::custom)?;
            Ok((bytes, bytes))
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let (least, most) = (seq.next_element()?, seq.next_element()?);
            let extra: Option<usize> = seq.next_element()?;
            match (least, most, extra) {
                (Some(least), Some(most), None) if least <= most => Ok((least, most)),
                _ => Err(A::Error::custom("not [LEAST, MOST]")),
            }
        }
    }
    let (least, most) = from.deserialize_any(Sizes)?;
    match most <= 64 << 20 {
        true => Ok((least, most)),
        false => Err(D::Error::custom("values have at most 64 MiB")),
    }
}

/// A name, or several in brackets.
pub(super) fn names<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    struct Names;
    impl<'de> Visitor<'de> for Names {
        type Value = Vec<String>;
        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("a name, or several in brackets")
        }
        fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
            Ok(vec![name.to_owned()])
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut names = Vec::new();
            while let Some(name) = seq.next_element()? {
                names.push(name);
            }
            Ok(names)
        }
    }
    from.deserialize_any(Names)
}

/// A policy of Windrow, in words.
pub(super) fn policy<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    let mut settings = windrow::Settings::default();
    settings.set("preset", &text).map_err(|e| D::Error::custom(e.message()))?;
    settings.validate().map_err(|problems| D::Error::custom(problems.join("; ")))?;
    Ok(Some(text))
}

/// Settings: `NAME = VALUE` of Windrow, `ENGINE.NAME = VALUE` of another.
pub(super) fn settings<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Setting>, D::Error> {
    struct Table;
    impl<'de> Visitor<'de> for Table {
        type Value = Vec<Setting>;
        fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
            to.write_str("a table of settings")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut settings = Vec::new();
            while let Some(name) = map.next_key::<String>()? {
                settings.extend(map.next_value_seed(Named(name))?);
            }
            Ok(settings)
        }
    }
    from.deserialize_any(Table)
}

/// What stands after a name in a table of settings. Windrow's are tried at
/// once: the error then has this value's place.
struct Named(String);

impl<'de> DeserializeSeed<'de> for Named {
    type Value = Vec<Setting>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Vec<Setting>, D::Error> {
        let Named(name) = self;
        match Scalar::deserialize(from)? {
            Scalar::Table(own) => {
                Ok(own.into_iter().map(|(n, value)| (format!("{name}.{n}"), value)).collect())
            }
            Scalar::Text(value) => {
                if !name.contains('.') {
                    let set = windrow::Settings::default().set(&name, &value);
                    set.map_err(|e| D::Error::custom(e.message()))?;
                }
                Ok(vec![(name, value)])
            }
        }
    }
}

/// A setting's value, or those of an engine.
enum Scalar {
    Text(String),
    Table(Vec<Setting>),
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Scalar, D::Error> {
        struct Value;
        impl<'de> Visitor<'de> for Value {
            type Value = Scalar;
            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a setting's value")
            }
            fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar, E> {
                Ok(Scalar::Text(value.to_string()))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar, E> {
                Ok(Scalar::Text(value.to_string()))
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Scalar, E> {
                Ok(Scalar::Text(value.to_string()))
            }
            fn visit_str<E: Error>(self, value: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(value.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                let mut settings = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    match map.next_value()? {
                        Scalar::Text(value) => settings.push((name, value)),
                        Scalar::Table(own) => settings.extend(
                            own.into_iter().map(|(n, value)| (format!("{name}.{n}"), value)),
                        ),
                    }
                }
                Ok(Scalar::Table(settings))
            }
        }
        from.deserialize_any(Value)
    }
}
