//! The operations of a service to look through, beside its reference and its sandbox: a tree and a search.
//!
//! 1. An operation is in the group of its first tag; without tags, of the first segment in which the paths differ.
//! 2. The tree has one page of groups, and in the group that is open one page of its operations; a small service has all of it
//!    open.
//! 3. A search looks at method, path, name, tags and summary of all operations.
//!
//! Links within are relative, so that the same tree leads to operations in whichever page it stands. What was chosen stands in the
//! address: everything works without a script, and `search.js` fetches the same addresses while one types.
//!
//! Invariant: however many operations a stranger describes, and however long their names are, a tree has at most
//! [`GROUPS_SHOWN`] groups and [`LEAVES_SHOWN`] operations of the open one, each of a few hundred bytes.

use std::collections::HashMap;

use farthing_control::types::Offer;
use farthing_values::keccak256;
use serde::Deserialize;

use crate::{failure::Failure, page::encoded, show};

const GROUPS_SHOWN: usize = 24;
const LEAVES_SHOWN: usize = 24;
const HITS_SHOWN: usize = 24;
/// Longer names stand in an address as a part of their hash.
const NAME_BYTES_MAX: usize = 48;
const GROUP_CHARS_MAX: usize = 32;
const PATH_CHARS_MAX: usize = 48;
const SUMMARY_CHARS_MAX: usize = 64;
const WORDS_CHARS_MAX: usize = 200;
/// More words narrow nothing down.
const WORDS_MAX: usize = 8;
/// Begins in an address what stands in place of a name.
const HASHED: char = '*';

/// The operation, group and search that an address names.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct LookedAt {
    /// `GET /v1/things`
    pub(super) operation: String,
    group: String,
    q: String,
    /// Of the groups; that of the open one unless given.
    groups: String,
    /// Of the open group's operations; that of the chosen one unless given.
    page: String,
}

/// The operations as a page shows them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OperationTree {
    pub(super) total: usize,
    /// The words that are searched for.
    pub(super) words: String,
    /// The chosen operation, as an address names it.
    pub(super) chosen: String,
    pub(super) hits: Vec<Leaf>,
    /// Operations that fit, on all pages.
    pub(super) hits_total: usize,
    pub(super) branches: Vec<Branch>,
    pub(super) around: Around,
}

/// A group.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Branch {
    pub(super) name: String,
    pub(super) count: usize,
    pub(super) link: String,
    pub(super) is_open: bool,
    /// Empty while it is closed.
    pub(super) leaves: Vec<Leaf>,
    pub(super) around: Around,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) method: String,
    pub(super) path: String,
    /// Of one that was found.
    pub(super) summary: String,
    pub(super) link: String,
    pub(super) is_chosen: bool,
}

/// Links to what stands before and behind what is shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    pub(super) earlier: Option<String>,
    pub(super) later: Option<String>,
}

/// Operations that belong together, by their places in the list.
struct Group<'o> {
    name: &'o str,
    members: Vec<usize>,
}

impl LookedAt {
    /// An operation, as a form names it.
    pub(super) fn operation(name: &str) -> Self {
        Self { operation: name.to_owned(), ..Self::default() }
    }

    /// The operation that is shown, and its place: the one that is named, the first one of a group or of what was found, or
    /// else of all. None where there are no operations.
    ///
    /// # Errors
    /// No page, when a name is none of theirs.
    pub(super) fn chosen<'o>(&self, offers: &'o [Offer]) -> Result<Option<(usize, &'o Offer)>, Failure> {
        let place = self.place(offers);
        if place.is_none() && !offers.is_empty() {
            return Err(Failure::not_found());
        }
        Ok(place.and_then(|at| Some((at, offers.get(at)?))))
    }

    fn place(&self, offers: &[Offer]) -> Option<usize> {
        if !self.operation.is_empty() {
            return offers.iter().position(|offer| is_named(&name_of(offer), &self.operation));
        }
        if !self.group.is_empty() {
            let groups = groups(offers);
            let group = groups.iter().find(|group| is_named(group.name, &self.group))?;
            return group.members.first().copied();
        }
        let words = self.words();
        let found = if words.trim().is_empty() { None } else { find(offers, &words).first().copied() };
        found.or_else(|| (!offers.is_empty()).then_some(0))
    }

    fn words(&self) -> String {
        self.q.chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect()
    }
}

