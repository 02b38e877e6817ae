//! The endpoints described for programs: OpenAPI 3.1.

use std::{borrow::Cow, fmt};

use http::Method;
use utoipa::{
    ToSchema,
    openapi::{
        ComponentsBuilder, Content, ContentBuilder, InfoBuilder, KnownFormat, LicenseBuilder, ObjectBuilder,
        OpenApi, OpenApiBuilder, PathsBuilder, Ref, RefOr, Required, Response, ResponseBuilder, Schema,
        SchemaFormat, Type,
        path::{HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem},
        request_body::{RequestBody, RequestBodyBuilder},
        schema::ArrayBuilder,
        server::Server,
    },
};

use super::{Danger, Facts, offered};
use crate::types::Problem;

const LICENSE: &str = env!("CARGO_PKG_LICENSE");

/// A part of a path, or of a query.
#[derive(Debug)]
pub(super) struct Param {
    name: &'static str,
    description: &'static str,
    place: Place,
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Path,
    Query { is_required: bool },
}

#[derive(Debug)]
enum Kind {
    Text,
    Number,
    YesNo,
}

impl Param {
    pub(super) const fn path(name: &'static str, description: &'static str) -> Self {
        Self { name, description, place: Place::Path, kind: Kind::Text }
    }

    /// One that may be left out.
    pub(super) const fn query(name: &'static str, description: &'static str) -> Self {
        Self { name, description, place: Place::Query { is_required: false }, kind: Kind::Text }
    }

    pub(super) const fn required(self) -> Self {
        Self { place: Place::Query { is_required: true }, ..self }
    }

    pub(super) const fn number(self) -> Self {
        Self { kind: Kind::Number, ..self }
    }

    pub(super) const fn yes_no(self) -> Self {
        Self { kind: Kind::YesNo, ..self }
    }

    fn described(&self) -> Parameter {
        let schema = match self.kind {
            Kind::Text => ObjectBuilder::new().schema_type(Type::String),
            Kind::YesNo => ObjectBuilder::new().schema_type(Type::Boolean),
            Kind::Number => ObjectBuilder::new()
                .schema_type(Type::Integer)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
                .minimum(Some(0)),
        };
        let (place, is_required) = match self.place {
            Place::Path => (ParameterIn::Path, true),
            Place::Query { is_required } => (ParameterIn::Query, is_required),
        };
        ParameterBuilder::new()
            .name(self.name)
            .parameter_in(place)
            .required(if is_required { Required::True } else { Required::False })
            .description(Some(self.description))
            .schema(Some(schema))
            .build()
    }
}

/// The content of a body.
#[derive(Debug)]
pub(super) enum Shape {
    Nothing,
    Raw,
    One(Named),
    Many(Named),
}

/// A type that the document describes among its schemas.
pub(super) struct Named {
    name: fn() -> Cow<'static, str>,
    schema: fn() -> RefOr<Schema>,
    parts: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Named {
    pub(super) const fn of<T: ToSchema>() -> Self {
        Self { name: T::name, schema: T::schema, parts: T::schemas }
    }

    fn reference(&self) -> Ref {
        Ref::from_schema_name((self.name)())
    }

    /// Its own schema, and those that it is made of.
    fn all(&self) -> Vec<(String, RefOr<Schema>)> {
        let mut all = vec![((self.name)().into_owned(), (self.schema)())];
        (self.parts)(&mut all);
        all
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&(self.name)())
    }
}

impl Shape {
    fn named(&self) -> Option<&Named> {
        match self {
            Self::One(named) | Self::Many(named) => Some(named),
            Self::Nothing | Self::Raw => None,
        }
    }

    fn content(&self) -> Option<Content> {
        let schema: RefOr<Schema> = match self {
            Self::One(named) => named.reference().into(),
            Self::Many(named) => ArrayBuilder::new().items(named.reference()).into(),
            Self::Nothing | Self::Raw => return None,
        };
        Some(ContentBuilder::new().schema(Some(schema)).build())
    }
}

