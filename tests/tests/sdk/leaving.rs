//! Nodes that say a word or two about a call, and then are gone: what a client may tell of its cost afterwards.

use std::fmt::Write;

use anyhow::{Context, Result};
use axum::{body::to_bytes, response::IntoResponse};
use farthing_ledger::LedgerError;
use farthing_node::{consumer::BuyError, gateway::problem::Problem};
use farthing_protocol::{CallId, Outcome, Usdc};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinSet,
};

/// What a node does with one attempt.
#[derive(Clone, Copy)]
enum Word {
    /// It dies with the request in its hands.
    Nothing,
    /// 504, `charged` is null.
    Undecided,
    /// 503, `charged` is null.
    NotStored,
    /// 503, `charged` is true.
    Paid,
    /// 504, `charged` is false, of this very call.
    Free,
    /// 503, `charged` is null, and no call is named: it was not even read.
    NoRoom,
}

/// A name, a node's words to one attempt after the other, and whether the call is known to be free once it is gone.
const NODES: [(&str, &[Word], bool); 8] = [
    ("leaving-undecided", &[Word::Undecided], false),
    ("leaving-not-stored", &[Word::NotStored], false),
    ("leaving-dead", &[Word::Nothing], false),
    ("leaving-paid", &[Word::Paid], false),
    ("leaving-no-room", &[Word::Undecided, Word::NoRoom], false),
    ("leaving-dead-no-room", &[Word::Nothing, Word::NoRoom], false),
    ("leaving-decided", &[Word::Undecided, Word::Free], true),
    ("leaving-free", &[Word::Free], true),
];

/// The nodes, for one program: each serves one call of two attempts. They end with this value.
pub struct Leaving {
    /// `name=address`, with blanks between.
    pub urls: String,
    /// Bound, and not listened at.
    _kept: Vec<TcpSocket>,
    _nodes: JoinSet<Result<()>>,
}

impl Leaving {
    /// Each listens at a port of its own, which nobody else gets when it is gone.
    ///
    /// # Errors
    /// When there is no port.
    pub fn start() -> Result<Self> {
        let (mut nodes, mut kept, mut urls) = (JoinSet::new(), Vec::new(), Vec::new());
        for (name, words, _) in NODES {
            let (keeper, own) = (port()?, port()?);
            keeper.bind("127.0.0.1:0".parse()?)?;
            let address = keeper.local_addr()?;
            own.bind(address)?;
            nodes.spawn(serve(own.listen(1)?, words));
            kept.push(keeper);
            urls.push(format!("{name}=http://{address}"));
        }
        Ok(Self { urls: urls.join(" "), _kept: kept, _nodes: nodes })
    }
}

/// The lines of a program that called each of them, with one repetition.
pub fn expected() -> impl Iterator<Item = String> {
    NODES.into_iter().map(|(name, _, is_free)| format!("{name} {}", if is_free { "false" } else { "null" }))
}

fn port() -> Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    Ok(socket)
}

/// One word to each connection; before the last is said nobody listens any more.
async fn serve(listener: TcpListener, words: &[Word]) -> Result<()> {
    let (last, earlier) = words.split_last().context("no word")?;
    for word in earlier {
        let (stream, _) = listener.accept().await?;
        say(stream, *word).await?;
    }
    let (stream, _) = listener.accept().await?;
    drop(listener);
    say(stream, *last).await
}

/// Takes the whole request, and answers as the node's own gateway does.
async fn say(mut stream: TcpStream, word: Word) -> Result<()> {
    let mut request = BufReader::new(&mut stream);
    let (mut length, mut line) = (0, String::new());
    while request.read_line(&mut line).await? > "\r\n".len() {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
        line.clear();
    }
    request.read_exact(&mut vec![0; length]).await?;
    let Some(problem) = problem(word) else { return Ok(()) };
    let (head, body) = problem.into_response().into_parts();
    let body = to_bytes(body, usize::MAX).await?;
    let mut text =
        format!("HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: {}\r\n", head.status, body.len());
    for (name, value) in &head.headers {
        write!(text, "{name}: {}\r\n", value.to_str()?)?;
    }
    stream.write_all(format!("{text}\r\n").as_bytes()).await?;
    stream.write_all(&body).await?;
    Ok(stream.shutdown().await?)
}

fn problem(word: Word) -> Option<Problem> {
    let reason = || "the test says so".to_owned();
    let error = match word {
        Word::Nothing => return None,
        Word::NoRoom => return Some(Problem::no_room()),
        Word::Undecided => BuyError::Undecided(reason()),
        Word::NotStored => BuyError::NotStored(LedgerError::Ending),
        Word::Paid => BuyError::NotRepeated { charged: Usdc::from_micros(4_000), reason: reason() },
        Word::Free => BuyError::UpstreamFailed { outcome: Outcome::TimedOut, status: 504 },
    };
    Some(Problem::from(&error).with_call_id(CallId::from_bytes([7; 16])))
}
