//! `farthing api`: my services.

mod add;
mod proposal;
pub(super) mod show;

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use farthing_control::{
    ControlClient, counted, endpoint,
    types::{
        self, Alert, AlertKind, ApiState, CatalogService, EditRequest, Edited, ListingHealth, OperationName,
        PriceRequest, RescanRequest, SourceKind, TestRequest, Tested,
    },
};
use farthing_protocol::{ServiceId, Usdc};

use self::{
    add::{Add, ListingFlags},
    proposal::Proposal,
};
use super::{
    Context,
    bridge::{Inspect, OPENAPI_VERSIONS},
    failure::{Exit, Failure},
    input,
    output::table,
    pick::{self, OwnService, ServiceName},
    visible::one_line,
};

#[derive(Debug, Subcommand)]
pub enum Api {
    Add(Box<Add>),
    /// Preview what a description or a running server offers before you publish it; the same as `bridge inspect`
    Scan(Box<Inspect>),
    /// My services
    List,
    /// Show one of my services: its operations, its samples, and notes on how its description was read
    Show(OwnService),
    /// Read the description again and show what changed
    Rescan {
        /// Service: its name, its UUID from `farthing api list`, or the first digits of the UUID
        service: ServiceName,
        /// File with a newer description
        #[arg(long, value_name = "FILE|URL")]
        source: Option<String>,
        /// Publish the changes as a new version
        #[arg(long)]
        apply: bool,
    },
    Edit(Box<Edit>),
    /// Ask connected nodes whether they have the listing, and check that your server accepts connections
    Health(OwnService),
    /// Send your own server one request, as a paid call would, and show the answer and its price; free
    ///
    /// Without OPERATION it tests the first operation that only reads and needs no parameters. An operation that writes
    /// is really carried out. Exits with 6 if callers would get no answer.
    Test {
        /// Service: its name, its UUID from `farthing api list`, or the first digits of the UUID
        service: ServiceName,
        /// Operation, such as "GET /v1/things"
        #[arg(value_name = "OPERATION")]
        operation: Option<String>,
        /// Parameter; may be repeated
        #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = input::pair, requires = "operation")]
        params: Vec<(String, String)>,
        /// Request header; may be repeated
        #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = input::header, requires = "operation")]
        headers: Vec<(String, String)>,
        /// Request body as JSON, or @FILE
        #[arg(long, value_name = "JSON", requires = "operation")]
        body: Option<String>,
        /// File to send as the request body, unchanged; name its media type with -H 'Content-Type: image/png'
        #[arg(long, value_name = "FILE", requires = "operation", conflicts_with = "body")]
        body_file: Option<PathBuf>,
    },
    /// List the versions and what changed for callers in each
    Versions(OwnService),
    /// The OpenAPI document that consumers get
    Openapi {
        /// Service: its name, its UUID from `farthing api list`, or the first digits of the UUID
        service: ServiceName,
        /// Version of OpenAPI
        #[arg(long, value_parser = OPENAPI_VERSIONS, default_value = "3.1")]
        version: String,
    },
    /// Change a price
    Price {
        /// Service: its name, its UUID from `farthing api list`, or the first digits of the UUID
        service: ServiceName,
        /// In USDC
        #[arg(allow_negative_numbers = true)]
        price: Usdc,
        /// Change the price of one operation only, such as "GET /v1/things"
        #[arg(long, value_name = "METHOD PATH")]
        operation: Option<String>,
        /// Do not ask about a price above 1 USDC
        #[arg(long)]
        yes: bool,
    },
    /// Refuse calls for now
    Pause(OwnService),
    /// Serve again
    Resume(OwnService),
    /// Retire the service permanently
    Remove {
        /// Service: its name, its UUID from `farthing api list`, or the first digits of the UUID
        service: ServiceName,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// Change the texts, your server or the operations on offer; options you leave out stay as they are. Use `api price`
/// for prices
#[derive(Debug, Args)]
pub struct Edit {
    /// Service: its name, its UUID from `farthing api list`, or the first digits of the UUID
    pub service: ServiceName,
    #[command(flatten)]
    pub said: ListingFlags,
    /// Stop adding a header or parameter to requests. May be repeated
    #[arg(long = "remove-secret", value_name = "NAME")]
    pub remove_secrets: Vec<String>,
    /// Stop offering an operation, such as "DELETE /users/{id}". May be repeated
    #[arg(long, value_name = "METHOD PATH")]
    pub hide: Vec<String>,
    /// Offer an operation that is hidden or was left out because it writes; reads the description again. May be
    /// repeated
    #[arg(long, value_name = "METHOD PATH")]
    pub offer: Vec<String>,
    /// File with the description, if the service came from a file
    #[arg(long, value_name = "FILE|URL", requires = "offer")]
    pub source: Option<String>,
}

pub(super) async fn api(context: &Context, verb: Api) -> Result<(), Failure> {
    let node = context.node()?;
    let api: types::Api = match verb {
        Api::Scan(inspected) => return super::bridge::inspect(context, *inspected).await,
        Api::List => {
            let apis = node.ask(endpoint::Apis).await?;
            if apis.is_empty() {
                context.output.prose("No services yet; publish one with `farthing api add --help`.");
            }
            return context.output.data(&apis, |apis| list(apis));
        }
        Api::Add(add) => {
            let (yes, dry_run) = (add.yes, add.dry_run);
            let file = add::service_file(context, *add).await?;
            let proposal = Proposal::of(&node, &file).await?;
            if dry_run {
                context.output.data(&proposal, Proposal::text)?;
                context.output.prose("Nothing was published.");
                return Ok(());
            }
            proposal.confirm(context, yes)?;
            let api = node.tell(endpoint::AddApi, &file).await?;
            let shown = node.ask(endpoint::ShowApi.of(api.id.0)).await?;
            // Who was asked has seen the rest.
            let told =
                |shown: &types::ApiShown| if yes { show::added(shown) } else { show::published(shown) };
            context.output.data(&shown, told)?;
            warn_of_double(context, &node, &api).await?;
            if shown.api.unpublished.is_some() {
                return Ok(());
            }
            warn_of_look_alike(context, &node, api.id.0).await?;
            warn_of_clock(context, &node).await?;
            return tell_how_far_it_got(context, &node, api.id.0).await;
        }
        Api::Show(OwnService { service }) => {
            let service = pick::own(&node, service).await?;
            let shown = node.ask(endpoint::ShowApi.of(service)).await?;
            return context.output.data(&shown, show::shown);
        }
        Api::Rescan { service, source, apply } => {
            let service = pick::own(&node, service).await?;
            let source = source.map(|place| add::source_at(&place, SourceKind::Openapi)).transpose()?;
            let request = RescanRequest { source, apply };
            let rescan = node.tell(endpoint::RescanApi.of(service), &request).await?;
            return context.output.data(&rescan, show::rescan);
        }
        Api::Edit(edit) => {
            let service = pick::own(&node, edit.service.clone()).await?;
            let edited = node.tell(endpoint::EditApi.of(service), &edit_request(*edit)?).await?;
            tell_of_dropped(context, &edited);
            edited.api
        }
        Api::Health(OwnService { service }) => {
            let service = pick::own(&node, service).await?;
            let health = node.ask(endpoint::ApiHealth.of(service)).await?;
            context.output.data(&health, show::health)?;
            return warn_of_clock(context, &node).await;
        }
        Api::Test { service, operation, params, headers, body, body_file } => {
            let mut headers = input::unique(headers)?;
            let body = input::body(body.as_deref(), body_file.as_deref(), &mut headers)?;
            let request = TestRequest {
                operation: operation.as_deref().map(operation_name).transpose()?,
                params: input::unique(params)?,
                headers,
                body: body.value,
                body_base64: body.base64,
            };
            let service = pick::own(&node, service).await?;
            let tested = node.tell(endpoint::TestApi.of(service), &request).await?;
            context.output.data(&tested, show::tested)?;
            return if tested.tried.answered { Ok(()) } else { Err(unanswered(&tested)) };
        }
        Api::Versions(OwnService { service }) => {
            let service = pick::own(&node, service).await?;
            let versions = node.ask(endpoint::ApiVersions.of(service)).await?;
            return context.output.data(&versions, |versions| show::versions(versions));
        }
        Api::Openapi { service, version } => {
            let service = pick::own(&node, service).await?;
            let at = endpoint::ApiOpenapi.of(service).with("version", version.as_str());
            let document = node.ask_document(at).await?;
            return context.output.data(&document, |document| format!("{document:#}"));
        }
        Api::Price { service, price, operation, yes } => {
            let operation = operation.as_deref().map(operation_name).transpose()?;
            let service = pick::own(&node, service).await?;
            confirm_price(context, price, yes)?;
            let request = PriceRequest { price: price.into(), operation };
            node.tell(endpoint::PriceApi.of(service), &request).await?
        }
        Api::Pause(OwnService { service }) => {
            node.ask(endpoint::PauseApi.of(pick::own(&node, service).await?)).await?
        }
        Api::Resume(OwnService { service }) => {
            node.ask(endpoint::ResumeApi.of(pick::own(&node, service).await?)).await?
        }
        Api::Remove { service, yes } => {
            let service = pick::own(&node, service).await?;
            if !yes {
                confirm_end(context, &node, service).await?;
            }
            let api = node.ask(endpoint::RemoveApi.of(service)).await?;
            context.output.data(&api, |api| list(std::slice::from_ref(api)))?;
            return warn_of_clock(context, &node).await;
        }
    };
    context.output.data(&api, |api| list(std::slice::from_ref(api)))?;
    warn_of_clock(context, &node).await?;
    // The list has said why nobody has it.
    if api.unpublished.is_some() {
        return Ok(());
    }
    tell_how_far_it_got(context, &node, api.id.0).await
}

/// The server gave nothing that a caller would get. People have read why.
fn unanswered(tested: &Tested) -> Failure {
    let Tested { tried, .. } = tested;
    Failure::told(Exit::Upstream, format!("{}: {}", tried.operation, tried.reason))
        .next("repair your server, or change its address with `farthing api edit --upstream`")
}

/// Asks before a service ends. About one that is not there, the node has the word.
async fn confirm_end(context: &Context, node: &ControlClient, service: ServiceId) -> Result<(), Failure> {
    let apis = node.ask(endpoint::Apis).await?;
    let found = apis.iter().find(|api| api.id.0 == service && api.state != ApiState::Removed);
    found.map_or(Ok(()), |api| {
        context.output.confirm(&format!(
            "Retire “{}” ({}, {} USDC earned) permanently? Callers learn that it is gone. To stop it for a while, use \
             `farthing api pause`.",
            api.name,
            counted(api.calls, "call"),
            api.earned
        ))
    })
}

/// A server that asks for a key refuses every call without one.
fn tell_of_dropped(context: &Context, edited: &Edited) {
    if !edited.dropped_secrets.is_empty() {
        context.output.prose(&format!(
            "Removed: {}. It belonged to the earlier server, so the new server does not get it. If the new server \
             needs it, add it again with --upstream-header or --upstream-query.",
            edited.dropped_secrets.join(", ")
        ));
    }
}

/// The same thing for sale twice is seldom meant, and consumers cannot tell which of the two is the right one.
async fn warn_of_double(context: &Context, node: &ControlClient, added: &types::Api) -> Result<(), Failure> {
    let apis = node.ask(endpoint::Apis).await?;
    for other in apis.iter().filter(|other| is_double(added, other)) {
        context.output.prose(&format!(
            "Warning: you already offer “{}” from the same server, as {}. Retire one of the two with `farthing api \
             remove`. To publish a new version of a service, use --id.",
            other.name, other.id
        ));
    }
    Ok(())
}

/// Consumers are warned of names that imitate others; its owner should know.
async fn warn_of_look_alike(
    context: &Context,
    node: &ControlClient,
    service: ServiceId,
) -> Result<(), Failure> {
    let CatalogService { hit, .. } = node.ask(endpoint::CatalogService.of(service)).await?;
    if let Some(other) = hit.look_alike {
        context.output.prose(&format!(
            "Warning: the name is close to “{}”, which {} offers, so consumers see a warning beside it. To change the \
             name: `farthing api edit {service} --name …`",
            other.name, other.owner
        ));
    }
    Ok(())
}

fn is_double(one: &types::Api, other: &types::Api) -> bool {
    one.id != other.id
        && other.state != ApiState::Removed
        && one.name == other.name
        && one.upstream == other.upstream
}

/// Says how many of the connected nodes have a new version. Nothing is said where nobody waits for words.
async fn tell_how_far_it_got(
    context: &Context,
    node: &ControlClient,
    service: ServiceId,
) -> Result<(), Failure> {
    if context.output.is_json() {
        return Ok(());
    }
    let mut health = ListingHealth::default();
    for wait in SPREADS_WITHIN {
        tokio::time::sleep(wait).await;
        health = node.ask(endpoint::ApiHealth.of(service)).await?;
        if health.current + health.silent == health.asked {
            break;
        }
    }
    context.output.prose(&how_far(&health));
    Ok(())
}

fn how_far(health: &ListingHealth) -> String {
    let ListingHealth { asked, current, .. } = health;
    match (*asked, *current) {
        (0, _) => "No node is connected, so nobody can find it yet. Your node announces it to each node that connects."
            .to_owned(),
        (asked, current) if asked == current => format!("Seen by {current} of {asked} connected nodes."),
        (asked, current) => format!(
            "{current} of {asked} connected nodes have it so far; the others get it automatically. If a service \
             changes often, nodes take a new version every ten minutes. `farthing api health` checks again."
        ),
    }
}

/// Warns when this node's clock is off: a service published then may reach nobody, and its owner would not know why.
async fn warn_of_clock(context: &Context, node: &ControlClient) -> Result<(), Failure> {
    let status = node.ask(endpoint::Status).await?;
    if let Some(Alert { cause, action, .. }) =
        status.alerts.iter().find(|alert| alert.kind == AlertKind::ClockOff)
    {
        context
            .output
            .prose(&format!("Warning: {cause}; {action}. Other nodes may not list this service until then."));
    }
    Ok(())
}

fn edit_request(edit: Edit) -> Result<EditRequest, Failure> {
    let names =
        |named: &[String]| named.iter().map(|named| operation_name(named)).collect::<Result<Vec<_>, _>>();
    let ListingFlags {
        charge,
        name,
        summary,
        description,
        category,
        tags,
        upstream,
        upstream_headers,
        upstream_query,
    } = edit.said;
    let request = EditRequest {
        hide: names(&edit.hide)?,
        offer: names(&edit.offer)?,
        source: edit.source.map(|place| add::source_at(&place, SourceKind::Openapi)).transpose()?,
        name,
        summary,
        category,
        tags: (!tags.is_empty()).then_some(tags),
        description: description.as_deref().map(input::value).transpose()?,
        upstream,
        upstream_headers: add::secrets(upstream_headers)?,
        upstream_query: add::secrets(upstream_query)?,
        remove_secrets: edit.remove_secrets,
        charge,
        version: None,
    };
    // A version that is the same for everybody counts among those that others pass on.
    if request == EditRequest::default() {
        let next = "`farthing api edit --help` lists the options; `farthing api price` changes prices";
        return Err(Failure::usage("there is nothing to change").next(next));
    }
    Ok(request)
}

/// Before each question whether others have a new version: it takes them a moment.
const SPREADS_WITHIN: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(600),
    Duration::from_secs(1),
];

/// A call for more than this is far more often a slip of the decimal point than meant.
const PRICE_UNASKED_MAX: Usdc = Usdc::from_micros(1_000_000);

fn confirm_price(context: &Context, price: Usdc, yes: bool) -> Result<(), Failure> {
    if yes || price <= PRICE_UNASKED_MAX {
        return Ok(());
    }
    context.output.confirm(&format!("Charge {price} USDC for one call?"))
}

pub(super) fn operation_name(text: &str) -> Result<OperationName, Failure> {
    let next = "write the operation as \"GET /v1/things\"";
    let unnamed = || Failure::usage(format!("`{text}` is not an operation")).next(next);
    let (method, path) = text.trim().split_once(' ').ok_or_else(unnamed)?;
    let method = method.parse().map_err(|error| Failure::usage(error).next(next))?;
    Ok(OperationName { method, path: path.trim().to_owned() })
}

fn list(apis: &[types::Api]) -> String {
    let row = |api: &types::Api| {
        [
            api.id.to_string(),
            api.name.clone(),
            api.state.to_string(),
            api.price.to_string(),
            api.operations.len().to_string(),
            api.calls.to_string(),
            api.earned.to_string(),
            format!("{} ({})", api.upstream, api.upstream_class),
        ]
    };
    let heading = ["SERVICE", "NAME", "STATE", "PRICE", "OPERATIONS", "CALLS", "EARNED", "UPSTREAM"];
    let unpublished = |api: &types::Api| {
        let why = api.unpublished.as_ref()?;
        Some(format!("“{}” is stored here. This version is not published yet: {why}.", one_line(&api.name)))
    };
    let mut text = table(heading, apis.iter().map(row));
    let told: Vec<String> = apis.iter().filter_map(unpublished).collect();
    if !told.is_empty() {
        text += &format!("\n\n{}", told.join("\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_hears_how_far_a_change_got() {
        let health = |asked, current| ListingHealth { asked, current, ..ListingHealth::default() };
        for (asked, current, words) in [
            (0, 0, "nobody can find it yet"),
            (3, 3, "Seen by 3 of 3 connected nodes."),
            (3, 1, "1 of 3 connected nodes have it so far"),
        ] {
            let told = how_far(&health(asked, current));
            assert!(told.contains(words), "{told}");
        }
    }

    #[test]
    fn an_operation_is_named_by_method_and_path() {
        let name = operation_name("get /v1/things").unwrap();
        assert_eq!((name.method.to_string().as_str(), name.path.as_str()), ("GET", "/v1/things"));
        assert!(operation_name("/v1/things").is_err());
        assert!(operation_name("FETCH /v1/things").is_err());
    }
}
