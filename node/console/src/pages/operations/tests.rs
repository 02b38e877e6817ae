//! The promises of the tree: every operation has its place, every one is found, and no stranger makes it long.

use farthing_values::{Method, Usdc};

use super::*;

fn offer(path: &str, tag: &str) -> Offer {
    Offer {
        method: Method::Get.into(),
        path: path.to_owned(),
        price: Usdc::from_micros(2_000).into(),
        summary: String::new(),
        id: String::new(),
        tags: Some(tag.to_owned()).filter(|tag| !tag.is_empty()).into_iter().collect(),
        parameters: Vec::new(),
        body: None,
        timeout_secs: None,
    }
}

fn offers(all: &[(&str, &str)]) -> Vec<Offer> {
    all.iter().map(|(path, tag)| offer(path, tag)).collect()
}

fn looked_at(fields: &[(&str, &str)]) -> LookedAt {
    let mut looked_at = LookedAt::default();
    for (name, value) in fields {
        let field = match *name {
            "operation" => &mut looked_at.operation,
            "group" => &mut looked_at.group,
            "q" => &mut looked_at.q,
            "groups" => &mut looked_at.groups,
            _ => &mut looked_at.page,
        };
        (*value).clone_into(field);
    }
    looked_at
}

fn tree(offers: &[Offer], fields: &[(&str, &str)]) -> OperationTree {
    let looked_at = looked_at(fields);
    let chosen = looked_at.place(offers);
    OperationTree::new(offers, &looked_at, chosen)
}

fn names(offers: &[Offer]) -> Vec<(&str, usize)> {
    groups(offers).iter().map(|group| (group.name, group.members.len())).collect()
}

#[test]
fn operations_are_grouped_by_tag_or_by_the_first_segment_in_which_paths_differ() {
    for (all, grouped) in [
        (
            &[("/v1/planets", "Planets"), ("/v1/stars", "Stars"), ("/v1/a", "Planets")][..],
            &[("Planets", 2), ("Stars", 1)][..],
        ),
        (
            &[("/v1/planets", ""), ("/v1/planets/{id}", ""), ("/v1/stars", "")],
            &[("planets", 2), ("stars", 1)],
        ),
        (&[("/api/v1/a", ""), ("/api/v1/b", "")], &[("a", 1), ("b", 1)]),
        (&[("/a", ""), ("/", ""), ("/b/c", "Tagged")], &[("a", 1), ("/", 1), ("Tagged", 1)]),
        (&[("/v1/only", "")], &[("only", 1)]),
        (&[("/v1", ""), ("/v1/a", "")], &[("v1", 2)]),
    ] {
        assert_eq!(names(&offers(all)), grouped, "{all:?}");
    }
}

#[test]
fn a_small_service_is_open_and_a_large_one_opens_the_group_of_the_chosen_operation() {
    let small = tree(&offers(&[("/a/1", ""), ("/b/1", "")]), &[]);
    assert!(small.branches.iter().all(|branch| branch.is_open && branch.leaves.len() == 1), "{small:?}");
    assert!(small.branches[0].leaves[0].is_chosen && !small.branches[1].leaves[0].is_chosen, "{small:?}");

    let many: Vec<Offer> = (0..1_000).map(|at| offer(&format!("/g{}/{at}", at / 40), "")).collect();
    let large = tree(&many, &[("operation", "GET /g7/305")]);
    let open: Vec<&Branch> = large.branches.iter().filter(|branch| branch.is_open).collect();
    assert_eq!(
        (large.branches.len(), open.len(), open[0].name.as_str(), open[0].count),
        (GROUPS_SHOWN, 1, "g7", 40)
    );
    let chosen: Vec<&str> =
        open[0].leaves.iter().filter(|leaf| leaf.is_chosen).map(|leaf| leaf.path.as_str()).collect();
    assert_eq!(chosen, ["/g7/305"], "the page of the chosen one is shown");
    assert_eq!(large.around.later.as_deref(), Some("?operation=GET+%2Fg7%2F305&group=g7&groups=2"));
    // Another group is looked through while the operation stays.
    let other = tree(&many, &[("operation", "GET /g7/305"), ("group", "g24"), ("page", "2")]);
    let open = other.branches.iter().find(|branch| branch.is_open);
    let open = open.map(|branch| (branch.name.as_str(), branch.leaves.len(), branch.around.later.is_none()));
    assert_eq!((open, other.chosen.as_str()), (Some(("g24", 40 - LEAVES_SHOWN, true)), "GET /g7/305"));
}

