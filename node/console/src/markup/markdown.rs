//! Markdown as safe HTML: bounded, read by pulldown-cmark, then every tag and address checked by ammonia.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use ammonia::{Builder, UrlRelative};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::Markup;
use crate::show::is_invisible;

/// A long description is some screens of text; what is longer is cut, and said to be.
const STRANGERS_BYTES_MAX: usize = 32 * 1024;

/// Quotes in quotes, lists in lists; readers of HTML take long over what is deeper, and people give up sooner.
const DEPTH_MAX: usize = 24;

const OPTIONS: Options = Options::ENABLE_TABLES.union(Options::ENABLE_STRIKETHROUGH);

static CLEANER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let tags: HashSet<&str> = [
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "strong",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ]
    .into();
    let mut cleaner = Builder::empty();
    cleaner
        .tags(tags)
        .tag_attributes(HashMap::from([
            ("a", HashSet::from(["href"])),
            ("ol", HashSet::from(["start"])),
            ("table", HashSet::from(["tabindex"])),
        ]))
        .url_schemes(HashSet::from(["https", "http", "mailto"]))
        .url_relative(UrlRelative::Deny)
        // The stranger does not learn who read it, and nobody ranks it by us.
        .link_rel(Some("noopener noreferrer nofollow"))
        .clean_content_tags(HashSet::from(["script", "style", "title", "template"]));
    cleaner
});

/// A stranger's Markdown. Images are left out, because loading one tells its server who reads; HTML is shown as
/// text; headings become smaller than the page's own.
pub(crate) fn strangers(text: &str) -> Markup {
    let cut = text.len() > STRANGERS_BYTES_MAX;
    let text = &text[..text.floor_char_boundary(STRANGERS_BYTES_MAX)];
    let text: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let mut rendered = rendered(&text, 3, Pictures::AsWords, &[], |address| Some(address.to_owned()));
    if cut {
        rendered.push_str("<p><em>Only the beginning of the description is shown.</em></p>");
    }
    Markup(CLEANER.clean(&rendered).to_string())
}

/// A document of our own, embedded in the program. `link` says where its links lead, as for strangers'. Its pictures
/// show what the reader has before them. Its headings have the ids of its [`passages`].
pub(crate) fn own(text: &str, link: impl Fn(&str) -> Option<String>) -> Markup {
    Markup(rendered(text, 1, Pictures::LeftOut, &passages(text), link))
}

/// A heading of one of our documents, and the words below it, up to the next one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Passage {
    /// Of the heading: 1 is that of the whole document.
    pub(crate) level: usize,
    /// Of the heading, in the page.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) text: String,
}

/// The id of a heading, by the name that links to it have: `the-rendezvous`. No id of a page's frame is like it.
pub(crate) fn heading_id(name: &str) -> String {
    format!("at-{name}")
}

/// Reads the passages of one of our documents, in their order. Words before the first heading belong to none.
pub(crate) fn passages(text: &str) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let (mut in_heading, mut in_picture) = (false, false);
    for event in Parser::new_ext(text, OPTIONS) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                in_heading = true;
                passages.push(Passage { level: level as usize, ..Passage::default() });
            }
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {
                in_picture = matches!(event, Event::Start(_));
            }
            Event::End(TagEnd::Heading(_)) => {
                in_heading = false;
                name_last(&mut passages);
            }
            Event::Text(words) | Event::Code(words) if !in_picture => {
                let Some(passage) = passages.last_mut() else { continue };
                let place = if in_heading { &mut passage.title } else { &mut passage.text };
                place.push_str(&words);
            }
            Event::SoftBreak
            | Event::HardBreak
            | Event::End(TagEnd::Paragraph | TagEnd::Item | TagEnd::TableCell | TagEnd::CodeBlock) => {
                if let Some(passage) = passages.last_mut()
                    && !passage.text.ends_with(' ')
                {
                    passage.text.push(' ');
                }
            }
            _ => {}
        }
    }
    passages
}

/// Gives the last passage its id: the title in small letters, as links to it have it, and a number where there is one of
/// that name before.
fn name_last(passages: &mut [Passage]) {
    let Some((last, before)) = passages.split_last_mut() else { return };
    let small = last.title.to_lowercase();
    let kept = small.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
    let alike = before.iter().filter(|passage| passage.title == last.title).count();
    last.id = heading_id(&if alike == 0 { name } else { format!("{name}-{alike}") });
}

/// The treatment of pictures, none of which is ever loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pictures {
    AsWords,
    LeftOut,
}

