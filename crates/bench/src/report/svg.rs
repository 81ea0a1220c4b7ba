//! A picture in SVG.
//!
//! Rejected: a plotting library. The SVG backend of `plotters` (the maintained
//! one) writes colours into every element and knows neither classes nor titles
//! nor dashes. So a picture could not follow the page's dark scheme, be told
//! apart without colour, or show its number under the pointer. It also sets
//! points to whole pixels, which shows in curves of a thousand points.
//!
//! Owns: elements, escapes, the estimate of a text's width. Never does: know
//! what is drawn.

use std::fmt::Write as _;

/// Height of a line of text, in units of the picture (pixels at scale 1).
pub(crate) const LINE: f64 = 16.0;

/// The side of its point on which a text lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The face of a text: `svg.css` has a class for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    /// The name of a picture or a block.
    Title,
    /// Names and values.
    Label,
    /// Ticks, units and remarks.
    Small,
}

impl Face {
    fn class(self) -> &'static str {
        match self {
            Face::Title => "title",
            Face::Label => "label",
            Face::Small => "small",
        }
    }

    /// Returns the font size, as in `svg.css`.
    pub(crate) fn size(self) -> f64 {
        match self {
            Face::Title => 14.0,
            Face::Label => 12.0,
            Face::Small => 11.0,
        }
    }
}

/// A picture under construction: its width is given, it grows downwards.
pub(crate) struct Svg {
    width: f64,
    body: String,
}

impl Svg {
    pub(crate) fn new(width: f64) -> Svg {
        Svg { width, body: String::new() }
    }

    pub(crate) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, class: &str) {
        let (x, y, w, h) = (at(x), at(y), at(width), at(height));
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" class=\"{class}\"/>"
        );
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let (x1, y1, x2, y2) = (at(from.0), at(from.1), at(to.0), at(to.1));
        let _ = writeln!(
            self.body,
            "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" class=\"{class}\"/>"
        );
    }

    pub(crate) fn path(&mut self, points: &[(f64, f64)], class: &str) {
        self.shape("polyline", points, class);
    }

    pub(crate) fn area(&mut self, points: &[(f64, f64)], class: &str) {
        self.shape("polygon", points, class);
    }

    fn shape(&mut self, name: &str, points: &[(f64, f64)], class: &str) {
        let words: Vec<String> =
            points.iter().map(|p| format!("{},{}", at(p.0), at(p.1))).collect();
        let _ = writeln!(self.body, "<{name} points=\"{}\" class=\"{class}\"/>", words.join(" "));
    }

    /// Draws a dot that shows `words` under the pointer.
    pub(crate) fn dot(&mut self, center: (f64, f64), radius: f64, class: &str, words: &str) {
        let (x, y, r) = (at(center.0), at(center.1), at(radius));
        let _ = writeln!(
            self.body,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" class=\"{class}\"><title>{}</title></circle>",
            escape(words)
        );
    }

    /// Draws a text whose baseline begins, has its middle or ends at a point.
    pub(crate) fn text(&mut self, at_point: (f64, f64), anchor: Anchor, face: Face, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (at(at_point.0), at(at_point.1));
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" class=\"{}\">{}</text>",
            face.class(),
            escape(words)
        );
    }

    /// Draws a label that is cut to `width`; all of it shows under the pointer.
    pub(crate) fn label(&mut self, at_point: (f64, f64), anchor: Anchor, width: f64, words: &str) {
        let cut = cut(words, Face::Label, width);
        if cut == words {
            return self.text(at_point, anchor, Face::Label, words);
        }
        let _ = writeln!(self.body, "<g><title>{}</title>", escape(words));
        self.text(at_point, anchor, Face::Label, &cut);
        self.body.push_str("</g>\n");
    }

    /// Draws a picture's title and a remark, next to each other if there is room, else in lines
    /// of their own; returns the last baseline.
    pub(crate) fn head(&mut self, title: &str, remark: &str) -> f64 {
        let wide = self.width;
        if width(title, Face::Title) + width(remark, Face::Small) + 16.0 <= wide {
            self.text((0.0, LINE), Anchor::Start, Face::Title, title);
            self.text((wide, LINE), Anchor::End, Face::Small, remark);
            return LINE;
        }
        let mut y = 0.0;
        for (face, text, most) in [(Face::Title, title, 2), (Face::Small, remark, 2)] {
            for line in lines(text, face, wide, most) {
                y += LINE + 1.0;
                self.text((0.0, y), Anchor::Start, face, &line);
            }
        }
        y
    }

    /// Returns the element, of this height; `title` names it to readers who
    /// cannot see it.
    pub(crate) fn finish(self, height: f64, title: &str) -> String {
        let (w, h) = (at(self.width), at(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" \
             height=\"{h}\" role=\"img\" aria-label=\"{}\" class=\"picture\">\n{}</svg>\n",
            escape(title),
            self.body
        )
    }
}

