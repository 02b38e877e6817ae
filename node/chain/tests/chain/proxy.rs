//! A TCP proxy that misbehaves on command, between a node and its chain.

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering::SeqCst},
    },
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// What happens to an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Pass,
    /// Requests are read and never answered.
    Silent,
    /// A transaction arrives, but its acknowledgement is lost with the connection.
    LoseAnswersToTransactions,
    /// No transaction arrives.
    LoseTransactions,
    /// Whatever was mined, there is no receipt yet.
    HideReceipts,
    /// Every receipt says that its transaction failed.
    FailReceipts,
    /// The endpoint says that it ran out of time, instead of simulating a claim.
    TimeOutClaims,
}

const MODES: [Mode; 7] = [
    Mode::Pass,
    Mode::Silent,
    Mode::LoseAnswersToTransactions,
    Mode::LoseTransactions,
    Mode::HideReceipts,
    Mode::FailReceipts,
    Mode::TimeOutClaims,
];

/// `PayChannels.claim`, with the types of its argument.
const CLAIM: &str =
    "claim(((address,address,address,address,uint40,bytes32),uint128,uint128,bytes32,bytes32))";

/// What happens to a request for events.
#[derive(Clone, Debug)]
pub(crate) enum LogsMode {
    Pass,
    /// The endpoint does not take it.
    Refuse,
    /// It is never answered.
    Silent,
    /// More bytes than a node reads.
    TooLarge,
    /// The same where this block is asked for.
    TooLargeWith(u64),
    /// These, whatever was asked.
    Answer(Vec<serde_json::Value>),
    /// None from this block on, as endpoints answer for blocks that they do not have.
    NoneFrom(u64),
    /// Those of each block that is asked for, as far as they fit into an answer.
    Pages(Arc<Pages>),
}

/// Events by block, as JSON texts, and how many of them were told.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) of_blocks: BTreeMap<u64, Vec<String>>,
    /// Nothing is said of this block and later ones until it is true.
    pub(crate) held_from: u64,
    pub(crate) released: watch::Sender<bool>,
    pub(crate) told: AtomicU64,
}

impl Pages {
    fn answer(&self, blocks: RangeInclusive<u64>) -> Vec<u8> {
        let events: Vec<&str> =
            self.of_blocks.range(blocks).flat_map(|(_, events)| events).map(String::as_str).collect();
        let text = events.join(",");
        if text.len() > ANSWER_BYTES_MAX {
            return too_large();
        }
        self.told.fetch_add(events.len() as u64, SeqCst);
        format!(r#"[{{"id":0,"result":[{text}]}},{{"id":1,"result":[]}}]"#).into_bytes()
    }
}

/// What a node reads of an answer at most.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024 - 1024;

pub(crate) struct Proxy {
    port: u16,
    logs: Arc<Mutex<LogsMode>>,
    mode: Arc<AtomicU8>,
    seen: Arc<Seen>,
    logs_bytes_most: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

/// What came this way.
#[derive(Default)]
struct Seen {
    transactions: AtomicU64,
    receipts_hidden: AtomicU64,
    /// Requests to simulate a transaction.
    estimates: Mutex<Vec<Vec<u8>>>,
    lies: Mutex<Vec<Lie>>,
}

/// The number of a block that no chain has. What is asked about it is answered as of the newest.
pub(crate) const FALSE_BLOCK: &str = "0x10000000000";

/// The request as the chain can answer it, of the same length.
fn of_a_true_block(request: Vec<u8>) -> Vec<u8> {
    let (told, newest) = (format!("\"{FALSE_BLOCK}\""), format!("{:<15}", "\"latest\""));
    match contains(&request, told.as_bytes()) {
        true => String::from_utf8_lossy(&request).replace(&told, &newest).into_bytes(),
        false => request,
    }
}

/// An answer that is not the chain's.
#[derive(Debug)]
struct Lie {
    method: &'static str,
    result: serde_json::Value,
    /// How often it is told yet.
    left: usize,
}

impl Seen {
    fn lie(&self, request: &[u8]) -> Option<Vec<u8>> {
        let mut lies = self.lies.lock();
        let lie = lies.iter_mut().find(|lie| lie.left > 0 && contains(request, lie.method.as_bytes()))?;
        lie.left -= 1;
        let answer = |(id, result)| serde_json::json!({ "id": id, "result": result });
        let told = match lie.result.as_array() {
            Some(results) => results.iter().enumerate().map(answer).collect(),
            None => answer((0, &lie.result)),
        };
        Some(told.to_string().into_bytes())
    }
}

impl Proxy {
    pub(crate) async fn to(target_port: u16, mode: Mode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("a port").port();
        let seen = Arc::new(Seen::default());
        let proxy_mode = Arc::new(AtomicU8::new(mode as u8));
        let (shared_mode, shared_seen) = (Arc::clone(&proxy_mode), Arc::clone(&seen));
        let logs = Arc::new(Mutex::new(LogsMode::Pass));
        let shared_logs = Arc::clone(&logs);
        let logs_bytes_most = Arc::new(AtomicU64::new(0));
        let shared_most = Arc::clone(&logs_bytes_most);
        let task = tokio::spawn(async move {
            while let Ok((inbound, _)) = listener.accept().await {
                tokio::spawn(serve(
                    inbound,
                    target_port,
                    Arc::clone(&shared_mode),
                    Arc::clone(&shared_seen),
                    Arc::clone(&shared_logs),
                    Arc::clone(&shared_most),
                ));
            }
        });
        Self { port, logs, mode: proxy_mode, seen, logs_bytes_most, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, SeqCst);
    }