/// `link` says where an address leads; a link that leads nowhere stays as its words.
fn rendered(
    text: &str,
    heading_min: usize,
    pictures: Pictures,
    passages: &[Passage],
    link: impl Fn(&str) -> Option<String>,
) -> String {
    let mut ids = passages.iter().map(|passage| passage.id.clone());
    let mut links_open = Vec::new();
    let mut depth = 0_usize;
    let mut in_picture = false;
    let mut headings = Headings::new(heading_min);
    let events = Parser::new_ext(text, OPTIONS).filter_map(|event| match event {
        Event::Start(Tag::BlockQuote(_) | Tag::List(_) | Tag::Item) => {
            depth += 1;
            (depth <= DEPTH_MAX).then_some(event)
        }
        Event::End(TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item) => {
            depth = depth.saturating_sub(1);
            (depth < DEPTH_MAX).then_some(event)
        }
        // What stands for the picture stays, or goes with it.
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {
            in_picture = matches!(event, Event::Start(_));
            None
        }
        _ if in_picture && pictures == Pictures::LeftOut => None,
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let leads_to = link(&dest_url);
            links_open.push(leads_to.is_some());
            let dest_url = leads_to?.into();
            Some(Event::Start(Tag::Link { link_type, dest_url, title, id }))
        }
        Event::End(TagEnd::Link) => links_open.pop().unwrap_or_default().then_some(event),
        // Its text stays.
        Event::Html(html) | Event::InlineHtml(html) => Some(Event::Text(html)),
        Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
            let (level, id) = (headings.next(level), ids.next().map(Into::into));
            Some(Event::Start(Tag::Heading { level, id, classes, attrs }))
        }
        Event::End(TagEnd::Heading(level)) => Some(Event::End(TagEnd::Heading(headings.current(level)))),
        event => Some(event),
    });
    let mut html = String::with_capacity(text.len() * 2);
    html::push_html(&mut html, events);
    // A wide one is moved sideways, by keys as well.
    html.replace("<table>", "<table tabindex=\"0\">")
}

/// Levels of headings below the page's own. One is at most a level below that before it, so that readers who go from
/// heading to heading miss none.
struct Headings {
    level_min: usize,
    before: usize,
}

impl Headings {
    const fn new(level_min: usize) -> Self {
        Self { level_min, before: level_min - 1 }
    }

    fn next(&mut self, level: HeadingLevel) -> HeadingLevel {
        self.before = (level as usize + self.level_min - 1).min(self.before + 1).min(6);
        self.current(level)
    }

    /// Of the heading that is open.
    fn current(&self, level: HeadingLevel) -> HeadingLevel {
        HeadingLevel::try_from(self.before).unwrap_or(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_markdown_becomes_nothing_but_text_and_links() {
        for (text, html) in [
            ("# Title\n\nHello *you*", "<h3>Title</h3>\n<p>Hello <em>you</em></p>\n"),
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a <img src=x onerror=alert(1)> b", "<p>a &lt;img src=x onerror=alert(1)&gt; b</p>\n"),
            ("[x](javascript:alert(1))", "<p><a rel=\"noopener noreferrer nofollow\">x</a></p>\n"),
            ("[x](/panel/finance)", "<p><a rel=\"noopener noreferrer nofollow\">x</a></p>\n"),
            (
                "[x](https://a.example)",
                "<p><a href=\"https://a.example\" rel=\"noopener noreferrer nofollow\">x</a></p>\n",
            ),
            ("![pixel](https://tracker.example/1.png)", "<p>pixel</p>\n"),
            ("a\u{202e}b\u{200b}c", "<p>abc</p>\n"),
            ("#### Deep\n\n# Up\n\n###### Down", "<h3>Deep</h3>\n<h3>Up</h3>\n<h4>Down</h4>\n"),
        ] {
            assert_eq!(strangers(text).to_string(), html, "{text}");
        }
    }

    #[test]
    fn a_link_of_our_own_leads_where_it_is_said_to_or_is_words() {
        let link = |address: &str| (address == "a.md").then(|| "/panel/help/a".to_owned());
        let html = own("[one](a.md) and [two](b.md)![three](c.png)", link).to_string();
        assert_eq!(html, "<p><a href=\"/panel/help/a\">one</a> and two</p>\n");
    }

    #[test]
    fn a_document_of_our_own_has_passages_whose_headings_are_led_to() {
        let text = "# All\n\nOf *it*,\nand `more`.\n\n## The words\n\n| a | b |\n|---|---|\n| c | d |\n\n## The words\n";
        let passage = |level, id: &str, title: &str, text: &str| Passage {
            level,
            id: id.to_owned(),
            title: title.to_owned(),
            text: text.to_owned(),
        };
        let found = passages(text);
        assert_eq!(found[0], passage(1, "at-all", "All", "Of it, and more. "));
        assert_eq!(found[1], passage(2, "at-the-words", "The words", "a b c d "));
        assert_eq!(found[2], passage(2, "at-the-words-1", "The words", ""));
        let html = own(text, |_| None).to_string();
        assert!(html.contains("<h2 id=\"at-the-words-1\">The words</h2>"), "{html}");
        assert!(!strangers("# Title").to_string().contains("id="));
    }

    #[test]
    fn a_very_long_description_is_cut_and_said_to_be() {
        let fits = strangers(&"ä".repeat(STRANGERS_BYTES_MAX / 2)).to_string();
        assert!(!fits.contains("Only the beginning"));
        let long = strangers(&"ä".repeat(512 * 1024)).to_string();
        assert!(long.contains("Only the beginning") && long.len() < STRANGERS_BYTES_MAX + 256);
        // Nesting is where readers of Markdown take long.
        let deep = strangers(&"> ".repeat(16 * 1024)).to_string();
        assert!(deep.matches("<blockquote>").count() <= DEPTH_MAX);
    }
}
