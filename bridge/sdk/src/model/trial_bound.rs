//! A bound on how deeply alternatives are tried within alternatives.
//!
//! Code that reads a union without a discriminator tries one alternative after the other. Where these hold such unions
//! again, and so on, an answer of a few bytes is tried in as many ways as there are alternatives, to the power of its
//! depth. So a union that would be tried within two others, or within itself, is any JSON there.

use super::{Declared, Kind, Type, cycles};

const DEPTH_MAX: usize = 2;

/// Gives the names of the types that hold any JSON instead.
pub(super) fn bound_trials(types: &mut [Declared]) -> Vec<String> {
    let tried: Vec<bool> = types.iter().map(is_tried).collect();
    let component = cycles::components(&next(types));
    let mut named = cut(types, |from, to| tried[to] && component[from] == component[to]);

    // None is within itself now, so a component holds one of them at most, and alone.
    let next = next(types);
    let component = cycles::components(&next);
    let (depth, inside) = (depths(&next, &component, &tried), inside(&next, &tried));
    named.extend(cut(types, |from, to| tried[to] && inside[from] && depth[to].is_multiple_of(DEPTH_MAX)));
    named
}

/// Returns whether code tries more than one alternative on the same value. Lists and objects are told apart at once.
fn is_tried(declared: &Declared) -> bool {
    let Kind::Union(union) = &declared.kind else { return false };
    let holding = || union.variants.iter().filter(|variant| variant.of.declared().is_some());
    let lists = holding().filter(|variant| matches!(variant.of, Type::Array(_))).count();
    union.discriminator.is_none() && lists.max(holding().count() - lists) > 1
}

fn next(types: &[Declared]) -> Vec<Vec<usize>> {
    types.iter().map(|declared| declared.holds().filter_map(Type::declared).collect()).collect()
}

/// Counts the tried unions that are within each other, from each type down.
fn depths(next: &[Vec<usize>], component: &[usize], tried: &[bool]) -> Vec<usize> {
    let mut members: Vec<usize> = (0..next.len()).collect();
    // What holds others has a lower number than they.
    members.sort_by_key(|index| std::cmp::Reverse(component[*index]));
    let mut of_components = vec![0; next.len()];
    for same in members.chunk_by(|one, other| component[*one] == component[*other]) {
        let held = same.iter().flat_map(|index| &next[*index]).map(|held| of_components[component[*held]]);
        let deepest = held.max().unwrap_or_default();
        let is_one = same.iter().any(|index| tried[*index]);
        of_components[component[same[0]]] = deepest + usize::from(is_one);
    }
    component.iter().map(|number| of_components[*number]).collect()
}

/// Marks the types that are read while alternatives are tried.
fn inside(next: &[Vec<usize>], tried: &[bool]) -> Vec<bool> {
    let mut inside = tried.to_vec();
    let mut waiting: Vec<usize> = (0..next.len()).filter(|index| tried[*index]).collect();
    while let Some(index) = waiting.pop() {
        for held in &next[index] {
            if !std::mem::replace(&mut inside[*held], true) {
                waiting.push(*held);
            }
        }
    }
    inside
}

/// Puts any JSON in the place of each type `to` that a type `from` holds, where `is_cut` says so.
fn cut(types: &mut [Declared], is_cut: impl Fn(usize, usize) -> bool) -> Vec<String> {
    let mut named = Vec::new();
    for (from, declared) in types.iter_mut().enumerate() {
        let mut was_cut = false;
        for held in declared.holds_mut() {
            if held.declared().is_some_and(|to| is_cut(from, to)) {
                held.forget();
                was_cut = true;
            }
        }
        if was_cut {
            named.push(declared.hint.clone());
        }
    }
    named
}
