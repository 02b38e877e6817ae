//! Names become indices: undefined types and types that do not fit where they stand are told with their place.

use std::collections::HashMap;

use super::{
    super::{
        draft::{
            self, At, DraftArgument, DraftBody, DraftDefinition, DraftInputs, Fields, Named, Reference, Wrap,
        },
        scalars,
        schema::{
            Composite, Enum, EnumValue, Field, Input, InputValue, LIST_DEPTH_MAX, Scalar, Type, TypeId,
            TypeKind, TypeRef, Union,
        },
    },
    Problems,
};
use crate::report::{ReadError, Report};

/// Names and indices of all types.
pub(super) struct TypeIndex(HashMap<String, TypeId>);

impl TypeIndex {
    pub fn of(types: &[DraftDefinition]) -> Self {
        Self(types.iter().zip(0..).map(|(ty, id)| (ty.head.name.clone(), TypeId(id))).collect())
    }

    pub fn get(&self, name: &str) -> Option<TypeId> {
        self.0.get(name).copied()
    }
}

/// The types compiled, in their order.
pub(super) fn link(
    types: &[DraftDefinition],
    names: &TypeIndex,
    report: &mut Report,
    problems: &mut Problems,
) -> Vec<Type> {
    let implementors = implementors(types, names, problems);
    let mut linker = Linker { types, names, report, problems };
    types
        .iter()
        .zip(implementors)
        .map(|(ty, implementors)| Type {
            name: ty.head.name.clone(),
            description: ty.head.description.clone(),
            kind: linker.kind(ty, implementors),
        })
        .collect()
}

/// The object types that implement each interface. Interfaces of interfaces are not followed: the specification
/// has objects name all of theirs, and this way the lists are never longer than the document.
fn implementors(types: &[DraftDefinition], names: &TypeIndex, problems: &mut Problems) -> Vec<Vec<TypeId>> {
    let mut implementors = vec![Vec::new(); types.len()];
    for (ty, id) in types.iter().zip(0..) {
        let (DraftBody::Object(fields) | DraftBody::Interface(fields)) = &ty.body else { continue };
        for named in &fields.implements {
            let Some(interface) = names.get(&named.name) else {
                problems.undefined(named.at, &named.name, names);
                continue;
            };
            match (&ty.body, types.get(interface.index()).map(|ty| &ty.body)) {
                (DraftBody::Object(_), Some(DraftBody::Interface(_))) => {
                    if let Some(list) = implementors.get_mut(interface.index()) {
                        list.push(TypeId(id));
                    }
                }
                (_, Some(DraftBody::Interface(_)) | None) => {}
                (_, Some(other)) => {
                    let (name, keyword) = (crate::shown(&named.name), other.keyword());
                    problems
                        .add(named.at, format!("`{name}` is declared as `{keyword}`; expected an interface"));
                }
            }
        }
    }
    implementors
}

impl Problems {
    /// A type that is nowhere defined is told once, where it is first mentioned.
    fn undefined(&mut self, at: At, name: &str, names: &TypeIndex) {
        // Looking for the nearest name takes milliseconds, and one document may have 100,000 of these.
        if self.list.len() < ReadError::PROBLEMS_MAX && self.undefined.insert(name.to_owned()) {
            self.add(at, undefined(name, names));
        }
    }
}

fn undefined(name: &str, names: &TypeIndex) -> String {
    /// Longer names are compared with nothing: the comparison takes the product of both lengths.
    const COMPARED_MAX: usize = 64;
    let candidates = names.0.keys().map(String::as_str).filter(|other| other.len() <= COMPARED_MAX);
    let nearest = if name.len() <= COMPARED_MAX { crate::nearest(name, candidates) } else { None };
    let hint = nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"));
    format!("the type `{}` is not defined{hint}", crate::shown(name))
}

struct Linker<'a> {
    types: &'a [DraftDefinition],
    names: &'a TypeIndex,
    report: &'a mut Report,
    problems: &'a mut Problems,
}

