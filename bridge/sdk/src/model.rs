//! A description without any language in it: operations with their parameters and answers, and the types they need.
//!
//! Types that need a declaration are objects, enums and unions; what a description names beside these, such as a
//! list, is written where it is used. A list that holds itself has no such form and is any JSON. The parts of a form with
//! files are an object of their own.
//!
//! Answers of GraphQL operations are relaxed first, because `fields` can leave anything out, and what is selected of one
//! type in several places becomes one type ([`merge`]). Equal inline shapes are shared, as in the published document.

mod cycles;
mod example;
mod merge;
mod operations;
mod paging;
mod trial_bound;
mod types;

use farthing_bridge::{
    description::{ApiDescription, BodyKind, Method},
    multipart::is_form,
    openapi::write::relax,
    share::share,
};
use serde_json::Value;

use self::types::Builder;
pub(super) use self::{
    example::value as value_of,
    paging::{Pace, Paging},
    types::clip,
};

/// Everything that code is made of.
#[derive(Debug)]
pub(super) struct Model {
    pub title: String,
    pub version: String,
    pub description: String,
    pub operations: Vec<Operation>,
    pub types: Vec<Declared>,
}

/// A type as it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Any,
    Boolean,
    Integer(Width),
    Number,
    Text,
    Bytes,
    /// A file among the parts of a form: bytes, name and media type.
    Upload,
    Array(Box<Type>),
    /// From texts.
    Map(Box<Type>),
    /// Index into [`Model::types`].
    Declared(usize),
    Nullable(Box<Type>),
}

/// The range that an integer is declared to fit into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    I32,
    /// Exact in a double.
    I53,
    I64,
    U64,
}

/// A type that is declared.
#[derive(Debug)]
pub(super) struct Declared {
    /// Words of its name.
    pub hint: String,
    pub doc: String,
    pub kind: Kind,
    /// True if requests hold it, and so `null` and nothing mean different things to the service.
    pub in_requests: bool,
    pub in_answers: bool,
    /// Holds itself without a list or map between.
    pub recursive: bool,
}

#[derive(Debug)]
pub(super) enum Kind {
    Object(Object),
    /// The members of a `multipart/form-data` body: only sent, part by part. Null is said by sending nothing.
    Parts(Object),
    Enum(Enum),
    Union(Union),
}

#[derive(Debug, Default)]
pub(super) struct Object {
    pub members: Vec<Member>,
    /// The type of further members; `None` when there are none.
    pub additional: Option<Type>,
    /// Exactly one member is to be given.
    pub exactly_one: bool,
}

#[derive(Debug)]
pub(super) struct Member {
    pub wire: String,
    pub doc: String,
    pub required: bool,
    pub deprecated: bool,
    pub of: Type,
}

/// All texts or all whole numbers.
#[derive(Debug)]
pub(super) enum Enum {
    Texts(Vec<String>),
    Integers(Vec<i64>),
}

#[derive(Debug, Default)]
pub(super) struct Union {
    pub variants: Vec<Variant>,
    /// The member whose value tells the variant.
    pub discriminator: Option<String>,
}

#[derive(Debug)]
pub(super) struct Variant {
    pub hint: String,
    pub of: Type,
    /// Values of the discriminator.
    pub tags: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Operation {
    pub id: String,
    pub method: Method,
    pub path: String,
    pub summary: String,
    pub description: String,
    pub deprecated: bool,
    pub parameters: Vec<Parameter>,
    pub body: Option<Body>,
    pub answer: Answer,
    pub paging: Option<Paging>,
    /// Values of parameters for an example, which hold all required ones; `None` when none can be told.
    pub example: Option<Vec<(usize, Example)>>,
}

#[derive(Debug)]
pub(super) struct Parameter {
    pub wire: String,
    pub doc: String,
    pub required: bool,
    pub deprecated: bool,
    /// The text is JSON even if the value is a text.
    pub json: bool,
    /// True if it chooses the fields of the answer, in a language of its own.
    pub selection: bool,
    pub of: Type,
    pub default: Option<Value>,
}

#[derive(Debug)]
pub(super) struct Body {
    pub kind: BodyKind,
    pub media_type: String,
    pub required: bool,
    pub doc: String,
    pub of: Type,
}

impl Body {
    /// True if it is sent part by part.
    pub(super) fn has_parts(&self) -> bool {
        is_form(&self.media_type)
    }
}

/// The content of a successful answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub kind: AnswerKind,
    pub of: Type,
    pub doc: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerKind {
    Nothing,
    Json,
    Text,
    Bytes,
    /// JSON where the content type says so, otherwise bytes.
    Mixed,
}

/// A value that code can write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Example {
    Text(String),
    /// Digits, or a number as JSON writes it.
    Number(String),
    Boolean(bool),
    /// Member of the type's enum, by its index.
    Choice(usize),
    List(Vec<Example>),
    /// The content of the file of this name.
    File(String),
    /// Members of a form, by their index.
    Form(Vec<(usize, Example)>),
}

