//! Values checked against their schemas, as text and as JSON: one spelling per value, nothing coerced.
//!
//! A [`Checker`] goes along a value and its schema together and collects everything that is wrong. What comes
//! from text ([`Checker::text`]) becomes a [`Json`] value of the schema's type; what came as JSON
//! ([`Checker::json`]) is only looked at. Both spend from one budget, so that a stranger's schema of alternatives
//! within alternatives costs a bounded time, and references that lead in circles end.

mod cost;
mod expected;
mod place;
mod scalar;

use std::{borrow::Cow, fmt};

use self::cost::{
    BYTES_PER_CHECK, CELLS_PER_CHECK, CHOICES_PER_CHECK, MEMBERS_PER_CHECK, REFUSAL_CHECKS, weight,
    weight_of_number,
};
pub(crate) use self::{expected::expected, place::ValuePath};
use crate::{
    CELLS_MAX, SHOWN_BYTES_MAX, cut,
    description::{ApiDescription, ArrayOf, Object, OneOf, Property, Schema, Shape},
    json::Json,
    limits::{CHECKS_MAX, PROBLEMS_MAX, VALUE_DEPTH_MAX},
    nearest,
    problem::Problem,
    shown,
    steps::Steps,
};

/// Steps into schemas within schemas: every level of a value may be an alternative of its own.
pub(crate) const STEPS_DEPTH_MAX: usize = 2 * VALUE_DEPTH_MAX;

/// Checks one call's values and keeps what is wrong with them.
pub(crate) struct Checker<'d> {
    description: &'d ApiDescription,
    problems: Vec<Problem>,
    steps: Steps,
    /// Problems that are found now may never be told: no hint is made for them.
    is_probing: bool,
    /// Nothing that is found now will be told: the first problem ends the check.
    is_trying: bool,
}

/// A schema behind its references.
#[derive(Clone, Copy)]
pub(crate) struct Resolved<'d> {
    pub(crate) schema: &'d Schema,
    nullable: bool,
}

impl<'d> Checker<'d> {
    pub(crate) const fn new(description: &'d ApiDescription) -> Self {
        Self {
            description,
            problems: Vec::new(),
            steps: Steps::new(CHECKS_MAX),
            is_probing: false,
            is_trying: false,
        }
    }

