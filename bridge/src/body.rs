//! Bodies: checked against the description, then passed on as they came or written as a form.
//!
//! [`read`] first looks whether a body is wanted and of the right kind, then inside it. A JSON body is checked as
//! far as its schema goes and passed on byte by byte; a form is written from a JSON object, or passed on when the
//! caller wrote it; a body of several parts is looked into ([`parts`]); everything else is text or bytes. A type that the
//! description only names beside the one that it describes is passed on, too.

mod parts;

use std::{
    borrow::{Borrow, Cow},
    collections::{BTreeMap, HashSet},
};

use crate::{
    description::{ArrayOf, Body, BodyKind, Object, OneOf, Schema, Shape},
    escape::{decode, encode},
    headers::{is_ambiguous, names_another_method},
    json::Json,
    limits::VALUE_DEPTH_MAX,
    media::{essence, is_json},
    multipart::is_multipart,
    parameters::style::{base_name, objects, plain},
    problem::Problem,
    request::Payload,
    shown,
    values::{Checker, STEPS_DEPTH_MAX, ValuePath},
};

const FORM: &str = "application/x-www-form-urlencoded";
/// Media types beside the described one that an error lists.
const ALSO_TOLD_MAX: usize = 8;
const ROOT: ValuePath<'static> = ValuePath::Root("body");

/// A body to send, and the content type to declare.
pub(crate) struct SentBody {
    pub(crate) payload: Payload,
    pub(crate) media_type: Option<String>,
}

/// Reads a call's body, empty meaning none. What is wrong is told to `checker`.
pub(crate) fn read<'d>(
    checker: &mut Checker<'d>,
    declared: Option<&'d Body>,
    content_type: Option<&str>,
    body: &[u8],
) -> SentBody {
    let nothing = SentBody { payload: Payload::Nothing, media_type: None };
    match declared {
        None if body.is_empty() => nothing,
        None => {
            checker.tell(Problem::Other("this operation takes no body; leave `body` out".into()));
            nothing
        }
        Some(declared) if body.is_empty() => {
            if declared.required {
                checker.tell(Problem::Other(format!(
                    "this operation needs a body that is not empty: {}",
                    wanted(declared)
                )));
            }
            nothing
        }
        Some(declared) => given(checker, declared, content_type, body),
    }
}

fn given<'d>(
    checker: &mut Checker<'d>,
    declared: &'d Body,
    content_type: Option<&str>,
    body: &[u8],
) -> SentBody {
    let given = content_type.map(essence);
    let is_described = is_accepted(declared, given.as_deref());
    if !is_described && !is_named_beside(declared, given.as_deref()) {
        let wanted = wanted(declared);
        let what = match given {
            None => format!(
                "the body has no content type, expected {wanted}: name it with the header Content-Type"
            ),
            Some(given) => format!("the body's content type is `{}`, expected {wanted}", shown(&given)),
        };
        checker.tell(Problem::Other(what));
        return SentBody { payload: Payload::Nothing, media_type: None };
    }
    let is_free = !is_described || declared.kind == BodyKind::Any || declared.media_type.contains('*');
    let media_type = if is_free { given.clone() } else { Some(declared.media_type.clone()) };
    if let Some(kind) = media_type.as_deref().filter(|kind| is_multipart(kind)) {
        let schema = is_described.then_some(&declared.schema);
        return parts::read(checker, schema, (kind, content_type.unwrap_or_default()), body);
    }
    let payload = match declared.kind {
        _ if !is_described => undescribed(checker, declared, given.as_deref().unwrap_or_default(), body),
        BodyKind::Json => json(checker, declared, body),
        BodyKind::Form if given.as_deref() == Some(FORM) => written_form(checker, declared, body),
        BodyKind::Form => form(checker, declared, body),
        BodyKind::Text => text(checker, &declared.media_type, body),
        BodyKind::Any => Payload::AsGiven,
    };
    SentBody { payload, media_type }
}

