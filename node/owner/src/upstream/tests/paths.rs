//! Whatever a caller writes into a path, a value or a name, a real server reads the operation's own template with one
//! segment for each value, or nothing at all.
//!
//! Every run takes a seed of its own and prints it; `FARTHING_TEST_SEED` repeats one. What arrives is judged by its raw
//! bytes, with decoders of this file's own.

use farthing_bridge::PlanError;
use parking_lot::Mutex;

use super::*;
use crate::random::{Random, seed};

const CALLS: usize = 6_000;
/// Where the upstream is registered; it has an escape of its own.
const BASE: &str = "/b%20se/v1";

/// Pieces of values and paths that some server, proxy or library reads in a way of its own.
const PIECES: [&str; 75] = [
    ".",
    "..",
    "...",
    "/",
    "//",
    "\\",
    "%",
    "%2",
    "%zz",
    "%2e",
    "%2E%2e",
    "%252e%252e",
    "%25252e",
    "%2f",
    "%2F",
    "%252F",
    "%5c",
    "%255C",
    "%00",
    "%0d%0a",
    "%0A",
    "%23",
    "%3f",
    "%3B",
    "%c0%ae",
    "%c0%af",
    "%e0%80%af",
    "%f0%80%80%af",
    "%ff",
    "%u002e",
    "%uff0e",
    "\0",
    "\r\n",
    "\n",
    "\t",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    " ",
    "+",
    ";",
    "..;",
    ";a=1",
    "?",
    "?a=b",
    "#",
    "#f",
    "&",
    "&appid=stolen",
    "=",
    ":",
    "@",
    "user:pw@",
    "http://evil.example/",
    "//evil.example",
    "HTTP/1.1\r\nhost: evil.example\r\n\r\n",
    "\r\nx-api-key: stolen",
    "{",
    "}",
    "{id}",
    "${jndi:ldap://x}",
    "~",
    "*",
    "'\"<>`",
    "|^[]",
    ".json",
    ".well-known",
    "e\u{301}",
    "\u{e9}",
    "\u{ff0e}\u{ff0e}\u{ff0f}",
    "\u{2215}\u{2044}",
    "\u{202e}",
    "\u{feff}",
    "items",
    "appid",
];

const TEMPLATES: [(&str, &[&str]); 7] = [
    ("/items/{id}", &["id"]),
    ("/files/{folder}/{name}.json", &["folder", "name"]),
    ("/v{n}/{a}-{b}", &["n", "a", "b"]),
    ("/dots/.{x}", &["x"]),
    ("/a/{b}/c/{d}/", &["b", "d"]),
    ("/plain", &[]),
    ("/{any}/deep/deeper", &["any"]),
];

impl Random {
    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// Something that might be taken for something else, or a plain word.
    fn value(&mut self) -> String {
        if self.one_in(6) {
            return format!("word{}", self.below(1000));
        }
        let mut text = String::new();
        for _ in 0..=self.below(5) {
            match self.below(8) {
                0 => text.push(char::from_u32(u32::try_from(self.below(0x11_0000)).unwrap()).unwrap_or('x')),
                1 => text.push_str("plain"),
                _ => text.push_str(self.of(&PIECES)),
            }
        }
        match self.below(40) {
            0 => text.repeat(1 + self.below(400)),
            1 => escaped(&text),
            2 => escaped(&escaped(&text)),
            _ => text,
        }
    }

    fn params(&mut self) -> BTreeMap<String, String> {
        (0..self.below(4)).map(|_| (self.value(), self.value())).collect()
    }
}

/// What a careful caller writes for a value in a path.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |text, byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => {
            text + char::from(byte).to_string().as_str()
        }
        _ => format!("{text}%{byte:02x}"),
    })
}

/// Percent decoding, once; nothing for a bad escape or for what is no text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Whether a server that decodes as often as it likes, and takes any separator for one, sees a step to another folder.
fn steps_aside(segment: &str) -> bool {
    let mut text = segment.to_owned();
    for _ in 0..8 {
        let is_step = |part: &str| matches!(part.split(';').next(), Some("." | ".."));
        if text.split(['/', '\\']).any(is_step) {
            return true;
        }
        let Some(next) = decoded(&text) else { return false };
        text = next;
    }
    false
}

fn operations() -> Api {
    let parameter = |name: &str, place| Parameter {
        name: name.into(),
        place,
        schema: Schema::string(),
        ..Parameter::default()
    };
    let operations = TEMPLATES.iter().enumerate().map(|(number, (path, _))| Operation {
        method: if number % 2 == 0 { Method::Get } else { Method::Delete },
        path: (*path).into(),
        id: format!("operation{number}"),
        parameters: vec![parameter("x-tenant", Place::Header), parameter("q", Place::Query)],
        any_params: true,
        ..Operation::default()
    });
    Api::new(ApiDescription { operations: operations.collect(), ..ApiDescription::default() }).unwrap()
}