/// Returns a picture's element as a file of its own, with its styles in it.
pub(crate) fn file(picture: &str, styles: &str) -> String {
    let (head, rest) = picture.split_once(">\n").unwrap_or((picture, ""));
    format!(
        "{head}>\n<style>\n{styles}</style>\n<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n{rest}"
    )
}

/// Formats a coordinate: a tenth of a pixel is as fine as a reader sees.
fn at(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// Escapes text for XML and HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            // XML cannot express these characters.
            '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' => escaped.push('\u{fffd}'),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// Estimates the width of a text. The font is unknown until the picture is
/// shown: the shares of the size are those of wide sans-serif faces, so that
/// real ones fit.
pub(crate) fn width(text: &str, face: Face) -> f64 {
    let share = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' => 0.32,
        ' ' | 'f' | 't' | 'r' | '(' | ')' | '/' | '-' | 'I' => 0.40,
        'm' | 'M' | 'w' | 'W' | '@' | '%' | '▲' | '▼' => 0.95,
        'A'..='Z' | '×' | '~' | '_' | '–' => 0.72,
        _ => 0.62,
    };
    let heavier = if face == Face::Title { 1.06 } else { 1.0 };
    text.chars().map(share).sum::<f64>() * face.size() * heavier
}

/// Returns a text no wider than `wide`, with an ellipsis where it was cut.
pub(crate) fn cut(text: &str, face: Face, wide: f64) -> String {
    if width(text, face) <= wide {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if width(&kept, face) + 0.8 * face.size() > wide {
            kept.pop();
            break;
        }
    }
    format!("{kept}…")
}

/// Returns a text in at most `most` lines no wider than `wide`, broken at spaces; a word or a last
/// line that is too long is cut.
pub(crate) fn lines(text: &str, face: Face, wide: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let is_full = lines.len() >= most;
        match lines.last_mut() {
            Some(line) if is_full || width(&format!("{line} {word}"), face) <= wide => {
                *line = format!("{line} {word}");
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| cut(line, face, wide)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_broken_at_spaces() {
        let broken = |wide, most| lines("windrow (same bits)", Face::Small, wide, most);
        assert_eq!(broken(200.0, 2), ["windrow (same bits)"]);
        assert_eq!(broken(80.0, 2), ["windrow", "(same bits)"]);
        assert_eq!(broken(80.0, 3), broken(80.0, 2));
        let three = broken(50.0, 2);
        assert!(three.len() == 2 && three[1].ends_with('…'), "{three:?}");
        assert!(broken(60.0, 1)[0].ends_with('…'));
    }

    #[test]
    fn texts_are_escaped_and_cut() {
        assert_eq!(escape("a<b & \"c\"\u{1}"), "a&lt;b &amp; &quot;c&quot;\u{fffd}");
        assert_eq!(cut("short", Face::Label, 100.0), "short");
        let cut = cut("a very long name of a contender", Face::Label, 80.0);
        assert!(cut.ends_with('…') && width(&cut, Face::Label) <= 80.0, "{cut}");
        assert_eq!((at(1.0), at(0.25), at(-3.04)), ("1".into(), "0.2".into(), "-3".into()));
    }
}
