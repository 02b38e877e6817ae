//! Places where servers keep their API description when nobody says so: well-known paths, by the habit of frameworks.
//!
//! Order is that of trying: what most servers use comes first, so that a scan that runs out of time has asked
//! the likely places.

use url::Url;

/// Documents that frameworks serve.
const DOCUMENTS: &str = include_str!("places/documents.txt");

/// Pages that show a document and know its address.
const PAGES: &str = include_str!("places/pages.txt");

/// Paths where GraphQL servers listen.
const GRAPHQL: &str = "graphql api/graphql v1/graphql query gql";

/// RFC 9727.
const CATALOG: &str = ".well-known/api-catalog";

/// The host's front door.
pub(super) fn root(url: &Url) -> Url {
    let mut root = url.clone();
    root.set_path("/");
    root.set_query(None);
    root.set_fragment(None);
    root
}

/// The catalog of the host's APIs; it lies at the root only.
pub(super) fn catalog(url: &Url) -> Url {
    below(&root(url), CATALOG)
}

/// A path that no server has, unless it answers to every path.
pub(super) fn nowhere(url: &Url, nonce: u64) -> Url {
    below(&root(url), &format!("farthing-{nonce:016x}"))
}

/// Documents under the path of `url` and under the host's root.
pub(super) fn documents(url: &Url) -> Vec<Url> {
    under_both(url, DOCUMENTS)
}

/// Documentation pages, likewise.
pub(super) fn pages(url: &Url) -> Vec<Url> {
    under_both(url, PAGES)
}

/// `url` itself, then the usual GraphQL endpoints.
pub(super) fn graphql(url: &Url) -> Vec<Url> {
    let mut endpoints = vec![url.clone()];
    endpoints.extend(under_both(url, GRAPHQL).into_iter().filter(|endpoint| endpoint != url));
    endpoints
}

/// The paths of a list, in its order; lines that begin with `#` say whose they are.
fn paths(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace)
}

fn under_both(url: &Url, list: &str) -> Vec<Url> {
    let root = root(url);
    let mut bases = vec![folder(url)];
    if !bases.contains(&root) {
        bases.push(root);
    }
    bases.iter().flat_map(|base| paths(list).map(move |path| below(base, path))).collect()
}

/// `url` without query and without the name of a file: the base path that an API's addresses share.
fn folder(url: &Url) -> Url {
    let mut folder = root(url);
    let path = url.path().trim_end_matches('/');
    let (parent, last) = path.rsplit_once('/').unwrap_or(("", path));
    let is_a_file = last.contains('.') && !last.starts_with('.');
    folder.set_path(if is_a_file { parent } else { path });
    folder
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn texts(urls: Vec<Url>) -> Vec<String> {
        urls.into_iter().map(String::from).collect()
    }

    #[test]
    fn places_lie_under_the_base_path_and_under_the_root() {
        let places = texts(documents(&url("http://h:1/shop/api/")));
        assert_eq!(places[0], "http://h:1/shop/api/openapi.json");
        assert!(places.contains(&"http://h:1/v3/api-docs".to_owned()));
        assert_eq!(places.len(), 2 * paths(DOCUMENTS).count());
        assert_eq!(documents(&url("http://h:1")).len(), paths(DOCUMENTS).count());
    }

    #[test]
    fn the_name_of_a_file_and_a_query_are_no_base_path() {
        assert_eq!(texts(pages(&url("http://h/a/docs.html?x=1#y")))[0], "http://h/a/docs");
        assert_eq!(texts(pages(&url("http://h/v1.2/?x=1")))[0], "http://h/docs");
        assert_eq!(catalog(&url("http://h/a/b?c")).as_str(), "http://h/.well-known/api-catalog");
    }

    #[test]
    fn the_address_itself_is_the_first_graphql_endpoint_and_asked_once() {
        let endpoints = texts(graphql(&url("http://h/graphql")));
        assert_eq!(endpoints[0], "http://h/graphql");
        assert_eq!(endpoints.len(), endpoints.iter().collect::<BTreeSet<_>>().len());
        assert!(endpoints.contains(&"http://h/api/graphql".to_owned()));
    }

    #[test]
    fn no_place_is_listed_twice() {
        let all: Vec<&str> = [DOCUMENTS, PAGES, GRAPHQL].into_iter().flat_map(paths).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!((60..=90).contains(&all.len()), "{}", all.len());
    }
}
