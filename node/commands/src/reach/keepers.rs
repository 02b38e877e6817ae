//! The keepers of the own record in plain words, while they are too few. Pure.

use farthing_network::{Reachability, RecordHolders};

/// Says how few keep the record by which callers find this node. Nothing where enough do, or nobody was asked to.
pub(super) fn sentence(reachability: &Reachability) -> String {
    match too_few(reachability) {
        None => String::new(),
        Some(RecordHolders { kept_by: 0, .. }) => {
            " Callers find this node by its record, and no other node keeps it yet. Your node tries again \
             automatically."
                .to_owned()
        }
        Some(RecordHolders { kept_by, wanted }) => format!(
            " Callers find this node by its record, and {kept_by} of {wanted} nodes keep it so far. Your node tries \
             again automatically."
        ),
    }
}

/// Says the same in a few words, after those on its addresses.
pub(super) fn phrase(reachability: &Reachability) -> &'static str {
    if too_few(reachability).is_some() {
        "; too few nodes keep its record, see `farthing net reach`"
    } else {
        ""
    }
}

fn too_few(reachability: &Reachability) -> Option<RecordHolders> {
    reachability.record_holders.filter(|holders| !holders.are_enough())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_too_few_took_is_told_of_and_one_that_enough_keep_is_not() {
        let kept = |kept_by, wanted| Reachability {
            record_holders: Some(RecordHolders { kept_by, wanted }),
            ..Reachability::default()
        };
        let few = kept(7, 20);
        assert_eq!(
            sentence(&few),
            " Callers find this node by its record, and 7 of 20 nodes keep it so far. Your node tries again \
             automatically."
        );
        assert!(phrase(&few).contains("too few nodes keep its record"));
        let nobody = sentence(&kept(0, 20));
        assert!(nobody.contains("no other node keeps it yet"), "{nobody}");
        for enough in [kept(20, 20), kept(2, 2), Reachability::default()] {
            assert_eq!((sentence(&enough).as_str(), phrase(&enough)), ("", ""));
        }
    }
}
