//! Takes out what callers must not see: `@inaccessible` things, with everything that needs them, and the machinery
//! of Apollo Federation.

use std::collections::HashSet;

use crate::{
    graphql::draft::{DraftArgument, DraftBody, DraftDefinition, DraftField, Head, Roots},
    report::Report,
};

/// Fields of the query root that only federation gateways call.
const FEDERATION_FIELDS: [&str; 2] = ["_service", "_entities"];

/// Removes hidden types, members, and whatever cannot do without them.
pub(super) fn hide(types: &mut Vec<DraftDefinition>, roots: &Roots, report: &mut Report) {
    let query = roots.query.as_ref().map_or("Query", |named| named.name.as_str());
    let hidden: HashSet<String> =
        types.iter().filter(|ty| ty.head.is_hidden).map(|ty| ty.head.name.clone()).collect();
    for ty in types.iter().filter(|ty| ty.head.is_hidden) {
        report.skipped.add(ty.place(), "is marked `@inaccessible`");
    }
    types.retain(|ty| !ty.head.is_hidden);
    for ty in types {
        let owner = format!("{} {}", ty.body.keyword(), crate::shown(&ty.head.name));
        let is_query = ty.head.name == query;
        let mut hiding = Hiding { hidden: &hidden, owner, report };
        match &mut ty.body {
            DraftBody::Scalar => {}
            DraftBody::Enum(values) => values.retain(|value| hiding.keeps(value)),
            DraftBody::Object(object) | DraftBody::Interface(object) => {
                object.implements.retain(|named| !hidden.contains(&named.name));
                object.fields.retain_mut(|field| {
                    let is_machinery = is_query && FEDERATION_FIELDS.contains(&field.head.name.as_str());
                    !is_machinery && hiding.keeps_field(field)
                });
            }
            DraftBody::Union(members) => members.retain(|named| !hidden.contains(&named.name)),
            DraftBody::Input(input) => input.fields.retain(|field| hiding.keeps_argument(field)),
        }
    }
}

struct Hiding<'a> {
    hidden: &'a HashSet<String>,
    owner: String,
    report: &'a mut Report,
}

impl Hiding<'_> {
    fn keeps(&mut self, head: &Head) -> bool {
        if head.is_hidden {
            self.skip(head, "is marked `@inaccessible`");
        }
        !head.is_hidden
    }

    fn keeps_argument(&mut self, argument: &DraftArgument) -> bool {
        let needs = self.hidden.contains(&argument.ty.name);
        if needs && !argument.head.is_hidden {
            self.skip(&argument.head, "has a type that is marked `@inaccessible`");
        }
        !needs && self.keeps(&argument.head)
    }

    fn keeps_field(&mut self, field: &mut DraftField) -> bool {
        if !self.keeps(&field.head) {
            return false;
        }
        if self.hidden.contains(&field.ty.name) {
            self.skip(&field.head, "has a type that is marked `@inaccessible`");
            return false;
        }
        let is_gone =
            |argument: &DraftArgument| argument.head.is_hidden || self.hidden.contains(&argument.ty.name);
        if field.args.iter().any(|argument| argument.is_required() && is_gone(argument)) {
            self.skip(&field.head, "has a required argument that is marked `@inaccessible`");
            return false;
        }
        field.args.retain(|argument| self.keeps_argument(argument));
        true
    }

    fn skip(&mut self, head: &Head, what: &str) {
        self.report.skipped.add(&self.owner, format!("`{}` {what}", crate::shown(&head.name)));
    }
}