impl OperationTree {
    pub(super) fn new(offers: &[Offer], looked_at: &LookedAt, chosen: Option<usize>) -> Self {
        let words = looked_at.words();
        let name =
            chosen.and_then(|at| offers.get(at)).map(|offer| handle(&name_of(offer))).unwrap_or_default();
        let tree = Self { total: offers.len(), chosen: name, ..Self::default() };
        if !words.trim().is_empty() {
            let found = find(offers, &words);
            let hits = found.iter().take(HITS_SHOWN).filter_map(|at| {
                let offer = offers.get(*at)?;
                Some(Leaf {
                    summary: show::beginning(&offer.summary, SUMMARY_CHARS_MAX),
                    ..leaf(offer, chosen == Some(*at))
                })
            });
            return Self { hits: hits.collect(), hits_total: found.len(), words, ..tree };
        }
        let groups = groups(offers);
        let is_open = |group: &Group<'_>| match looked_at.group.as_str() {
            "" => chosen.is_some_and(|at| group.members.contains(&at)),
            asked => is_named(group.name, asked),
        };
        let open = groups.iter().position(is_open);
        let here =
            |group: &str| format!("?operation={}&group={}", encoded(&tree.chosen), encoded(&handle(group)));
        let (shown, pages) = window(groups.len(), GROUPS_SHOWN, &looked_at.groups, open);
        let of_open = open.and_then(|at| groups.get(at)).map_or("", |group| group.name);
        let around = around(&pages, |page| format!("{}&groups={page}", here(of_open)));
        let is_small = offers.len() <= LEAVES_SHOWN;
        let branches = groups.iter().enumerate().skip(shown.start).take(shown.len()).map(|(at, group)| {
            let is_open = is_small || open == Some(at);
            let branch = Branch {
                name: show::beginning(group.name, GROUP_CHARS_MAX),
                count: group.members.len(),
                link: format!("?group={}", encoded(&handle(group.name))),
                is_open,
                leaves: Vec::new(),
                around: Around::default(),
            };
            if is_open {
                opened(branch, group, offers, &looked_at.page, chosen, &here(group.name))
            } else {
                branch
            }
        });
        let branches = branches.collect();
        Self { branches, around, ..tree }
    }
}

fn opened(
    branch: Branch,
    group: &Group<'_>,
    offers: &[Offer],
    asked: &str,
    chosen: Option<usize>,
    here: &str,
) -> Branch {
    let at = chosen.and_then(|chosen| group.members.iter().position(|member| *member == chosen));
    let (shown, pages) = window(group.members.len(), LEAVES_SHOWN, asked, at);
    let members = group.members.iter().skip(shown.start).take(shown.len());
    let leaves = members.filter_map(|member| Some(leaf(offers.get(*member)?, chosen == Some(*member))));
    Branch {
        leaves: leaves.collect(),
        around: around(&pages, |page| format!("{here}&page={page}")),
        ..branch
    }
}

fn leaf(offer: &Offer, is_chosen: bool) -> Leaf {
    Leaf {
        method: offer.method.to_string(),
        path: show::beginning(&offer.path, PATH_CHARS_MAX),
        summary: String::new(),
        link: format!("?operation={}", encoded(&handle(&name_of(offer)))),
        is_chosen,
    }
}

/// The page that is shown of so many pages, the first one being 1.
struct PageOf {
    shown: usize,
    count: usize,
}

