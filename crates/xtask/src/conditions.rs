//! The code that `#[cfg(...)]` leaves out of an ordinary build.
//!
//! Owns: which conditions are those of tests. Never does: judge the code that they guard.

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Lit, Meta, Token};

/// Whether an attribute leaves its item out of every build but those of tests: unit
/// tests, the doubles of feature `testing`, the model checkers loom and shuttle.
pub fn is_for_tests(attribute: &Attribute) -> bool {
    holds(attribute, &["test", "testing", "loom", "shuttle"]) == Some(false)
}

/// Whether an attribute leaves its item out unless unit tests are built.
pub fn is_for_unit_tests(attribute: &Attribute) -> bool {
    holds(attribute, &["test"]) == Some(false)
}

/// Whether a `#[cfg]` holds where none of the `absent` conditions does; `None` where
/// that depends on others.
fn holds(attribute: &Attribute, absent: &[&str]) -> Option<bool> {
    match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            value(&list.parse_args::<Meta>().ok()?, absent)
        }
        _ => None,
    }
}

fn value(condition: &Meta, absent: &[&str]) -> Option<bool> {
    match condition {
        Meta::Path(path) => absent.iter().any(|name| path.is_ident(name)).then_some(false),
        Meta::NameValue(pair) => {
            let Expr::Lit(literal) = &pair.value else { return None };
            let Lit::Str(text) = &literal.lit else { return None };
            let is_absent = pair.path.is_ident("feature") && absent.contains(&&*text.value());
            is_absent.then_some(false)
        }
        Meta::List(list) => {
            let parts =
                list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
            let mut values = parts.iter().map(|part| value(part, absent));
            let decides = list.path.is_ident("any");
            if list.path.is_ident("not") {
                return values.next()?.map(|value| !value);
            }
            let values: Vec<Option<bool>> = values.collect();
            let decided = values.contains(&Some(decides)).then_some(decides);
            decided.or_else(|| values.iter().all(Option::is_some).then_some(!decides))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(text: &str) -> Attribute {
        let mut item: syn::ItemFn = syn::parse_str(&format!("{text} fn f() {{}}")).unwrap();
        item.attrs.remove(0)
    }

    #[test]
    fn what_only_tests_build_is_for_tests() {
        for text in [
            "#[cfg(test)]",
            "#[cfg(all(test, not(loom)))]",
            "#[cfg(any(test, feature = \"testing\"))]",
            "#[cfg(any(loom, shuttle))]",
            "#[cfg(not(all(not(test), unix)))]",
        ] {
            assert_eq!(is_for_tests(&attribute(text)), !text.contains("unix"), "{text}");
        }
        for text in [
            "#[cfg(not(test))]",
            "#[cfg(unix)]",
            "#[cfg(any(test, unix))]",
            "#[cfg(feature = \"zstd\")]",
            "#[inline]",
            "#[doc = \"test\"]",
        ] {
            assert!(!is_for_tests(&attribute(text)), "{text}");
        }
    }

    #[test]
    fn doubles_are_not_for_unit_tests_alone() {
        assert!(is_for_unit_tests(&attribute("#[cfg(all(test, loom))]")));
        assert!(!is_for_unit_tests(&attribute("#[cfg(any(test, feature = \"testing\"))]")));
        assert!(!is_for_unit_tests(&attribute("#[cfg(loom)]")));
    }
}
