//! A schema that has what real ones have, and calls of it.

use std::{collections::BTreeMap, sync::OnceLock};

use super::{GraphqlRequest, Planner, describe, sdl};
use crate::{description::ApiDescription, problem::Problem, report::Report};

/// Planets, stars, and everything that makes a schema difficult.
pub(super) const SKY: &str = include_str!("testing/sky.graphql");

/// An API to call.
pub(super) struct Sky {
    pub description: ApiDescription,
    pub planner: Planner,
    pub report: Report,
}

pub(super) fn api(sdl: &str) -> Sky {
    let mut reading = sdl::read(sdl.as_bytes()).expect("a schema");
    let description = describe(reading.schema, "Sky", &mut reading.report);
    let planner = Planner::new(&description).expect("a description that can be planned with");
    Sky { description, planner, report: reading.report }
}

/// The API of [`SKY`], made once.
pub(super) fn sky() -> &'static Sky {
    static MADE: OnceLock<Sky> = OnceLock::new();
    MADE.get_or_init(|| api(SKY))
}

impl Sky {
    pub fn index(&self, id: &str) -> usize {
        let found = self.description.operations.iter().position(|operation| operation.id == id);
        found.unwrap_or_else(|| panic!("no operation {id}"))
    }

    pub fn plan(
        &self,
        id: &str,
        params: &[(&str, &str)],
        body: &str,
    ) -> Result<GraphqlRequest, Vec<Problem>> {
        let params: BTreeMap<String, String> =
            params.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        self.planner.plan(&self.description, self.index(id), &params, body.as_bytes())
    }

    /// The query and the variables, or what is wrong, one thing a line.
    pub fn shown(&self, id: &str, params: &[(&str, &str)], body: &str) -> String {
        match self.plan(id, params, body) {
            Ok(request) => format!("{}\n{}", request.query, request.variables),
            Err(problems) => {
                assert!(!problems.is_empty(), "a refusal has a reason");
                problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// The variables of a call that must be fine.
    pub fn variables(&self, id: &str, params: &[(&str, &str)], body: &str) -> String {
        match self.plan(id, params, body) {
            Ok(request) => request.variables,
            Err(problems) => panic!("{id} {params:?} {body}: {problems:?}"),
        }
    }

    /// Returns what is wrong with a call that must not be planned.
    pub fn refused(&self, id: &str, params: &[(&str, &str)], body: &str) -> String {
        assert!(self.plan(id, params, body).is_err(), "{id} {params:?} {body} was planned");
        self.shown(id, params, body)
    }
}
