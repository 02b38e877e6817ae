//! The sockets that a port takes connections from.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::fd::AsFd,
    path::Path,
};

use rustix::net::{RecvFlags, recv};
use tokio::{
    io::Interest,
    net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream},
};

use super::lobby::OPENING_BYTES;

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

impl Newcomer {
    /// The address it came from; who connects by a socket is a program of this machine.
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Tcp(_, address) => *address,
            Self::Unix(_) => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
        }
    }

    /// Returns whether it is none of `proxies`, when only they may connect; whom the socket's mode lets connect may.
    pub(crate) fn is_stranger_to(&self, proxies: &[IpAddr]) -> bool {
        let Self::Tcp(_, address) = self else { return false };
        !proxies.is_empty() && !proxies.contains(&address.ip().to_canonical())
    }

    /// Waits until what the other side has said is enough, and leaves that to be read. An error when no more will come.
    pub(crate) async fn says(&self, is_enough: fn(&[u8]) -> bool) -> io::Result<()> {
        loop {
            let (ready, looked) = match self {
                Self::Tcp(stream, _) => {
                    let ready = stream.ready(Interest::READABLE).await?;
                    (ready, stream.try_io(Interest::READABLE, || look(stream, is_enough)))
                }
                Self::Unix(stream) => {
                    let ready = stream.ready(Interest::READABLE).await?;
                    (ready, stream.try_io(Interest::READABLE, || look(stream, is_enough)))
                }
            };
            match looked {
                // The end of what it says stays ready for ever: waiting for more would go in circles.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !ready.is_read_closed() => {}
                looked => return looked,
            }
        }
    }
}

/// Looks at what has come. What is not enough is as good as nothing: tokio waits until more comes then.
fn look(stream: impl AsFd, is_enough: fn(&[u8]) -> bool) -> io::Result<()> {
    let mut said = [0; OPENING_BYTES];
    let (_, bytes) = recv(stream, &mut said, RecvFlags::PEEK)?;
    if is_enough(&said[..bytes]) { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
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
