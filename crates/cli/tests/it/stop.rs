//! Ctrl-C at a terminal: the bar is cleared, the exit code is 130, and the
//! database is closed, or was not touched. And progress without Ctrl-C.

#![allow(clippy::disallowed_methods, reason = "tests play the shell: files and waits are theirs")]

use crate::common::{Shell, terminal};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};

/// A program whose stderr, and if wanted its stdin, is a terminal.
struct Seen {
    child: Child,
    screen: File,
    text: Vec<u8>,
}

impl Seen {
    fn begin(sh: &Shell, line: &str, typed: bool) -> Seen {
        let (screen, other) = terminal();
        let mut command = sh.command(line.split_whitespace());
        command.env("TERM", "xterm");
        if typed {
            command.stdin(Stdio::from(other.try_clone().unwrap()));
        }
        let child = command.stderr(Stdio::from(other)).spawn().unwrap();
        // `command` holds the other end, and is dropped here.
        Seen { child, screen, text: Vec::new() }
    }

    /// Waits until these words are on the screen.
    fn wait_for(&mut self, words: &str) {
        while !String::from_utf8_lossy(&self.text).contains(words) {
            let mut piece = [0; 1 << 10];
            let read = self.screen.read(&mut piece).expect("ended before that");
            self.text.extend_from_slice(&piece[..read]);
        }
    }

    fn press_ctrl_c(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Waits for the end; returns the exit code and all that was on the screen.
    fn end(mut self) -> (Option<i32>, String) {
        // The read fails once the other end is closed.
        let _ = self.screen.read_to_end(&mut self.text);
        let code = self.child.wait().unwrap().code();
        (code, String::from_utf8(self.text).unwrap())
    }
}

#[test]
fn nothing_is_drawn_below_what_a_stopped_load_says() {
    let sh = Shell::new();
    let mut load = Seen::begin(&sh, "load db --ack", false);
    // The input stays open, or the load would end by itself.
    let mut stdin = load.child.stdin.take().unwrap();
    let mut acks = BufReader::new(load.child.stdout.take().unwrap()).lines();
    stdin.write_all(b"a\t1\n").unwrap();
    assert_eq!(acks.next().unwrap().unwrap(), "1");
    load.wait_for("lines loaded");
    load.press_ctrl_c();
    let (code, text) = load.end();
    assert_eq!(code, Some(130), "{text:?}");
    let (_, said) = text.split_once("stopping; Ctrl-C again").unwrap();
    assert!(said.contains("stopped; 1 line loaded") && !said.contains('\u{1b}'), "{text:?}");
    assert_eq!(sh.ok("export db"), "a\t1\n");
}

#[test]
fn the_prompt_of_destroy_can_be_left() {
    let sh = Shell::new();
    sh.ok("put db key value");
    let mut destroy = Seen::begin(&sh, "destroy db", true);
    destroy.wait_for("Type yes: ");
    destroy.press_ctrl_c();
    let (code, text) = destroy.end();
    assert_eq!(code, Some(130), "{text:?}");
    assert!(text.trim_end().ends_with("windrow: stopped"), "{text:?}");
    assert_eq!(sh.ok("get db key"), "value\n");
}

#[test]
fn verify_and_compact_show_how_far_they_are() {
    let sh = Shell::new();
    sh.ok("put db key value");
    let (code, text) = Seen::begin(&sh, "compact db", false).end();
    assert_eq!(code, Some(0), "{text:?}");
    assert!(text.contains("written, ") && text.contains("in tables"), "{text:?}");
    let (code, text) = Seen::begin(&sh, "verify db", false).end();
    assert_eq!(code, Some(0), "{text:?}");
    assert!(text.contains("verifying") && text.contains(" % "), "{text:?}");
}
