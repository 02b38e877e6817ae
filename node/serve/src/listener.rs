//! The sockets that a port takes connections from.

use std::{io, mem::MaybeUninit, net::SocketAddr, path::Path};

use socket2::SockRef;
use tokio::{
    io::Interest,
    net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream},
};

/// Connections that the system holds until they are accepted. The usual 128 are fewer than one program opens; what the queue
/// has no room for tries again after seconds only.
const BACKLOG: u32 = 4_096;

/// The place where a port takes connections.
#[derive(Debug)]
pub enum Listener {
    Tcp(TcpListener),
    /// For programs that the socket's mode lets connect; they count as this machine.
    Unix(UnixListener),
}

impl Listener {
    /// Listens on a Unix socket of this user and its group.
    ///
    /// # Errors
    /// As [`farthing_os::socket::listen`].
    pub fn unix(path: &Path) -> io::Result<Self> {
        UnixListener::from_std(farthing_os::socket::listen(path, 0o660)?).map(Self::Unix)
    }

    pub(crate) async fn accept(&self) -> io::Result<Newcomer> {
        match self {
            Self::Tcp(listener) => {
                listener.accept().await.map(|(stream, address)| Newcomer::Tcp(stream, address))
            }
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| Newcomer::Unix(stream)),
        }
    }
}

/// A connection that was just accepted.
pub(crate) enum Newcomer {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

/// Waits until the other side has said something, and leaves that to be read.
pub(crate) async fn said_something(stream: &UnixStream) -> io::Result<()> {
    let peek = || SockRef::from(stream).peek(&mut [MaybeUninit::uninit()]);
    stream.async_io(Interest::READABLE, peek).await.map(drop)
}

/// Listens on an address.
///
/// # Errors
/// Why that cannot be.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A port that a program of before had is free at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
