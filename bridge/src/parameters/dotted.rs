//! Objects given in parts: `filter.mass.gt=1` is the member `gt` of the member `mass` of `filter`.

use crate::{
    description::{Object, Schema, Shape},
    json::Json,
    problem::Problem,
    values::{Checker, ValuePath, expected},
};

/// Paths below an object, with their texts.
type Parts<'a> = [(&'a str, &'a str)];

/// The texts given for one member: its own, or those of its parts.
struct Member<'a> {
    name: &'a str,
    whole: Option<&'a str>,
    parts: Vec<(&'a str, &'a str)>,
}

/// Reads `parts` as a value of `schema`; `None` when they are none, and then it was said why.
pub(super) fn read<'a>(
    checker: &mut Checker<'a>,
    at: &ValuePath<'_>,
    parts: &Parts<'a>,
    schema: &'a Schema,
    depth: usize,
) -> Option<Json<'a>> {
    let schema = checker.step_into(at, schema, depth)?.schema;
    match &schema.shape {
        Shape::Object(object) => read_object(checker, at, parts, object, depth),
        Shape::OneOf(one_of) => {
            let mut objections = Vec::new();
            for variant in &one_of.variants {
                let (value, problems) = checker.probe(|checker| read(checker, at, parts, variant, depth - 1));
                if value.is_some() {
                    return value;
                }
                if matches!(checker.resolved(variant).map(|variant| &variant.shape), Some(Shape::Object(_))) {
                    objections.push(problems);
                }
            }
            match &mut objections[..] {
                [problems] => {
                    std::mem::take(problems).into_iter().for_each(|problem| checker.tell(problem));
                }
                _ => refuse(checker, at, schema),
            }
            None
        }
        _ => {
            refuse(checker, at, schema);
            None
        }
    }
}

fn refuse(checker: &mut Checker<'_>, at: &ValuePath<'_>, schema: &Schema) {
    let expected = expected(checker.description(), schema);
    checker.tell(Problem::Other(format!("`{at}` was given in parts that do not fit, expected {expected}")));
}

fn read_object<'a>(
    checker: &mut Checker<'a>,
    at: &ValuePath<'_>,
    parts: &Parts<'a>,
    object: &'a Object,
    depth: usize,
) -> Option<Json<'a>> {
    let mut members = members(parts);
    // As the description has them, for it shows in a request.
    members.sort_by_key(|member| object.properties.iter().position(|property| property.name == member.name));
    let mut fits = checker.has_required(at, object, |name| members.iter().any(|member| member.name == name));
    let mut read_members = Vec::with_capacity(members.len());
    for member in &members {
        let at = ValuePath::Member(at, member.name);
        let value = read_member(checker, &at, member, object, depth);
        fits &= value.is_some();
        read_members.extend(value.map(|value| (member.name.into(), value)));
    }
    let given = read_members.iter().filter(|(_, value)| *value != Json::Null).count();
    (fits && checker.exactly_one(at, object, given)).then_some(Json::Object(read_members))
}

fn read_member<'a>(
    checker: &mut Checker<'a>,
    at: &ValuePath<'_>,
    member: &Member<'a>,
    object: &'a Object,
    depth: usize,
) -> Option<Json<'a>> {
    let ValuePath::Member(parent, _) = at else { return None };
    let schema = checker.member(parent, object, member.name)?;
    match (member.whole, &member.parts[..]) {
        (Some(text), []) => checker.text(at, text, schema, depth - 1),
        (None, parts) => read(checker, at, parts, schema, depth - 1),
        (Some(_), _) => {
            checker.tell(Problem::Twice { name: at.to_string(), places: "whole and in parts" });
            None
        }
    }
}

fn members<'a>(parts: &Parts<'a>) -> Vec<Member<'a>> {
    let mut members: Vec<Member<'a>> = Vec::new();
    for (path, text) in parts {
        let (name, below) = path.split_once('.').map_or((*path, None), |(name, below)| (name, Some(below)));
        let index = members.iter().position(|member| member.name == name).unwrap_or_else(|| {
            members.push(Member { name, whole: None, parts: Vec::new() });
            members.len() - 1
        });
        match below {
            Some(below) => members[index].parts.push((below, text)),
            None => members[index].whole = Some(text),
        }
    }
    members
}
