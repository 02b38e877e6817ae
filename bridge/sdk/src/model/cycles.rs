//! Types that hold themselves without a list or map between: values of these need a box in some languages.
//!
//! They are the strongly connected components of "holds directly" (Kosaraju), found without recursion because a
//! stranger's types may stand in a chain of thousands.

use super::{Declared, Type};

pub(super) fn mark_recursive(types: &mut [Declared]) {
    let next: Vec<Vec<usize>> =
        types.iter().map(|declared| declared.holds().filter_map(direct).collect()).collect();
    let component = components(&next);
    let mut sizes = vec![0_usize; types.len()];
    for number in &component {
        sizes[*number] += 1;
    }
    for (index, declared) in types.iter_mut().enumerate() {
        declared.recursive = sizes[component[index]] > 1 || next[index].contains(&index);
    }
}

/// The component of each node; one that leads to another has the lower number.
pub(super) fn components(next: &[Vec<usize>]) -> Vec<usize> {
    let mut before = vec![Vec::new(); next.len()];
    for (from, targets) in next.iter().enumerate() {
        for target in targets {
            if let Some(sources) = before.get_mut(*target) {
                let sources: &mut Vec<usize> = sources;
                sources.push(from);
            }
        }
    }
    let mut component = vec![usize::MAX; next.len()];
    let mut number = 0;
    for root in finished(next).into_iter().rev() {
        if component[root] != usize::MAX {
            continue;
        }
        let mut waiting = vec![root];
        while let Some(index) = waiting.pop() {
            if component[index] == usize::MAX {
                component[index] = number;
                waiting.extend(&before[index]);
            }
        }
        number += 1;
    }
    component
}

/// The declared type that a value holds in itself.
fn direct(of: &Type) -> Option<usize> {
    match of.bare() {
        Type::Declared(index) => Some(*index),
        _ => None,
    }
}

/// Indices in the order in which a depth-first search leaves them.
fn finished(next: &[Vec<usize>]) -> Vec<usize> {
    let mut finished = Vec::with_capacity(next.len());
    let mut seen = vec![false; next.len()];
    for root in 0..next.len() {
        let mut path = vec![(root, 0)];
        if std::mem::replace(&mut seen[root], true) {
            continue;
        }
        while let Some((index, child)) = path.pop() {
            if let Some(target) = next[index].get(child) {
                path.push((index, child + 1));
                if !std::mem::replace(&mut seen[*target], true) {
                    path.push((*target, 0));
                }
            } else {
                finished.push(index);
            }
        }
    }
    finished
}
