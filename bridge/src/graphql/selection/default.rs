//! The default selection: the plain values of the result, and of what is near it.
//!
//! Levels are filled from the result downwards, in the schema's order, until the limits of fields and bytes are
//! reached, so what is left out is what lies deepest. Objects up to [`LEVELS_MAX`] levels below the result give
//! their scalars and enums; below that, and where a type is already among its ancestors, an object gives its `id`
//! or nothing. A Relay connection as the result is transparent; within the result it is left out. Interfaces and
//! unions give `__typename`, their own fields, and what their members add.
//!
//! Left out everywhere: deprecated fields, and fields that cannot be asked for without an argument.

use std::collections::{HashSet, VecDeque};

use super::{Selected, Selection, aliases, is_composite, is_connection, is_selectable, possible_types};
use crate::{
    graphql::schema::{Field, GraphqlSchema, TypeId, TypeKind, TypeRef},
    limits::{DEFAULT_FIELDS_MAX, SELECTION_VISITS_MAX, TYPE_FIELDS_VISITED_MAX, UNION_MEMBERS_MAX},
    steps::Steps,
};

/// Levels of nested objects that are shown with their plain values.
const LEVELS_MAX: usize = 2;
/// Object types behind an interface whose own fields are shown.
pub(in crate::graphql) const IMPLEMENTORS_MAX: usize = 12;

/// The default selection of a field's result, at most `bytes_max` long; `None` when the result has no fields. A field
/// that is looked at is a step; without any left, the selection is the smaller.
pub(in crate::graphql) fn selection(
    schema: &GraphqlSchema,
    result: &TypeRef,
    lists_max: u8,
    bytes_max: usize,
    steps: &mut Steps,
) -> Option<Selection> {
    let on = result.named();
    if !is_composite(schema, on) {
        return None;
    }
    let role = if is_connection(schema, on) && !is_list(result) { Role::Connection } else { Role::Result };
    let mut bytes = bytes_max;
    loop {
        let mut selection = Builder::new(schema, lists_max, bytes, steps).build(on, result.lists(), role);
        aliases::apply(schema, &mut selection);
        if selection.is_empty() {
            selection.typename = true;
            return Some(selection);
        }
        // Aliases were not reckoned with; few selections have any.
        if selection.text(schema).len() <= bytes_max {
            return Some(selection);
        }
        bytes = bytes / 4 * 3;
    }
}

/// Tells whether the field shows a plain value that costs the caller nothing to ask for.
pub(in crate::graphql) fn is_plain(schema: &GraphqlSchema, field: &Field) -> bool {
    field.deprecated.is_none() && is_selectable(schema, field) && !is_composite(schema, field.ty.named())
}

fn is_list(ty: &TypeRef) -> bool {
    matches!(ty.nullable(), TypeRef::List(_))
}

/// The part of an object that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Result,
    /// Plain values, `pageInfo`, and `nodes` or `edges`.
    Connection,
    /// Plain values and `node`.
    Edge,
    /// `id`.
    Stub,
}

/// An object that may become part of the selection.
struct SelectionDraft {
    on: TypeId,
    role: Role,
    level: usize,
    /// In how many lists it lies.
    lists: u8,
    parent: Option<usize>,
    /// Text that opens and closes it.
    opening_bytes: usize,
    /// 1 if opening it adds a field, 0 if not (a fragment adds none).
    opening_fields: usize,
    /// True if something of it is selected, and its opening therefore paid for.
    is_open: bool,
    typename: bool,
    /// Index of the field, and its draft.
    fields: Vec<(usize, Option<usize>)>,
    fragments: Vec<usize>,
}

struct Builder<'a, 's> {
    schema: &'a GraphqlSchema,
    steps: &'s mut Steps,
    lists_max: u8,
    drafts: Vec<SelectionDraft>,
    waiting: [VecDeque<usize>; LEVELS_MAX + 2],
    bytes_left: usize,
    fields_left: usize,
}