    pub(crate) fn set_logs(&self, mode: LogsMode) {
        *self.logs.lock() = mode;
    }

    /// Answers requests that name `method`, or call a function by this selector, so many times with `result`; several at once with the results of an array.
    pub(crate) fn lie(&self, method: &'static str, result: serde_json::Value, times: usize) {
        self.seen.lies.lock().push(Lie { method, result, left: times });
    }

    /// How many lies are not told yet.
    pub(crate) fn lies_left(&self) -> usize {
        self.seen.lies.lock().iter().map(|lie| lie.left).sum()
    }

    /// Bytes of the longest answer of the chain about events.
    pub(crate) fn logs_bytes_most(&self) -> u64 {
        self.logs_bytes_most.load(SeqCst)
    }

    /// Transactions that came this way, delivered or not.
    pub(crate) fn transactions(&self) -> u64 {
        self.seen.transactions.load(SeqCst)
    }

    /// The call data of transactions that were simulated.
    pub(crate) fn simulated(&self) -> Vec<String> {
        let requests = self.seen.estimates.lock();
        let data = |request: &Vec<u8>| {
            let text = String::from_utf8_lossy(request).into_owned();
            let body = text.split_once("\r\n\r\n").expect("a body").1;
            let request: serde_json::Value = serde_json::from_str(body).expect("JSON");
            request["params"][0]["data"].as_str().expect("call data").to_owned()
        };
        requests.iter().map(data).collect()
    }

