//! One of my services, for people.

use farthing_bridge::samples::Origin;
use farthing_control::{
    counted,
    types::{ApiShown, ListingHealth, Offer, OperationSample, Rescan, Tested, VersionNote},
};
use farthing_os::clock;

use crate::{
    bridge::report::findings_text,
    output::{millis, pairs, table},
    visible::one_line,
};

/// Writes the text about an API that was just published.
pub(super) fn added(shown: &ApiShown) -> String {
    let mut text = findings_text(&shown.report);
    text += &format!("\n{}\n{}\n\n", head(shown), offers(&shown.offers));
    text + &published(shown)
}

/// Writes the line that tells how others buy it, or why they cannot yet.
pub(super) fn published(shown: &ApiShown) -> String {
    if let Some(why) = &shown.api.unpublished {
        return format!("The service is stored here. It is not published yet: {why}.\n");
    }
    // One that runs as it stands, if there is such.
    let is_whole = |offer: &&Offer| offer.body.is_none() && offer.parameters.iter().all(|one| !one.required);
    let offer = shown.offers.iter().find(is_whole).or_else(|| shown.offers.first());
    let call = offer.map(|offer| format!(" {} {}", offer.method, offer.path)).unwrap_or_default();
    format!("Published. Other nodes can buy it with: farthing call {}{call}\n", shown.api.id)
}

/// Everything about a service.
pub(super) fn shown(shown: &ApiShown) -> String {
    let mut text = head(shown);
    for (name, value) in [
        ("summary", &shown.summary),
        ("category", &shown.category),
        ("tags", &shown.tags.join(", ")),
        ("described by", &shown.source),
        ("this node adds", &shown.secrets.join(", ")),
    ] {
        if !value.is_empty() {
            text += &format!("{name:14}  {value}\n");
        }
    }
    text += &format!("{:14}  {}, {} USDC\n", "earned", counted(shown.api.calls, "call"), shown.api.earned);
    text += &format!("\n{}\n\n", offers(&shown.offers));
    text.push_str(&findings_text(&shown.report));
    if !shown.samples.is_empty() {
        text += "\nFree samples:\n";
        for sample in &shown.samples {
            text += &format!("  {}\n", sample_line(sample));
        }
    }
    text
}

/// Writes what the owner's server answered to a test, and what a caller would have paid.
pub(super) fn tested(tested: &Tested) -> String {
    let Tested { tried, price, would_charge } = tested;
    let status = if tried.status == 0 { "no answer".to_owned() } else { tried.status.to_string() };
    let status = if tried.answered { status } else { format!("{status}: {}", tried.reason) };
    let text = pairs([
        ("Operation", tried.operation.clone()),
        ("Server", tried.upstream_class.clone()),
        ("Status", status),
        ("Type", tried.media_type.clone()),
        ("Size", format!("{} bytes", tried.bytes)),
        ("Took", format!("{} ms", millis(tried.took_us))),
        ("Would charge", format!("{would_charge} of {price} USDC")),
    ]);
    if tried.beginning.is_empty() { text } else { format!("{}\n\n{}", text.trim_end(), tried.beginning) }
}

/// Writes how many connected nodes have the listing, and how the owner's server is.
pub(super) fn health(health: &ListingHealth) -> String {
    let ListingHealth { asked, current, earlier, missing, silent, .. } = health;
    let details = match health.details_served {
        None => "no connected node to ask",
        Some(true) => "other nodes have them",
        Some(false) => "the nodes that were asked do not have them",
    };
    pairs([
        ("Seen by", format!("{current} of {asked} connected nodes")),
        (
            "Others",
            format!("{earlier} have an earlier version, {missing} do not have it, {silent} did not answer"),
        ),
        ("Details", details.to_owned()),
        ("Your server", health.upstream.clone()),
    ])
}

/// Lists what was different in each version; names in it may be a stranger's.
pub(crate) fn versions(versions: &[VersionNote]) -> String {
    let row = |note: &VersionNote| {
        let what = if note.what.is_empty() {
            "nothing changed for callers".to_owned()
        } else {
            one_line(&note.what.join("; "))
        };
        let what = if note.seen_here { format!("{what} (seen by your node)") } else { what };
        [note.version.to_string(), clock::timestamp(note.published_secs), note.price.to_string(), what]
    };
    table(["VERSION", "PUBLISHED", "USDC", "CHANGES"], versions.iter().map(row))
}

/// A sample without its body.
pub(crate) fn sample_line(sample: &OperationSample) -> String {
    let origin = match sample.sample.origin {
        Origin::Recorded => "recorded",
        Origin::MediaExample | Origin::SchemaExample => "the description's example",
        Origin::Synthesised => "generated from the schema",
    };
    format!("{} ({origin}, {} bytes)", sample.operation, sample.sample.body.len())
}

fn head(shown: &ApiShown) -> String {
    let api = &shown.api;
    let mut text = String::new();
    for (name, value) in [
        ("service", api.id.to_string()),
        ("name", api.name.clone()),
        ("kind", shown.kind.to_string()),
        ("state", format!("{}, version {}", api.state, api.listing_version)),
        ("price", format!("{} USDC a call", api.price)),
        ("your server", format!("{} ({})", api.upstream, api.upstream_class)),
    ] {
        text += &format!("{name:14}  {value}\n");
    }
    text
}

/// Operations with prices and what they take.
pub(crate) fn offers(offers: &[Offer]) -> String {
    let row = |offer: &Offer| {
        let parameters = offer.parameters.iter().map(|parameter| {
            let mark = if parameter.required { "" } else { "?" };
            format!("{}{mark}: {}", parameter.name, parameter.kind)
        });
        let body = offer.body.iter().map(|body| format!("body: {body}"));
        let time = offer.timeout_secs.iter().map(|secs| format!("up to {secs} s"));
        [
            offer.method.to_string(),
            offer.path.clone(),
            offer.price.to_string(),
            parameters.chain(body).chain(time).collect::<Vec<_>>().join(", "),
        ]
    };
    table(["METHOD", "PATH", "USDC", "TAKES"], offers.iter().map(row))
}

/// Lists the changes that a newer reading brings.
pub(super) fn rescan(rescan: &Rescan) -> String {
    let changes = &rescan.changes;
    if changes.is_empty() {
        return "Nothing changed for callers.".to_owned();
    }
    let added = changes.added.iter().map(|operation| format!("added    {operation}\n"));
    let removed = changes.removed.iter().map(|operation| format!("removed  {operation}\n"));
    let changed = changes.changed.iter();
    let changed =
        changed.map(|change| format!("changed  {}: {}\n", change.operation, change.what.join("; ")));
    let end = if rescan.applied {
        format!("\nPublished as version {}.\n", rescan.api.listing_version)
    } else {
        "\nNothing was published. Add --apply to publish these changes.\n".to_owned()
    };
    added.chain(removed).chain(changed).chain([end]).collect()
}