/// Follows the tree's own links from page to page, and returns the paths of all operations that it leads to.
fn reached(offers: &[Offer]) -> Vec<String> {
    let fields = |link: &str| -> Vec<(String, String)> {
        url::form_urlencoded::parse(link.trim_start_matches('?').as_bytes()).into_owned().collect()
    };
    let follow = |link: &str| {
        let fields = fields(link);
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        tree(offers, &fields)
    };
    let mut reached = Vec::new();
    let mut page = Some(String::new());
    while let Some(link) = page {
        let shown = follow(&link);
        for branch in &shown.branches {
            let mut within = Some(branch.link.clone());
            while let Some(link) = within {
                let opened = follow(&link);
                let open = opened.branches.into_iter().find(|own| own.link == branch.link).unwrap();
                assert!(open.leaves.len() <= LEAVES_SHOWN);
                for leaf in &open.leaves {
                    let fields = fields(&leaf.link);
                    let chosen = LookedAt::operation(&fields[0].1).place(offers).unwrap();
                    reached.push(offers[chosen].path.clone());
                }
                within = open.around.later;
            }
        }
        page = shown.around.later;
    }
    reached
}

#[test]
fn every_operation_of_a_thousand_is_reached_by_plain_links() {
    let by_path: Vec<Offer> = (0..1_000).map(|at| offer(&format!("/g{}/{at}", at / 40), "")).collect();
    let in_one: Vec<Offer> = (0..1_000).map(|at| offer(&format!("/{at}"), "One")).collect();
    let each_its_own: Vec<Offer> =
        (0..1_000).map(|at| offer(&format!("/{at}"), &format!("tag {at}"))).collect();
    let long = |at: usize| offer(&format!("/{}{at}", "🪐".repeat(200)), &format!("{}{at}", "ש".repeat(200)));
    let long: Vec<Offer> = (0..100).map(long).collect();
    for offers in [by_path, in_one, each_its_own, long] {
        let mut reached = reached(&offers);
        reached.sort();
        let mut all: Vec<String> = offers.into_iter().map(|offer| offer.path).collect();
        all.sort();
        assert_eq!(reached.len(), all.len());
        assert_eq!(reached, all);
    }
}

#[test]
fn a_search_finds_by_path_name_and_summary_and_has_what_is_meant_first() {
    let mut all = offers(&[
        ("/v1/stars", "Sky"),
        ("/v1/planets/{id}/moons", ""),
        ("/v1/planets", ""),
        ("/v1/other", ""),
    ]);
    all[0].summary = "Stars with planets".to_owned();
    all[3].id = "listPlanetNames".to_owned();
    for (words, found) in [
        ("/v1/planets", &[2, 1][..]),
        ("PLANETS", &[1, 2, 0]),
        ("planets get", &[1, 2, 0]),
        ("listplanetnames", &[3]),
        ("moons planets", &[1]),
        ("sky", &[0]),
        ("submarines", &[]),
    ] {
        assert_eq!(find(&all, words), found, "{words}");
    }
    let tree = tree(&all, &[("q", "  stars ")]);
    assert_eq!(
        (tree.hits_total, tree.hits[0].summary.as_str(), tree.branches.len()),
        (1, "Stars with planets", 0)
    );
    assert_eq!(tree.chosen, "GET /v1/stars", "the first one that was found is shown");
    let many: Vec<Offer> = (0..100).map(|at| offer(&format!("/things/{at}"), "")).collect();
    let many = self::tree(&many, &[("q", "things")]);
    assert_eq!((many.hits.len(), many.hits_total), (HITS_SHOWN, 100));
}

#[test]
fn a_name_that_no_operation_has_is_none() {
    let all = offers(&[("/a", ""), ("/b", "B")]);
    for (fields, chosen) in [
        (&[][..], Some(0)),
        (&[("operation", "GET /b")], Some(1)),
        (&[("operation", "POST /b")], None),
        (&[("operation", "*0000000000000000")], None),
        (&[("group", "B")], Some(1)),
        (&[("group", "C")], None),
        (&[("q", "b")], Some(1)),
        (&[("q", "none of them")], Some(0)),
    ] {
        assert_eq!(looked_at(fields).place(&all), chosen, "{fields:?}");
    }
    assert_eq!(LookedAt::default().place(&[]), None);
}

#[test]
fn names_of_strangers_are_short_in_addresses_and_nothing_unseen_is_shown() {
    let path = format!("/\u{202e}{}", "🪐".repeat(200));
    let all = vec![offer(&path, &format!("<b>{}", "ש".repeat(200)))];
    let shown = tree(&all, &[]);
    let leaf = &shown.branches[0].leaves[0];
    assert!(leaf.path.chars().count() == PATH_CHARS_MAX + 1 && !leaf.path.contains('\u{202e}'), "{leaf:?}");
    assert!(leaf.link.len() < 40 && shown.branches[0].link.len() < 40, "{shown:?}");
    assert_eq!(looked_at(&[("operation", &shown.chosen)]).place(&all), Some(0));
}