/// A call that might do harm: its operation, its path as written, and its parameters.
struct Attempt {
    operation: usize,
    path: String,
    /// What the path's parameters were given as, where the path is the template itself.
    values: Option<BTreeMap<String, String>>,
    params: BTreeMap<String, String>,
}

impl Attempt {
    fn new(random: &mut Random) -> Self {
        let operation = random.below(TEMPLATES.len());
        let (template, names) = TEMPLATES[operation];
        let mut params = random.params();
        if random.one_in(3) {
            params.insert("x-tenant".into(), random.value());
        }
        if random.one_in(3) {
            params.insert("q".into(), random.value());
        }
        if random.one_in(2) {
            let values: BTreeMap<_, _> = names.iter().map(|name| ((*name).into(), random.value())).collect();
            params.extend(values.clone());
            return Self { operation, path: template.into(), values: Some(values), params };
        }
        let path = names.iter().fold(template.to_owned(), |path, name| {
            let value = random.value();
            let text = if random.one_in(2) { escaped(&value) } else { value };
            path.replace(&format!("{{{name}}}"), &text)
        });
        // Now and then something stands where no parameter is.
        let path = match random.below(12) {
            0 => format!("{path}{}", random.value()),
            1 => format!("{}{path}", random.value()),
            _ => path,
        };
        Self { operation, path, values: None, params }
    }
}

/// Heads of requests, byte by byte, in the order of their arrival.
type Heads = Arc<Mutex<Vec<Vec<u8>>>>;

