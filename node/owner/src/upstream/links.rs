//! Addresses in an answer's headers, as callers of the service can use them.
//!
//! A server names its resources by its own address, which callers neither reach nor need to know: what lies below the
//! service's base becomes a path of the service. Addresses of elsewhere are told as they are, if everybody may know them.

use url::{Host, Url, form_urlencoded};

use super::{AddressClass, Upstream, literal_class};

impl Upstream {
    /// Returns an address, which a server gave in answer to `asked`, as its caller is told it; `None` when it is told none.
    pub(super) fn address_told(&self, asked: &Url, address: &str) -> Option<String> {
        let mut url = asked.join(address.trim()).ok()?;
        let is_web = matches!(url.scheme(), "http" | "https");
        if !is_web || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        self.take_out_secrets(&mut url);
        if url.origin() != self.base.origin() {
            // A name without a dot is one of the owner's own network.
            let is_name = matches!(url.host(), Some(Host::Domain(name)) if name.contains('.'));
            let is_for_all = literal_class(&url).map_or(is_name, |class| class == AddressClass::Public);
            return is_for_all.then(|| url.into());
        }
        let path = url.path().strip_prefix(self.base.path().trim_end_matches('/'))?;
        let path = if path.is_empty() { "/" } else { path };
        // A base of `/v1` has nothing at `/v10`; and what begins with two slashes names a host.
        if !path.starts_with('/') || path.starts_with("//") {
            return None;
        }
        let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
        let fragment = url.fragment().map_or_else(String::new, |fragment| format!("#{fragment}"));
        Some(format!("{path}{query}{fragment}"))
    }

    /// The same for every target of a `link` header (RFC 8288); links without one are left out.
    pub(super) fn links_told(&self, asked: &Url, links: &str) -> Option<String> {
        let (mut told, mut rest) = (Vec::new(), links.trim());
        while let Some(inside) = rest.strip_prefix('<') {
            let (target, behind) = inside.split_once('>')?;
            let (parameters, behind) = behind.split_at(end_of_link(behind));
            if let Some(target) = self.address_told(asked, target) {
                told.push(format!("<{target}>{}", parameters.trim_end()));
            }
            rest = behind.trim_start_matches([',', ' ', '\t']);
        }
        (rest.is_empty() && !told.is_empty()).then(|| told.join(", "))
    }

    /// Servers that name the next page repeat what they were asked, the owner's keys among it.
    fn take_out_secrets(&self, url: &mut Url) {
        let is_secret = |name: &str| self.secret_query.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let pairs = || form_urlencoded::parse(url.query().unwrap_or_default().as_bytes()).into_owned();
        if !pairs().any(|(name, _)| is_secret(&name)) {
            return;
        }
        let kept: Vec<(String, String)> = pairs().filter(|(name, _)| !is_secret(name)).collect();
        url.set_query(None);
        if !kept.is_empty() {
            url.query_pairs_mut().extend_pairs(kept);
        }
    }
}

/// The place of the comma that ends a link: none within quotes.
fn end_of_link(text: &str) -> usize {
    let mut is_quoted = false;
    let ends = |c: char| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    };
    text.find(ends).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{new_service::UpstreamSecrets, upstream::UpstreamOptions};

    fn upstream() -> Upstream {
        let query = BTreeMap::from([("appid".to_owned(), "s3cret".to_owned())]);
        let secrets = UpstreamSecrets { query, ..UpstreamSecrets::default() };
        Upstream::new("http://127.0.0.1:9/api/", secrets, UpstreamOptions::default()).unwrap()
    }

    #[test]
    fn what_lies_below_the_service_is_a_path_of_it_and_no_key_is_told() {
        let asked = Url::parse("http://127.0.0.1:9/api/things?page=1&appid=s3cret").unwrap();
        for (said, told) in [
            ("http://127.0.0.1:9/api/things/5", Some("/things/5")),
            ("/api/things/5?x=a%20b#top", Some("/things/5?x=a%20b#top")),
            ("things/5", Some("/things/5")),
            ("?page=2&appid=s3cret", Some("/things?page=2")),
            ("?APPID=s3cret", Some("/things")),
            ("/api", Some("/")),
            ("/apis", None),
            ("/other", None),
            ("/api//evil.example/", None),
            ("../../etc", None),
            ("http://127.0.0.1:10/api/things", None),
            ("http://10.0.0.1/x", None),
            ("http://localhost/x", None),
            ("http://169.254.169.254/", None),
            ("http://db:5432/", None),
            ("https://cdn.example/a?appid=s3cret&b=1", Some("https://cdn.example/a?b=1")),
            ("https://user:word@cdn.example/a", None),
            ("javascript:alert(1)", None),
            ("http://[", None),
        ] {
            assert_eq!(upstream().address_told(&asked, said).as_deref(), told, "{said}");
        }
    }

    #[test]
    fn links_are_told_one_by_one() {
        let asked = Url::parse("http://127.0.0.1:9/api/things").unwrap();
        for (said, told) in [
            (
                "</api/things?page=2&appid=s3cret>; rel=\"next\", <http://10.0.0.1/>; rel=up, <?page=9>;rel=last",
                Some("</things?page=2>; rel=\"next\", </things?page=9>;rel=last"),
            ),
            ("</api/a>; title=\"one, two\", </api/b>", Some("</a>; title=\"one, two\", </b>")),
            ("</other>", None),
            ("/api/a", None),
            ("</api/a", None),
            ("", None),
        ] {
            assert_eq!(upstream().links_told(&asked, said).as_deref(), told, "{said}");
        }
    }
}
