//! A call becomes one GraphQL request.
//!
//! [`Planner::new`] checks the compiled schema once and prepares what is the same in every query of an operation;
//! [`Planner::plan`] sorts what the caller gave by argument, writes the variables ([`super::coerce`]), and puts
//! together `query($limit: Int){planets(limit:$limit){name hostStar}}`.
//!
//! Invariants: the query's text is made of names from the schema only, and declares exactly the arguments that
//! were given; values travel as variables.

mod arguments;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, OnceLock},
};

use self::arguments::{GivenArgument, GivenArguments};
use super::{
    answer::Unwrap,
    check::check,
    coerce::{Coercer, quote},
    fields,
    schema::{Field, GraphqlSchema, InputValue, ScalarForm, TypeKind, TypeRef},
    selection::{Selection, aliases::Renames, default, is_composite, is_connection, is_root},
};
use crate::{
    ApiError,
    description::{ApiDescription, RootField, RootKind},
    limits::{PARAMETERS_MAX, QUERY_BYTES_MAX, SELECTION_STEPS_MAX},
    problem::Problem,
    steps::Steps,
    values::ValuePath,
};

/// Items of a Relay connection when the caller does not say how many.
pub(super) const FIRST_DEFAULT: u32 = 20;

/// A request to the upstream's GraphQL address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphqlRequest {
    pub query: String,
    /// A JSON object.
    pub variables: String,
    /// The facts about the request that [`super::answer`] needs.
    pub unwrap: Unwrap,
}

impl GraphqlRequest {
    /// Writes the body that is posted, as `application/json`.
    pub fn body(&self) -> Vec<u8> {
        let mut body = String::with_capacity(self.query.len() + self.variables.len() + 40);
        body.push_str("{\"query\":");
        quote(&self.query, &mut body);
        body.push_str(",\"variables\":");
        body.push_str(&self.variables);
        body.push('}');
        body.into_bytes()
    }
}

/// The place of every root field among those of its kind.
fn root_places(schema: &GraphqlSchema) -> HashMap<(RootKind, &str), usize> {
    let fields = |kind| schema.root(kind).and_then(|id| schema.fields(id)).unwrap_or_default();
    let places = |kind| {
        fields(kind).iter().enumerate().map(move |(place, field)| ((kind, field.name.as_str()), place))
    };
    [RootKind::Query, RootKind::Mutation].into_iter().flat_map(places).collect()
}

/// Plans calls of one API. It goes with the description it was made of.
#[derive(Debug, Clone, Default)]
pub struct Planner {
    /// By the operation's index; `None` for operations that are not GraphQL.
    operations: Vec<Option<OperationPlan>>,
}

/// The part that all queries of an operation share.
#[derive(Debug, Clone)]
pub(super) struct OperationPlan {
    root: RootField,
    /// `query` or `mutation`.
    keyword: &'static str,
    /// Index of the root field.
    field: usize,
    /// By the argument's index.
    arguments: Vec<ArgumentForm>,
    /// The parameter with the caller's own selection; `None` when the result has no fields.
    pub fields: Option<&'static str>,
    /// The argument that limits a connection, if it is ours to give.
    pub first: Option<usize>,
    /// Bytes that a selection may have next to all arguments.
    selection_bytes_max: usize,
    default: OnceLock<FieldSelection>,
}

/// An argument as a query declares and uses it.
#[derive(Debug, Clone)]
struct ArgumentForm {
    /// `$limit: Int`
    declared: String,
    /// `limit:$limit`
    used: String,
}

/// A selection, ready to be put into a query.
#[derive(Debug, Clone, Default)]
struct FieldSelection {
    text: String,
    renames: Option<Arc<Renames>>,
}

impl FieldSelection {
    fn of(schema: &GraphqlSchema, selection: &Selection) -> Self {
        Self { text: selection.text(schema), renames: Renames::of(schema, selection).map(Arc::new) }
    }
}

impl Planner {
    /// Checks the schema and the operations that stand for its root fields.
    ///
    /// # Errors
    /// [`ApiError::Graphql`] when the schema breaks a rule of its documentation, or an operation names a root
    /// field that does not exist or cannot be asked for.
    pub fn new(description: &ApiDescription) -> Result<Self, ApiError> {
        let Some(schema) = &description.graphql else { return Ok(Self::default()) };
        check(schema).map_err(ApiError::Graphql)?;
        let places = root_places(schema);
        let plan = |root: &RootField| {
            let place = places.get(&(root.kind, root.field.as_str())).copied();
            OperationPlan::new(schema, root, place).map_err(ApiError::Graphql)
        };
        let operations = description.operations.iter().map(|operation| operation.root.as_ref().map(plan));
        Ok(Self { operations: operations.map(Option::transpose).collect::<Result<_, _>>()? })
    }