impl Linker<'_> {
    fn kind(&mut self, ty: &DraftDefinition, implementors: Vec<TypeId>) -> TypeKind {
        match &ty.body {
            DraftBody::Scalar => TypeKind::Scalar(Scalar { form: scalars::form(&ty.head.name) }),
            DraftBody::Enum(values) => {
                self.warn_if_empty(ty, values.is_empty(), "has no values");
                TypeKind::Enum(Enum { values: values.iter().map(enum_value).collect() })
            }
            DraftBody::Object(object) => {
                self.warn_if_empty(ty, object.fields.is_empty(), "has no fields");
                TypeKind::Object(self.composite(object, Vec::new()))
            }
            DraftBody::Interface(interface) => {
                self.warn_if_empty(ty, implementors.is_empty(), "is implemented by no type");
                TypeKind::Interface(self.composite(interface, implementors))
            }
            DraftBody::Union(members) => {
                let members: Vec<_> = members.iter().filter_map(|member| self.member(ty, member)).collect();
                self.warn_if_empty(ty, members.is_empty(), "has no members");
                TypeKind::Union(Union { members })
            }
            DraftBody::Input(inputs) => {
                self.warn_if_empty(ty, inputs.fields.is_empty(), "has no fields");
                TypeKind::Input(self.input(ty, inputs))
            }
        }
    }

    fn warn_if_empty(&mut self, ty: &DraftDefinition, is_empty: bool, what: &str) {
        if is_empty {
            self.report.warnings.add(ty.place(), what);
        }
    }

    fn composite(&mut self, fields: &Fields, implementors: Vec<TypeId>) -> Composite {
        let fields = fields.fields.iter().filter_map(|field| self.field(field)).collect();
        Composite { fields, implementors }
    }

    fn field(&mut self, field: &draft::DraftField) -> Option<Field> {
        let args = self.inputs(&field.args);
        let ty =
            self.reference(&field.ty, DraftBody::is_output, "an input type; fields need an output type")?;
        Some(Field {
            name: field.head.name.clone(),
            description: field.head.description.clone(),
            deprecated: field.head.deprecated.clone(),
            args,
            ty,
        })
    }

    fn input(&mut self, ty: &DraftDefinition, inputs: &DraftInputs) -> Input {
        if inputs.one_of && inputs.fields.iter().any(|field| field.is_required() || field.default.is_some()) {
            let what =
                "is `@oneOf`, yet a field is non-null or has a default; exactly one must still be given";
            self.report.warnings.add(ty.place(), what);
        }
        Input { fields: self.inputs(&inputs.fields), one_of: inputs.one_of }
    }

    fn inputs(&mut self, arguments: &[DraftArgument]) -> Vec<InputValue> {
        arguments.iter().filter_map(|argument| self.argument(argument)).collect()
    }

    fn argument(&mut self, argument: &DraftArgument) -> Option<InputValue> {
        let ty = self.reference(
            &argument.ty,
            DraftBody::is_input,
            "an output type; arguments and input fields need a scalar, an enum or an input type",
        )?;
        Some(InputValue {
            name: argument.head.name.clone(),
            description: argument.head.description.clone(),
            deprecated: argument.head.deprecated.clone(),
            ty,
            default: argument.default.clone(),
        })
    }

    fn reference(
        &mut self,
        reference: &Reference,
        fits: fn(&DraftBody) -> bool,
        what: &str,
    ) -> Option<TypeRef> {
        let name = crate::shown(&reference.name);
        let Some(id) = self.names.get(&reference.name) else {
            self.problems.undefined(reference.at, &reference.name, self.names);
            return None;
        };
        if !self.types.get(id.index()).is_some_and(|ty| fits(&ty.body)) {
            self.problems.add(reference.at, format!("`{name}` is {what}"));
            return None;
        }
        if reference.wraps.iter().filter(|wrap| **wrap == Wrap::List).count() > LIST_DEPTH_MAX {
            let what = format!("lists of `{name}` are nested deeper than {LIST_DEPTH_MAX}");
            self.problems.add(reference.at, what);
            return None;
        }
        Some(reference.wraps.iter().fold(TypeRef::Named(id), |inner, wrap| match wrap {
            Wrap::List => TypeRef::List(Box::new(inner)),
            Wrap::NonNull => TypeRef::NonNull(Box::new(inner)),
        }))
    }

    fn member(&mut self, union: &DraftDefinition, member: &Named) -> Option<TypeId> {
        let Some(id) = self.names.get(&member.name) else {
            self.problems.undefined(member.at, &member.name, self.names);
            return None;
        };
        let body = self.types.get(id.index()).map(|ty| &ty.body);
        if matches!(body, Some(DraftBody::Object(_))) {
            return Some(id);
        }
        let (name, keyword) = (crate::shown(&member.name), body.map_or("", DraftBody::keyword));
        let what = format!(
            "`{name}` is not an object type but `{keyword}`; unions have none of these, it was left out"
        );
        self.report.repaired.add(union.place(), what);
        None
    }
}

fn enum_value(head: &draft::Head) -> EnumValue {
    EnumValue {
        name: head.name.clone(),
        description: head.description.clone(),
        deprecated: head.deprecated.clone(),
    }
}
