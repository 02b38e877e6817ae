//! The secret that an agent buys with.

/// The consumer secret that a request presented, among the extensions of the request.
#[derive(Debug, Clone)]
pub struct PresentedSecret {
    pub name: String,
    /// The time when it was created, in seconds since the Unix epoch: another one may have had its name before.
    pub since_secs: u64,
}

impl PresentedSecret {
    /// The text by which what is kept of its calls is found, and nothing of an earlier secret of its name.
    pub(crate) fn holder(&self) -> String {
        format!("{}\0{}", self.name, self.since_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_finds_nothing_of_an_earlier_one_of_its_name() {
        let holder = |since_secs| PresentedSecret { name: "a".to_owned(), since_secs }.holder();
        assert_ne!(holder(1), holder(2));
    }
}
