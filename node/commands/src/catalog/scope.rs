//! The part of the network that a search covered, in plain words. Pure.

use farthing_control::types;
use farthing_discovery::{AskedNodes, SearchScope};
use farthing_protocol::shards::Shards;

/// As the command line and the console show it.
pub(super) fn shown(scope: &SearchScope) -> types::SearchScope {
    let AskedNodes { asked, answered, had_more } = scope.index_nodes;
    types::SearchScope {
        shards_kept: scope.shards_kept,
        is_full: scope.is_full,
        index_nodes_asked: asked,
        index_nodes_answered: answered,
        may_be_more: had_more,
        words: words(scope),
    }
}

fn words(scope: &SearchScope) -> String {
    let AskedNodes { asked, answered, had_more } = scope.index_nodes;
    let nodes = if asked == 1 { "1 index node".to_owned() } else { format!("{asked} index nodes") };
    let has_all_shards = scope.shards_kept == Shards::ALL.count();
    let kept = if has_all_shards { "all".to_owned() } else { scope.shards_kept.to_string() };
    let taken = if scope.is_full { TAKEN } else { "" };
    let (others, missing) = match has_all_shards {
        true => ("what it lacks", "that was not searched."),
        false => ("the others", "what is in them was not searched."),
    };
    let elsewhere = match (asked, answered) {
        (0, _) => format!("It knows no index node to ask for {others}: {missing}"),
        (_, 0) => format!("It asked {nodes} for {others}, and none answered: {missing}"),
        (1, _) => format!("It asked {nodes} for {others}, which answered."),
        (..) => format!("It asked {nodes} for {others}, and {answered} answered."),
    };
    let more = if had_more { MORE } else { "" };
    format!("Your node keeps {kept} of the network's 16 shards{taken}. {elsewhere}{more}")
}

const TAKEN: &str = ", but may not have all of their listings, because its storage for listings is full";
const MORE: &str =
    " An answer has at most 40 services, so there may be more. Narrow the search to find them.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_says_what_was_searched_and_what_was_not() {
        for (asked, answered, had_more, expected) in [
            (0, 0, false, "It knows no index node to ask for the others: what is in them was not searched."),
            (
                1,
                0,
                false,
                "It asked 1 index node for the others, and none answered: what is in them was not searched.",
            ),
            (1, 1, false, "It asked 1 index node for the others, which answered."),
            (2, 1, false, "It asked 2 index nodes for the others, and 1 answered."),
            (
                3,
                2,
                true,
                "It asked 3 index nodes for the others, and 2 answered. An answer has at most 40 services, so there \
                 may be more. Narrow the search to find them.",
            ),
        ] {
            let index_nodes = AskedNodes { asked, answered, had_more };
            let told = words(&SearchScope { shards_kept: 4, is_full: false, index_nodes });
            assert_eq!(told, format!("Your node keeps 4 of the network's 16 shards. {expected}"));
        }
    }

    #[test]
    fn a_search_says_that_there_is_no_place_for_more_listings() {
        let told = |shards_kept, asked| {
            let index_nodes = AskedNodes { asked, answered: asked, had_more: false };
            words(&SearchScope { shards_kept, is_full: true, index_nodes })
        };
        assert_eq!(
            told(16, 0),
            "Your node keeps all of the network's 16 shards, but may not have all of their listings, because its \
             storage for listings is full. It knows no index node to ask for what it lacks: that was not \
             searched."
        );
        assert_eq!(
            told(4, 2),
            "Your node keeps 4 of the network's 16 shards, but may not have all of their listings, because its storage \
             for listings is full. It asked 2 index nodes for the others, and 2 answered."
        );
    }
}