async fn recording() -> (SocketAddr, Heads) {
    let heads = Heads::default();
    let recorded = Arc::clone(&heads);
    let address = server(move |mut stream| {
        let recorded = Arc::clone(&recorded);
        async move {
            let mut head = Vec::new();
            while let Ok(byte) = stream.read_u8().await {
                head.push(byte);
                if head.ends_with(b"\r\n\r\n") {
                    recorded.lock().push(std::mem::take(&mut head));
                    if stream.write_all(sized("200 OK", "", "{}").as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        }
    })
    .await;
    (address, heads)
}

/// What is wrong with a head that arrived, if anything is.
fn objection(attempt: &Attempt, planned: usize, head: &[u8], host: &str) -> Result<(), String> {
    let head = std::str::from_utf8(head).map_err(|_| "the head is no text")?;
    head.is_ascii().then_some(()).ok_or("the head has more than ASCII")?;
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let [method, target, version] = line.split(' ').collect::<Vec<_>>()[..] else {
        return Err(format!("the request line has other parts: {line}"));
    };
    let (template, names) = TEMPLATES[planned];
    let expected_method = if planned.is_multiple_of(2) { "GET" } else { "DELETE" };
    if (method, version) != (expected_method, "HTTP/1.1") {
        return Err(format!("another method or version: {line}"));
    }
    if target.contains(|c: char| c.is_control() || matches!(c, '#' | '\\')) {
        return Err(format!("the target holds what no target may: {target:?}"));
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = path.strip_prefix(BASE).ok_or_else(|| format!("outside of the base: {path}"))?;
    check_path(attempt, template, path)?;
    check_query(attempt, query, names)?;
    check_headers(attempt, lines, host)
}

fn check_path(attempt: &Attempt, template: &str, path: &str) -> Result<(), String> {
    let given: Vec<&str> = path.split('/').collect();
    if let Some(aside) = given.iter().find(|segment| steps_aside(segment)) {
        return Err(format!("{aside} in {path} steps aside"));
    }
    let Some(given) = given.into_iter().map(decoded).collect::<Option<Vec<_>>>() else {
        return Err(format!("{path} is badly escaped"));
    };
    if given.iter().any(|segment| segment.contains(char::is_control)) {
        return Err(format!("{path} holds control characters"));
    }
    if attempt.values.is_none() && given.iter().any(|segment| segment.contains(['/', '\\'])) {
        return Err(format!("{path} holds what some servers take for several segments"));
    }
    let filled = |values: &BTreeMap<String, String>, segment: &str| {
        values.iter().rev().fold(segment.to_owned(), |text, (name, value)| {
            if segment.contains(&format!("{{{name}}}")) {
                text.replacen(&format!("{{{name}}}"), value, 1)
            } else {
                text
            }
        })
    };
    let expected = match &attempt.values {
        Some(values) => template.split('/').map(|segment| Some(filled(values, segment))).collect(),
        None => attempt.path.split('/').map(decoded).collect::<Option<Vec<_>>>(),
    };
    if expected.as_ref() != Some(&given) {
        return Err(format!("other segments: {given:?} for {expected:?}"));
    }
    let fits = |(wanted, given): (&str, &String)| match wanted.find('{').zip(wanted.rfind('}')) {
        None => wanted == given,
        Some((before, after)) => {
            let (before, after) = (&wanted[..before], &wanted[after + 1..]);
            given.len() > before.len() + after.len() && given.starts_with(before) && given.ends_with(after)
        }
    };
    let same = template.split('/').count() == given.len() && template.split('/').zip(&given).all(fits);
    if same { Ok(()) } else { Err(format!("{path} is not {template}")) }
}

fn check_query(attempt: &Attempt, query: &str, names: &[&str]) -> Result<(), String> {
    let in_path = |name: &str| attempt.values.is_some() && names.contains(&name);
    let mut expected: Vec<_> =
        attempt.params.clone().into_iter().filter(|(name, _)| name != "x-tenant" && !in_path(name)).collect();
    expected.push(("appid".to_owned(), "owners-own".to_owned()));
    let mut pairs = Vec::new();
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("no pair: {pair}"))?;
        if value.contains(['=', ';', '+']) || name.contains([';', '+']) {
            return Err(format!("{pair} may be read as several"));
        }
        pairs.push(decoded(name).zip(decoded(value)).ok_or_else(|| format!("badly escaped: {pair}"))?);
    }
    if pairs.iter().filter(|(name, _)| name == "appid").count() != 1 {
        return Err(format!("the owner's own parameter is there twice: {query}"));
    }
    expected.sort();
    pairs.sort();
    if pairs == expected { Ok(()) } else { Err(format!("other parameters: {pairs:?} for {expected:?}")) }
}

fn check_headers<'a>(
    attempt: &Attempt,
    lines: impl Iterator<Item = &'a str>,
    host: &str,
) -> Result<(), String> {
    let mut headers: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    headers.sort_unstable();
    let tenant = attempt.params.get("x-tenant").map(|tenant| format!("x-tenant: {tenant}"));
    let own = [
        "accept-encoding: identity".to_owned(),
        "accept: */*".to_owned(),
        format!("host: {host}"),
        concat!("user-agent: farthing/", env!("CARGO_PKG_VERSION")).to_owned(),
        "x-api-key: owners-own".to_owned(),
    ];
    let mut expected: Vec<String> = own.into_iter().chain(tenant).collect();
    expected.sort_unstable();
    if headers == expected { Ok(()) } else { Err(format!("other headers: {headers:?} for {expected:?}")) }
}

#[tokio::test]
async fn a_server_reads_the_template_with_one_segment_for_each_value_or_nothing_at_all() {
    let seed = seed();
    let (address, heads) = recording().await;
    let mut secrets = secret_header_of("x-api-key", "owners-own");
    secrets.query.insert("appid".to_owned(), "owners-own".to_owned());
    let base = format!("http://{address}{BASE}");
    let upstream =
        Upstream::new(&base, secrets, UpstreamOptions { body_bytes_max: 1000, ..options() }).unwrap();
    let (api, mut random) = (operations(), Random::new(seed));
    let (mut arrived, mut refused, mut unsent) = (0, 0, 0);
    for number in 0..CALLS {
        let attempt = Attempt::new(&mut random);
        let method = if attempt.operation.is_multiple_of(2) { "GET" } else { "DELETE" };
        let call =
            Call { method, path: &attempt.path, params: &attempt.params, content_type: None, body: &[] };
        let told = || format!("call {number} of seed {seed}: {} with {:?}", attempt.path, attempt.params);
        let planned = match api.plan(&call) {
            Ok(planned) if upstream.secret_in(&planned.request, &[]).is_none() => planned,
            Ok(_) | Err(PlanError::Route(_) | PlanError::Problems(_)) => {
                refused += 1;
                continue;
            }
        };
        let request = UpstreamRequest {
            request: planned.request,
            headers: BTreeMap::new(),
            body: Bytes::new(),
            deadline: Duration::from_secs(30),
            time: None,
            call: None,
            html: false,
        };
        let answer = upstream.fetch(&request).await;
        let seen = std::mem::take(&mut *heads.lock());
        match &seen[..] {
            [head] => {
                arrived += 1;
                assert_eq!(answer.outcome, Outcome::Answered, "{}", told());
                if let Err(wrong) = objection(&attempt, planned.operation, head, &address.to_string()) {
                    panic!("{}\n{wrong}\n{}", told(), String::from_utf8_lossy(head));
                }
            }
            [] => {
                unsent += 1;
                let costs = matches!(answer.outcome, Outcome::Answered | Outcome::Declined);
                assert!(!costs, "nothing was sent and {:?} is charged; {}", answer.outcome, told());
            }
            more => panic!("{} requests for one call; {}", more.len(), told()),
        }
    }
    println!("{arrived} arrived, {refused} were refused, {unsent} could not be sent");
    assert!(arrived > CALLS / 10 && refused > CALLS / 10, "{arrived} and {refused}: the run proves little");
}
