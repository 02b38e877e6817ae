//! Answers to callers that come through a relay: small ones pass, and larger ones cost nothing.

use super::*;

/// A permit of a caller that comes through a relay.
struct ThroughRelay(UpstreamRequest);

impl Sealed for ThroughRelay {}

impl Permit for ThroughRelay {
    fn request(&self) -> UpstreamRequest {
        self.0.clone()
    }

    fn is_relayed(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_relay_carries_64_kib_and_what_is_larger_is_a_failure_that_says_so() {
    let options = || UpstreamOptions { body_bytes_max: 1024 * 1024, ..UpstreamOptions::default() };
    for (bytes, fault) in [(65_536, None), (65_537, Some(Fault::LongForRelay))] {
        let body = "x".repeat(bytes);
        let chunked =
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{bytes:x}\r\n{body}\r\n0\r\n\r\n");
        for answer in [sized("200 OK", "", &body), chunked] {
            let address = scripted(answer.clone()).await;
            let base = format!("http://{address}/base");
            let upstream = Upstream::new(&base, UpstreamSecrets::default(), options()).unwrap();
            let answered = upstream.fetch(&ThroughRelay(request(Method::Get, &[]))).await;
            assert_eq!(
                (answered.fault, answered.body.len()),
                (fault, if fault.is_none() { bytes } else { 0 })
            );
            assert!(fault.is_none() || answered.outcome == Outcome::Oversize);
            let direct = fetch_from(scripted(answer).await, options()).await;
            assert_eq!((direct.fault, direct.body.len()), (None, bytes), "without a relay");
        }
    }
}

/// Two types with a field of one name and two types are asked for under another name, and the answer's keys are written anew.
const RENAMED: &str = "type Query { thing: Thing } union Thing = Star | Planet type Star { size: Int } type Planet { size: String }";

fn renamed_request() -> UpstreamRequest {
    let description = farthing_bridge::read(RENAMED.as_bytes()).unwrap().description;
    let operation = description.operations[0].clone();
    let (params, body) = (BTreeMap::new(), Bytes::new());
    let (method, path) = (operation.method.as_str(), operation.path.as_str());
    let call = Call { method, path, params: &params, content_type: None, body: &body };
    let request = Api::new(description).unwrap().plan(&call).unwrap().request;
    assert!(matches!(&request, Request::Graphql(asked) if asked.query.contains(":size")), "{request:?}");
    UpstreamRequest { request, ..super::request(Method::Get, &[]) }
}

#[tokio::test]
async fn what_is_taken_out_of_a_graphql_answer_is_bounded_as_the_answer_is() {
    const TABS: usize = 20_000;
    // A tab has two bytes here, and six where the key is written anew.
    let body = format!(r#"{{"data":{{"thing":{{"{}":1}}}}}}"#, r"\t".repeat(TABS));
    let fetched = async |body_bytes_max, is_relayed| {
        let address = scripted(sized("200 OK", "content-type: application/json\r\n", &body)).await;
        let options = UpstreamOptions { body_bytes_max, ..UpstreamOptions::default() };
        let upstream =
            Upstream::new(&format!("http://{address}"), UpstreamSecrets::default(), options).unwrap();
        match is_relayed {
            true => upstream.fetch(&ThroughRelay(renamed_request())).await,
            false => upstream.fetch(&renamed_request()).await,
        }
    };
    let direct = fetched(1024 * 1024, false).await;
    assert_eq!(direct.fault, None);
    assert!(direct.body.len() >= 6 * TABS, "{} bytes", direct.body.len());
    for (body_bytes_max, is_relayed, fault) in
        [(1024 * 1024, true, Fault::LongForRelay), (RELAYED_BODY_BYTES_MAX, false, Fault::LongBody)]
    {
        let answered = fetched(body_bytes_max, is_relayed).await;
        assert_eq!((answered.fault, answered.body.len()), (Some(fault), 0));
        assert_eq!(answered.outcome, Outcome::Oversize, "it costs nothing");
    }
}
