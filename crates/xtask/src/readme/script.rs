//! One step of a page, run by a shell as a reader would run it.
//!
//! Owns: the environment of the commands, and the comparison of their output with the page. Never
//! does: change anything outside of the page's directory and of cargo's build output.

use super::page::{Block, Step, Word};
use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The number of lines of a failed command's messages that are repeated.
const TOLD_LINES: usize = 12;

/// The directories and the program of a page's commands.
pub(super) struct Place<'a> {
    pub(super) root: &'a Path,
    pub(super) dir: &'a Path,
    pub(super) program: &'a Path,
}

/// Runs a step; returns the difference from the page, if there is one.
///
/// # Errors
/// If there is no shell.
pub(super) fn run(place: &Place<'_>, block: &Block, step: &Step) -> io::Result<Option<String>> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(&step.script);
    shell.current_dir(if block.has(Word::Checkout) { place.root } else { place.dir });
    shell.env("PATH", path_with(place.program)).env("TMPDIR", place.dir);
    shell.env("WINDROW_HISTORY", "").env("CARGO_INSTALL_ROOT", place.dir.join("installed"));
    let output = output(&mut shell, &step.input)?;
    let printed = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = told.lines().rev().take(TOLD_LINES).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        return Ok(Some(format!("{}\n{}", output.status, last.join("\n"))));
    }
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let expected: Vec<&str> = step.expected.iter().map(|line| line.trim_end()).collect();
    let is_compared = !expected.is_empty() && !block.has(Word::Varies);
    Ok((is_compared && !is_shown(&expected, &printed))
        .then(|| format!("prints something else than the page shows:\n{}", printed.join("\n"))))
}

/// Returns the search path, with the program's directory first.
fn path_with(program: &Path) -> OsString {
    let rest = env::var_os("PATH").unwrap_or_default();
    let dirs = program.parent().map(Path::to_path_buf).into_iter().chain(env::split_paths(&rest));
    env::join_paths(dirs).unwrap_or(rest)
}

fn output(command: &mut Command, input: &str) -> io::Result<Output> {
    let piped = || Stdio::piped();
    let mut child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn()?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        // A command may end without reading its input.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        child.wait_with_output()
    })
}

/// Whether the output is as the page shows it, where `...` is any number of lines.
fn is_shown(expected: &[&str], printed: &[&str]) -> bool {
    match expected {
        [] => printed.is_empty(),
        ["...", rest @ ..] => (0..=printed.len()).any(|skip| is_shown(rest, &printed[skip..])),
        [line, rest @ ..] => printed.first() == Some(line) && is_shown(rest, &printed[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::Page;
    use super::*;

    fn told(text: &str) -> Option<String> {
        let root = crate::root();
        let dir = tempfile::tempdir().unwrap();
        let place = Place { root: &root, dir: dir.path(), program: Path::new("/bin/windrow") };
        let page = Page::parse("p.md", text);
        let block = &page.blocks[0];
        block.steps().iter().find_map(|step| run(&place, block, step).unwrap())
    }

    #[test]
    fn a_command_that_fails_is_told_with_its_line() {
        assert_eq!(told("```sh\ntrue\nmkdir a\ncd a && touch b\ntest -e b\n```\n"), None);
        let told = told("```sh\ntrue\necho gone >&2; false\ntrue\n```\n").unwrap();
        assert!(told.contains("gone\nline 3"), "{told}");
    }

    #[test]
    fn output_is_what_the_page_shows() {
        assert_eq!(told("```console\n$ printf 'a\\nb\\n'\na\nb\n```\n"), None);
        assert_eq!(told("```console\n$ seq 9\n1\n...\n8\n9\n```\n"), None);
        assert_eq!(told("```console\n$ seq 9\n```\n"), None);
        assert_eq!(told("<!-- commands: varies -->\n```console\n$ seq 9\n1\n```\n"), None);
        assert!(told("```console\n$ seq 2\n1\n```\n").unwrap().contains("1\n2"));
        assert!(told("```console\n$ seq 2\n...\n3\n```\n").is_some());
    }
}
