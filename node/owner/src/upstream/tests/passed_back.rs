//! The promises towards callers: which part of a server's head they get.

use super::*;

/// The answer to `request` of a server that says so, with the owner's keys.
async fn told(answer: String, request: UpstreamRequest) -> UpstreamAnswer {
    let address = scripted(answer).await;
    let mut secrets = secret_header_of("authorization", "Bearer 0123456789");
    secrets.query.insert("appid".to_owned(), "a secret/key".to_owned());
    let response_headers = ["x-cost", "set-cookie", "x-echo"].map(ToOwned::to_owned).into();
    let options = UpstreamOptions { response_headers, ..options() };
    let upstream = Upstream::new(&format!("http://{address}/base"), secrets, options).unwrap();
    upstream.fetch(&request).await
}

fn packed_as(asked: &str) -> UpstreamRequest {
    let headers = BTreeMap::from([("accept-encoding".to_owned(), asked.to_owned())]);
    UpstreamRequest { headers, ..request(Method::Get, &[]) }
}

fn names(answer: &UpstreamAnswer) -> Vec<&str> {
    answer.headers.keys().map(String::as_str).filter(|name| *name != "content-type").collect()
}

#[tokio::test]
async fn the_known_headers_pass_and_those_of_the_service_and_no_key_and_no_cookie() {
    let head = "content-type: text/csv\r\nX-RateLimit-Remaining: 7\r\nRateLimit: a;r=5\r\nAllow: GET\r\nallow: PUT\r\n\
                content-disposition: attachment; filename=\"a.csv\"\r\nx-cost: 3\r\nset-cookie: a=b\r\nSet-Cookie2: c\r\n\
                vary: accept\r\nx-echo: token 0123456789\r\nretry-after: 5\r\nx-internal: 10.0.0.1\r\n\
                etag: a%20secret%2Fkey\r\nlast-modified: a+secret%2Fkey\r\nconnection: close\r\n\
                link: </base/items/7?appid=a+secret%2Fkey&page=2>; rel=next\r\nlocation: /base/items/8\r\n";
    let answer = told(sized("200 OK", head, "a"), request(Method::Get, &[])).await;
    assert_eq!(
        names(&answer),
        [
            "allow",
            "content-disposition",
            "link",
            "ratelimit",
            "retry-after",
            "vary",
            "x-cost",
            "x-ratelimit-remaining"
        ]
    );
    assert_eq!(answer.headers["allow"], "GET, PUT");
    assert_eq!(answer.headers["link"], "</items/7?page=2>; rel=next");
    let made =
        told(sized("201 Created", "location: /base/items/8\r\n", ""), request(Method::Post, &[])).await;
    assert_eq!(made.headers["location"], "/items/8");
}

#[tokio::test]
async fn an_answer_comes_packed_as_its_caller_asked_and_is_never_unfolded() {
    let bytes = "\u{1}\u{2}\u{3}";
    let answer = |coding: &str| sized("200 OK", &format!("content-encoding: {coding}\r\n"), bytes);
    for (asked, coding, is_passed_on) in [
        ("gzip", "gzip", true),
        ("gzip, br;q=0.1", "BR", true),
        ("br", "gzip", false),
        ("gzip;q=0", "gzip", false),
        ("gzip, br", "gzip, br", false),
        ("gzip", "identity", true),
        ("nonsense", "nonsense", false),
    ] {
        let answer = told(answer(coding), packed_as(asked)).await;
        let outcome = if is_passed_on { Outcome::Answered } else { Outcome::BadAnswer };
        assert_eq!(answer.outcome, outcome, "{coding} where {asked} was asked for");
        if is_passed_on {
            assert_eq!(answer.body, bytes);
            let expected = Some(coding).filter(|coding| *coding != "identity");
            assert_eq!(answer.headers.get("content-encoding").map(String::as_str), expected);
        }
    }
    let twice = sized("200 OK", "content-encoding: gzip\r\ncontent-encoding: br\r\n", bytes);
    assert_eq!(told(twice, packed_as("gzip, br")).await.outcome, Outcome::BadAnswer);
}

#[tokio::test]
async fn a_head_says_how_long_the_body_would_be() {
    let head = || "HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n".to_owned();
    let mut asked = request(Method::Get, &[]);
    let Request::Http(http) = &mut asked.request else { panic!() };
    http.method = Method::Head;
    let answer = told(head(), asked).await;
    assert_eq!((answer.outcome, answer.body.len()), (Outcome::Answered, 0));
    assert_eq!(answer.headers["content-length"], "999999999");
    assert_eq!(told(head(), request(Method::Get, &[])).await.outcome, Outcome::Oversize);
}

#[test]
fn a_part_of_a_form_meets_no_key_of_the_owner() {
    let mut secrets = UpstreamSecrets::default();
    secrets.query.insert("appid".to_owned(), "owners-own".to_owned());
    let upstream = Upstream::new("http://127.0.0.1:9", secrets, options()).unwrap();
    let body = b"--b\r\ncontent-disposition: form-data; name=\"AppId\"\r\n\r\nmine\r\n--b--";
    let params = BTreeMap::new();
    let content_type = Some("multipart/form-data; boundary=b");
    let call = Call { method: "POST", path: "/items/7", params: &params, content_type, body };
    let planned = api().plan(&call).unwrap().request;
    assert_eq!(upstream.secret_in(&planned, body).as_deref(), Some("AppId"));
}

#[tokio::test]
async fn a_web_page_is_no_answer_of_an_api_unless_its_description_names_one() {
    let page = || sized("200 OK", "content-type: Text/HTML; charset=utf-8\r\n", "<html>login</html>");
    assert_eq!(fetch_scripted(page()).await.outcome, Outcome::BadAnswer);
    let base = format!("http://{}", scripted(page()).await);
    let upstream = Upstream::new(&base, UpstreamSecrets::default(), options()).unwrap();
    let described = UpstreamRequest { html: true, ..request(Method::Get, &[]) };
    assert_eq!(upstream.fetch(&described).await.outcome, Outcome::Answered);
}

#[tokio::test]
async fn that_nothing_has_changed_is_an_answer_to_whoever_names_what_it_has() {
    let unchanged = || sized("304 Not Modified", "", "");
    for (name, is_answer) in
        [("if-none-match", true), ("if-modified-since", true), ("if-match", false), ("accept", false)]
    {
        let outcome = if is_answer { Outcome::Answered } else { Outcome::BadAnswer };
        let headers = BTreeMap::from([(name.to_owned(), "\"7\"".to_owned())]);
        let of_caller = UpstreamRequest { headers, ..request(Method::Get, &[]) };
        assert_eq!(told(unchanged(), of_caller).await.outcome, outcome, "{name}");
        // A description may make a parameter of any header.
        let mut declared = request(Method::Get, &[]);
        let Request::Http(http) = &mut declared.request else { panic!("an HTTP service") };
        http.headers.push((name.to_owned(), "\"7\"".to_owned()));
        assert_eq!(told(unchanged(), declared).await.outcome, outcome, "{name}, declared");
    }
    // What its owner adds, a caller does not have.
    let own = secret_header_of("if-none-match", "\"7\"");
    let base = format!("http://{}", scripted(unchanged()).await);
    let upstream = Upstream::new(&base, own, options()).unwrap();
    assert_eq!(upstream.fetch(&request(Method::Get, &[])).await.outcome, Outcome::BadAnswer);
}
