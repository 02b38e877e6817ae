//! `farthing catalog`: the services of the network, found and looked at without paying.

use clap::{Args, Subcommand, builder::RangedU64ValueParser};
use farthing_catalog::PAGE_HITS_MAX;
use farthing_control::types::{
    CatalogHit, CatalogKind, CatalogPage, CatalogQuery, CatalogSamples, CatalogService, CatalogSort, Charge,
    FlagRule, LookAlike, OperationSample, ServiceFlag, VersionNote,
};
use farthing_control::{ControlClient, endpoint};
use farthing_protocol::{Address, ServiceId, Usdc, call::Method};
use serde::Serialize;

use self::marks::Marks;
use super::{
    Context,
    api::{operation_name, show},
    bridge::OPENAPI_VERSIONS,
    failure::{Exit, Failure},
    output::table,
    pick::{self, ServiceName},
    visible::one_line,
};

mod marks;

#[derive(Debug, Subcommand)]
pub enum Catalog {
    /// Search for services by words, category, tag, kind and price; free, and works offline
    Search(Box<Search>),
    /// Show a service: its owner, its operations and the price of a call
    Show {
        /// Service: its name, its UUID from `farthing catalog search`, or the first digits of the UUID
        service: ServiceName,
    },
    /// The OpenAPI document of a service
    Openapi {
        /// Service: its name, its UUID from `farthing catalog search`, or the first digits of the UUID
        service: ServiceName,
        /// Version of OpenAPI
        #[arg(long, value_parser = OPENAPI_VERSIONS, default_value = "3.1")]
        version: String,
    },
    /// List the versions that the owner published and what changed for callers in each
    Versions {
        /// Service: its name, its UUID from `farthing catalog search`, or the first digits of the UUID
        service: ServiceName,
    },
    /// Show sample answers of a service; free, does not call the service
    Sample {
        /// Service: its name, its UUID from `farthing catalog search`, or the first digits of the UUID
        service: ServiceName,
        /// Show only the sample of one operation, such as "GET /v1/things"; prints only the body
        #[arg(value_name = "METHOD PATH")]
        operation: Option<String>,
    },
    #[command(flatten)]
    Marks(Marks),
}

#[derive(Debug, Args)]
pub struct Search {
    /// Words to find in name, summary, tags, category and operations; the last word may be incomplete
    pub words: Vec<String>,
    /// Only of this category
    #[arg(long)]
    pub category: Option<String>,
    /// Only with this tag
    #[arg(long)]
    pub tag: Option<String>,
    /// Only of this kind
    #[arg(long, value_enum)]
    pub kind: Option<CatalogKind>,
    /// Only services with at most this price, in USDC
    #[arg(long, value_name = "USDC", allow_negative_numbers = true)]
    pub max_price: Option<Usdc>,
    /// Only of this owner
    #[arg(long, value_name = "WALLET")]
    pub owner: Option<Address>,
    /// Only services whose owner is online, as far as this node knows
    #[arg(long)]
    pub online: bool,
    /// Only services with free samples
    #[arg(long)]
    pub free_samples: bool,
    /// Order of the results
    #[arg(long, value_enum, default_value = "relevance")]
    pub sort: CatalogSort,
    /// Services to show, 100 at most
    #[arg(long, default_value_t = 20, value_parser = RangedU64ValueParser::<usize>::new().range(1..=PAGE_HITS_MAX as u64))]
    pub limit: usize,
    /// Number of services to skip
    #[arg(long, default_value_t = 0)]
    pub offset: usize,
}

/// Versions shown with a service; the newest say what matters.
const VERSIONS_SHOWN: usize = 3;

