//! A quickstart as its reader follows it: commands in order, what each prints, and what is done by hand between them.
//!
//! A block of `sh` is run as it stands, and the block of `text` below it is what it prints. Comments that a reader does not
//! see say the rest: `<!-- keeps running -->` and `<!-- takes a moment -->` above a block, and `<!-- by hand: … -->` where
//! something happens elsewhere. In what is printed `…` stands for whatever differs, or, alone in its line, for any number of
//! lines.

use std::{mem, path::Path, str::Lines};

use anyhow::{Context, Result, bail, ensure};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Commands(Commands),
    /// What is done elsewhere, in the document's words.
    ByHand(String),
}

/// The commands of one block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Commands {
    pub(crate) script: String,
    /// What the document says that they print; `None` where it does not say.
    pub(crate) prints: Option<String>,
    pub(crate) manner: Manner,
}

/// The way in which commands end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    /// They are run once.
    #[default]
    Once,
    /// They only look, and are repeated until they see what is to be seen.
    TakesAMoment,
    /// One command that stays, as in a terminal of its own.
    KeepsRunning,
}

/// Reads the steps of a document of the repository.
pub(crate) fn read(path: &str) -> Result<Vec<Step>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned())?;
    steps(&text).with_context(|| path.to_owned())
}

fn steps(text: &str) -> Result<Vec<Step>> {
    let (mut steps, mut manner) = (Vec::new(), Manner::Once);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let comment = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        match (line, comment) {
            (_, Some("keeps running")) => manner = Manner::KeepsRunning,
            (_, Some("takes a moment")) => manner = Manner::TakesAMoment,
            (_, Some(comment)) => {
                let what = comment.strip_prefix("by hand: ");
                let what = what.with_context(|| format!("`{comment}` says nothing to this test"))?;
                steps.push(Step::ByHand(what.to_owned()));
            }
            ("```sh", None) => {
                let script = block(&mut lines);
                let manner = mem::take(&mut manner);
                ensure!(
                    manner != Manner::KeepsRunning || !script.contains('\n'),
                    "one command stays: {script}"
                );
                steps.push(Step::Commands(Commands { script, prints: None, manner }));
            }
            ("```text", None) => {
                let printed = block(&mut lines);
                match steps.last_mut() {
                    Some(Step::Commands(commands)) if commands.prints.is_none() => {
                        commands.prints = Some(printed);
                    }
                    _ => bail!("nothing prints {printed}"),
                }
            }
            (line, None) => ensure!(!line.starts_with("```"), "{line} is neither run nor printed"),
        }
    }
    Ok(steps)
}

fn block(lines: &mut Lines<'_>) -> String {
    lines.take_while(|line| *line != "```").collect::<Vec<_>>().join("\n")
}

/// Returns whether the claim of a document holds of what was printed. Some blanks are as good as one, and empty lines as
/// none.
pub(crate) fn holds(claimed: &str, printed: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.filter(|line| !line.is_empty()).collect()
    };
    all_fit(&lines(claimed), &lines(printed))
}

fn all_fit(claimed: &[String], printed: &[String]) -> bool {
    let Some((first, rest)) = claimed.split_first() else { return printed.is_empty() };
    if first == "…" {
        return (0..=printed.len()).any(|skipped| all_fit(rest, &printed[skipped..]));
    }
    printed.split_first().is_some_and(|(line, others)| fits(first, line) && all_fit(rest, others))
}

fn fits(claimed: &str, line: &str) -> bool {
    let mut pieces = claimed.split('…');
    let Some(mut left) = line.strip_prefix(pieces.next().unwrap_or_default()) else { return false };
    let Some(last) = pieces.next_back() else { return left.is_empty() };
    for piece in pieces {
        let Some((_, after)) = left.split_once(piece) else { return false };
        left = after;
    }
    left.ends_with(last)
}

#[test]
fn a_document_is_read_as_its_reader_follows_it() -> Result<()> {
    let text = "# Title\n```sh\none\n```\nand\n```text\nfirst\n\nsecond\n```\n<!-- by hand: money comes -->\n\
                <!-- takes a moment -->\n```sh\ntwo \\\n  three\n```\n<!-- keeps running -->\n```sh\nfour\n```\n```sh\nfive\n```\n";
    let commands = |script: &str, prints: Option<&str>, manner| {
        Step::Commands(Commands { script: script.to_owned(), prints: prints.map(str::to_owned), manner })
    };
    let expected = [
        commands("one", Some("first\n\nsecond"), Manner::Once),
        Step::ByHand("money comes".to_owned()),
        commands("two \\\n  three", None, Manner::TakesAMoment),
        commands("four", None, Manner::KeepsRunning),
        commands("five", None, Manner::Once),
    ];
    assert_eq!(steps(text)?, expected);
    for wrong in [
        "<!-- takes a while -->",
        "```toml\na = 1\n```",
        "```text\nfirst\n```",
        "```sh\none\n```\n```text\na\n```\n```text\nb\n```",
        "<!-- keeps running -->\n```sh\none\ntwo\n```",
    ] {
        assert!(steps(wrong).is_err(), "{wrong}");
    }
    Ok(())
}

#[test]
fn a_claim_holds_when_all_that_it_says_is_there_and_nothing_else() {
    for (claimed, printed) in [
        ("USDC  0.00\nETH  …", "USDC   0.00\nETH    0.1\n"),
        ("Paid … ETH", "Paid         0.004 ETH"),
        ("0x…", "0xabc"),
        ("… Tides  0.002  …  0x…", "0b5f  Tides  0.002  REST  online  0x6c1d…c928"),
        ("a\n…\nc", "a\nb\n\nb\nc"),
        ("a\n…", "a"),
        ("…\nc", "c"),
    ] {
        assert!(holds(claimed, printed), "{claimed}\nof\n{printed}");
    }
    for (claimed, printed) in [
        ("USDC  0.00", "USDC  0.01"),
        ("USDC  0.00", "USDC  0.00\nCareful: no"),
        ("USDC  0.00\nETH  …", "USDC  0.00"),
        ("Paid … ETH", "Paid 0.004 USDC"),
        ("a … a", "a a"),
        ("a\n…\nc", "a\nb"),
        ("a", ""),
    ] {
        assert!(!holds(claimed, printed), "{claimed}\nof\n{printed}");
    }
}