    /// How often a receipt was asked for and hidden.
    pub(crate) fn receipts_hidden(&self) -> u64 {
        self.seen.receipts_hidden.load(SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection: a request, then its answer, as HTTP/1.1 without pipelining does. Requests of this crate
/// are small enough to arrive in few reads; the body is complete when its announced length is.
async fn serve(
    mut inbound: TcpStream,
    target_port: u16,
    mode: Arc<AtomicU8>,
    seen: Arc<Seen>,
    logs: Arc<Mutex<LogsMode>>,
    logs_bytes_most: Arc<AtomicU64>,
) {
    let Ok(mut outbound) = TcpStream::connect(("127.0.0.1", target_port)).await else { return };
    while let Some(request) = read_message(&mut inbound).await {
        let mode = MODES[usize::from(mode.load(SeqCst))];
        let is_transaction = contains(&request, b"eth_sendRawTransaction");
        if contains(&request, b"eth_estimateGas") {
            seen.estimates.lock().push(request.clone());
        }
        seen.transactions.fetch_add(u64::from(is_transaction), SeqCst);
        match mode {
            Mode::Silent => std::future::pending().await,
            Mode::LoseTransactions if is_transaction => return,
            _ => {}
        }
        let asks_for_logs = contains(&request, b"eth_getLogs");
        let logs_mode = if asks_for_logs { logs.lock().clone() } else { LogsMode::Pass };
        match &logs_mode {
            LogsMode::Silent => std::future::pending().await,
            LogsMode::Pages(pages) if blocks_of(&request).is_some_and(|to| *to.end() >= pages.held_from) => {
                let _ = pages.released.subscribe().wait_for(|released| *released).await;
            }
            _ => {}
        }
        let hides = mode == Mode::HideReceipts && contains(&request, b"eth_getTransactionReceipt");
        seen.receipts_hidden.fetch_add(u64::from(hides), SeqCst);
        let none = hides.then(|| br#"{"id":0,"result":null}"#.to_vec());
        let selector = alloy::primitives::hex::encode(&farthing_values::keccak256(&[CLAIM.as_bytes()])[..4]);
        let is_claim = contains(&request, b"eth_call") && contains(&request, selector.as_bytes());
        let timed_out = (mode == Mode::TimeOutClaims && is_claim)
            .then(|| br#"{"id":0,"error":{"code":-32000,"message":"request timed out"}}"#.to_vec());
        let none = none.or(timed_out).or_else(|| seen.lie(&request));
        if let Some(body) = none.or_else(|| logs_answer(&logs_mode, &request)) {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            if inbound.write_all(&[head.as_bytes(), &body].concat()).await.is_err() {
                return;
            }
            continue;
        }
        if outbound.write_all(&of_a_true_block(request.clone())).await.is_err() {
            return;
        }
        let Some(mut answer) = read_message(&mut outbound).await else { return };
        if mode == Mode::FailReceipts && contains(&request, b"eth_getTransactionReceipt") {
            answer = String::from_utf8_lossy(&answer)
                .replace(r#""status":"0x1""#, r#""status":"0x0""#)
                .into_bytes();
        }
        if asks_for_logs {
            logs_bytes_most.fetch_max(answer.len() as u64, SeqCst);
        }
        if mode == Mode::LoseAnswersToTransactions && is_transaction {
            return;
        }
        if inbound.write_all(&answer).await.is_err() {
            return;
        }
    }
}

/// A head and as many body bytes as its content-length says.
async fn read_message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let read = stream.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        message.extend_from_slice(&buffer[..read]);
        let Some(head_end) = message.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&message[..head_end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"))?;
        if message.len() >= head_end + 4 + length.trim().parse::<usize>().ok()? {
            return Some(message);
        }
    }
}

/// What the proxy answers itself.
fn logs_answer(mode: &LogsMode, request: &[u8]) -> Option<Vec<u8>> {
    match mode {
        LogsMode::Pass | LogsMode::Silent => None,
        LogsMode::Refuse => Some(
            br#"{"id":0,"error":{"code":-32000,"message":"query returned more than 10000 results"}}"#.into(),
        ),
        LogsMode::TooLarge => Some(too_large()),
        LogsMode::TooLargeWith(block) => blocks_of(request)?.contains(block).then(too_large),
        LogsMode::NoneFrom(block) => (*blocks_of(request)?.start() >= *block)
            .then(|| br#"[{"id":0,"result":[]},{"id":1,"result":[]}]"#.to_vec()),
        LogsMode::Pages(pages) => Some(pages.answer(blocks_of(request)?)),
        LogsMode::Answer(logs) => {
            let answers = serde_json::json!([{ "id": 0, "result": logs }, { "id": 1, "result": logs }]);
            Some(answers.to_string().into_bytes())
        }
    }
}

fn too_large() -> Vec<u8> {
    vec![b' '; 9 * 1024 * 1024]
}

/// The blocks that a request for events asks about.
fn blocks_of(request: &[u8]) -> Option<RangeInclusive<u64>> {
    let text = String::from_utf8_lossy(request);
    let number = |name: &str| {
        let digits = text.split(&format!("\"{name}\":\"0x")).nth(1)?.split('"').next()?;
        u64::from_str_radix(digits, 16).ok()
    };
    Some(number("fromBlock")?..=number("toBlock")?)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