    /// The request of a call. `params` holds arguments as text, and `fields`; `body` arguments as JSON.
    ///
    /// # Errors
    /// Everything that is wrong with the call; at least one problem.
    pub fn plan(
        &self,
        description: &ApiDescription,
        operation: usize,
        params: &BTreeMap<String, String>,
        body: &[u8],
    ) -> Result<GraphqlRequest, Vec<Problem>> {
        let planned = self.operation(operation).zip(description.graphql.as_ref());
        match planned.and_then(|(operation, schema)| Some((operation, schema, operation.declared(schema)?))) {
            Some((operation, schema, field)) => operation.plan(schema, field, params, body),
            // Only with a description that is not the planner's.
            None => Err(vec![Problem::Other("the operation is not a GraphQL field".into())]),
        }
    }

    pub(super) fn operation(&self, index: usize) -> Option<&OperationPlan> {
        self.operations.get(index)?.as_ref()
    }
}

impl OperationPlan {
    /// Prepares the root field at `place` among those of its kind.
    ///
    /// # Errors
    /// The reason in words that it cannot be asked for.
    pub fn new(schema: &GraphqlSchema, root: &RootField, place: Option<usize>) -> Result<Self, String> {
        let name = &root.field;
        let fields = schema.root(root.kind).and_then(|id| schema.fields(id)).unwrap_or_default();
        let Some((index, field)) = place.and_then(|place| Some((place, fields.get(place)?))) else {
            return Err(format!("there is no {} field `{}`", root.kind.keyword(), crate::shown(name)));
        };
        if is_root(schema, field.ty.named()) {
            return Err(format!("`{name}` leads back to the operations"));
        }
        let has = |name: &str| field.args.iter().any(|arg| arg.name == name);
        let selects = is_composite(schema, field.ty.named());
        let fields = ["fields", "_fields"].into_iter().find(|name| selects && !has(name));
        if field.args.len() + usize::from(fields.is_some()) > PARAMETERS_MAX {
            return Err(format!("`{name}` has more than {PARAMETERS_MAX} parameters"));
        }
        let arguments: Vec<_> = field
            .args
            .iter()
            .map(|arg| ArgumentForm {
                declared: format!("${}: {}", arg.name, schema.type_text(&arg.ty)),
                used: format!("{0}:${0}", arg.name),
            })
            .collect();
        let around = [root.kind.keyword(), name, "()", "{}", "()"].map(str::len).iter().sum::<usize>()
            + arguments.iter().map(|arg| arg.declared.len() + arg.used.len() + 2).sum::<usize>();
        let selection_bytes_max = QUERY_BYTES_MAX.saturating_sub(around);
        if selection_bytes_max < "{__typename}".len() {
            return Err(format!("a query of `{name}` has more than {QUERY_BYTES_MAX} bytes"));
        }
        Ok(Self {
            root: root.clone(),
            keyword: root.kind.keyword(),
            field: index,
            arguments,
            fields,
            first: first_argument(schema, field),
            selection_bytes_max,
            default: OnceLock::new(),
        })
    }

