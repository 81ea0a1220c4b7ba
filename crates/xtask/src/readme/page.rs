//! A page as its blocks: which of them are commands, and the options in the comment above each.
//!
//! Owns: the languages of blocks, and the options that a comment may have. Never does: run
//! anything.

/// The beginning of a comment above a block.
const MARK: &str = "<!-- commands:";

/// The languages that a block may have.
const LANGUAGES: &[&str] = &[
    "sh",
    "console",
    "rust",
    "toml",
    "json",
    "text",
    "c",
    "cpp",
    "cmake",
    "python",
    "java",
    "xml",
    "properties",
];

/// An option of the block below the comment. The comment has options with commas between them, and
/// a reason after a semicolon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// It takes long, or needs the network: run with `--all` alone.
    All,
    /// It is not run. Needs the reason.
    Never,
    /// The output that it shows is an example: only the exit code counts.
    Varies,
    /// It is run in the checkout, not in the page's directory.
    Checkout,
}

const WORDS: &[(&str, Word)] = &[
    ("all", Word::All),
    ("never", Word::Never),
    ("varies", Word::Varies),
    ("checkout", Word::Checkout),
];

/// A page of Markdown.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) path: String,
    pub(super) blocks: Vec<Block>,
    /// The blocks that would be left out in silence.
    pub(super) findings: Vec<String>,
}

/// A fenced block.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Line of the fence, from 1.
    pub(super) line: usize,
    pub(super) language: String,
    pub(super) text: Vec<String>,
    words: Vec<Word>,
    /// The file that its text is written to before it is run (`file NAME`).
    pub(super) file: Option<String>,
}

/// A unit that is run at once: all commands of a `sh` block, or one of a `console` block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The page's line.
    pub(super) line: usize,
    pub(super) commands: usize,
    pub(super) script: String,
    /// The input of a session: the lines behind its prompts.
    pub(super) input: String,
    /// The output that the page shows.
    pub(super) expected: Vec<String>,
}

impl Page {
    pub(super) fn parse(path: &str, text: &str) -> Page {
        let mut page = Page { path: path.to_owned(), blocks: Vec::new(), findings: Vec::new() };
        let (mut open, mut mark): (Option<Block>, Option<&str>) = (None, None);
        let mut is_after_blank = true;
        for (line, text) in (1..).zip(text.lines()) {
            let trimmed = text.trim();
            if let Some(block) = &mut open {
                match trimmed {
                    "```" => page.blocks.extend(open.take()),
                    _ => block.text.push(text.to_owned()),
                }
                continue;
            }
            let mut found = |what: &str| page.findings.push(format!("{path}:{line}: {what}"));
            if let Some(info) = trimmed.strip_prefix("```") {
                let mut block = Block { line, ..Block::default() };
                block.language = info.split(',').next().unwrap_or_default().to_owned();
                if !LANGUAGES.contains(&block.language.as_str()) {
                    found(&format!("a block of no known language ({})", LANGUAGES.join(", ")));
                }
                if let Err(why) = block.read_mark(mark.take().unwrap_or_default()) {
                    found(&why);
                }
                open = Some(block);
            } else if let Some(rest) = trimmed.strip_prefix(MARK) {
                mark = Some(rest.trim_end_matches("-->").trim());
            } else if mark.take().is_some() {
                found("the comment above is not at a block");
            } else if is_after_blank && text.starts_with("    ") && !trimmed.is_empty() {
                found("an indented block: give it a fence and its language");
            }
            is_after_blank = trimmed.is_empty();
        }
        if let Some(block) = open {
            page.findings.push(format!("{path}:{}: a block without an end", block.line));
        }
        page
    }
}

