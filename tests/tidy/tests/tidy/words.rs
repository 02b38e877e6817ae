//! Words that people read: no turn that was weeded out comes back.
//!
//! `weeded.txt` lists the turns, each with a better wording. They are looked for in documents outside of fenced blocks, in
//! string literals of the programs outside of tests, in pages, and in the templates of client code. A turn is found in any
//! case and across the end of a line, and not across the end of a paragraph.

use crate::source::{documents, ends_with, files, is_test, repository};

const WEEDED: &str = include_str!("weeded.txt");
/// The style sheet: the second cell of each of its rows shows what not to write.
const STYLE_SHEET: (&str, &str) = ("CONTRIBUTING.md", "## Words");
/// The changelog and the decisions speak of their time.
const DOCUMENTS: [&str; 5] =
    ["README.md", "CONTRIBUTING.md", "GLOSSARY.md", "SECURITY.md", "deploy/README.md"];
const PROGRAMS: [&str; 4] = ["bridge", "demo-services", "node", "protocol"];
const CLIENT_CODE: &str = "bridge/sdk/templates/";

/// A turn, in lower case, and what to write in its place.
type Weed = (String, &'static str);

#[test]
fn no_turn_that_was_weeded_out_is_in_a_text_that_people_read() {
    let weeds = weeds(WEEDED);
    let mut found = Vec::new();
    for (path, text) in texts() {
        let searched = Searched::new(&text);
        for (turn, better) in &weeds {
            let lines = searched.lines_with(turn);
            found.extend(lines.iter().map(|line| format!("  {path}:{line} says “{turn}”; better: {better}")));
        }
    }
    assert!(found.is_empty(), "see CONTRIBUTING.md, Words:\n{}", found.join("\n"));
}

#[test]
fn every_weeded_turn_is_listed_once_with_a_better_wording_that_has_none() {
    let weeds = weeds(WEEDED);
    assert!(weeds.len() >= 60, "{} were read", weeds.len());
    assert!(weeds.is_sorted_by(|one, next| one.0 < next.0), "sort weeded.txt, each turn once");
    for (turn, better) in &weeds {
        let searched = Searched::new(better);
        let again = weeds.iter().find(|(weeded, _)| !searched.lines_with(weeded).is_empty());
        assert!(again.is_none(), "in place of “{turn}”: {again:?}");
    }
}

/// `turn → better`, a line each; a line that begins with `#` is a comment.
fn weeds(list: &'static str) -> Vec<Weed> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let weed = |line: &'static str| {
        let (turn, better) = line.split_once(" → ")?;
        (!better.is_empty()).then(|| (turn.to_lowercase(), better))
    };
    lines.map(|line| weed(line).unwrap_or_else(|| panic!("`{line}` is not `turn → better`"))).collect()
}

/// Path and text of everything that people read, each line in its place.
fn texts() -> Vec<(String, String)> {
    let of_people = |path: &str| {
        DOCUMENTS.contains(&path) || path.starts_with("docs/") && !path.starts_with("docs/decisions/")
    };
    let of_client_code = |path: &str| path.starts_with(CLIENT_CODE);
    let mut texts = Vec::new();
    for document in documents().into_iter().filter(|document| of_people(&document.path)) {
        let text = prose(&document.path, &document.text);
        texts.push((document.path, text));
    }
    for folder in PROGRAMS.map(|folder| repository().join(folder)) {
        for (path, text) in files(&folder, |path| ends_with(path, "rs")) {
            if !is_test(&path) && !of_client_code(&path) {
                texts.push((path, literals(&text)));
            }
        }
        for (path, text) in files(&folder, |path| ends_with(path, "html")) {
            texts.push((path, without_comments(&text)));
        }
    }
    let templates = files(&repository().join(CLIENT_CODE), |_| true).into_iter();
    texts.extend(templates.map(|(path, text)| (path, without_comments(&text))));
    texts
}

/// A document without fenced blocks, and without the examples of what not to write.
fn prose(path: &str, text: &str) -> String {
    let (mut is_code, mut is_style_sheet) = (false, false);
    let mut prose = String::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if !is_code && line.starts_with("## ") {
            is_style_sheet = (path, line) == STYLE_SHEET;
        }
        if is_style_sheet && line.starts_with("| ") {
            prose.extend(line.split('|').enumerate().filter(|(cell, _)| *cell != 2).map(|(_, cell)| cell));
        } else if !is_code && !is_fence {
            prose.push_str(line);
        }
        prose.push('\n');
    }
    prose
}

/// A template without its comments.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("{#");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Shells have `${#names}`, which begins none.
        let (comment, after) = part.split_once("#}").unwrap_or(("", part));
        kept.push_str(&blank(comment));
        kept.push_str(after);
    }
    kept
}

/// The string literals of a source between quotation marks, without those of the tests at its end.
fn literals(text: &str) -> String {
    let mut rest = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let mut kept = String::new();
    while let Some(at) = rest.find(['"', '\'', '/']) {
        let (before, from) = rest.split_at(at);
        let (token, after) = from.split_at(token_length(before, from));
        kept.push_str(&blank(before));
        if token.starts_with('"') {
            // The end of a line within a literal, and a quotation mark that ends none.
            let plain = token.replace("\\\n", "\n").replace("\\n", " ").replace("\\\"", "'");
            kept.push_str(&plain);
        } else {
            kept.push_str(&blank(token));
        }
        rest = after;
    }
    kept
}

