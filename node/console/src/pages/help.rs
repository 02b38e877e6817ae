//! Help: the documentation of this version, offline, with a search over all of it.

use std::{borrow::Cow, sync::LazyLock};

use askama::Template;
use axum::{
    extract::{Path, Query},
    response::IntoResponse,
};
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    frame::{Frame, Section, Visit},
    markup::{Markup, Passage, heading_id, own_markdown, passages},
    page::Rendered,
};

/// Passages that a search shows; whoever finds more looks for more words.
const FOUND_MAX: usize = 30;
/// Characters of a passage that a search shows, and of them so many before the first word that was looked for.
const SHOWN_CHARS: usize = 240;
const BEFORE_CHARS: usize = 60;

/// Beginnings of words that people look for, each with the words of the documents for what is meant.
const MEANT: [(&str, &[&str]); 9] = [
    ("refund", &["deposit", "comes back", "goes back", "not charged"]),
    ("reimburse", &["deposit", "comes back", "goes back", "not charged"]),
    ("chargeback", &["deposit", "not charged"]),
    ("withdraw", &["claim", "close"]),
    ("payout", &["claim", "settlement"]),
    ("invoice", &["receipt"]),
    ("login", &["log-in", "log in", "password"]),
    ("balance", &["deposit", "wallet"]),
    ("paywall", &["x402"]),
];

/// Returns the target of a link in the document `here`: a heading of it or of another one, or an address outside.
fn link(here: &str, address: &str) -> Option<String> {
    if address.starts_with("https://") {
        return Some(address.to_owned());
    }
    let (path, heading) = address.split_once('#').map_or((address, None), |(path, name)| (path, Some(name)));
    let name = match path.rsplit('/').next()? {
        "" => here.to_owned(),
        file => file.strip_suffix(".md")?.to_ascii_lowercase(),
    };
    let known = DOCUMENTS.iter().find(|document| document.name == name)?;
    let heading = heading.map_or_else(String::new, |name| format!("#{}", heading_id(name)));
    Some(format!("/panel/help/{}{heading}", known.name))
}

/// A document of the repository.
struct Document {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    text: &'static str,
}

impl Document {
    /// The text as the console shows it: the glossary without its rules for developers.
    fn shown(&self) -> Cow<'static, str> {
        if self.name == GLOSSARY { Cow::Owned(terms(self.text)) } else { Cow::Borrowed(self.text) }
    }
}

/// The terms of the glossary with their meanings: the first two columns of its table.
fn terms(glossary: &str) -> String {
    let rows = glossary.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = rows.map(|row| row.split('|').skip(1).take(2).collect::<Vec<_>>().join("|"));
    let rows = cells.map(|cells| format!("|{cells}|")).collect::<Vec<_>>().join("\n");
    let lead = "What the words of this console and its documents mean.";
    format!("# Glossary\n\n{lead}\n\n| term | meaning |\n|---|---|\n{rows}")
}

macro_rules! documents {
    ($($name:literal, $path:literal, $title:literal, $about:literal;)+) => {
        &[$(Document {
            name: $name,
            title: $title,
            about: $about,
            text: include_str!(concat!("../../../../", $path)),
        }),+]
    };
}

/// The name of the document of which the console shows a part.
const GLOSSARY: &str = "glossary";

const DOCUMENTS: &[Document] = documents! {
    "console", "docs/console.md", "This console", "Set-up, pages, access, and the API for programs.";
    "problems", "docs/problems.md", "Problems", "What each error of the gateway means, and what to do.";
    "glossary", "GLOSSARY.md", "Glossary", "Channel, voucher, settlement and other terms, in a sentence each.";
    "bridge", "docs/bridge.md", "Publishing an API", "How an OpenAPI file or a GraphQL schema becomes a service.";
    "network", "docs/network.md", "The network", "How nodes find each other and how to be reachable.";
    "x402", "docs/x402.md", "x402", "How your node sells to x402 clients, and buys from x402 servers.";
    "ledger", "docs/ledger.md", "The ledger", "What the node records, and what it guarantees.";
    "security", "SECURITY.md", "Security", "What is protected, and how to report a vulnerability.";
};

/// The passages of all documents, in their order.
static PASSAGES: LazyLock<Vec<(&'static Document, Passage)>> = LazyLock::new(|| {
    let all = DOCUMENTS.iter();
    all.flat_map(|document| passages(&document.shown()).into_iter().map(move |passage| (document, passage)))
        .collect()
});