pub(super) async fn catalog(context: &Context, verb: Catalog) -> Result<(), Failure> {
    let node = context.node()?;
    match verb {
        Catalog::Search(search) => {
            let query = query(*search);
            let page = node.tell(endpoint::CatalogSearch, &query).await?;
            if page.total == 0 {
                context.output.prose(&nothing_fits(&query));
            } else if page.hits.is_empty() {
                context.output.prose(&format!("No more results ({} in all).", page.total));
            }
            context.output.data(&page, found)
        }
        Catalog::Show { service } => {
            let service = pick::of_network(context, &node, service).await?;
            let shown = node.ask(endpoint::CatalogService.of(service)).await?;
            let versions = node.ask(endpoint::CatalogVersions.of(service)).await?;
            context.output.data(&ShownService { shown, versions }, ShownService::text)
        }
        Catalog::Versions { service } => {
            let service = pick::of_network(context, &node, service).await?;
            let versions = node.ask(endpoint::CatalogVersions.of(service)).await?;
            context.output.data(&versions, |versions| show::versions(versions))
        }
        Catalog::Openapi { service, version } => {
            let service = pick::of_network(context, &node, service).await?;
            let at = endpoint::CatalogOpenapi.of(service).with("version", version.as_str());
            let document = node.ask_document(at).await?;
            context.output.data(&document, |document| format!("{document:#}"))
        }
        Catalog::Sample { service, operation } => {
            let service = pick::of_network(context, &node, service).await?;
            let mut samples = node.ask(endpoint::CatalogSamples.of(service)).await?;
            let Some(operation) = operation else {
                return context.output.data(&samples, all_samples);
            };
            let name = operation_name(&operation)?;
            let wanted = format!("{} {}", name.method, name.path);
            samples.samples.retain(|sample| sample.operation == wanted);
            if samples.samples.is_empty() {
                return Err(no_sample(service, &wanted));
            }
            context.output.data(&samples, |samples| samples.samples.iter().map(body).collect())
        }
        Catalog::Marks(verb) => marks::mark(context, &node, verb).await,
    }
}

/// A service with its versions.
#[derive(Serialize)]
struct ShownService {
    #[serde(flatten)]
    shown: CatalogService,
    versions: Vec<VersionNote>,
}

impl ShownService {
    fn text(&self) -> String {
        let mut text = shown_text(&self.shown);
        let newest = &self.versions[..self.versions.len().min(VERSIONS_SHOWN)];
        if !newest.is_empty() {
            text += &format!("\n{}\n", show::versions(newest));
        }
        if newest.len() < self.versions.len() {
            let id = &self.shown.hit.id;
            text += &format!("All versions: farthing catalog versions {id}\n");
        }
        text
    }
}

/// The sample of the operation that a concrete path belongs to.
pub(super) async fn call_sample(
    context: &Context,
    node: &ControlClient,
    service: ServiceId,
    (method, path_called): (Method, &str),
) -> Result<(), Failure> {
    let samples = node.ask(endpoint::CatalogSamples.of(service)).await?;
    let fits = |sample: &&OperationSample| {
        let template = sample.operation.strip_prefix(&format!("{method} "));
        template.is_some_and(|template| fits_template(template, path_called))
    };
    let Some(sample) = samples.samples.iter().find(fits) else {
        return Err(no_sample(service, &format!("{method} {path_called}")));
    };
    context.output.data(&sample.sample, |_| body(sample))?;
    context.output.prose("This is a free sample published by the owner. Nothing was bought.");
    Ok(())
}

fn no_sample(service: ServiceId, wanted: &str) -> Failure {
    Failure::new(Exit::Failure, format!("there is no sample of {wanted}"))
        .next(format!("`farthing catalog sample {service}` shows all samples"))
}

fn fits_template(template: &str, path: &str) -> bool {
    let (template, path) = (template.split('/'), path.split('/'));
    let is_one =
        |(part, segment): (&str, &str)| part == segment || part.starts_with('{') && !segment.is_empty();
    template.clone().count() == path.clone().count() && template.zip(path).all(is_one)
}

fn query(search: Search) -> CatalogQuery {
    CatalogQuery {
        words: search.words.join(" "),
        category: search.category,
        tag: search.tag,
        kind: search.kind,
        price_max: search.max_price.map(Into::into),
        owner: search.owner.map(Into::into),
        online: search.online,
        samples: search.free_samples,
        sort: search.sort,
        offset: search.offset,
        limit: Some(search.limit),
    }
}