/// Describes what a caller may send, for an error.
fn wanted(declared: &Body) -> String {
    let mut wanted = match declared.kind {
        BodyKind::Form => format!("a JSON object, or {FORM}"),
        BodyKind::Any => "anything".into(),
        BodyKind::Json | BodyKind::Text => shown(&declared.media_type),
    };
    for also in declared.also.iter().take(ALSO_TOLD_MAX) {
        wanted.push_str(&format!(", or {}", shown(also)));
    }
    wanted
}

/// Tells whether the description names this type, of which it says no more.
fn is_named_beside(declared: &Body, given: Option<&str>) -> bool {
    let Some(given) = given.filter(|given| given.bytes().all(|b| b.is_ascii_graphic())) else { return false };
    declared.also.iter().any(|also| is_of(&also.to_ascii_lowercase(), given))
}

/// Tells whether a media type is `wanted`, or one of that range.
pub(crate) fn is_of(wanted: &str, given: &str) -> bool {
    let range = wanted.strip_suffix("*/*").or_else(|| wanted.strip_suffix('*'));
    given == wanted || range.is_some_and(|range| given.starts_with(range))
}

fn is_accepted(declared: &Body, given: Option<&str>) -> bool {
    let wanted = declared.media_type.to_ascii_lowercase();
    if given.is_some_and(|given| !given.bytes().all(|b| b.is_ascii_graphic())) {
        return false;
    }
    let Some(given) = given else { return declared.kind == BodyKind::Any || !wanted.contains('*') };
    let is_json = is_json(given);
    match declared.kind {
        BodyKind::Json => is_json,
        BodyKind::Form => is_json || given == FORM,
        BodyKind::Any => true,
        BodyKind::Text => is_of(&wanted, given) || (given == "text/plain" && wanted.starts_with("text/")),
    }
}

/// A body that is text; other bytes are refused.
fn utf8<'b>(checker: &mut Checker<'_>, body: &'b [u8]) -> Option<&'b str> {
    let text = std::str::from_utf8(body).ok();
    if text.is_none() {
        checker.tell(Problem::Other("the body is not UTF-8 text".into()));
    }
    text
}

fn json<'d>(checker: &mut Checker<'d>, declared: &'d Body, body: &[u8]) -> Payload {
    if let Some(value) = utf8(checker, body).and_then(|text| parse(checker, text)) {
        checker.json(&ROOT, &value, &declared.schema, STEPS_DEPTH_MAX);
        refuse_method(checker, declared, &value);
    }
    Payload::AsGiven
}

/// Some servers look for the method that they are asked with among the members of a body.
fn refuse_method<'d>(checker: &mut Checker<'d>, declared: &'d Body, value: &Json<'_>) {
    let Json::Object(members) = value else { return };
    for (name, _) in members.iter().filter(|(name, _)| names_another_method(&base_name(name))) {
        let declares = |object: &&Object| object.properties.iter().any(|property| property.name == *name);
        if !objects(checker, &declared.schema).iter().any(declares) {
            checker.tell(Problem::ambiguous(name));
        }
    }
}

fn parse<'b>(checker: &mut Checker<'_>, text: &'b str) -> Option<Json<'b>> {
    match Json::parse(text, VALUE_DEPTH_MAX) {
        Ok(value) => Some(value),
        Err(error) => {
            checker.tell(Problem::Other(format!("the body is not JSON that can be passed on: {error}")));
            None
        }
    }
}

/// Text, or bytes of a type that is none.
fn text(checker: &mut Checker<'_>, media_type: &str, body: &[u8]) -> Payload {
    if media_type.to_ascii_lowercase().starts_with("text/") {
        utf8(checker, body);
    }
    Payload::AsGiven
}

