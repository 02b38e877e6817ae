//! A bound on work: the steps that are left for what a stranger has written.

/// The steps that are left for one document: each part of it is a stranger's, and looks at any other part.
#[derive(Debug)]
pub struct Steps(usize);

impl Steps {
    pub(crate) const fn new(steps: usize) -> Self {
        Self(steps)
    }

    #[cfg(test)]
    pub(crate) const fn left(&self) -> usize {
        self.0
    }

    /// True if none is left, or more were wanted than there were.
    pub(crate) const fn are_spent(&self) -> bool {
        self.0 == 0
    }

    /// Takes `steps` and returns whether so many were left. If they were not, none is left any more.
    pub(crate) const fn take(&mut self, steps: usize) -> bool {
        let had = self.0 >= steps;
        self.0 = self.0.saturating_sub(steps);
        had
    }

    /// Does `work` in at most `steps_max` of these steps.
    pub(crate) fn part<T>(&mut self, steps_max: usize, work: impl FnOnce(&mut Self) -> T) -> T {
        let begun = self.0.min(steps_max);
        let mut part = Self(begun);
        let result = work(&mut part);
        self.0 -= begun - part.0;
        result
    }
}