/// Says that nothing fits, and which parts of the query to leave out to find more.
fn nothing_fits(query: &CatalogQuery) -> String {
    let set: Vec<&str> = [
        ("--category", query.category.is_some()),
        ("--tag", query.tag.is_some()),
        ("--kind", query.kind.is_some()),
        ("--max-price", query.price_max.is_some()),
        ("--owner", query.owner.is_some()),
        ("--online", query.online),
        ("--free-samples", query.samples),
    ]
    .into_iter()
    .filter_map(|(flag, is_set)| is_set.then_some(flag))
    .collect();
    let next = match (query.words.trim().is_empty(), set.as_slice()) {
        (true, []) => {
            return "This node does not know any service yet. Check with `farthing net peers` that it is connected to \
                    other nodes."
                .to_owned();
        }
        (true, [flag]) => format!("Remove {flag} to find more."),
        (true, flags) => format!("Use fewer of {} to find more.", flags.join(", ")),
        (false, []) => "Use fewer or shorter words to find more.".to_owned(),
        (false, flags) => {
            format!("Use fewer or shorter words, or fewer of {}, to find more.", flags.join(", "))
        }
    };
    format!(
        "No services found. {next} Check with `farthing net peers` that this node is connected to others."
    )
}

fn found(page: &CatalogPage) -> String {
    let row = |hit: &CatalogHit| {
        let mark = if hit.look_alike.is_some() || hit.flag.is_some() { " (!)" } else { "" };
        [
            hit.id.to_string(),
            format!("{}{mark}", hit.name),
            hit.price.to_string(),
            hit.kind.to_string(),
            state_of(hit),
            hit.category.clone(),
            short(&hit.owner.to_string()),
        ]
    };
    let heading = ["SERVICE", "NAME", "USDC", "KIND", "STATE", "CATEGORY", "OWNER"];
    let mut text = table(heading, page.hits.iter().map(row));
    let shown = page.offset + page.hits.len();
    if !page.hits.is_empty() && page.hits.len() < page.total {
        let more = if shown < page.total { format!("; more with --offset {shown}") } else { String::new() };
        let which = match page.hits.len() {
            1 => format!("{shown}"),
            _ => format!("{} to {shown}", page.offset + 1),
        };
        text += &format!("\n\nNumber {which} of {}{more}", page.total);
    }
    let look_alike = |hit: &CatalogHit| Some(warning(hit, hit.look_alike.as_ref()?));
    for of in [look_alike, not_buyable, flagged] {
        let told: Vec<String> = page.hits.iter().filter_map(of).collect();
        if !told.is_empty() {
            text += &format!("\n\n{}", told.join("\n"));
        }
    }
    if let Some(scope) = &page.scope {
        text += &format!("\n\n{}", scope.words);
    }
    if let Some(lacking) = &page.lacking {
        text += &format!("\n\n{lacking}");
    }
    // Where nothing was found, nothing stands before it.
    text.trim_start().to_owned()
}

/// Tells in a word whether a call has a chance.
fn state_of(hit: &CatalogHit) -> String {
    if hit.not_buyable.is_some() { "not buyable".to_owned() } else { hit.state.to_string() }
}

fn not_buyable(hit: &CatalogHit) -> Option<String> {
    let why = hit.not_buyable.as_ref()?;
    Some(one_line(&format!("This node does not buy \"{}\" ({}): {why}.", hit.name, hit.id)))
}

/// Warns of a service that is flagged because of this node's own calls.
fn flagged(hit: &CatalogHit) -> Option<String> {
    let ServiceFlag { words, rule, .. } = hit.flag.as_ref()?;
    let what = match rule {
        FlagRule::Warn => "is flagged",
        FlagRule::Stop => "is flagged; this node buys only a trial call now and then",
    };
    Some(one_line(&format!("(!) \"{}\" ({}) {what}: {words}.", hit.name, hit.id)))
}