impl<'a, 's> Builder<'a, 's> {
    fn new(schema: &'a GraphqlSchema, lists_max: u8, bytes_max: usize, steps: &'s mut Steps) -> Self {
        let bytes_left = bytes_max.saturating_sub("{}".len());
        Self {
            schema,
            steps,
            lists_max,
            drafts: Vec::new(),
            waiting: Default::default(),
            bytes_left,
            fields_left: DEFAULT_FIELDS_MAX,
        }
    }

    fn build(mut self, on: TypeId, lists: u8, role: Role) -> Selection {
        let root = SelectionDraft {
            on,
            role,
            level: 0,
            lists,
            parent: None,
            opening_bytes: 0,
            opening_fields: 0,
            is_open: true,
            typename: false,
            fields: Vec::new(),
            fragments: Vec::new(),
        };
        self.drafts.push(root);
        self.waiting[0].push_back(0);
        while let Some(draft) = self.waiting.iter_mut().find_map(VecDeque::pop_front) {
            if self.fields_left == 0 {
                break;
            }
            self.fill(draft);
        }
        self.finish(0)
    }

    fn fill(&mut self, draft: usize) {
        let schema = self.schema;
        let SelectionDraft { on, role, .. } = self.drafts[draft];
        let members = possible_types(schema, on);
        if members.is_some() && role != Role::Stub {
            self.drafts[draft].typename = self.pay(draft, "__typename".len() + 1, 1);
        }
        let fields = visited(schema, on);
        let asked = self.asked_by_interface(draft);
        if !self.steps.take(fields.len() + asked.len()) {
            return;
        }
        for (index, field) in fields.iter().enumerate() {
            if asked.contains(field.name.as_str()) || !self.wants(draft, field) {
                continue;
            }
            if is_composite(schema, field.ty.named()) {
                self.nest(draft, index, field);
            } else if self.pay(draft, field.name.len() + 1, 1) {
                self.drafts[draft].fields.push((index, None));
            }
        }
        if let Some(members) = members.filter(|_| role != Role::Stub) {
            let is_interface = matches!(schema.get(on).map(|ty| &ty.kind), Some(TypeKind::Interface(_)));
            let members_max = if is_interface { IMPLEMENTORS_MAX } else { UNION_MEMBERS_MAX };
            for member in members.iter().take(members_max) {
                let name_bytes = schema.get(*member).map_or(0, |ty| ty.name.len());
                let opening = ("...on {}".len() + name_bytes, 0);
                if let Some(fragment) = self.open(draft, *member, Role::Result, (0, 0), opening) {
                    self.drafts[draft].fragments.push(fragment);
                }
            }
        }
    }

    /// Tells whether `field` of `draft`'s type is shown, as far as the field itself says.
    fn wants(&self, draft: usize, field: &Field) -> bool {
        if field.deprecated.is_some() || !is_selectable(self.schema, field) {
            return false;
        }
        let draft = &self.drafts[draft];
        let is_composite = is_composite(self.schema, field.ty.named());
        match draft.role {
            Role::Result => true,
            Role::Connection => {
                !is_composite || field.name == "pageInfo" || field.name == self.pages(draft.on)
            }
            Role::Edge => !is_composite || field.name == "node",
            Role::Stub => !is_composite && field.name == "id",
        }
    }

