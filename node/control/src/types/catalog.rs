//! The network's services, as the node tells of them.

use farthing_bridge::{form::Form, outline::OperationOutline};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    AddressText, CatalogKind, Charge, MethodText, Offer, OperationSample, ServiceFlag, ServiceIdText,
    UsdcText,
};

/// `farthing catalog search`. Everything given must hold; nothing given is everything there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CatalogQuery {
    pub words: String,
    pub category: Option<String>,
    pub tag: Option<String>,
    pub kind: Option<CatalogKind>,
    pub price_max: Option<UsdcText>,
    pub owner: Option<AddressText>,
    /// Only services whose owner can be reached now, as far as this node knows.
    pub online: bool,
    /// Only services with free samples.
    pub samples: bool,
    pub sort: CatalogSort,
    pub offset: usize,
    /// 20 when absent.
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatalogSort {
    /// What fits the words best
    #[default]
    Relevance,
    /// Cheapest first
    Price,
    /// Changed last first
    Newest,
    /// From A to Z
    Name,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogPage {
    /// Services that fit, on all pages.
    pub total: usize,
    pub offset: usize,
    pub hits: Vec<CatalogHit>,
    /// The number of all that fit in each category, with each tag, …; of what the node keeps, where that is not all.
    pub counts: Counts,
    /// The part of the network that was searched, where the node does not keep all listings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<SearchScope>,
    /// The reason that services of what the node should have may be missing, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacking: Option<String>,
}

/// The part of the network that a search covered, on a node that does not keep all of its listings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SearchScope {
    /// Of the network's sixteen.
    pub shards_kept: u32,
    /// True if all places for listings are taken, so that some of these shards may be lacking.
    pub is_full: bool,
    /// Index nodes that were asked for what the node lacks.
    pub index_nodes_asked: usize,
    /// Those of them that answered before there was enough.
    pub index_nodes_answered: usize,
    /// True if an answer was as long as it may be: there may be more.
    pub may_be_more: bool,
    /// The same in words.
    pub words: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    pub categories: Vec<Count>,
    pub tags: Vec<Count>,
    pub kinds: Vec<KindCount>,
    pub prices: Vec<PriceCount>,
    pub online: usize,
    /// Services with free samples.
    pub samples: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Count {
    pub value: String,
    pub count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KindCount {
    pub value: CatalogKind,
    pub count: usize,
}

/// A range of prices in USDC, and how many services are in it. The ranges touch and do not overlap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PriceCount {
    /// The end of the range below, which is not in this one; the first range has none.
    pub above: Option<UsdcText>,
    /// The highest price of the range; the last range has none.
    pub up_to: Option<UsdcText>,
    pub count: usize,
}

/// A service of the network as its listing describes it. Names and summaries are strangers' words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogHit {
    pub id: ServiceIdText,
    pub name: String,
    pub summary: String,
    pub category: String,
    pub tags: Vec<String>,
    pub kind: CatalogKind,
    pub price: UsdcText,
    /// Which of its answers cost that.
    #[serde(default)]
    pub charge: Charge,
    pub operations: u32,
    /// Operations with a free sample, as the listing says.
    #[serde(default)]
    pub samples_free: u32,
    pub owner: AddressText,
    /// The name that the user gave to the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_petname: Option<String>,
    pub state: CatalogState,
    /// Seconds since the Unix epoch, on the owner's clock.
    pub updated_secs: u64,
    pub version: u64,
    /// Another owner has a service of nearly this name, and not for less long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_alike: Option<LookAlike>,
    /// The reason that this node does not buy it: the way of payment, or terms beyond the limits of this node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_buyable: Option<String>,
    /// The evidence against it from this node's own paid calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<ServiceFlag>,
}

words! {
    /// The state of a service, which tells whether a call has a chance.
    CatalogState {
        /// The owner's node has a valid record in the directory.
        Online = "online",
        /// The owner's record has run out, or none was seen yet.
        Away = "away",
        /// The owner lets the service rest.
        Paused = "paused",
    }
}

/// Another owner's service that a name resembles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LookAlike {
    pub service: ServiceIdText,
    pub name: String,
    pub owner: AddressText,
    /// True if this node has known the other one for longer, by a day at least.
    pub older: bool,
}

/// A service that a name, or the beginning of an id, stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamedService {
    pub id: ServiceIdText,
    pub name: String,
    pub owner: AddressText,
    /// Another owner has had a service of nearly this name for longer.
    pub look_alike: bool,
}

/// `farthing catalog show`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogService {
    #[serde(flatten)]
    pub hit: CatalogHit,
    /// Markdown, a stranger's.
    pub description: String,
    pub offers: Vec<Offer>,
    pub samples: usize,
    /// The address on this node to which calls of it go.
    pub address: String,
    /// The reason that only the listing can be shown, when its details cannot be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details_missing: Option<String>,
}

/// `farthing catalog sample`: what answers look like, free, from the owner's published document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CatalogSamples {
    pub id: ServiceIdText,
    pub samples: Vec<OperationSample>,
}

/// One operation of a service as a form to fill in, for those who make calls by hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CallForm {
    pub method: MethodText,
    pub path: String,
    pub price: UsdcText,
    /// The deposit that a call makes first, where no channel with the owner carries it. It stays the caller's until it is
    /// spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposit: Option<UsdcText>,
    pub summary: String,
    /// Markdown, a stranger's.
    pub description: String,
    pub deprecated: bool,
    /// Seconds that an answer may take, where the owner says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u64>,
    /// Fields by parameter, and the body.
    #[schema(value_type = Object)]
    pub form: Form,
}

/// One operation of a service as a reference has it: the form of a call, and what it may say and hear.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OperationReference {
    #[serde(flatten)]
    pub call: CallForm,
    /// Parameters, body and answers, each value with those within it.
    #[schema(value_type = Object)]
    pub outline: OperationOutline,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Text;

    #[test]
    fn a_kind_in_a_description_is_the_word_that_programs_know() {
        for (kind, word) in [(CatalogKind::Rest, "REST"), (CatalogKind::Graphql, "GraphQL")] {
            assert_eq!(serde_json::to_value(Text(kind)).unwrap(), word);
            assert_eq!(word.parse(), Ok(kind));
        }
        assert!("rest".parse::<CatalogKind>().is_err());
    }
}