/// Warns of a name that resembles another one: the wallet shows who stands behind a service, the name does not.
fn warning(hit: &CatalogHit, other: &LookAlike) -> String {
    let text = format!(
        "(!) \"{}\" of {} resembles {}\"{}\" of {} ({}).",
        hit.name,
        hit.owner,
        if other.older { "the older " } else { "" },
        other.name,
        other.owner,
        other.service
    );
    one_line(&text)
}

fn shown_text(shown: &CatalogService) -> String {
    let hit = &shown.hit;
    let charged_as_well = match hit.charge {
        Charge::Success => "",
        Charge::Answered => ", also for answers with a status from 400 to 499",
    };
    let mut text = String::new();
    for (name, value) in [
        ("service", hit.id.to_string()),
        ("name", hit.name.clone()),
        ("summary", hit.summary.clone()),
        ("owner", owner_of(hit)),
        ("state", format!("{}, version {}", hit.state, hit.version)),
        ("kind", hit.kind.to_string()),
        ("price", format!("{} USDC a call{charged_as_well}", hit.price)),
        ("category", hit.category.clone()),
        ("tags", hit.tags.join(", ")),
        ("address", shown.address.clone()),
    ] {
        if !value.is_empty() {
            text += &format!("{name:10}  {}\n", one_line(&value));
        }
    }
    let look_alike = hit.look_alike.as_ref().map(|other| warning(hit, other));
    for told in [look_alike, not_buyable(hit), flagged(hit)].into_iter().flatten() {
        text += &format!("\n{told}\n");
    }
    if let Some(why) = &shown.details_missing {
        text += &format!("\nThe operations cannot be shown: {why}.\n");
        return text;
    }
    if !shown.description.is_empty() {
        text += &format!("\n{}\n", shown.description);
    }
    text += &format!("\n{}\n", show::offers(&shown.offers));
    if shown.samples > 0 {
        text += &format!("\nFree samples: farthing catalog sample {}\n", hit.id);
    }
    if let Some(first) = shown.offers.first() {
        text += &format!("Buy: farthing call {} {} {}\n", hit.id, first.method, first.path);
    }
    text
}

fn all_samples(samples: &CatalogSamples) -> String {
    if samples.samples.is_empty() {
        return "The owner has not published any samples.".to_owned();
    }
    let one = |sample: &OperationSample| format!("# {}\n{}", show::sample_line(sample), body(sample));
    samples.samples.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// The body, indented when it is JSON.
fn body(sample: &OperationSample) -> String {
    let text = &sample.sample.body;
    let json = serde_json::from_str::<serde_json::Value>(text).ok();
    let mut text = json.map_or_else(|| text.clone(), |json| format!("{json:#}"));
    text.push('\n');
    text
}

/// The owner's wallet, with the name that the user gave it.
fn owner_of(hit: &CatalogHit) -> String {
    let name = hit.owner_petname.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    format!("{}{name}", hit.owner)
}

/// A wallet, short enough for a table.
fn short(wallet: &str) -> String {
    match (wallet.get(..8), wallet.get(wallet.len().saturating_sub(4)..)) {
        (Some(head), Some(tail)) => format!("{head}…{tail}"),
        _ => wallet.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use farthing_control::types::SearchScope;

    use super::*;

    #[test]
    fn a_search_of_some_shards_ends_with_what_was_searched() {
        let words = "Your node keeps 4 of the network's 16 shards.".to_owned();
        let scope = SearchScope {
            shards_kept: 4,
            is_full: false,
            index_nodes_asked: 0,
            index_nodes_answered: 0,
            may_be_more: false,
            words: words.clone(),
        };
        let of_all = CatalogPage::default();
        assert!(!found(&of_all).contains("shards"));
        assert_eq!(found(&CatalogPage { scope: Some(scope), ..of_all }), words, "and with nothing before it");
    }

    #[test]
    fn a_search_that_may_lack_services_says_so() {
        let lacking = "Services may be missing here.".to_owned();
        assert_eq!(found(&CatalogPage { lacking: Some(lacking.clone()), ..CatalogPage::default() }), lacking);
    }
}