    /// Names what a fragment need not ask for, as the interface around it does.
    fn asked_by_interface(&self, draft: usize) -> HashSet<&'a str> {
        let draft = &self.drafts[draft];
        let parent = draft.parent.filter(|_| draft.opening_fields == 0).map(|parent| self.drafts[parent].on);
        // The members of a union share no fields.
        let own = parent.map(|on| visited(self.schema, on)).unwrap_or_default();
        own.iter().map(|field| field.name.as_str()).collect()
    }

    /// Names the field by which a connection's content is reached.
    fn pages(&self, connection: TypeId) -> &'static str {
        let fields = visited(self.schema, connection);
        let is_usable = |field: &Field| {
            field.name == "nodes"
                && field.deprecated.is_none()
                && is_selectable(self.schema, field)
                && is_composite(self.schema, field.ty.named())
        };
        if fields.iter().any(is_usable) { "nodes" } else { "edges" }
    }

    /// Lets the object in `field` wait for its turn.
    fn nest(&mut self, draft: usize, index: usize, field: &Field) {
        let on = field.ty.named();
        let parent = &self.drafts[draft];
        let lists = field.ty.lists();
        if lists > 0 && parent.lists.saturating_add(lists) > self.lists_max {
            return;
        }
        if !self.steps.take(self.schema.fields(on).map_or(0, <[Field]>::len)) {
            return;
        }
        let (role, levels) = match self.drafts[draft].role {
            Role::Connection if field.name == "edges" => (Role::Edge, 0),
            Role::Connection if field.name == "nodes" => (Role::Result, 0),
            Role::Edge => (Role::Result, 0),
            _ if is_connection(self.schema, on) => return,
            _ if self.drafts[draft].level >= LEVELS_MAX || self.has_ancestor(draft, on) => (Role::Stub, 1),
            _ => (Role::Result, 1),
        };
        let opening = (field.name.len() + "{} ".len(), 1);
        if let Some(child) = self.open(draft, on, role, (levels, lists), opening) {
            self.drafts[draft].fields.push((index, Some(child)));
        }
    }

    fn has_ancestor(&self, draft: usize, on: TypeId) -> bool {
        let mut next = Some(draft);
        while let Some(draft) = next.map(|draft| &self.drafts[draft]) {
            if draft.on == on {
                return true;
            }
            next = draft.parent;
        }
        false
    }

    fn open(
        &mut self,
        parent: usize,
        on: TypeId,
        role: Role,
        (levels, lists): (usize, u8),
        (opening_bytes, opening_fields): (usize, usize),
    ) -> Option<usize> {
        if self.drafts.len() >= SELECTION_VISITS_MAX {
            return None;
        }
        let level = (self.drafts[parent].level + levels).min(LEVELS_MAX + 1);
        let lists = self.drafts[parent].lists.saturating_add(lists);
        let draft = SelectionDraft {
            on,
            role,
            level,
            lists,
            parent: Some(parent),
            opening_bytes,
            opening_fields,
            is_open: false,
            typename: false,
            fields: Vec::new(),
            fragments: Vec::new(),
        };
        self.drafts.push(draft);
        let id = self.drafts.len() - 1;
        self.waiting[level].push_back(id);
        Some(id)
    }

    /// Takes a field's text from what is left, with the openings around it that nothing has needed yet. False,
    /// and nothing taken, when there is not enough.
    fn pay(&mut self, draft: usize, mut bytes: usize, mut fields: usize) -> bool {
        let mut next = Some(draft);
        while let Some(draft) = next.map(|draft| &self.drafts[draft]).filter(|draft| !draft.is_open) {
            bytes += draft.opening_bytes;
            fields += draft.opening_fields;
            next = draft.parent;
        }
        if bytes > self.bytes_left || fields > self.fields_left {
            return false;
        }
        self.bytes_left -= bytes;
        self.fields_left -= fields;
        let mut next = Some(draft);
        while let Some(draft) = next.filter(|draft| !self.drafts[*draft].is_open) {
            self.drafts[draft].is_open = true;
            next = self.drafts[draft].parent;
        }
        true
    }

    fn finish(&self, draft: usize) -> Selection {
        let draft = &self.drafts[draft];
        let open = |id: usize| self.drafts[id].is_open.then(|| self.finish(id));
        let selected = |(field, child): &(usize, Option<usize>)| match child {
            Some(child) => Some(Selected { field: *field, alias: None, children: Some(open(*child)?) }),
            None => Some(Selected { field: *field, alias: None, children: None }),
        };
        Selection {
            on: draft.on,
            typename: draft.typename,
            fields: draft.fields.iter().filter_map(selected).collect(),
            fragments: draft.fragments.iter().filter_map(|id| open(*id)).collect(),
        }
    }
}

/// The fields of a type that are looked at.
fn visited(schema: &GraphqlSchema, on: TypeId) -> &[Field] {
    let fields = schema.fields(on).unwrap_or_default();
    &fields[..fields.len().min(TYPE_FIELDS_VISITED_MAX)]
}
