//! The tree of templates: one level for each segment, the more specific branch first.

use std::collections::HashMap;

use super::{
    path::{PathSegment, RequestPath},
    template::{Piece, Template, TemplateSegment},
};

/// A place between two segments, and what may follow.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    literals: HashMap<String, Tree>,
    /// Segments of text and parameters; the one with most text first, else the first declared.
    mixed: Vec<(TemplateSegment, Tree)>,
    parameter: Option<Box<Tree>>,
    /// Routes that end here.
    routes: Vec<usize>,
}

impl Tree {
    /// Adds a route and returns those that match the same paths.
    pub(super) fn insert(&mut self, template: &Template, route: usize) -> Vec<usize> {
        let end = template.segments().iter().fold(self, |tree, segment| match segment.pieces() {
            [] => tree.literals.entry(String::new()).or_default(),
            [Piece::Text(text)] => tree.literals.entry(text.clone()).or_default(),
            [Piece::Parameter(_)] => tree.parameter.get_or_insert_default(),
            _ => tree.mixed_branch(segment),
        });
        let rivals = end.routes.clone();
        end.routes.push(route);
        rivals
    }

    fn mixed_branch(&mut self, segment: &TemplateSegment) -> &mut Self {
        let known = self.mixed.iter().position(|(other, _)| other.same_shape(segment));
        let at = known.unwrap_or_else(|| {
            let weight = segment.literal_bytes();
            let at = self.mixed.partition_point(|(other, _)| other.literal_bytes() >= weight);
            self.mixed.insert(at, (segment.clone(), Self::default()));
            at
        });
        &mut self.mixed[at].1
    }

    /// The most specific route that matches `path` and is right. Goes back at most once for every branch there is.
    pub(super) fn find(
        &self,
        path: &RequestPath<'_>,
        mut is_right: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        self.walk(path.segments(), &mut is_right)
    }

    fn walk(&self, segments: &[PathSegment<'_>], is_right: &mut dyn FnMut(usize) -> bool) -> Option<usize> {
        let Some((first, rest)) = segments.split_first() else {
            return self.routes.iter().copied().find(|route| is_right(*route));
        };
        let literal = self.literals.get(&*first.decoded);
        if let Some(route) = literal.and_then(|tree| tree.walk(rest, is_right)) {
            return Some(route);
        }
        for (segment, tree) in &self.mixed {
            if segment.matches(&first.decoded)
                && let Some(route) = tree.walk(rest, is_right)
            {
                return Some(route);
            }
        }
        let parameter = self.parameter.as_ref().filter(|_| !first.decoded.is_empty());
        parameter.and_then(|tree| tree.walk(rest, is_right))
    }
}