impl Block {
    fn read_mark(&mut self, mark: &str) -> Result<(), String> {
        let (words, reason) = mark.split_once(';').unwrap_or((mark, ""));
        for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match (WORDS.iter().find(|(name, _)| *name == word), word.strip_prefix("file ")) {
                (Some((_, word)), _) => self.words.push(*word),
                (None, Some(name)) => self.file = Some(name.to_owned()),
                (None, None) => {
                    let known: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
                    return Err(format!("`{word}` is none of {}, file NAME", known.join(", ")));
                }
            }
        }
        match self.has(Word::Never) && reason.trim().is_empty() {
            true => Err("never, and no reason: <!-- commands: never; WHY -->".to_owned()),
            false => Ok(()),
        }
    }

    pub(super) fn has(&self, word: Word) -> bool {
        self.words.contains(&word)
    }

    pub(super) fn is_rust(&self) -> bool {
        self.language == "rust"
    }

    /// Returns the number of its commands.
    pub(super) fn commands(&self) -> usize {
        self.steps().iter().map(|step| step.commands).sum()
    }

    /// Returns its steps, in order.
    pub(super) fn steps(&self) -> Vec<Step> {
        match self.language.as_str() {
            "sh" => self.script().into_iter().collect(),
            "console" => self.session(),
            _ => Vec::new(),
        }
    }

    /// Returns all its lines as one step; each command must succeed.
    fn script(&self) -> Option<Step> {
        let mut step = Step::at(self.line);
        let mut command = String::new();
        for (line, text) in (self.line + 1..).zip(&self.text) {
            command.push_str(text);
            command.push('\n');
            let is_comment = text.trim().is_empty() || text.trim_start().starts_with('#');
            if text.ends_with('\\') || is_comment {
                continue;
            }
            step.commands += 1;
            step.script.push_str(&command);
            step.script
                .push_str(&format!("[ $? -eq 0 ] || {{ echo \"line {line}\" >&2; exit 1; }}\n"));
            command.clear();
        }
        (step.commands > 0).then_some(step)
    }

    /// Returns a step for each command: the lines behind `$` are commands, the lines below them are
    /// their output. Where a command is a session, the lines behind its prompt (`default>`) are its
    /// input.
    fn session(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut goes_on = false;
        for (line, text) in (self.line + 1..).zip(&self.text) {
            if let Some(command) = text.strip_prefix("$ ") {
                steps.push(Step { script: format!("{command}\n"), commands: 1, ..Step::at(line) });
                goes_on = command.ends_with('\\');
                continue;
            }
            let Some(step) = steps.last_mut() else { continue };
            let given = step.is_session().then(|| text.split_once("> ")).flatten();
            match given.filter(|(prompt, _)| !prompt.is_empty() && !prompt.contains(' ')) {
                _ if goes_on => {
                    step.script.push_str(&format!("{text}\n"));
                    goes_on = text.ends_with('\\');
                }
                Some((_, given)) => step.input.push_str(&format!("{given}\n")),
                None => step.expected.push(text.clone()),
            }
        }
        steps
    }
}

impl Step {
    fn at(line: usize) -> Step {
        let (script, input, expected) = (String::new(), String::new(), Vec::new());
        Step { line, commands: 0, script, input, expected }
    }

    fn is_session(&self) -> bool {
        self.script.starts_with("windrow shell ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page::parse("p.md", text)
    }

    #[test]
    fn a_block_has_its_language_its_line_and_its_words() {
        let page = page("a\n\n<!-- commands: all, file a/b.rs; slow -->\n```rust,no_run\nx\n```\n");
        let [block] = &page.blocks[..] else { panic!("{page:?}") };
        assert!(page.findings.is_empty() && block.is_rust() && block.has(Word::All), "{page:?}");
        assert_eq!((block.line, block.file.as_deref()), (4, Some("a/b.rs")));
        assert!(block.steps().is_empty());
    }

    #[test]
    fn what_would_be_left_out_is_found() {
        for (text, line) in [
            ("```\na\n```\n", 1),
            ("```bash\na\n```\n", 1),
            ("a\n\n    windrow help\n", 3),
            ("<!-- commands: some -->\n```sh\na\n```\n", 2),
            ("<!-- commands: never -->\n```sh\na\n```\n", 2),
            ("<!-- commands: all -->\na\n", 2),
            ("```sh\na\n", 1),
        ] {
            let found = page(text).findings;
            let begins = format!("p.md:{line}: ");
            assert!(found.len() == 1 && found[0].starts_with(&begins), "{text}: {found:?}");
        }
        assert!(page("- a list\n  goes on\n    further\n").findings.is_empty());
    }

    #[test]
    fn the_lines_of_a_script_are_one_step() {
        let page = page("```sh\ncd a  # there\n# not a command\nb \\\n  c\n```\n");
        let [step] = &page.blocks[0].steps()[..] else { panic!("{page:?}") };
        assert_eq!(step.commands, 2);
        assert!(step.script.contains("cd a  # there\n[ $?") && step.script.contains("line 5"));
        assert!(step.script.contains("# not a command\nb \\\n  c\n[ $?"), "{}", step.script);
    }

    #[test]
    fn a_console_has_a_step_for_each_command() {
        let text =
            "```console\n$ a \\\n  b\nout\n$ windrow shell db\ndefault> get x\nred > blue\n```\n";
        let steps = page(text).blocks[0].steps();
        let [first, second] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!((first.line, first.script.as_str()), (2, "a \\\n  b\n"));
        assert_eq!(first.expected, ["out"]);
        assert_eq!((second.line, second.input.as_str()), (5, "get x\n"));
        assert_eq!(second.expected, ["red > blue"]);
    }
}
