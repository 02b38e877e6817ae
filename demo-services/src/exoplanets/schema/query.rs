//! Questions that clients can ask.

#![expect(clippy::needless_pass_by_value, reason = "juniper hands arguments over by value")]

use juniper::{DefaultScalarValue, ID, graphql_object};

use super::body::{self, CelestialBodyValue};
use super::choice::Choice;
use super::connection::{Page, PlanetConnection};
use super::discovery::{DiscoveryMethodCount, Facility};
use super::filter::PlanetFilter;
use super::order::{self, PlanetField, SortOrder};
use super::planet::Planet;
use super::search::{self, SearchResult};
use super::star::Star;
use super::{Context, LIMIT_DEFAULT, bounded};
use crate::exoplanets::discovery_method::DiscoveryMethod;
use crate::exoplanets::refusal::Refusal;

#[derive(Debug)]
pub(in crate::exoplanets) struct Query;

/// Questions about the confirmed planets of other stars, from the NASA Exoplanet Archive's table of 2 June 2026.
#[graphql_object]
#[graphql(context = Context, scalar = DefaultScalarValue)]
impl Query {
    /// Planets by name, all or those of one discovery method.
    fn planets(
        context: &Context,
        #[graphql(
            desc = "A method that `discoveryMethods` names, such as `Transit`; capitals do not matter."
        )]
        discovery_method: Option<String>,
        #[graphql(desc = "How many planets at most, from 1 to 1000; 100 without it.")] limit: Option<i32>,
    ) -> Result<Vec<Planet>, Refusal> {
        let method = discovery_method.as_deref().map(DiscoveryMethod::named).transpose()?;
        let limit = limit.map_or(Ok(LIMIT_DEFAULT), |limit| bounded("limit", limit, 1))?;
        let records = context.catalog.records().iter();
        let chosen = records.filter(|record| method.is_none_or(|method| method == record.discovery_method));
        let planets: Vec<_> = chosen.take(limit).map(Planet::new).collect();
        context.spend(planets.len())?;
        Ok(planets)
    }

    /// The planet of a name; null when there is none.
    fn planet(
        context: &Context,
        #[graphql(desc = "The exact name, such as `Kepler-22 b`; `search` finds names.")] name: String,
    ) -> Option<Planet> {
        context.catalog.find(&name).map(Planet::new)
    }

    /// The planets at one end of a scale, such as the ten heaviest.
    fn ranked_planets(
        context: &Context,
        #[graphql(desc = "The scale.")] by: PlanetField,
        #[graphql(desc = "Which end of it.", default = Choice(SortOrder::Desc))] order: Choice<SortOrder>,
        #[graphql(desc = "How many planets at most, from 1 to 1000.", default = 10)] limit: i32,
        #[graphql(desc = "Which planets to rank; all without it.")] filter: Option<PlanetFilter>,
    ) -> Result<Vec<Planet>, Refusal> {
        let limit = bounded("limit", limit, 1)?;
        let mut records = filter.unwrap_or_default().select(context)?;
        order::sort(&mut records, by, order.0);
        records.truncate(limit);
        context.spend(records.len())?;
        Ok(records.into_iter().map(Planet::new).collect())
    }

    /// All planets that a filter admits, page by page. Without `first` and `last`, a page has 100 planets.
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the field")]
    fn planets_connection(
        context: &Context,
        #[graphql(desc = "The first so many planets, from 0 to 1000.")] first: Option<i32>,
        #[graphql(desc = "Only what follows this cursor.")] after: Option<String>,
        #[graphql(desc = "The last so many planets, from 0 to 1000; not together with `first`.")]
        last: Option<i32>,
        #[graphql(desc = "Only what precedes this cursor.")] before: Option<String>,
        #[graphql(desc = "Which planets; all without it.")] filter: Option<PlanetFilter>,
        #[graphql(desc = "What the list is sorted by.", default = Choice(PlanetField::Name))]
        order_by: Choice<PlanetField>,
        #[graphql(desc = "In which direction.", default = Choice(SortOrder::Asc))] order: Choice<SortOrder>,
    ) -> Result<PlanetConnection, Refusal> {
        let mut records = filter.unwrap_or_default().select(context)?;
        order::sort(&mut records, order_by.0, order.0);
        Page { first, after, last, before }.of(&records, context)
    }

    /// The star of a name. It is an error when there is none.
    fn star(
        context: &Context,
        #[graphql(desc = "The exact name, such as `Kepler-22`; `search` finds names.")] name: String,
    ) -> Result<Star, Refusal> {
        Star::find(&name, context).ok_or_else(|| {
            Refusal::NotFound("no star with planets has that name; `search` finds names".to_owned())
        })
    }

    /// The planet or star of an id; null when there is none.
    fn body(
        context: &Context,
        #[graphql(desc = "As `id` of a planet or star, such as `star:Kepler-22`.")] id: ID,
    ) -> Option<CelestialBodyValue> {
        body::find(&id, context)
    }

    /// Planets, stars and facilities that have a text in their name, the nearest first.
    fn search(
        context: &Context,
        #[graphql(desc = "Part of a name, up to 100 characters; capital letters do not matter.")]
        text: String,
        #[graphql(desc = "How many results at most, from 1 to 1000.", default = 20)] limit: i32,
    ) -> Result<Vec<SearchResult>, Refusal> {
        search::search(&text, bounded("limit", limit, 1)?, context)
    }

    /// All observatories and surveys that discovered planets, by name.
    fn facilities(context: &Context) -> Result<Vec<Facility>, Refusal> {
        let facilities: Vec<_> = context.catalog.facilities().map(|(name, _)| Facility::new(name)).collect();
        context.spend(facilities.len())?;
        Ok(facilities)
    }

    /// All methods by which planets were discovered.
    fn discovery_methods(context: &Context) -> Result<Vec<DiscoveryMethodCount>, Refusal> {
        context.spend(DiscoveryMethod::ALL.len())?;
        Ok(DiscoveryMethod::ALL.map(|method| DiscoveryMethodCount::of(method, context)).into())
    }
}