/// A passage that was found.
struct Hit {
    document: &'static str,
    link: String,
    title: String,
    text: String,
}

/// A word that is looked for: as it was typed, and what it may mean.
struct SearchWord {
    word: String,
    meant: &'static [&'static str],
}

impl SearchWord {
    fn new(word: &str) -> Self {
        let word = word.to_lowercase();
        let known = MEANT.iter().find(|(beginning, _)| word.starts_with(beginning));
        Self { meant: known.map_or(&[][..], |(_, meant)| *meant), word }
    }

    /// Finds the first place of the word, or of what it may mean.
    fn find(&self, text: &str) -> Option<usize> {
        let meant = self.meant.iter().filter_map(|meant| text.find(meant)).min();
        text.find(&self.word).or(meant)
    }
}

/// Finds the passages that have every word, or what is meant by it: those first that have the words themselves, and of them those
/// whose headings have them all.
fn search(words: &str) -> Vec<Hit> {
    let words: Vec<SearchWord> = words.split_whitespace().map(SearchWord::new).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let mut hits: Vec<((bool, bool), Hit)> = Vec::new();
    for (document, passage) in PASSAGES.iter() {
        let (title, text) = (passage.title.to_lowercase(), passage.text.to_lowercase());
        let whole = format!("{title} {text}");
        if words.iter().any(|word| word.find(&whole).is_none()) {
            continue;
        }
        let is_meant = !words.iter().all(|word| whole.contains(&word.word));
        let is_below = words.iter().any(|word| word.find(&title).is_none());
        let at = words.iter().filter_map(|word| word.find(&text)).min().unwrap_or(0);
        let before = text.get(..at).map_or(0, |before| before.chars().count());
        hits.push(((is_meant, is_below), hit(document, passage, before)));
    }
    // Those that are alike stay in the order of the documents.
    hits.sort_by_key(|(rank, _)| *rank);
    hits.into_iter().map(|(_, hit)| hit).collect()
}

/// A passage with its words from a little before the character `at` on, from the beginning of a word.
fn hit(document: &Document, passage: &Passage, at: usize) -> Hit {
    let from = match at.saturating_sub(BEFORE_CHARS) {
        0 => 0,
        from => {
            let gap = passage.text.chars().skip(from).take(BEFORE_CHARS).position(char::is_whitespace);
            from + gap.map_or(0, |gap| gap + 1)
        }
    };
    let text: String = passage.text.chars().skip(from).take(SHOWN_CHARS).collect();
    let is_cut = passage.text.chars().nth(from + SHOWN_CHARS).is_some();
    Hit {
        document: document.title,
        link: format!("/panel/help/{}#{}", document.name, passage.id),
        title: passage.title.clone(),
        text: format!("{}{}{}", if from > 0 { "…" } else { "" }, text.trim(), if is_cut { "…" } else { "" }),
    }
}

#[derive(Template)]
#[template(path = "help.html")]
struct List {
    frame: Frame,
    documents: &'static [Document],
    words: String,
    hits: Vec<Hit>,
    hits_hidden: usize,
}

#[derive(Template)]
#[template(path = "document.html")]
struct HelpTemplate {
    frame: Frame,
    title: &'static str,
    name: &'static str,
    documents: &'static [Document],
    /// Headings below the document's own.
    contents: Vec<Passage>,
    text: Markup,
}

#[derive(Deserialize)]
pub(super) struct HelpParams {
    #[serde(default)]
    q: String,
}

pub(super) async fn list(visit: Visit, Query(asked): Query<HelpParams>) -> Page {
    let mut hits = search(&asked.q);
    let hits_hidden = hits.len().saturating_sub(FOUND_MAX);
    hits.truncate(FOUND_MAX);
    let frame = visit.frame(Section::Help).await?;
    Ok(Rendered(&List { frame, documents: DOCUMENTS, words: asked.q, hits, hits_hidden }).into_response())
}

