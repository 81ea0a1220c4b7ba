//! The layout of pairs: their format, and the columns of a CSV or fields of JSON lines that hold
//! them.
//!
//! Owns: the check that the arguments go together. Never does: read or write. The contents of a
//! file are matched in `formats.rs`.

use crate::failure::{Failure, Result};
use crate::json_path::JsonFields;
use clap::Args;
use csv::ByteRecord;

/// A format of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// key TAB value, one pair a line, no escapes
    Tsv,
    /// two columns, quoted where needed
    Csv,
    /// {"key":"...","value":"..."}, one pair a line
    Jsonl,
}

/// Where keys and values are in a CSV or in JSON lines.
#[derive(Debug, Args)]
pub(crate) struct FieldsArgs {
    /// The first line of the CSV names its columns
    #[arg(long)]
    pub(crate) header: bool,
    /// Where the keys are. In a CSV: the number of a column from 1, or with --header its name
    /// (`key`). In JSON lines: a field, such as `user.id` for the field `id` of the field `user`
    #[arg(long = "key", visible_alias = "key-column", value_name = "WHERE")]
    pub(crate) key_field: Option<String>,
    /// Where the values are, as --key; in JSON lines `.` is the whole line
    #[arg(long = "value", visible_alias = "value-column", value_name = "WHERE")]
    pub(crate) value_field: Option<String>,
    /// What parts the columns of the CSV: one character, or `tab`
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = parse_delimiter)]
    pub(crate) delimiter: u8,
}

/// All that must be known beforehand to read or write pairs.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) format: Format,
    pub(crate) hex: bool,
    /// Lines of TSV end in CR LF.
    pub(crate) crlf: bool,
    pub(crate) csv: CsvLayout,
    /// The fields of JSON lines, where they are not `key` and `value`.
    pub(crate) json: Option<JsonFields>,
}

/// Columns and delimiter of a CSV.
#[derive(Clone, Debug)]
pub(crate) struct CsvLayout {
    /// The first line names the columns.
    pub(crate) header: bool,
    pub(crate) delimiter: u8,
    pub(crate) key: Option<Column>,
    pub(crate) value: Option<Column>,
}

/// A column of a CSV, by the user's name for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Its place, from 1.
    Number(usize),
    /// Its name in the first line.
    Name(String),
}

/// # Errors
/// The mistake, as half a sentence.
fn parse_column(text: &str) -> Result<Column, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("columns are numbered from 1".to_owned()),
        Ok(number) => Ok(Column::Number(number)),
        Err(_) if text.is_empty() => Err("a column has a name or a number from 1".to_owned()),
        Err(_) => Ok(Column::Name(text.to_owned())),
    }
}

/// Parses the argument: one byte, or a name for it.
fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"\"" | b"\n" | b"\r" => Err("quotes and line ends cannot part columns".to_owned()),
        &[byte] if byte.is_ascii() => Ok(byte),
        _ => Err("write one ASCII character, or `tab`".to_owned()),
    }
}

impl Layout {
    /// Returns the layout that the arguments ask for.
    ///
    /// # Errors
    /// `Usage` for flags of another format, and for columns or fields that cannot exist.
    pub(crate) fn new(format: Format, hex: bool, fields: &FieldsArgs) -> Result<Layout> {
        let FieldsArgs { header, key_field, value_field, delimiter } = fields;
        let is_chosen = key_field.is_some() || value_field.is_some();
        if format != Format::Csv && (*header || *delimiter != b',') {
            return Err(Failure::usage("--header and --delimiter are about CSV: add --format csv"));
        }
        if format == Format::Tsv && is_chosen {
            return Err(Failure::usage(
                "--key and --value are about CSV and JSON lines: add --format csv or jsonl",
            ));
        }
        let column = |text: &Option<String>| match (format, text) {
            (Format::Csv, Some(text)) => parse_column(text).map(Some).map_err(Failure::usage),
            _ => Ok(None),
        };
        let (key, value) = (column(key_field)?, column(value_field)?);
        let named = |column: &Option<Column>| matches!(column, Some(Column::Name(_)));
        if !header && (named(&key) || named(&value)) {
            return Err(Failure::usage(
                "a column has a name where the first line names it: add --header",
            ));
        }
        let json = match format {
            Format::Jsonl => JsonFields::of(key_field.as_deref(), value_field.as_deref()),
            _ => Ok(None),
        };
        let json = json.map_err(Failure::usage)?;
        let csv = CsvLayout { header: *header, delimiter: *delimiter, key, value };
        Ok(Layout { format, hex, crlf: false, csv, json })
    }