/// The length of the literal or comment that begins `text`, or of a sign that begins neither. `before` is before it.
fn token_length(before: &str, text: &str) -> usize {
    let through = |end: &str| text[1..].find(end).map_or(text.len(), |at| 1 + at + end.len());
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return through("*/");
    }
    if text.starts_with('"') {
        return marks_of_raw(before).map_or_else(|| quoted(text), |marks| through(&format!("\"{marks}")));
    }
    character(text).unwrap_or(1)
}

/// `##` where `before` ends with `r##`: a literal without escapes follows, which ends with as many.
fn marks_of_raw(before: &str) -> Option<&str> {
    let prefix = before.trim_end_matches('#');
    let name = prefix.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    matches!(name, "r" | "br" | "cr").then(|| &before[prefix.len()..])
}

/// The length of a character between quotation marks; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    let mut characters = inside.chars();
    let first = characters.next()?;
    if first == '\\' {
        // The character after the backslash may be a quotation mark itself.
        let escaped = 1 + characters.next()?.len_utf8();
        return inside.get(escaped..)?.find('\'').map(|at| 1 + escaped + at + 1);
    }
    (characters.next() == Some('\'')).then(|| 1 + first.len_utf8() + 1)
}

/// The length of a literal from its first quotation mark to its last.
fn quoted(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => (),
        }
    }
    text.len()
}

/// The ends of lines in `text`, or one blank where there are none.
fn blank(text: &str) -> String {
    if text.contains('\n') { "\n".repeat(text.matches('\n').count()) } else { " ".to_owned() }
}

/// A text in lower case, with one blank for all between two words, and the end of a line between two paragraphs.
struct Searched {
    text: String,
    /// Where in `text` each line begins.
    lines: Vec<usize>,
}

impl Searched {
    fn new(original: &str) -> Self {
        let (mut text, mut lines, mut ends) = (String::new(), vec![0], None);
        for c in original.chars() {
            if c.is_whitespace() {
                let ends = ends.get_or_insert(0);
                if c == '\n' {
                    *ends += 1;
                    lines.push(text.len() + 1);
                }
                continue;
            }
            if let Some(ends) = ends.take() {
                text.push(if ends > 1 { '\n' } else { ' ' });
            }
            text.extend(c.to_lowercase());
        }
        Self { text, lines }
    }

    /// The number of each line in which `turn` begins, as words of its own.
    fn lines_with(&self, turn: &str) -> Vec<usize> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let is_whole = |at: usize| {
            !self.text[..at].ends_with(is_part) && !self.text[at + turn.len()..].starts_with(is_part)
        };
        let places = self.text.match_indices(turn).map(|(at, _)| at).filter(|at| is_whole(*at));
        places.map(|at| self.lines.partition_point(|begins| *begins <= at)).collect()
    }
}

#[test]
fn a_turn_is_found_across_a_line_break_of_a_paragraph_and_in_any_case() {
    let text =
        "# Title\n\nYour node is\n  Told by POST, and is told\nby posters.\n\nIt is\n\ntold by post.\n";
    assert_eq!(Searched::new(&prose("docs/a.md", text)).lines_with("is told by post"), [3]);
    assert!(Searched::new("foretold by post, told by post_office").lines_with("told by post").is_empty());
}

#[test]
fn fenced_blocks_and_the_examples_of_the_style_sheet_are_left_out() {
    let text = "Read it.\n```text\nnames none\n```\nand\n- item\n  ```sh\n  names none\n  ```\nthen it names\nnone.\n";
    assert_eq!(Searched::new(&prose("docs/a.md", text)).lines_with("names none"), [10]);
    let sheet = "## Words\n| Say it. | It names none. | It is empty. |\n| a | b | It names none. |\n## Tests\n| a | names none |\n";
    assert_eq!(Searched::new(&prose("CONTRIBUTING.md", sheet)).lines_with("names none"), [3, 5]);
    assert_eq!(Searched::new(&prose("README.md", sheet)).lines_with("names none"), [2, 3, 5]);
}

#[test]
fn comments_tests_and_what_is_between_two_literals_are_left_out() {
    let text = concat!(
        "//! names none\nfn a<'a>(b: &'a str) { // \"names none\n    let c = ['\"', '\\'', '\\u{27}'];\n",
        "    /* \"names none\" */ d(\"names\", \"none\", \"a \\\" names \\\n        none\");\n",
        "    let e = r#\"a \" names none\"#; r#type(b\"names none\");\n}\n",
        "#[cfg(test)]\nmod tests {\n    const F: &str = \"names none\";\n}\n",
    );
    assert_eq!(Searched::new(&literals(text)).lines_with("names none"), [4, 6, 6]);
    let paths: Vec<String> = texts().into_iter().map(|(path, _)| path).collect();
    assert!(paths.len() > 400, "{} were read", paths.len());
    let is_left_out = |path: &String| is_test(path) && !path.starts_with(CLIENT_CODE);
    assert_eq!(paths.iter().find(|path| is_left_out(path)), None);
    for read in ["README.md", "docs/console.md", "node/cli/src/status.rs", "node/console/templates/home.html"]
    {
        assert!(paths.iter().any(|path| path == read), "{read} was not read");
    }
}

#[test]
fn a_page_is_read_without_its_comments() {
    let page = "{# names\nnone #}<p>names\nnone</p>${#names}{# names none #}";
    assert_eq!(Searched::new(&without_comments(page)).lines_with("names none"), [2]);
}
