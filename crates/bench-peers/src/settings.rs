//! An engine's own settings, `--set ENGINE.NAME=VALUE`, and its variant.
//!
//! Owns: their grammar. A name or value that an engine does not have is an
//! error that lists those it has; otherwise a figure would be published for a
//! setting that was never made. Never does: know the meaning of a setting.

use std::str::FromStr;
use windrow_bench::store::{Codec, Common, Engine, Result};

/// The settings of one engine.
pub(crate) struct Settings<'a> {
    engine: &'static str,
    common: &'a Common,
}

impl<'a> Settings<'a> {
    /// Checks the variant, the codec and the names.
    ///
    /// # Errors
    /// If the engine has no such variant, codec or setting.
    pub(crate) fn new(
        engine: &Engine,
        names: &'static [&'static str],
        common: &'a Common,
    ) -> Result<Settings<'a>> {
        let (engine, variants, able) = (engine.name, engine.variants, engine.abilities);
        if !common.variant.is_empty() && !variants.contains(&common.variant.as_str()) {
            let variant = &common.variant;
            return Err(format!("{engine} has no variant `{variant}`, only: {variants:?}").into());
        }
        if common.codec == Codec::Lz4 && !able.lz4 {
            return Err(format!("{engine} is built without LZ4").into());
        }
        for (name, _) in &common.settings {
            match name.split_once('.') {
                Some((of, name)) if of == engine && !names.contains(&name) => {
                    let names = names.join(", ");
                    return Err(format!("{engine} has no setting `{name}`, only: {names}").into());
                }
                _ => {}
            }
        }
        Ok(Settings { engine, common })
    }

    pub(crate) fn common(&self) -> &'a Common {
        self.common
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.common.setting(&format!("{}.{name}", self.engine))
    }

    fn bad(&self, name: &str, text: &str, like: &str) -> String {
        format!("{}.{name} is {like}, not `{text}`", self.engine)
    }

    /// Returns a size, as in `4096`, `64KiB`, `1MiB`, `2GiB`.
    ///
    /// # Errors
    /// If the text is no size.
    pub(crate) fn bytes(&self, name: &str, default: u64) -> Result<u64> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let size = parse_bytes(text);
        size.ok_or_else(|| self.bad(name, text, "a size like 4096, 64KiB or 8MiB").into())
    }

    /// Returns a number.
    ///
    /// # Errors
    /// If the text is no number.
    pub(crate) fn number<T: FromStr>(&self, name: &str, default: T) -> Result<T> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| self.bad(name, text, "a number").into())
    }

    /// Returns a switch, `on` or `off`.
    ///
    /// # Errors
    /// If it is another word.
    pub(crate) fn on(&self, name: &str, default: bool) -> Result<bool> {
        let word = |on| if on { "on" } else { "off" };
        self.one_of(name, [(word(default), default), (word(!default), !default)])
    }

    /// Returns the value of one of several words, the first if none is given.
    ///
    /// # Errors
    /// If it is another word.
    pub(crate) fn one_of<T, const N: usize>(&self, name: &str, words: [(&str, T); N]) -> Result<T> {
        let all = words.iter().map(|&(word, _)| word).collect::<Vec<_>>().join(", ");
        let text = self.text(name);
        let chosen = words.into_iter().find(|&(word, _)| text.is_none_or(|text| text == word));
        chosen.map(|(_, value)| value).ok_or_else(|| {
            self.bad(name, text.unwrap_or_default(), &format!("one of {all}")).into()
        })
    }
}

/// Reads a size in bytes, with a binary unit or none.
fn parse_bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let unit = units.iter().find_map(|&(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the common settings that an engine is opened with in tests.
    pub(crate) fn common(variant: &str, settings: &[(&str, &str)]) -> Common {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        Common {
            variant: variant.to_owned(),
            memory_bytes: 192 << 20,
            background_threads: 2,
            direct_io: false,
            codec: Codec::None,
            spaces: 1,
            transactions: false,
            settings: settings.iter().map(owned).collect(),
        }
    }

    /// Returns the message of a variant and settings that must be refused.
    fn refusal(variant: &str, settings: &[(&str, &str)]) -> String {
        let common = common(variant, settings);
        let run = || -> Result<(u64, u32, bool)> {
            let settings =
                Settings::new(&crate::rocksdb::ENGINE, &["size", "count", "flag"], &common)?;
            Ok((
                settings.bytes("size", 7)?,
                settings.number("count", 8)?,
                settings.on("flag", true)?,
            ))
        };
        run().expect_err("it was accepted").to_string()
    }

    #[test]
    fn what_is_unknown_is_refused_by_name() {
        assert!(refusal("fast", &[]).contains("\"pipelined\""));
        assert!(refusal("", &[("rocksdb.sice", "1")]).contains("only: size, count, flag"));
        assert!(refusal("", &[("rocksdb.size", "1kb")]).contains("not `1kb`"));
        assert!(refusal("", &[("rocksdb.count", "-1")]).contains("a number"));
        assert!(refusal("", &[("rocksdb.flag", "yes")]).contains("one of on, off"));
    }

    #[test]
    fn other_engines_settings_are_ignored_and_the_last_value_counts() {
        let pairs =
            [("x", "y"), ("fjall.size", "1"), ("rocksdb.size", "1"), ("rocksdb.size", "2MiB")];
        let common = common("small", &pairs);
        let settings = Settings::new(&crate::rocksdb::ENGINE, &["size"], &common).unwrap();
        assert_eq!(settings.bytes("size", 7).unwrap(), 2 << 20);
        assert_eq!(settings.number("count", 8).unwrap(), 8);
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(parse_bytes("4096"), Some(4096));
        assert_eq!(parse_bytes("200KiB"), Some(200 << 10));
        assert_eq!(parse_bytes("3GiB"), Some(3 << 30));
        for text in ["", "MiB", "1.5MiB", "-1", "1 MiB", "99999999999GiB"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