pub(super) async fn show(visit: Visit, Path(name): Path<String>) -> Page {
    let document = DOCUMENTS.iter().find(|document| document.name == name).ok_or_else(Failure::not_found)?;
    let text = document.shown();
    let headings = passages(&text).into_iter();
    let page = HelpTemplate {
        frame: visit.frame(Section::Help).await?,
        title: document.title,
        name: document.name,
        documents: DOCUMENTS,
        contents: headings.filter(|passage| matches!(passage.level, 2..=3)).collect(),
        text: own_markdown(&text, |address| link(document.name, address)),
    };
    Ok(Rendered(&page).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_passages_in_all_documents_by_all_of_its_words() {
        let hits = search("Stolen  COOKIE");
        assert!(hits.iter().any(|hit| hit.link == "/panel/help/console#at-who-is-let-in"), "the console");
        assert!(hits.iter().all(|hit| hit.text.chars().count() <= SHOWN_CHARS + 2));
        for text in hits.iter().filter_map(|hit| hit.text.strip_prefix('…')) {
            let begins = text.split_whitespace().next().unwrap();
            let is_word = |(_, passage): &(&Document, Passage)| {
                passage.text.contains(text.trim_end_matches('…'))
                    && passage.text.split_whitespace().any(|word| word == begins)
            };
            assert!(PASSAGES.iter().any(is_word), "{text}");
        }
        let first = search("rendezvous").swap_remove(0);
        assert_eq!(
            (first.link.as_str(), first.title.as_str()),
            ("/panel/help/network#at-the-rendezvous", "The rendezvous")
        );
        assert!(search("rendezvous submarine-with-wings").is_empty() && search(" ").is_empty());
        for words in ["x402 server", "buy from x402 servers", "highest price server", "paywall"] {
            let hits = search(words);
            assert!(hits.iter().any(|hit| hit.link.starts_with("/panel/help/x402#")), "{words}");
        }
    }

    #[test]
    fn the_glossary_is_shown_as_terms_and_meanings_without_the_rules_for_developers() {
        let glossary = DOCUMENTS.iter().find(|document| document.name == GLOSSARY).unwrap();
        let shown = glossary.shown();
        assert!(shown.contains("| term | meaning |") && shown.contains("| deposit | the money"), "{shown}");
        assert!(!shown.contains("tidy test") && !shown.contains("Cheque"), "{shown}");
        assert_eq!(shown.lines().filter(|line| line.matches('|').count() != 3).count(), 4, "{shown}");
    }

    /// A program that is shipped has no page of components, so it looks for a document of that name.
    #[test]
    fn no_document_is_called_like_the_page_of_components() {
        assert!(DOCUMENTS.iter().all(|document| document.name != "design"));
    }

    #[test]
    fn a_word_that_the_documents_do_not_use_finds_what_is_meant() {
        for word in ["refund", "Refunds", "refunded", "reimbursement"] {
            let hits = search(word);
            let shown: Vec<&str> = hits.iter().take(FOUND_MAX).map(|hit| hit.link.as_str()).collect();
            for link in
                ["/panel/help/console#at-trying-a-service", "/panel/help/problems#at-deposit-not-safe"]
            {
                assert!(shown.contains(&link), "{word}: {shown:?}");
            }
        }
        let first = search("refund").swap_remove(0);
        assert_eq!(first.link, "/panel/help/console#at-trying-a-service", "the word itself");
        assert!(first.text.contains("refunds the rest"), "{}", first.text);
        assert!(search("refund submarine-with-wings").is_empty());
    }

    #[test]
    fn every_link_between_the_documents_leads_to_a_heading_that_is_there() {
        for (address, target) in [
            ("network.md#the-rendezvous", Some("/panel/help/network#at-the-rendezvous")),
            ("../SECURITY.md", Some("/panel/help/security")),
            ("#money", Some("/panel/help/console#at-money")),
            ("../ARCHITECTURE.md#direction", None),
            ("https://a.example/#b", Some("https://a.example/#b")),
        ] {
            assert_eq!(link("console", address).as_deref(), target, "{address}");
        }
        for document in DOCUMENTS {
            let html = own_markdown(document.text, |address| link(document.name, address)).to_string();
            for target in html.split("href=\"/panel/help/").skip(1).filter_map(|rest| rest.split('"').next())
            {
                let Some((name, id)) = target.split_once('#') else { continue };
                let is_there =
                    |(other, passage): &(&Document, Passage)| other.name == name && passage.id == id;
                assert!(PASSAGES.iter().any(is_there), "{} leads to {target}", document.name);
            }
        }
    }
}