impl Model {
    /// Makes the model of a description; what could not be typed is told in `warnings`.
    pub(super) fn new(description: &ApiDescription, warnings: &mut Vec<String>) -> Self {
        let mut shown = relax::shown(description);
        merge::objects(&mut shown);
        share(&mut shown);
        let mut types = Builder::new(&shown, warnings);
        let mut operations: Vec<Operation> =
            shown.operations.iter().map(|operation| operations::read(operation, &mut types)).collect();
        let mut types = types.finish();
        for hint in trial_bound::bound_trials(&mut types) {
            warnings.push(format!(
                "`{}` has nested alternatives that cannot be told apart; some are any JSON",
                farthing_bridge::shown(&hint)
            ));
        }
        cycles::mark_recursive(&mut types);
        mark_uses(&mut types, &operations);
        for (operation, described) in operations.iter_mut().zip(&shown.operations) {
            operation.paging = paging::find(operation, described, &types);
            operation.example = example::find(operation, described, &types);
        }
        Self { title: shown.title, version: shown.version, description: shown.description, operations, types }
    }
}

impl Type {
    pub(super) fn or_null(self) -> Self {
        if matches!(self, Self::Nullable(_) | Self::Any) { self } else { Self::Nullable(Box::new(self)) }
    }

    /// Without `null`.
    pub(super) fn bare(&self) -> &Self {
        if let Self::Nullable(of) = self { of.bare() } else { self }
    }

    /// The declared type it is or holds.
    pub(super) fn declared(&self) -> Option<usize> {
        match self {
            Self::Declared(index) => Some(*index),
            Self::Array(of) | Self::Map(of) | Self::Nullable(of) => of.declared(),
            _ => None,
        }
    }

    /// Puts any JSON in the place of the declared type.
    fn forget(&mut self) {
        match self {
            Self::Array(of) | Self::Map(of) => of.forget(),
            other => *other = Self::Any,
        }
    }
}

impl Declared {
    pub(super) fn holds(&self) -> Box<dyn Iterator<Item = &Type> + '_> {
        match &self.kind {
            Kind::Object(object) | Kind::Parts(object) => {
                Box::new(object.members.iter().map(|member| &member.of).chain(&object.additional))
            }
            Kind::Union(union) => Box::new(union.variants.iter().map(|variant| &variant.of)),
            Kind::Enum(_) => Box::new(std::iter::empty()),
        }
    }

    fn holds_mut(&mut self) -> Box<dyn Iterator<Item = &mut Type> + '_> {
        match &mut self.kind {
            Kind::Object(object) | Kind::Parts(object) => {
                Box::new(object.members.iter_mut().map(|member| &mut member.of).chain(&mut object.additional))
            }
            Kind::Union(union) => Box::new(union.variants.iter_mut().map(|variant| &mut variant.of)),
            Kind::Enum(_) => Box::new(std::iter::empty()),
        }
    }
}

fn mark_uses(types: &mut [Declared], operations: &[Operation]) {
    let sent = operations.iter().flat_map(|operation| {
        let body = operation.body.iter().map(|body| &body.of);
        operation.parameters.iter().map(|parameter| &parameter.of).chain(body)
    });
    let heard = operations.iter().map(|operation| &operation.answer.of);
    let sent: Vec<usize> = sent.filter_map(Type::declared).collect();
    let heard: Vec<usize> = heard.filter_map(Type::declared).collect();
    spread(types, sent, |declared| std::mem::replace(&mut declared.in_requests, true));
    spread(types, heard, |declared| std::mem::replace(&mut declared.in_answers, true));
}

/// Marks everything that can be reached; `mark` says whether it was marked before.
fn spread(types: &mut [Declared], mut waiting: Vec<usize>, mark: impl Fn(&mut Declared) -> bool) {
    while let Some(index) = waiting.pop() {
        let Some(declared) = types.get_mut(index) else { continue };
        if !mark(declared) {
            waiting.extend(declared.holds().filter_map(Type::declared));
        }
    }
}

impl Enum {
    pub(super) fn text(&self, choice: usize) -> String {
        match self {
            Self::Texts(texts) => texts.get(choice).cloned(),
            Self::Integers(numbers) => numbers.get(choice).map(i64::to_string),
        }
        .unwrap_or_default()
    }
}
