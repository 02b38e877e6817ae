//! Help: the documentation of this version, offline.

use askama::Template;
use axum::{extract::Path, response::IntoResponse};

use crate::{
    failure::{Failure, Page},
    frame::{Frame, Section, Visit},
    markup::{Markup, own_markdown},
    page::Rendered,
};

/// Returns the target of a link in one document: another of them, or an address outside.
fn link(address: &str) -> Option<String> {
    if address.starts_with("https://") {
        return Some(address.to_owned());
    }
    let file = address.split('#').next()?.rsplit('/').next()?;
    let name = file.strip_suffix(".md")?.to_ascii_lowercase();
    let known = DOCUMENTS.iter().find(|document| document.name == name)?;
    Some(format!("/panel/help/{}", known.name))
}

/// A document of the repository.
struct Document {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    text: &'static str,
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

const DOCUMENTS: &[Document] = documents! {
    "console", "docs/console.md", "This console", "Setting up, who is let in, and the same for programs.";
    "problems", "docs/problems.md", "Problems", "What an answer of the gateway means, and what to do.";
    "glossary", "GLOSSARY.md", "Words", "Channel, voucher, settlement and the others, in a sentence each.";
    "bridge", "docs/bridge.md", "Publishing an API", "What becomes of an OpenAPI file or a GraphQL schema.";
    "network", "docs/network.md", "The network", "How nodes find each other and how to be reachable.";
    "ledger", "docs/ledger.md", "The books", "What the node records, and what it promises about it.";
    "security", "SECURITY.md", "Security", "What is protected against whom, and how to report a hole.";
};

#[derive(Template)]
#[template(path = "help.html")]
struct List {
    frame: Frame,
    documents: &'static [Document],
}

#[derive(Template)]
#[template(path = "document.html")]
struct HelpTemplate {
    frame: Frame,
    title: &'static str,
    text: Markup,
}

pub(super) async fn list(visit: Visit) -> Page {
    let frame = visit.frame(Section::Help).await?;
    Ok(Rendered(&List { frame, documents: DOCUMENTS }).into_response())
}

pub(super) async fn show(visit: Visit, Path(name): Path<String>) -> Page {
    let document = DOCUMENTS.iter().find(|document| document.name == name).ok_or_else(Failure::not_found)?;
    let frame = visit.frame(Section::Help).await?;
    Ok(Rendered(&HelpTemplate { frame, title: document.title, text: own_markdown(document.text, link) })
        .into_response())
}