/// Every endpoint that programs are offered.
pub fn document() -> OpenApi {
    let mut paths = PathsBuilder::new();
    let mut schemas = Named::of::<Problem>().all();
    for facts in offered() {
        paths = paths.path(facts.path, PathItem::new(method_of(&facts.method), operation(facts)));
        let named = [&facts.request, &facts.response].into_iter().filter_map(Shape::named);
        schemas.extend(named.flat_map(Named::all));
    }
    let info = InfoBuilder::new()
        .title("Farthing node")
        .description(Some("Everything that the console and the command line can do."))
        .license(Some(LicenseBuilder::new().name(LICENSE).identifier(Some(LICENSE)).build()))
        .version(env!("CARGO_PKG_VERSION"));
    OpenApiBuilder::new()
        .info(info.build())
        .servers(Some([Server::new("/api/v1")]))
        .paths(paths)
        .components(Some(ComponentsBuilder::new().schemas_from_iter(schemas).build()))
        .build()
}

fn method_of(method: &Method) -> HttpMethod {
    match *method {
        Method::POST => HttpMethod::Post,
        Method::DELETE => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

fn operation(facts: &Facts) -> Operation {
    let done = ResponseBuilder::new().description("Done");
    let done = match facts.response.content() {
        Some(content) => done.content("application/json", content),
        None => done,
    };
    let mut operation = OperationBuilder::new()
        .operation_id(Some(facts.id))
        .tag(facts.tag)
        .summary(Some(summary(facts)))
        .request_body(body_of(&facts.request))
        .response("200", done)
        .response("default", problem());
    for param in facts.params {
        operation = operation.parameter(param.described());
    }
    operation.build()
}

fn summary(facts: &Facts) -> String {
    let summary = facts.summary.trim_start();
    match facts.danger {
        Danger::Low => summary.to_owned(),
        Danger::High => format!("{summary}; requires the password again"),
    }
}

fn body_of(request: &Shape) -> Option<RequestBody> {
    let body = RequestBodyBuilder::new().required(Some(Required::True));
    let body = match request {
        Shape::Nothing => return None,
        Shape::Raw => body.content("application/octet-stream", Content::default()),
        Shape::One(_) | Shape::Many(_) => body.content("application/json", request.content()?),
    };
    Some(body.build())
}

/// Every operation may be refused.
fn problem() -> RefOr<Response> {
    let content = ContentBuilder::new().schema(Some(Named::of::<Problem>().reference())).build();
    let response = ResponseBuilder::new()
        .description("The reason for the failure and what to do next (RFC 9457)")
        .content("application/problem+json", content);
    response.build().into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operation_has_a_summary_and_every_reference_leads_somewhere() {
        let document = serde_json::to_value(document()).unwrap();
        let text = document.to_string();
        for item in document["paths"].as_object().unwrap().values() {
            for operation in item.as_object().unwrap().values() {
                assert!(
                    operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()),
                    "{operation}"
                );
            }
        }
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name} is not described");
        }
    }

    #[test]
    fn an_amount_is_described_once_and_referred_to() {
        let document = serde_json::to_value(document()).unwrap();
        let schemas = &document["components"]["schemas"];
        let price = &schemas["PriceRequest"]["properties"]["price"];
        assert!(price.to_string().contains("#/components/schemas/Usdc"), "{price}");
        assert_eq!(schemas["Usdc"]["type"], "string");
        assert!(schemas["Usdc"]["description"].as_str().unwrap().contains("decimal"), "{schemas}");
    }

    #[test]
    fn every_part_of_a_path_that_a_request_fills_in_is_described() {
        for facts in offered() {
            let parts = facts.path.split('/').filter_map(|part| part.strip_prefix('{')?.split('}').next());
            let described =
                facts.params.iter().filter(|param| param.place == Place::Path).map(|param| param.name);
            assert_eq!(parts.collect::<BTreeSet<_>>(), described.collect(), "{}", facts.path);
        }
    }
}