    /// Sets whether lines of TSV end in CR LF.
    ///
    /// # Errors
    /// `Usage` for another format.
    pub(crate) fn with_crlf(self, crlf: bool) -> Result<Layout> {
        if self.format != Format::Tsv && crlf {
            return Err(Failure::usage(
                "--crlf is about TSV: the other formats take line ends of both kinds, so leave it out",
            ));
        }
        Ok(Layout { crlf, ..self })
    }

    /// Checks the layout of an output, whose columns have a fixed order.
    ///
    /// # Errors
    /// `Usage` for the number of a column.
    pub(crate) fn for_output(self) -> Result<Layout> {
        let numbered = |column: &Option<Column>| matches!(column, Some(Column::Number(_)));
        if numbered(&self.csv.key) || numbered(&self.csv.value) {
            return Err(Failure::usage(
                "what is written has two columns, key and value: give them names, with --header",
            ));
        }
        Ok(self)
    }
}

/// The columns that are read, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) key: usize,
    pub(crate) value: usize,
    /// Whether the CSV may have no others.
    pub(crate) only: bool,
}

impl CsvLayout {
    /// Returns the names of the two columns in a first line that is written.
    pub(crate) fn names(&self) -> [&str; 2] {
        let name = |column, other| match column {
            &Some(Column::Name(ref name)) => name.as_str(),
            _ => other,
        };
        [name(&self.key, "key"), name(&self.value, "value")]
    }

    /// Returns the columns by the arguments, and by the first line where it is a header.
    ///
    /// # Errors
    /// The missing column, as half a sentence.
    pub(crate) fn columns(&self, header: Option<&ByteRecord>) -> Result<Columns, String> {
        let chosen = self.key.is_some() || self.value.is_some();
        let find = |column: &Option<Column>, name: &str, number: usize| match (column, header) {
            (Some(Column::Number(number)), _) => Ok(number - 1),
            (Some(Column::Name(name)), Some(header)) => position(header, name),
            (None, Some(header)) => position(header, name),
            (_, None) => Ok(number - 1),
        };
        Ok(Columns {
            key: find(&self.key, "key", 1)?,
            value: find(&self.value, "value", 2)?,
            only: header.is_none() && !chosen,
        })
    }
}

fn position(header: &ByteRecord, name: &str) -> Result<usize, String> {
    let is = |column: &[u8]| column.trim_ascii().eq_ignore_ascii_case(name.as_bytes());
    header.iter().position(is).ok_or_else(|| {
        let names: Vec<String> = header.iter().map(|name| crate::bytes::shown(name, 40)).collect();
        format!("no column is called `{name}`: there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(header: bool, key: Option<&str>, value: Option<&str>) -> CsvLayout {
        let column = |text: Option<&str>| text.map(|text| parse_column(text).unwrap());
        CsvLayout { header, delimiter: b',', key: column(key), value: column(value) }
    }

    #[test]
    fn columns_are_found_by_name_or_number() {
        let header = ByteRecord::from(vec!["id", " Value ", "Key"]);
        let of = |key, value| {
            let columns = layout(true, key, value).columns(Some(&header))?;
            Ok::<_, String>((columns.key, columns.value))
        };
        assert_eq!(of(None, None), Ok((2, 1)));
        assert_eq!(of(Some("id"), Some("3")), Ok((0, 2)));
        assert!(of(Some("name"), None).unwrap_err().contains("`name`: there are id,"));
        let plain = |key, value| layout(false, key, value).columns(None).unwrap();
        assert_eq!(plain(None, None), Columns { key: 0, value: 1, only: true });
        assert_eq!(plain(Some("4"), None), Columns { key: 3, value: 1, only: false });
    }

    #[test]
    fn delimiters_are_one_character() {
        assert_eq!(parse_delimiter(";"), Ok(b';'));
        assert_eq!(parse_delimiter("tab"), Ok(b'\t'));
        assert!(["", "ab", "\"", "\n", "é"].iter().all(|bad| parse_delimiter(bad).is_err()));
        assert!(parse_column("0").is_err() && parse_column("").is_err());
    }
}
