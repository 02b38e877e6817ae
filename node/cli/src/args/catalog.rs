//! Arguments of `farthing catalog`.

use clap::{Args, Subcommand, builder::RangedU64ValueParser};
use farthing_catalog::PAGE_HITS_MAX;
use farthing_control::types::{CatalogKind, CatalogSort};
use farthing_protocol::{Address, Usdc};

use super::{ServiceName, inspect::OPENAPI_VERSIONS};

#[derive(Debug, Subcommand)]
pub enum Catalog {
    /// Find services by words, category, tag, kind and price; free, and works offline
    Search(Box<Search>),
    /// Show a service: its owner, what it offers, what a call costs
    Show {
        /// Its name, its UUID as `farthing catalog search` shows it, or the first digits of that
        service: ServiceName,
    },
    /// The OpenAPI document of a service
    Openapi {
        /// Its name, its UUID as `farthing catalog search` shows it, or the first digits of that
        service: ServiceName,
        /// Version of OpenAPI
        #[arg(long, value_parser = OPENAPI_VERSIONS, default_value = "3.1")]
        version: String,
    },
    /// List the versions that the owner published, each with the differences for callers
    Versions {
        /// Its name, its UUID as `farthing catalog search` shows it, or the first digits of that
        service: ServiceName,
    },
    /// Show sample answers of a service; free, and never calls the service itself
    Sample {
        /// Its name, its UUID as `farthing catalog search` shows it, or the first digits of that
        service: ServiceName,
        /// Only the sample of one operation, such as "GET /v1/things"; prints the body alone
        #[arg(value_name = "METHOD PATH")]
        operation: Option<String>,
    },
}

#[derive(Debug, Args)]
pub struct Search {
    /// Words in name, summary, tags, category and operations; the last one may be incomplete
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
    /// Only services whose price is at most this, in USDC
    #[arg(long, value_name = "USDC", allow_negative_numbers = true)]
    pub max_price: Option<Usdc>,
    /// Only of this owner
    #[arg(long, value_name = "WALLET")]
    pub owner: Option<Address>,
    /// Only services whose owner's node is online, as far as this node knows
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
