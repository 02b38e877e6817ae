//! Judges a draft and compiles it: the one place that decides what a GraphQL schema may look like.
//!
//! Duplicates go and extensions join what they extend ([`merge`]); what is hidden goes ([`hide`]); names become
//! indices and what does not fit is told ([`link`]); the roots are chosen; what no call can reach goes
//! ([`super::reach`]). Names are GraphQL names ever after.

mod hide;
mod link;
mod merge;

#[cfg(test)]
mod tests;

use std::collections::HashSet;

use super::{
    GraphqlSchema,
    draft::{At, DraftBody, DraftDefinition, DraftField, Head, Named, Roots, SchemaDraft, place},
    reach,
    reading::SchemaReading,
    scalars,
    schema::{Type, TypeId, TypeKind},
};
use crate::{
    limits::TYPES_MAX,
    report::{ReadError, ReadProblem, Report},
};

/// Compiles a draft. `format` names its source in errors.
pub(super) fn compile(
    draft: SchemaDraft,
    mut report: Report,
    format: &'static str,
) -> Result<SchemaReading, ReadError> {
    let SchemaDraft { types, roots } = draft;
    let mut problems = Problems { format, list: Vec::new(), undefined: HashSet::new() };
    let mut types = merge::merge(types, &mut report, &mut problems);
    if types.len() > TYPES_MAX {
        let what = format!("the schema has {} types, {TYPES_MAX} are the most that is read", types.len());
        return Err(ReadError::new(format, what));
    }
    hide::hide(&mut types, &roots, &mut report);
    define_known(&mut types, &mut report);
    let names = link::TypeIndex::of(&types);
    let root = |named: &Option<Named>, name: &str, problems: &mut Problems| {
        find_root(named.as_ref(), name, &roots, &names, &types, problems)
    };
    let query = root(&roots.query, "Query", &mut problems);
    let mutation = root(&roots.mutation, "Mutation", &mut problems);
    let subscription = root(&roots.subscription, "Subscription", &mut problems);
    let subscription = skip_subscriptions(subscription, &types, &mut report);
    let compiled = link::link(&types, &names, &mut report, &mut problems);
    let mut schema = GraphqlSchema { types: compiled, query, mutation };
    if problems.list.is_empty() && !has_operations(&schema) {
        problems.add(None, NOTHING_TO_CALL);
    }
    problems.into_result()?;
    let mut unreachable = reach::keep_reachable(&mut schema);
    unreachable.retain(|ty| subscription != Some(ty.name.as_str()));
    skip_unreachable(&unreachable, &mut report);
    Ok(SchemaReading { schema, report })
}

const NOTHING_TO_CALL: &str = "there is no query and no mutation, so there is nothing to call; set the root types in \
                               `schema { query: … }`, or name them Query and Mutation";

/// The problems that keep a schema from being compiled.
pub(super) struct Problems {
    format: &'static str,
    list: Vec<ReadProblem>,
    /// Types that were told to be undefined.
    undefined: HashSet<String>,
}

impl Problems {
    fn add(&mut self, position: At, what: impl Into<String>) {
        if self.list.len() < ReadError::PROBLEMS_MAX {
            self.list.push(ReadProblem { position, what: what.into() });
        }
    }

    fn into_result(mut self) -> Result<(), ReadError> {
        if self.list.is_empty() {
            return Ok(());
        }
        self.list.sort_by_key(|problem| problem.position);
        Err(ReadError { format: self.format, problems: self.list })
    }
}

/// Scalars that schemas use without declaring them: the built-in ones always, others when mentioned.
fn define_known(types: &mut Vec<DraftDefinition>, report: &mut Report) {
    let mut declared: HashSet<&str> = types.iter().map(|ty| ty.head.name.as_str()).collect();
    let mut known: Vec<String> = Vec::new();
    for name in types.iter().flat_map(DraftDefinition::mentions).filter(|name| is_known(name)) {
        if declared.insert(name) {
            known.push(name.to_owned());
        }
    }
    for name in &known {
        report.repaired.add(format!("scalar {name}"), "is used but not declared; it was added");
    }
    let built_in = scalars::BUILT_IN.iter().map(|name| (*name).to_owned());
    types.extend(known.into_iter().chain(built_in).map(|name| DraftDefinition {
        head: Head { name, ..Default::default() },
        extends: false,
        body: DraftBody::Scalar,
    }));
}

/// Apollo Federation's own scalars, and those of AWS AppSync.
fn is_known(name: &str) -> bool {
    const FEDERATION: [&str; 6] =
        ["_Any", "_FieldSet", "FieldSet", "Import", "link__Import", "link__Purpose"];
    const APPSYNC: [&str; 9] = [
        "AWSDate",
        "AWSTime",
        "AWSDateTime",
        "AWSTimestamp",
        "AWSEmail",
        "AWSJSON",
        "AWSURL",
        "AWSPhone",
        "AWSIPAddress",
    ];
    FEDERATION.contains(&name)
        || APPSYNC.contains(&name)
        || ["federation__", "link__", "join__", "core__"].iter().any(|prefix| name.starts_with(prefix))
}

/// The root type that the schema names, or the type that has its usual name.
fn find_root(
    named: Option<&Named>,
    usual: &str,
    roots: &Roots,
    names: &link::TypeIndex,
    types: &[DraftDefinition],
    problems: &mut Problems,
) -> Option<TypeId> {
    let (name, at) = match named {
        Some(named) => (named.name.as_str(), named.at),
        None if roots.is_complete => return None,
        None => (usual, None),
    };
    let id = names.get(name);
    let is_object =
        |id: &TypeId| types.get(id.index()).is_some_and(|ty| matches!(ty.body, DraftBody::Object(_)));
    if named.is_some() && !id.as_ref().is_some_and(is_object) {
        problems
            .add(at, format!("the root type `{}` is not an object type of this schema", crate::shown(name)));
    }
    id.filter(is_object)
}

fn has_operations(schema: &GraphqlSchema) -> bool {
    let roots = [schema.query, schema.mutation];
    roots.into_iter().flatten().any(|root| schema.fields(root).is_some_and(|fields| !fields.is_empty()))
}

/// Tells the fields of the subscription root, and returns its name.
fn skip_subscriptions<'a>(
    subscription: Option<TypeId>,
    types: &'a [DraftDefinition],
    report: &mut Report,
) -> Option<&'a str> {
    let ty = types.get(subscription?.index())?;
    let DraftBody::Object(object) = &ty.body else { return None };
    for DraftField { head, .. } in &object.fields {
        report.skipped.add(
            place("subscription", &head.name, head.at),
            "a subscription is a stream of answers; a call has one answer",
        );
    }
    Some(&ty.head.name)
}

/// One line for all of them, so that the report stays readable. Interfaces are no loss: their objects are there.
fn skip_unreachable(types: &[Type], report: &mut Report) {
    let names: Vec<String> = types
        .iter()
        .filter(|ty| {
            !scalars::BUILT_IN.contains(&ty.name.as_str()) && !matches!(ty.kind, TypeKind::Interface(_))
        })
        .map(|ty| format!("`{}`", crate::shown(&ty.name)))
        .collect();
    if names.is_empty() {
        return;
    }
    let (shown, further) = names.split_at(names.len().min(10));
    let further = if further.is_empty() { String::new() } else { format!(" and {} more", further.len()) };
    report.skipped.add("types", format!("no query or mutation reaches {}{further}", shown.join(", ")));
}