/// A body of a type that the description names and says no more of: what it calls itself it has to be.
fn undescribed<'d>(checker: &mut Checker<'d>, declared: &'d Body, media_type: &str, body: &[u8]) -> Payload {
    if is_json(media_type) {
        if let Some(value) = utf8(checker, body).and_then(|text| parse(checker, text)) {
            refuse_method(checker, declared, &value);
        }
    } else if media_type == FORM {
        if let Some(text) = utf8(checker, body) {
            let members = form_members(checker, text);
            any_form(checker, &members);
        }
    } else {
        text(checker, media_type, body);
    }
    Payload::AsGiven
}

/// A form from a JSON object: scalars, and lists of them, which repeat their name.
fn form<'d>(checker: &mut Checker<'d>, declared: &'d Body, body: &[u8]) -> Payload {
    let Some(value) = utf8(checker, body).and_then(|text| parse(checker, text)) else {
        return Payload::Nothing;
    };
    if !checker.json(&ROOT, &value, &declared.schema, STEPS_DEPTH_MAX) {
        return Payload::Nothing;
    }
    let Json::Object(members) = &value else {
        checker.refuse(&ROOT, &value, "a JSON object, which becomes a form");
        return Payload::Nothing;
    };
    let names = FormNames::of(&objects(checker, &declared.schema));
    for (name, _) in members {
        names.allow(checker, name);
    }
    let mut form = String::new();
    for (name, value) in members {
        let at = ValuePath::Member(&ROOT, name);
        let one = std::slice::from_ref(value);
        let items = if let Json::Array(items) = value { &items[..] } else { one };
        let is_scalar = |item: &Json<'_>| !matches!(item, Json::Array(_) | Json::Object(_) | Json::Null);
        if items.is_empty() || !items.iter().all(is_scalar) {
            checker.refuse(&at, value, "text, a number, true or false, or a list of these");
        }
        for item in items {
            if !form.is_empty() {
                form.push('&');
            }
            encode(&mut form, name);
            form.push('=');
            encode(&mut form, &plain(item));
        }
    }
    Payload::Bytes(form.into_bytes())
}

/// A form that the caller wrote.
fn written_form<'d>(checker: &mut Checker<'d>, declared: &'d Body, body: &[u8]) -> Payload {
    let Some(text) = utf8(checker, body) else { return Payload::Nothing };
    let members = form_members(checker, text);
    match checker.resolved(&declared.schema).map(|schema| &schema.shape) {
        Some(Shape::Object(object)) => {
            form_object(checker, object, &members);
        }
        Some(Shape::OneOf(one_of)) => {
            if !one_form(checker, one_of, &members) {
                checker.refuse_for(&ROOT, text, &declared.schema);
            }
        }
        Some(Shape::Any) | None => {
            any_form(checker, &members);
        }
        Some(_) => checker.refuse_for(&ROOT, text, &declared.schema),
    }
    Payload::AsGiven
}

/// The values of a form by their names.
fn form_members(checker: &mut Checker<'_>, text: &str) -> BTreeMap<String, Vec<String>> {
    let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let plain = |text: &str| Some(decode(&text.replace('+', " "))?.into_owned());
        let (Some(name), Some(value)) = (plain(name), plain(value)) else {
            checker.refuse(&ROOT, pair, "percent escapes of UTF-8 text");
            continue;
        };
        members.entry(name).or_default().push(value);
    }
    members
}

/// The values that a form has under one name, as they came.
trait FormValues {
    /// Checks them against the member of that name.
    fn fit<'d>(&self, checker: &mut Checker<'d>, object: &'d Object, name: &str) -> bool;
}

impl FormValues for Vec<String> {
    fn fit<'d>(&self, checker: &mut Checker<'d>, object: &'d Object, name: &str) -> bool {
        form_member(checker, object, name, self)
    }
}

