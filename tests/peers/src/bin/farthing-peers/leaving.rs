//! Nodes that say a word or two about a call, as the node's own gateway does, and then are gone.
//!
//! For the tests of client code (`tests/tests/sdk/leaving.rs`): the program says where they are, `name=address` with blanks
//! between, and ends when its standard input does.

use std::{fmt::Write, io, sync::Arc};

use anyhow::{Context, Result};
use axum::{body::to_bytes, response::IntoResponse};
use farthing_gateway::problem::Problem;
use farthing_ledger::{Closed, LedgerError};
use farthing_node::consumer::{BuyError, LastKnown, Unanswered};
use farthing_protocol::{CallId, Usdc};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpSocket, TcpStream},
    task::{JoinSet, spawn_blocking},
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

/// A name, and a node's words to one attempt after the other.
const NODES: [(&str, &[Word]); 8] = [
    ("leaving-undecided", &[Word::Undecided]),
    ("leaving-not-stored", &[Word::NotStored]),
    ("leaving-dead", &[Word::Nothing]),
    ("leaving-paid", &[Word::Paid]),
    ("leaving-no-room", &[Word::Undecided, Word::NoRoom]),
    ("leaving-dead-no-room", &[Word::Nothing, Word::NoRoom]),
    ("leaving-decided", &[Word::Undecided, Word::Free]),
    ("leaving-free", &[Word::Free]),
];

/// Each node serves one call of two attempts, at a port of its own, which nobody else gets when it is gone.
pub(crate) async fn run() -> Result<()> {
    let (mut nodes, mut kept, mut urls) = (JoinSet::new(), Vec::new(), Vec::new());
    for (name, words) in NODES {
        let (keeper, own) = (port()?, port()?);
        keeper.bind("127.0.0.1:0".parse()?)?;
        let address = keeper.local_addr()?;
        own.bind(address)?;
        nodes.spawn(serve(own.listen(1)?, words));
        // Bound, and not listened at.
        kept.push(keeper);
        urls.push(format!("{name}=http://{address}"));
    }
    println!("{}", urls.join(" "));
    spawn_blocking(|| io::copy(&mut io::stdin(), &mut io::sink())).await??;
    Ok(())
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

/// A ledger whose disk is full.
fn closed() -> Closed {
    Closed { cause: Arc::new(io::Error::other("the disk is full")) }
}

fn problem(word: Word) -> Option<Problem> {
    let error = match word {
        Word::Nothing => return None,
        Word::NoRoom => return Some(Problem::no_room()),
        Word::Undecided => BuyError::Undecided(LastKnown::Running.into()),
        Word::NotStored => BuyError::NotStored(LedgerError::Closed(closed())),
        Word::Paid => {
            BuyError::NotRepeated { charged: Usdc::from_micros(4_000), reason: LastKnown::Running.into() }
        }
        Word::Free => BuyError::UpstreamFailed { why: Unanswered::TimedOut, status: 504 },
    };
    Some(Problem::from(&error).with_call_id(CallId::from_bytes([7; 16])))
}