/// The part of a list that is shown: the page that is asked for, or else the one with `at`, or else the first.
fn window(length: usize, size: usize, asked: &str, at: Option<usize>) -> (std::ops::Range<usize>, PageOf) {
    let count = length.div_ceil(size).max(1);
    let of_place = at.map_or(1, |at| at / size + 1);
    let shown = asked.parse().unwrap_or(of_place).clamp(1, count);
    let start = (shown - 1) * size;
    (start..length.min(start + size), PageOf { shown, count })
}

fn around(page: &PageOf, link: impl Fn(usize) -> String) -> Around {
    Around {
        earlier: (page.shown > 1).then(|| link(page.shown - 1)),
        later: (page.shown < page.count).then(|| link(page.shown + 1)),
    }
}

/// The groups, in the order in which their first operations are described.
fn groups(offers: &[Offer]) -> Vec<Group<'_>> {
    let shared = segments_shared(offers);
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (at, offer) in offers.iter().enumerate() {
        let name = tag(offer).or_else(|| segments(&offer.path).nth(shared)).unwrap_or("/");
        let place = *places.entry(name).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.members.push(at),
            None => groups.push(Group { name, members: vec![at] }),
        }
    }
    groups
}

fn tag(offer: &Offer) -> Option<&str> {
    offer.tags.first().map(String::as_str).filter(|tag| !tag.trim().is_empty())
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

/// The number of segments that all paths without a tag begin with, none of them being the last of any.
fn segments_shared(offers: &[Offer]) -> usize {
    let mut paths = offers.iter().filter(|offer| tag(offer).is_none()).map(|offer| offer.path.as_str());
    let Some(first) = paths.next() else { return 0 };
    let last = |path: &str| segments(path).count().saturating_sub(1);
    let alike =
        |path: &str| segments(first).zip(segments(path)).take_while(|(one, other)| one == other).count();
    paths.fold(last(first), |shared, path| shared.min(alike(path)).min(last(path)))
}

/// The places of the operations in which every word occurs, those that are named so first.
fn find(offers: &[Offer], words: &str) -> Vec<usize> {
    let words = words.to_lowercase();
    let all: Vec<&str> = words.split_whitespace().take(WORDS_MAX).collect();
    let mut found: Vec<(u8, usize)> = Vec::new();
    for (at, offer) in offers.iter().enumerate() {
        let (name, id) = (name_of(offer).to_lowercase(), offer.id.to_lowercase());
        let about = format!("{} {}", offer.summary, offer.tags.join(" ")).to_lowercase();
        let named = |word: &str| name.contains(word) || id.contains(word);
        if !all.iter().all(|word| named(word) || about.contains(word)) {
            continue;
        }
        let is_meant = [name.as_str(), id.as_str()].contains(&words.trim())
            || offer.path.eq_ignore_ascii_case(words.trim());
        let rank = if is_meant {
            0
        } else if all.iter().all(|word| named(word)) {
            1
        } else {
            2
        };
        found.push((rank, at));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, at)| at).collect()
}

/// `GET /v1/things`
pub(super) fn name_of(offer: &Offer) -> String {
    format!("{} {}", offer.method, offer.path)
}

/// A stranger's name as an address has it: as it is, or where it is long or cannot be read, a part of its hash.
pub(super) fn handle(name: &str) -> String {
    let is_plain = name.len() <= NAME_BYTES_MAX && !name.starts_with(HASHED) && show::visible(name) == name;
    if is_plain { name.to_owned() } else { hashed(name) }
}

/// Tells whether an address names this name: as it is, or by its hash.
fn is_named(name: &str, asked: &str) -> bool {
    name == asked || asked.starts_with(HASHED) && hashed(name) == asked
}

fn hashed(name: &str) -> String {
    format!("{HASHED}{}", hex::encode(&keccak256(&[name.as_bytes()])[..8]))
}

#[cfg(test)]
mod tests;
