//! The owner's word on custom scalars: how their values are read, where their names mislead.

use farthing_bridge::{
    graphql::{
        self,
        schema::{GraphqlSchema, ScalarForm, Type, TypeKind},
    },
    report::{Reading, Report},
};

/// The reason that a custom scalar cannot be overridden.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScalarError {
    #[error("only GraphQL has custom scalars, and this is not a GraphQL schema")]
    NotGraphql,
    #[error("{name} is not a custom scalar of this schema; the schema has {known}")]
    Unknown { name: String, known: String },
}

/// Changes how values of custom scalars are read, and describes the schema again.
///
/// # Errors
/// [`ScalarError`]; the reading is of no use then.
pub fn override_scalars<'a>(
    reading: &mut Reading,
    scalars: impl IntoIterator<Item = (&'a str, ScalarForm)>,
) -> Result<(), ScalarError> {
    let mut scalars = scalars.into_iter().peekable();
    if scalars.peek().is_none() {
        return Ok(());
    }
    let mut schema = reading.description.graphql.take().ok_or(ScalarError::NotGraphql)?;
    for (name, form) in scalars {
        if !graphql::override_scalar(&mut schema, name, form) {
            return Err(ScalarError::Unknown { name: name.to_owned(), known: custom_scalars(&schema) });
        }
    }
    let title = std::mem::take(&mut reading.description.title);
    // The report says the same as after the first description.
    reading.description = graphql::describe(schema, &title, &mut Report::default());
    Ok(())
}

fn custom_scalars(schema: &GraphqlSchema) -> String {
    let is_custom = |named: &&Type| {
        use ScalarForm::{CustomJson, CustomNumber, CustomString};
        matches!(&named.kind, TypeKind::Scalar(own) if matches!(own.form, CustomJson | CustomNumber | CustomString))
    };
    let known: Vec<_> = schema.types.iter().filter(is_custom).map(|named| named.name.as_str()).collect();
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}