/// Tells whether the members of a form fit one of several descriptions of it.
fn one_form<'d, N: Borrow<str> + Ord, V: FormValues>(
    checker: &mut Checker<'d>,
    one_of: &'d OneOf,
    members: &BTreeMap<N, V>,
) -> bool {
    one_of.variants.iter().any(|variant| match checker.resolved(variant).map(|variant| &variant.shape) {
        Some(Shape::Object(object)) => checker.attempt(|checker| form_object(checker, object, members)),
        Some(Shape::Any) => checker.attempt(|checker| any_form(checker, members)),
        _ => false,
    })
}

/// Checks the names of a form of which nothing is declared.
fn any_form<N: Borrow<str>, V>(checker: &mut Checker<'_>, members: &BTreeMap<N, V>) -> bool {
    let names = FormNames::of(&[]);
    members.keys().all(|name| names.allow(checker, name.borrow()))
}

/// Checks the members of a form that the caller wrote.
fn form_object<'d, N: Borrow<str> + Ord, V: FormValues>(
    checker: &mut Checker<'d>,
    object: &'d Object,
    members: &BTreeMap<N, V>,
) -> bool {
    let mut fits = checker.has_required(&ROOT, object, |name| members.contains_key(name));
    fits &= checker.exactly_one(&ROOT, object, members.len());
    let names = FormNames::of(&[object]);
    for (name, values) in members {
        if checker.is_spent() || (!fits && checker.is_done()) {
            return false;
        }
        let name: &str = name.borrow();
        fits &= names.allow(checker, name) && values.fit(checker, object, name);
    }
    fits
}

fn form_member<'d>(checker: &mut Checker<'d>, object: &'d Object, name: &str, values: &[String]) -> bool {
    let Some(schema) = checker.member(&ROOT, object, name) else { return false };
    let at = ValuePath::Member(&ROOT, name);
    let schema = checker.resolved(schema).unwrap_or(schema);
    match (list_of(checker, schema, values.len()), values) {
        (Some(array), values) => {
            let mut fits = checker.count(&at, values.len(), array);
            for (i, value) in values.iter().enumerate() {
                let at = ValuePath::Item(&at, i);
                fits &= checker.text(&at, value, &array.items, STEPS_DEPTH_MAX).is_some();
            }
            fits
        }
        (None, [value]) => checker.text(&at, value, schema, STEPS_DEPTH_MAX).is_some(),
        (None, _) => {
            checker.tell(Problem::Twice { name: at.to_string(), places: "in the form" });
            false
        }
    }
}

/// The list that so many values of one name are.
fn list_of<'d>(checker: &Checker<'d>, schema: &'d Schema, values: usize) -> Option<&'d ArrayOf> {
    match &schema.shape {
        Shape::Array(array) => Some(array),
        Shape::OneOf(one_of) if values > 1 => {
            one_of.variants.iter().find_map(|variant| match &checker.resolved(variant)?.shape {
                Shape::Array(array) => Some(&**array),
                _ => None,
            })
        }
        _ => None,
    }
}

/// The names that objects declare: another one that servers would take for one of them, or for another method, is
/// refused.
struct FormNames<'d> {
    declared: HashSet<&'d str>,
    bases: HashSet<Cow<'d, str>>,
}

impl<'d> FormNames<'d> {
    fn of(objects: &[&'d Object]) -> Self {
        let names =
            || objects.iter().flat_map(|object| object.properties.iter().map(|property| &*property.name));
        Self { declared: names().collect(), bases: names().map(base_name).collect() }
    }

    fn allow(&self, checker: &mut Checker<'_>, name: &str) -> bool {
        let base = base_name(name);
        if self.declared.contains(name) {
            return true;
        }
        if self.bases.contains(&base) {
            let places = "as a member of its own and as a part of another";
            checker.tell(Problem::Twice { name: shown(name), places });
            return false;
        }
        let is_ambiguous = is_ambiguous(&base);
        if is_ambiguous {
            checker.tell(Problem::ambiguous(name));
        }
        !is_ambiguous
    }
}

#[cfg(test)]
mod tests;
