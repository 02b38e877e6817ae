//! Discoveries: the methods, the facilities, and what each planet's discovery was.

use std::sync::Arc;

use juniper::{DefaultScalarValue, GraphQLObject, graphql_object};

use super::{Context, Planet, bounded, int};
use crate::exoplanets::catalog::{FacilityEntry, Record};
use crate::exoplanets::discovery_method::DiscoveryMethod;
use crate::exoplanets::refusal::Refusal;

/// A method, and how far it got.
#[derive(Debug, GraphQLObject)]
#[graphql(scalar = DefaultScalarValue)]
pub(super) struct DiscoveryMethodCount {
    /// As filters take it.
    method: DiscoveryMethod,
    /// In the archive's words, as `planets` takes it.
    name: &'static str,
    /// Number of planets it discovered.
    planet_count: i32,
}

impl DiscoveryMethodCount {
    pub(super) fn of(method: DiscoveryMethod, context: &Context) -> Self {
        let by_method = |record: &&Arc<Record>| record.discovery_method == method;
        let planet_count = int(context.catalog.records().iter().filter(by_method).count());
        Self { method, name: method.label(), planet_count }
    }
}

#[derive(Debug)]
pub(super) struct Discovery(pub(super) Arc<Record>);

/// How, when and by whom a planet was discovered.
#[graphql_object]
#[graphql(context = Context, scalar = DefaultScalarValue)]
impl Discovery {
    /// How.
    fn method(&self) -> DiscoveryMethod {
        self.0.discovery_method
    }

    /// In which year.
    fn year(&self) -> Option<i32> {
        self.0.discovery_year
    }

    /// By which observatory or survey.
    fn facility(&self) -> Facility {
        Facility { name: self.0.facility.clone() }
    }
}

#[derive(Debug)]
pub(super) struct Facility {
    name: String,
}

impl Facility {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }

    fn entry<'c>(&self, context: &'c Context) -> &'c FacilityEntry {
        context.catalog.facility(&self.name).expect("facilities are only made from names in the catalog")
    }
}

/// An observatory, telescope or survey that discovered planets.
#[graphql_object]
#[graphql(context = Context, scalar = DefaultScalarValue)]
impl Facility {
    /// The name the archive uses, such as `Kepler`.
    fn name(&self) -> &str {
        &self.name
    }

    /// Year of its first discovery.
    fn discovery_year(&self, context: &Context) -> i32 {
        self.entry(context).first_year
    }

    /// Number of planets it discovered.
    fn planet_count(&self, context: &Context) -> i32 {
        int(self.entry(context).planet_count())
    }

    /// Some of the planets it discovered, by name.
    fn planets(
        &self,
        context: &Context,
        #[graphql(desc = "How many planets at most, from 1 to 1000.", default = 10)] limit: i32,
    ) -> Result<Vec<Planet>, Refusal> {
        let planets = context.catalog.of_facility(self.entry(context)).take(bounded("limit", limit, 1)?);
        context.spend(planets.len())?;
        Ok(planets.map(Planet::new).collect())
    }
}
