//! The components of the console, each in every state and in both themes: a page of development builds.
//!
//! 1. [`Component`] is the list. The template of examples has a case for each, so that one without an example does not compile.
//! 2. Examples come of the templates and the markup that pages use, over values that are made up ([`made_up`]).
//! 3. Each is rendered once for each theme; what names an element is made unique on the page ([`apart`]).
//!
//! Invariant: nothing on the page changes anything. No form of an example is sent by POST.

use std::fmt;

use askama::{Template, filters::HtmlSafe};
use axum::{extract::Query, response::IntoResponse};
use serde::Deserialize;

use self::made_up::MadeUp;
use crate::{
    failure::{Failure, Page},
    frame::{Frame, Section, Visit},
    page::Rendered,
    theme::Theme,
};

mod made_up;

crate::texts::words! {
    /// The components, in the order of the page.
    pub(super) enum Component(name.0: &'static str, title.1: &'static str, part.2: DesignPart) {
        Type = "type", "Type", DesignPart::Words;
        Buttons = "buttons", "Buttons", DesignPart::Words;
        Fields = "fields", "Fields", DesignPart::Words;
        Choices = "choices", "Choices", DesignPart::Words;
        Notices = "notices", "Notices", DesignPart::Words;
        Outcomes = "outcomes", "Outcomes of calls", DesignPart::Words;
        Badges = "badges", "Badges, tags and chips", DesignPart::Words;
        Empty = "empty-states", "Nothing to show", DesignPart::Words;
        Tiles = "tiles", "Tiles", DesignPart::Lists;
        Tables = "tables", "Tables", DesignPart::Lists;
        Cards = "cards", "Cards", DesignPart::Lists;
        Rows = "rows", "Names and values", DesignPart::Lists;
        Tabs = "tabs", "Tabs", DesignPart::Lists;
        Details = "details", "Details and dialogs", DesignPart::Lists;
        Progress = "progress", "Progress", DesignPart::Lists;
        Waiting = "waiting", "Waiting", DesignPart::Lists;
        Turning = "turning", "Pages of a list", DesignPart::Lists;
        Header = "header", "Header", DesignPart::Lists;
        Charts = "charts", "Charts", DesignPart::Figures;
        Code = "code-panel", "Code", DesignPart::Figures;
        Tree = "json-tree", "JSON tree", DesignPart::Figures;
        Operations = "operations-tree", "Operations and their values", DesignPart::Figures;
        Found = "operations-found", "Operations that were found", DesignPart::Figures;
    }
}

crate::texts::words! {
    /// The parts of the page, each within the bytes that a page may have.
    pub(super) enum DesignPart(name.0: &'static str, title.1: &'static str) {
        Words = "words", "Words and forms";
        Lists = "lists", "Lists and states";
        Figures = "figures", "Figures and code";
    }
}

const THEMES: [Theme; 2] = [Theme::Light, Theme::Dark];

#[derive(Template)]
#[template(path = "design.html")]
struct DesignTemplate {
    frame: Frame,
    part: DesignPart,
    components: Vec<ShownComponent>,
}

struct ShownComponent {
    component: Component,
    /// One for each theme.
    examples: Vec<Examples>,
}

/// The examples of a component in a theme.
struct Examples {
    theme: Theme,
    html: String,
}

#[derive(Template)]
#[template(path = "design-examples.html")]
struct ExamplesTemplate<'a> {
    component: Component,
    frame: &'a Frame,
    made: &'a MadeUp,
}

#[derive(Deserialize)]
pub(super) struct DesignParams {
    #[serde(default)]
    part: String,
}

pub(super) async fn show(visit: Visit, Query(asked): Query<DesignParams>) -> Page {
    let part = DesignPart::ALL.into_iter().find(|part| part.name() == asked.part);
    let part = part.unwrap_or(DesignPart::Words);
    let frame = visit.frame(Section::Help).await?;
    let components = shown(&frame, part).map_err(|error| Failure::broken(error.to_string()))?;
    Ok(Rendered(&DesignTemplate { frame, part, components }).into_response())
}

fn shown(frame: &Frame, part: DesignPart) -> askama::Result<Vec<ShownComponent>> {
    let made = MadeUp::new();
    let shown = |component: Component| -> askama::Result<ShownComponent> {
        let html = ExamplesTemplate { component, frame, made: &made }.render()?;
        // A menu is seen when it is open.
        let html = html.replace("<details class=\"menu\">", "<details class=\"menu\" open>");
        let marked = |theme: Theme| apart(&html, &format!("{}-{}", component.name(), theme.name()));
        let examples = THEMES.map(|theme| Examples { theme, html: marked(theme) });
        Ok(ShownComponent { component, examples: examples.into() })
    };
    Component::ALL.into_iter().filter(|component| component.part() == part).map(shown).collect()
}

/// The same markup for a place of its own: ids, what leads to them, and the names of landmarks get the mark of the place.
fn apart(html: &str, mark: &str) -> String {
    let mut apart = String::with_capacity(html.len() + 1024);
    let mut rest = html;
    while let Some((before, inside)) = rest.split_once("=\"") {
        let (value, after) = inside.split_once('"').unwrap_or((inside, ""));
        let attribute = before.rsplit([' ', '\n']).next().unwrap_or_default();
        apart.push_str(before);
        apart.push_str("=\"");
        match attribute {
            "id" | "for" | "form" | "aria-labelledby" | "aria-describedby" => {
                let ids = value.split(' ').map(|id| format!("{id}-{mark}"));
                apart.push_str(&ids.collect::<Vec<_>>().join(" "));
            }
            // Of a group, one is chosen on the whole page.
            "name" => apart.push_str(&format!("{value}-{mark}")),
            "aria-label" => apart.push_str(&format!("{value} ({mark})")),
            "method" => apart.push_str("get"),
            _ => apart.push_str(value),
        }
        apart.push('"');
        rest = after;
    }
    apart.push_str(rest);
    apart
}

impl fmt::Display for Examples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.html)
    }
}

/// It is markup of our own templates, over values that are made up.
impl HtmlSafe for Examples {}

#[cfg(test)]
mod tests;
