//! The table of mutants, read as text: the workspace's checks are built without mutants.
//!
//! Owns: reading it. Never does: judge an entry.

use std::error::Error;
use std::fs;
use std::path::Path;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, Item, LitInt, LitStr, Token, bracketed};

/// The table's file, from the root.
pub(super) const PATH: &str = "crates/base/src/mutants/table.rs";

/// A mutant.
pub(super) struct Entry {
    /// Its name.
    pub(super) name: String,
    /// The promises that it breaks.
    pub(super) promises: String,
    /// The change that it makes.
    pub(super) what: String,
}

impl Entry {
    /// Returns the head of its patch.
    pub(super) fn head(&self) -> String {
        format!("Breaks {}: {}\n", self.promises, self.what)
    }
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Entry> {
        let _number: LitInt = input.parse()?;
        let name: Ident = input.parse()?;
        let breaks;
        bracketed!(breaks in input);
        let promises: LitStr = breaks.parse()?;
        let (_, _rule): (Token![,], LitStr) = (breaks.parse()?, breaks.parse()?);
        let what: LitStr = input.parse()?;
        if !input.peek(Token![;]) {
            let (_after, _origin): (Ident, LitStr) = (input.parse()?, input.parse()?);
        }
        input.parse::<Token![;]>()?;
        let (promises, what) = (promises.value(), what.value());
        Ok(Entry { name: name.to_string(), promises, what })
    }
}

struct Entries(Vec<Entry>);

impl Parse for Entries {
    fn parse(input: ParseStream<'_>) -> syn::Result<Entries> {
        let mut entries = Vec::new();
        while !input.is_empty() {
            entries.push(input.parse()?);
        }
        Ok(Entries(entries))
    }
}

/// Reads every mutant, in the table's order.
///
/// # Errors
/// If the table cannot be read or has another form.
pub(super) fn read(root: &Path) -> Result<Vec<Entry>, Box<dyn Error>> {
    let file = syn::parse_file(&fs::read_to_string(root.join(PATH))?)?;
    let table = file.items.into_iter().find_map(|item| match item {
        Item::Macro(item) if item.mac.path.is_ident("mutants") => Some(item.mac),
        _ => None,
    });
    let table = table.ok_or_else(|| format!("{PATH}: no `mutants! {{ ... }}`"))?;
    Ok(table.parse_body::<Entries>()?.0)
}
