//! The page: its parts, and all of them as one file.
//!
//! Owns: the text of the page. Never does: fill in a database.

use serde_json::Value;

/// The style sheet.
pub const STYLE: &str = include_str!("../page/style.css");
/// The program.
pub const SCRIPT: &str = concat!(
    include_str!("../page/draw.js"),
    include_str!("../page/tree.js"),
    include_str!("../page/main.js"),
);
const FRAME: &str = include_str!("../page/index.html");

fn filled(head: &str, body: &str) -> String {
    FRAME.replacen("<!--head-->", head, 1).replacen("<!--body-->", body, 1)
}

/// The page that asks its server for data.
pub fn live() -> String {
    filled(
        "<link rel=\"stylesheet\" href=\"style.css\">\n<link rel=\"icon\" href=\"data:,\">",
        "<script src=\"script.js\"></script>",
    )
}

/// Returns the page as one file with `state` in it; it sends no request. With `moments` in the
/// state, each with its `keyspaces` and a `text`, the page steps from one to the next.
pub fn of(state: &Value) -> String {
    const POLICY: &str =
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:";
    // Only `<` could end the script inside its text.
    let data = state.to_string().replace('<', "\\u003c");
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{STYLE}</style>"
    );
    let body = format!(
        "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>"
    );
    filled(&head, &body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn data_cannot_end_the_script_that_it_is_in() {
        let page = of(&json!({ "path": "</script><script>alert(1)</script>" }));
        let begin = page.find("id=\"data\">").unwrap();
        let end = page[begin..].find("</script>").unwrap();
        assert!(page[begin..begin + end].contains("alert(1)"), "{}", &page[begin..begin + end]);
        assert!(!page.contains("<!--head-->") && !page.contains("<!--body-->"));
    }

    #[test]
    fn the_page_has_no_foreign_address() {
        for text in [live(), of(&json!({}))] {
            assert!(!text.contains("http://") && !text.contains("https://"));
        }
    }
}