    /// The root field, as the schema declares it.
    pub fn declared<'s>(&self, schema: &'s GraphqlSchema) -> Option<&'s Field> {
        let field = schema.fields(schema.root(self.root.kind)?)?.get(self.field)?;
        (field.name == self.root.field && field.args.len() == self.arguments.len()).then_some(field)
    }

    /// Returns the selection for a caller who does not choose; `None` when the result has no fields.
    pub fn default_selection(
        &self,
        schema: &GraphqlSchema,
        field: &Field,
        steps: &mut Steps,
    ) -> Option<Selection> {
        steps.part(SELECTION_STEPS_MAX, |steps| {
            default::selection(schema, &field.ty, self.root.lists_max(), self.selection_bytes_max, steps)
        })
    }

    fn plan(
        &self,
        schema: &GraphqlSchema,
        field: &Field,
        params: &BTreeMap<String, String>,
        body: &[u8],
    ) -> Result<GraphqlRequest, Vec<Problem>> {
        let mut coercer = Coercer::new(schema, String::with_capacity(128));
        let arguments = GivenArguments::sort(self, field, params, body, &mut coercer);
        let first = self.first.filter(|_| !arguments.is_given(field, "last"));
        let supplied = self.variables(field, &arguments, first, &mut coercer);
        let chosen = self.chosen(schema, field, arguments.fields, &mut coercer);
        let variables = coercer.finish()?;
        let query = self.query(field, &chosen.text, &supplied);
        if query.len() > QUERY_BYTES_MAX {
            return Err(vec![Problem::Other(format!(
                "`{}` makes a query of {} bytes, {QUERY_BYTES_MAX} are allowed; choose fewer fields",
                self.fields.unwrap_or("fields"),
                query.len()
            ))]);
        }
        let unwrap = Unwrap::new(&field.name, chosen.renames.clone());
        Ok(GraphqlRequest { query, variables, unwrap })
    }

    /// Writes the variables, and returns the indices of the arguments that have one.
    fn variables(
        &self,
        field: &Field,
        arguments: &GivenArguments<'_>,
        first: Option<usize>,
        coercer: &mut Coercer<'_>,
    ) -> Vec<usize> {
        let mut supplied = Vec::with_capacity(field.args.len());
        coercer.out.push('{');
        for (index, arg) in field.args.iter().enumerate() {
            let given = arguments.given(index);
            if matches!(given, GivenArgument::Nothing) && first != Some(index) {
                if arg.is_required() {
                    coercer.miss(&arg.name);
                }
                continue;
            }
            if !supplied.is_empty() {
                coercer.out.push(',');
            }
            supplied.push(index);
            quote(&arg.name, &mut coercer.out);
            coercer.out.push(':');
            coerce(arg, given, coercer);
        }
        coercer.out.push('}');
        supplied
    }

    /// The caller's selection, or the default.
    fn chosen(
        &self,
        schema: &GraphqlSchema,
        field: &Field,
        fields: Option<&str>,
        coercer: &mut Coercer<'_>,
    ) -> std::borrow::Cow<'_, FieldSelection> {
        use std::borrow::Cow;
        let Some(text) = fields else {
            return Cow::Borrowed(self.default.get_or_init(|| {
                self.default_selection(schema, field, &mut Steps::new(SELECTION_STEPS_MAX))
                    .map_or_else(FieldSelection::default, |selection| FieldSelection::of(schema, &selection))
            }));
        };
        match fields::select(
            schema,
            &field.ty,
            self.root.lists_max(),
            text,
            &mut Steps::new(SELECTION_STEPS_MAX),
        ) {
            Ok(selection) => Cow::Owned(FieldSelection::of(schema, &selection)),
            Err(problem) => {
                // It speaks of `fields`, which may have another name here.
                let name = format!("`{}`", self.fields.unwrap_or("fields"));
                coercer.object(Problem::Other(problem.replacen("`fields`", &name, 1)));
                Cow::Owned(FieldSelection::default())
            }
        }
    }

    fn query(&self, field: &Field, selection: &str, supplied: &[usize]) -> String {
        let mut query = String::with_capacity(selection.len() + 64 + 48 * supplied.len());
        query.push_str(self.keyword);
        self.list(&mut query, supplied, |argument| &argument.declared);
        query.push('{');
        query.push_str(&field.name);
        self.list(&mut query, supplied, |argument| &argument.used);
        query.push_str(selection);
        query.push('}');
        query
    }

    fn list(&self, query: &mut String, supplied: &[usize], text: impl Fn(&ArgumentForm) -> &str) {
        for (i, index) in supplied.iter().enumerate() {
            query.push(if i == 0 { '(' } else { ',' });
            query.push_str(text(&self.arguments[*index]));
        }
        if !supplied.is_empty() {
            query.push(')');
        }
    }
}

/// Writes one argument's value; for the one that nothing was given for, our own.
fn coerce(arg: &InputValue, given: &GivenArgument<'_>, coercer: &mut Coercer<'_>) {
    let place = ValuePath::Root(&arg.name);
    match given {
        GivenArgument::Nothing => coercer.out.push_str(&FIRST_DEFAULT.to_string()),
        GivenArgument::Text(text) => coercer.text(&place, &arg.ty, text),
        GivenArgument::Json(value) => {
            coercer.json(&ValuePath::Member(&ValuePath::Root("body"), &arg.name), &arg.ty, value);
        }
        GivenArgument::Members(members) => coercer.dotted(&place, &arg.ty, members, 0),
    }
}

/// The `first` of a connection that has no default of its own: without it most services refuse, or send all.
fn first_argument(schema: &GraphqlSchema, field: &Field) -> Option<usize> {
    let is_list = matches!(field.ty.nullable(), TypeRef::List(_));
    let index = field.args.iter().position(|arg| arg.name == "first" && arg.default.is_none())?;
    let TypeRef::Named(id) = field.args[index].ty.nullable() else { return None };
    let is_int = matches!(&schema.get(*id)?.kind, TypeKind::Scalar(scalar) if scalar.form == ScalarForm::Int);
    (!is_list && is_int && is_connection(schema, field.ty.named())).then_some(index)
}

impl fmt::Display for GraphqlRequest {
    /// The query alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.query)
    }
}