    pub(crate) const fn description(&self) -> &'d ApiDescription {
        self.description
    }

    /// Adds what another check found. Beyond a screenful nobody reads on.
    pub(crate) fn tell(&mut self, problem: Problem) {
        if self.tells() {
            self.problems.push(problem);
        }
    }

    /// True if another problem would be told; no text is made for others.
    const fn tells(&self) -> bool {
        !self.is_trying && self.problems.len() < PROBLEMS_MAX
    }

    /// True if nothing comes of going on with what has been found not to fit.
    pub(crate) const fn is_done(&self) -> bool {
        !self.tells() || self.is_spent()
    }

    /// Finds what may have been meant by `name`, which is paid for: alternatives are tried for every value there is.
    fn nearest<'a>(&mut self, name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
        if self.is_done() || self.is_probing {
            return None;
        }
        let cells = known.clone().map(|known| known.len() * name.len()).sum::<usize>().min(CELLS_MAX);
        self.spend(cells / CELLS_PER_CHECK);
        nearest(name, known).map(ToOwned::to_owned)
    }

    /// The text of `place`, which is paid for: what is told of alternatives may be forgotten.
    fn named(&mut self, place: &ValuePath<'_>) -> String {
        let name = place.shown();
        self.spend(REFUSAL_CHECKS + name.len() / REFUSAL_CHECKS);
        name
    }

    /// Adds that `value` is not what was expected.
    pub(crate) fn refuse(
        &mut self,
        place: &ValuePath<'_>,
        value: &(impl fmt::Display + ?Sized),
        expected: impl Into<String>,
    ) {
        if self.tells() {
            let name = self.named(place);
            let value = shown(&cut::beginning(&value, SHOWN_BYTES_MAX).0);
            self.tell(Problem::Value { name, value, expected: expected.into(), nearest: None });
        }
    }

    /// Adds that `value` is none of `schema`.
    pub(crate) fn refuse_for(
        &mut self,
        place: &ValuePath<'_>,
        value: &(impl fmt::Display + ?Sized),
        schema: &Schema,
    ) {
        if self.tells() {
            self.refuse(place, value, expected(self.description, schema));
        }
    }

    /// `Ok` when everything was looked at, and nothing was wrong.
    pub(crate) fn finish(mut self) -> Result<(), Vec<Problem>> {
        if self.problems.is_empty() && self.is_spent() {
            self.problems.push(Problem::Other("the call is too complex to check".into()));
        }
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems) }
    }

    /// Returns the schema that `schema` is behind its references.
    pub(crate) fn resolved(&self, schema: &'d Schema) -> Option<&'d Schema> {
        self.description.resolve(schema)
    }

    /// Reads `text` as a value of `schema`; `None` when it is none, and then it was said why.
    pub(crate) fn text<'a>(
        &mut self,
        place: &ValuePath<'_>,
        text: &'a str,
        schema: &'d Schema,
        depth: usize,
    ) -> Option<Json<'a>> {
        let Resolved { schema, nullable } = self.step_into(place, schema, depth)?;
        if nullable && text == "null" && !matches!(schema.shape, Shape::Any | Shape::String(_)) {
            return Some(Json::Null);
        }
        let structured = matches!(schema.shape, Shape::Array(_) | Shape::Object(_));
        self.spend(text.len() / BYTES_PER_CHECK);
        self.spend(schema.choices.len().saturating_mul(weight_of_number(text)) / CHOICES_PER_CHECK);
        if !structured && !schema.choices.is_empty() {
            let chosen = schema.choices.iter().find_map(|choice| scalar::chosen(text, choice, &schema.shape));
            if chosen.is_none() {
                self.wrong_choice(place, text, schema);
            }
            return chosen;
        }
        let value = match &schema.shape {
            Shape::OneOf(one_of) => return self.text_of_one(place, text, one_of, schema, depth),
            Shape::Array(_) if text.trim_start().starts_with('[') => self.parse(place, text)?,
            Shape::Object(_) if text.trim_start().starts_with('{') => self.parse(place, text)?,
            Shape::Array(array) => return self.listed(place, text, schema, array, depth),
            _ => {
                let value = scalar::read(text, &schema.shape);
                if value.is_none() {
                    self.refuse_for(place, text, schema);
                }
                return value;
            }
        };
        self.json(place, &value, schema, depth).then_some(value)
    }

    /// Reads `text` as JSON.
    pub(crate) fn parse<'a>(&mut self, place: &ValuePath<'_>, text: &'a str) -> Option<Json<'a>> {
        match Json::parse(text, VALUE_DEPTH_MAX) {
            Ok(value) => Some(value),
            Err(error) => {
                self.refuse(place, text, format!("JSON ({error})"));
                None
            }
        }
    }

    /// `a,b,c`, for lists of scalars.
    fn listed<'a>(
        &mut self,
        place: &ValuePath<'_>,
        text: &'a str,
        schema: &'d Schema,
        array: &'d ArrayOf,
        depth: usize,
    ) -> Option<Json<'a>> {
        if text.is_empty() || !self.is_scalar(&array.items) {
            self.refuse_for(place, text, schema);
            return None;
        }
        let (mut items, mut fits) = (Vec::new(), true);
        for (i, item) in text.split(',').enumerate() {
            let value = self.text(&ValuePath::Item(place, i), item, &array.items, depth - 1);
            fits &= value.is_some();
            if !fits && self.is_done() {
                break;
            }
            items.extend(value);
        }
        (fits && self.count(place, items.len(), array)).then_some(Json::Array(items))
    }

    /// Tells whether commas can separate values of `schema`.
    fn is_scalar(&mut self, schema: &'d Schema) -> bool {
        let description = self.description;
        let is_leaf = |schema| {
            let shape = description.resolve(schema).map(|schema| &schema.shape);
            shape.is_some_and(|shape| !matches!(shape, Shape::Array(_) | Shape::Object(_) | Shape::OneOf(_)))
        };
        match description.resolve(schema).map(|schema| &schema.shape) {
            Some(Shape::OneOf(one_of)) => {
                self.spend(one_of.variants.len() / MEMBERS_PER_CHECK);
                one_of.variants.iter().all(is_leaf)
            }
            _ => is_leaf(schema),
        }
    }

    /// Checks whether `value` is one of `schema`; when it is not, says why.
    pub(crate) fn json(
        &mut self,
        place: &ValuePath<'_>,
        value: &Json<'_>,
        schema: &'d Schema,
        depth: usize,
    ) -> bool {
        let Some(Resolved { schema, nullable }) = self.step_into(place, schema, depth) else { return false };
        if nullable && *value == Json::Null {
            return true;
        }
        if let Json::String(text) | Json::Number(text) = value {
            self.spend(text.len() / BYTES_PER_CHECK);
        }
        if !schema.choices.is_empty() {
            self.spend(schema.choices.len().saturating_mul(weight(value)) / CHOICES_PER_CHECK);
            if !schema.choices.iter().any(|choice| value.is(choice)) {
                match value {
                    Json::String(text) => self.wrong_choice(place, text, schema),
                    _ => self.wrong_choice(place, value, schema),
                }
                return false;
            }
        }
        let fits = match (&schema.shape, value) {
            (Shape::Array(array), Json::Array(items)) => {
                let mut fits = self.count(place, items.len(), array);
                for (i, item) in items.iter().enumerate() {
                    if !fits && self.is_done() {
                        break;
                    }
                    fits &= self.json(&ValuePath::Item(place, i), item, &array.items, depth - 1);
                }
                return fits;
            }
            (Shape::Object(object), Json::Object(members)) => {
                return self.members(place, members, object, depth);
            }
            (Shape::OneOf(one_of), _) => return self.one_of(place, value, one_of, schema, depth),
            (Shape::Any, _) => true,
            (shape, value) => scalar::fits(value, shape),
        };
        if !fits {
            self.refuse_for(place, value, schema);
        }
        fits
    }

    fn members(
        &mut self,
        place: &ValuePath<'_>,
        members: &[(Cow<'_, str>, Json<'_>)],
        object: &'d Object,
        depth: usize,
    ) -> bool {
        self.spend(object.properties.len().saturating_mul(members.len()) / MEMBERS_PER_CHECK);
        if self.is_spent() {
            return self.give_up(place);
        }
        let mut fits =
            self.has_required(place, object, |name| members.iter().any(|(given, _)| given == name));
        for (name, value) in members {
            if !fits && self.is_done() {
                return false;
            }
            fits &= self
                .member(place, object, name)
                .is_some_and(|schema| self.json(&ValuePath::Member(place, name), value, schema, depth - 1));
        }
        fits & self.exactly_one(
            place,
            object,
            members.iter().filter(|(_, value)| *value != Json::Null).count(),
        )
    }

    /// Says that the budget or the depth is used up; `false`, since nothing was found to fit.
    fn give_up(&mut self, place: &ValuePath<'_>) -> bool {
        if self.tells() {
            let place = self.named(place);
            self.tell(Problem::Other(format!("`{place}` is nested too deeply or too complex to check")));
        }
        false
    }

    /// Checks whether every required member was given.
    pub(crate) fn has_required(
        &mut self,
        place: &ValuePath<'_>,
        object: &'d Object,
        given: impl Fn(&str) -> bool,
    ) -> bool {
        self.spend(object.properties.len());
        let missing = |property: &&Property| property.required && !given(&property.name);
        let mut missing = object.properties.iter().filter(missing).peekable();
        let complete = missing.peek().is_none();
        if !complete && self.tells() {
            // As many as there may be problems: nobody reads more.
            let named = |property: &Property| self.named(&ValuePath::Member(place, &property.name));
            let missing = missing.take(PROBLEMS_MAX).map(named).collect();
            self.tell(Problem::Missing(missing));
        }
        complete
    }

    /// The schema of a member.
    pub(crate) fn member(
        &mut self,
        place: &ValuePath<'_>,
        object: &'d Object,
        name: &str,
    ) -> Option<&'d Schema> {
        self.spend(1 + object.properties.len() / MEMBERS_PER_CHECK);
        let declared = object.properties.iter().find(|property| property.name == name);
        let schema = declared.map(|property| &property.schema).or(object.additional.as_deref());
        if schema.is_none() && self.tells() {
            let known = object.properties.iter().map(|property| property.name.as_str());
            let nearest = self.nearest(name, known.clone());
            let (place, known) = (self.named(place), known.take(20).map(shown).collect());
            self.tell(Problem::NoMember { name: place, member: shown(name), nearest, known });
        }
        schema
    }

    /// Checks whether an object that takes exactly one member got it.
    pub(crate) fn exactly_one(&mut self, place: &ValuePath<'_>, object: &Object, given: usize) -> bool {
        let fits = !object.exactly_one || given == 1;
        if !fits && self.tells() {
            let place = self.named(place);
            self.tell(Problem::Other(format!(
                "`{place}` takes exactly one member that is not null, not {given}"
            )));
        }
        fits
    }

    /// Checks how many items a list has.
    pub(crate) fn count(&mut self, place: &ValuePath<'_>, items: usize, array: &ArrayOf) -> bool {
        let items = items as u64;
        let fits =
            array.items_min.is_none_or(|min| items >= min) && array.items_max.is_none_or(|max| items <= max);
        if !fits && self.tells() {
            let place = self.named(place);
            let range = expected::range(array.items_min, array.items_max);
            self.tell(Problem::Other(format!("`{place}` has {items} items, expected {range}")));
        }
        fits
    }

    fn text_of_one<'a>(
        &mut self,
        place: &ValuePath<'_>,
        text: &'a str,
        one_of: &'d OneOf,
        schema: &'d Schema,
        depth: usize,
    ) -> Option<Json<'a>> {
        for variant in &one_of.variants {
            let value = self.attempt(|checker| checker.text(place, text, variant, depth - 1));
            if value.is_some() {
                return value;
            }
        }
        self.refuse_for(place, text, schema);
        None
    }

    /// At least one alternative. When the discriminator or the value's kind leaves only one, its problems are told.
    fn one_of(
        &mut self,
        place: &ValuePath<'_>,
        value: &Json<'_>,
        one_of: &'d OneOf,
        schema: &'d Schema,
        depth: usize,
    ) -> bool {
        if let Some(variant) = self.discriminated(value, one_of) {
            return self.json(place, value, variant, depth - 1);
        }
        let mut near = Vec::new();
        for variant in &one_of.variants {
            if self.attempt(|checker| checker.json(place, value, variant, depth - 1)) {
                return true;
            }
            let shape = self.resolved(variant).map(|variant| &variant.shape);
            if matches!(
                (shape, value),
                (Some(Shape::Object(_)), Json::Object(_)) | (Some(Shape::Array(_)), Json::Array(_))
            ) {
                near.push(variant);
            }
        }
        match near[..] {
            // What was not looked at may fit.
            _ if self.is_spent() => return self.give_up(place),
            // Once more, for its problems.
            [variant] if self.tells() => {
                self.json(place, value, variant, depth - 1);
            }
            _ => self.refuse_for(place, value, schema),
        }
        false
    }

    /// The alternative that the value itself names. Each name that is compared is paid for.
    fn discriminated(&mut self, value: &Json<'_>, one_of: &'d OneOf) -> Option<&'d Schema> {
        let (Some(discriminator), Json::Object(members)) = (&one_of.discriminator, value) else {
            return None;
        };
        self.spend((members.len() + discriminator.mapping.len()) / MEMBERS_PER_CHECK);
        let named = members.iter().find_map(|(name, value)| match value {
            Json::String(text) if **name == *discriminator.property => Some(text),
            _ => None,
        })?;
        let (_, index) = discriminator.mapping.iter().find(|(value, _)| value == named)?;
        one_of.variants.get(usize::try_from(*index).ok()?)
    }

    /// Runs `check`, whose problems nobody wants to know.
    pub(crate) fn attempt<T>(&mut self, check: impl FnOnce(&mut Self) -> T) -> T {
        let was_trying = std::mem::replace(&mut self.is_trying, true);
        let outcome = check(self);
        self.is_trying = was_trying;
        outcome
    }

    /// Runs `check` and returns what it finds wrong instead of keeping it.
    pub(crate) fn probe<T>(&mut self, check: impl FnOnce(&mut Self) -> T) -> (T, Vec<Problem>) {
        let kept = (std::mem::take(&mut self.problems), std::mem::replace(&mut self.is_probing, true));
        let outcome = check(self);
        self.is_probing = kept.1;
        (outcome, std::mem::replace(&mut self.problems, kept.0))
    }

    fn wrong_choice(&mut self, place: &ValuePath<'_>, value: &(impl fmt::Display + ?Sized), schema: &Schema) {
        if self.tells() {
            // Longer ones have no nearest.
            let (text, _) = cut::beginning(&value, SHOWN_BYTES_MAX);
            let known = schema.choices.iter().filter_map(serde_json::Value::as_str);
            let nearest = self.nearest(&text, known);
            let (name, expected) = (self.named(place), expected(self.description, schema));
            self.tell(Problem::Value { name, value: shown(&text), expected, nearest });
        }
    }

    /// Follows the references of `schema` and pays for the step; `None` when the budget or the depth is used up.
    pub(crate) fn step_into(
        &mut self,
        place: &ValuePath<'_>,
        schema: &'d Schema,
        depth: usize,
    ) -> Option<Resolved<'d>> {
        self.spend(1);
        let resolved = self.resolved(schema).filter(|_| depth > 0 && !self.is_spent());
        if resolved.is_none() {
            self.give_up(place);
        }
        resolved.map(|resolved| Resolved { schema: resolved, nullable: schema.nullable || resolved.nullable })
    }
}

#[cfg(test)]
mod tests;
