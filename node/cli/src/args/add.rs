//! `farthing api add` and `edit`: what to sell and how.

use std::path::PathBuf;

use clap::Args;
use farthing_control::types::{Charge, SamplesFile, ScalarFile};
use farthing_protocol::{ServiceId, Usdc};

use super::{ServiceName, header, inspect::scalar, pair};

/// Publish a service: from an API description, a running server, or a service file
///
/// With a description, every operation is offered except GraphQL mutations, which are offered when named or with
/// --mutations. `farthing bridge inspect` shows the result without publishing it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Add {
    /// A service file, TOML or JSON (- for standard input)
    #[arg(long = "from", value_name = "FILE", group = "what")]
    pub from: Option<PathBuf>,
    /// The same
    #[arg(value_name = "FILE", group = "what", hide = true)]
    pub file: Option<PathBuf>,
    /// An OpenAPI 3.0 or 3.1 or Swagger 2.0 document, JSON or YAML
    #[arg(long, value_name = "FILE|URL", group = "what")]
    pub openapi: Option<String>,
    /// A GraphQL schema, an introspection result, or a server that answers introspection
    #[arg(long, value_name = "FILE|URL", group = "what")]
    pub graphql: Option<String>,
    /// A running server; its description is looked for
    #[arg(long, value_name = "URL", group = "what")]
    pub scan: Option<String>,
    /// The description to use if a scan finds several, by its number
    #[arg(long, value_name = "NUMBER", requires = "scan")]
    pub pick: Option<usize>,

    /// Price in USDC of every operation without a price of its own; 0 is free
    #[arg(long, value_name = "USDC", allow_negative_numbers = true)]
    pub price: Option<Usdc>,
    #[command(flatten)]
    pub said: ListingFlags,

    /// Price of one operation, such as "GET /planets=0.005". May be repeated
    #[arg(long = "operation-price", value_name = "METHOD PATH=USDC")]
    pub operation_prices: Vec<String>,
    /// Do not offer an operation, such as "DELETE /users/{id}". May be repeated
    #[arg(long = "exclude", value_name = "METHOD PATH")]
    pub exclude: Vec<String>,
    /// Offer a GraphQL mutation, such as "POST /addNote". May be repeated
    #[arg(long = "include", value_name = "METHOD PATH")]
    pub include: Vec<String>,
    /// Offer all GraphQL mutations
    #[arg(long)]
    pub mutations: bool,
    /// How values of a custom scalar are read: NAME=json, NAME=number or NAME=string. May be repeated
    #[arg(long = "scalar", value_name = "NAME=FORM", value_parser = scalar)]
    pub scalars: Vec<(String, ScalarFile)>,
    /// A header of your server's answers that callers get beside the usual ones, such as x-cost. May be repeated
    #[arg(long = "response-header", value_name = "NAME")]
    pub response_headers: Vec<String>,
    /// Free samples of answers: the description's, recorded from your server now, or none
    #[arg(long, value_enum)]
    pub samples: Option<SamplesFile>,
    /// Time that an answer may take, 1 to 300; consumers are told and wait as long. By default your node's limits, 30 s
    /// at most
    #[arg(long = "timeout-secs", value_name = "SECONDS")]
    pub timeout_secs: Option<u16>,

    /// Do not ask about a price above 1 USDC
    #[arg(long)]
    pub yes: bool,
    /// Replace the service of this id with a new version
    #[arg(long, value_name = "SERVICE")]
    pub id: Option<ServiceId>,
}

/// What an owner says of a service, when it is published and when it is changed.
#[derive(Debug, Args)]
pub struct ListingFlags {
    /// Which answers are charged
    #[arg(long, value_enum)]
    pub charge: Option<Charge>,
    /// Name of the service; by default the description's title, which a GraphQL schema does not have
    #[arg(long)]
    pub name: Option<String>,
    /// One line
    #[arg(long)]
    pub summary: Option<String>,
    /// Markdown, or @FILE
    #[arg(long, value_name = "TEXT|@FILE")]
    pub description: Option<String>,
    /// One word or two, such as Weather; consumers narrow their search by it
    #[arg(long)]
    pub category: Option<String>,
    /// Tag; may be repeated. A change replaces all present tags
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Your own server; for GraphQL the endpoint itself
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// Sent to your server with every call, such as an API key; a value @FILE is read from a file, which keeps it
    /// out of the shell's history. Never published. May be repeated; a change replaces all present secrets
    #[arg(long = "upstream-header", value_name = "NAME: VALUE", value_parser = header)]
    pub upstream_headers: Vec<(String, String)>,
    /// The same as a parameter of the query
    #[arg(long = "upstream-query", value_name = "NAME=VALUE", value_parser = pair)]
    pub upstream_query: Vec<(String, String)>,
}

/// Change texts, your server, and what is offered; anything you do not name stays. Use `api price` for prices
#[derive(Debug, Args)]
pub struct Edit {
    /// Its name, its UUID as `farthing api list` shows it, or the first digits of that
    pub service: ServiceName,
    #[command(flatten)]
    pub said: ListingFlags,
    /// Stop adding a header or parameter to requests. May be repeated
    #[arg(long = "remove-secret", value_name = "NAME")]
    pub remove_secrets: Vec<String>,
    /// Stop offering an operation, such as "DELETE /users/{id}". May be repeated
    #[arg(long, value_name = "METHOD PATH")]
    pub hide: Vec<String>,
    /// Offer a hidden operation again; reads the description again. May be repeated
    #[arg(long, value_name = "METHOD PATH")]
    pub offer: Vec<String>,
    /// The description, if it was a file
    #[arg(long, value_name = "FILE|URL", requires = "offer")]
    pub source: Option<String>,
}

const EXAMPLES: &str = "Examples:\n  \
    farthing api add --openapi openapi.yaml --price 0.002\n  \
    farthing api add --graphql http://127.0.0.1:4002/graphql --name Exoplanets --price 0.003\n  \
    farthing api add --scan http://127.0.0.1:8080 --price 0.001 --exclude \"DELETE /users/{id}\"\n  \
    farthing api add --from service.toml";
