//! `dump`: the records of one file of a database.
//!
//! Owns: the choice of the file's kind. Never does: read or print (the library
//! does).

use crate::args::{DumpArgs, DumpKind};
use crate::failure::{Failure, Result};
use std::io::{self, BufWriter, Write};

pub(crate) fn run(args: &DumpArgs) -> Result<()> {
    if !args.file.is_file() {
        let hint = "files of a database are named like 000012.sst, 000013.wal, 000011.changes, \
                    MANIFEST-000014";
        return Err(Failure::failed(format!("there is no file {}", args.file.display())).hint(hint));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let dumped = match args.kind {
        DumpKind::Wal => windrow::inspect::dump::wal(&args.file, &mut out),
        DumpKind::Manifest => windrow::inspect::dump::manifest(&args.file, &mut out),
        DumpKind::Table => windrow::inspect::dump::table(&args.file, &mut out),
    };
    // The records before the damage are printed, too. Where nobody reads them,
    // the damage is still reported.
    let flushed = out.flush();
    dumped?;
    Ok(flushed?)
}
