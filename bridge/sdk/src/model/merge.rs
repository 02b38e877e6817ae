//! One type for each object type of a GraphQL schema.
//!
//! An answer has the shape of its selection, so a description has a shape for every place where a type is selected, with
//! the type's name as title. Once answers are relaxed no member is required, and one type with the members of all these
//! places stands for each of them.

use std::collections::{BTreeMap, HashMap};

use farthing_bridge::{
    description::{ApiDescription, NamedSchema, Object, Property, Schema, SchemaId, Shape},
    walk::{SchemaPath, WalkStep, walk, walk_answers, walk_below},
};

/// Makes the answers of operations that stand for a GraphQL field refer to one named object for each title.
pub(super) fn objects(description: &mut ApiDescription) {
    let titles = titles(description);
    let mut merge = Merge { aliases: BTreeMap::new(), own: BTreeMap::new(), objects: Vec::new() };
    let named = description.schemas.len();
    for (index, title) in &titles {
        let is_object = description.schemas.get(*index).is_some_and(|named| is_mergeable(&named.schema));
        if is_object && !title.is_empty() {
            let of = merge.named(title, named);
            merge.aliases.insert(*index, of);
        }
    }
    for operation in description.operations.iter_mut().filter(|operation| operation.root.is_some()) {
        walk_answers(operation, &mut |schema, _| merge.visit(schema, named));
    }
    for (index, title) in titles {
        let Some(reached) = description.schemas.get_mut(index) else { continue };
        let mut schema = std::mem::take(&mut reached.schema);
        if merge.aliases.contains_key(&index) {
            schema.title = title;
        }
        walk(&mut schema, SchemaPath { hint: "", depth: 0 }, &mut |schema, _| merge.visit(schema, named));
        description.schemas[index].schema = schema;
    }
    description.schemas.extend(merge.objects);
}

/// Named schemas that answers reach, with the title that is given where they are referred to.
fn titles(description: &mut ApiDescription) -> BTreeMap<usize, String> {
    let mut found: BTreeMap<usize, String> = BTreeMap::new();
    let mut waiting = Vec::new();
    let mut note = |schema: &mut Schema, waiting: &mut Vec<usize>| {
        if let Shape::Ref(id) = schema.shape
            && let Ok(index) = usize::try_from(id.0)
        {
            let title = found.entry(index).or_insert_with(|| {
                waiting.push(index);
                String::new()
            });
            if title.is_empty() {
                title.clone_from(&schema.title);
            }
        }
        WalkStep::Descend
    };
    for operation in description.operations.iter_mut().filter(|operation| operation.root.is_some()) {
        walk_answers(operation, &mut |schema, _| note(schema, &mut waiting));
    }
    while let Some(index) = waiting.pop() {
        let Some(named) = description.schemas.get_mut(index) else { continue };
        walk(&mut named.schema, SchemaPath { hint: "", depth: 0 }, &mut |schema, _| {
            note(schema, &mut waiting)
        });
    }
    found
}

fn is_mergeable(schema: &Schema) -> bool {
    matches!(&schema.shape, Shape::Object(object) if !object.exactly_one && !object.properties.is_empty())
        && schema.choices.is_empty()
}

struct Merge {
    /// Named schemas that are one of the objects.
    aliases: BTreeMap<usize, usize>,
    /// Objects by their title.
    own: BTreeMap<String, usize>,
    objects: Vec<NamedSchema>,
}

impl Merge {
    /// Index among `objects` of the one with this title; `named` schemas come before them.
    fn named(&mut self, title: &str, named: usize) -> usize {
        if let Some(at) = self.own.get(title) {
            return *at;
        }
        let schema = Schema::of(Shape::Object(Object::default()));
        self.objects.push(NamedSchema { name: title.to_owned(), schema });
        let at = named + self.objects.len() - 1;
        self.own.insert(title.to_owned(), at);
        at
    }

    fn visit(&mut self, schema: &mut Schema, named: usize) -> WalkStep {
        if let Shape::Ref(id) = schema.shape {
            let of = usize::try_from(id.0).ok().and_then(|index| self.aliases.get(&index));
            schema.shape = of.map_or(Shape::Ref(id), |of| reference(*of));
            return WalkStep::Skip;
        }
        if schema.title.is_empty() || !is_mergeable(schema) {
            return WalkStep::Descend;
        }
        // What is inside comes first, so that equal members are equal.
        walk_below(schema, SchemaPath { hint: "", depth: 0 }, &mut |schema, _| self.visit(schema, named));
        let at = self.named(&schema.title.clone(), named);
        let Shape::Object(object) = std::mem::replace(&mut schema.shape, reference(at)) else {
            return WalkStep::Skip;
        };
        if let Some(NamedSchema { schema: Schema { shape: Shape::Object(whole), .. }, .. }) =
            self.objects.get_mut(at - named)
        {
            add(whole, object);
        }
        WalkStep::Skip
    }
}

fn reference(index: usize) -> Shape {
    u32::try_from(index).map_or(Shape::Any, |index| Shape::Ref(SchemaId(index)))
}

fn add(whole: &mut Object, part: Object) {
    let known: HashMap<String, usize> =
        whole.properties.iter().enumerate().map(|(at, own)| (own.name.clone(), at)).collect();
    whole.additional = whole.additional.take().or(part.additional);
    for property in part.properties {
        match known.get(&property.name).and_then(|at| whole.properties.get_mut(*at)) {
            Some(own) => unite(own, &property),
            None => whole.properties.push(property),
        }
    }
}

/// A member that is two things in two places is any JSON.
fn unite(own: &mut Property, other: &Property) {
    own.required &= other.required;
    own.schema.nullable |= other.schema.nullable;
    if own.schema.shape != other.schema.shape || own.schema.choices != other.schema.choices {
        own.schema.shape = Shape::Any;
        own.schema.choices.clear();
    }
}
