//! Connections that are opened anew as they are closed.

use tokio::{net::UnixStream, sync::watch};
use tokio_util::task::TaskTracker;

use super::*;

/// Connections that say `sent` and no more, each opened anew as it is closed.
struct Flood {
    tasks: TaskTracker,
    /// How often one was closed.
    closed: watch::Receiver<usize>,
}

fn flood(address: SocketAddr, connections: usize, sent: &'static [u8], stop: &CancellationToken) -> Flood {
    let (tasks, (count, closed)) = (TaskTracker::new(), watch::channel(0));
    for _ in 0..connections {
        let count = count.clone();
        tasks.spawn(stop.clone().run_until_cancelled_owned(async move {
            loop {
                let Ok(mut stream) = TcpStream::connect(address).await else { continue };
                let _ = stream.write_all(sent).await;
                let _ = stream.read(&mut [0]).await;
                count.send_modify(|closed| *closed += 1);
            }
        }));
    }
    tasks.close();
    Flood { tasks, closed }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_opened_anew_as_they_are_closed_shut_nobody_out() {
    farthing_os::process::allow_open_files();
    let minute = Duration::from_secs(60);
    let patient = Limits { head: minute, handshake: minute, idle: minute, ..Limits::default() };
    let setup = start_tls_with(b"http/1.1", patient).await;
    let address = setup.running.address;
    for (connections, sent) in [
        // More than wait in the lobby, since these have not asked.
        (900, &b""[..]),
        (900, &[22]),
        (900, &[22, 3, 1, 2, 0]),
        (900, &[22, 3, 1, 2, 0, 1]),
        // A whole record, for which there is a place, with the beginning of a hello.
        (200, &[22, 3, 1, 0, 4, 1, 0, 2, 0]),
    ] {
        let stop = CancellationToken::new();
        let mut flood = flood(address, connections, sent, &stop);
        let is_at_it = flood.closed.wait_for(|closed| *closed > 50);
        timeout(Duration::from_secs(20), is_at_it).await.expect("nobody makes room").unwrap();
        for asked in 0..4 {
            let connector = tokio_rustls::TlsConnector::from(Arc::clone(&setup.client));
            let name = ServerName::try_from("localhost").unwrap();
            let exchange = async {
                let stream = TcpStream::connect(address).await?;
                let mut stream = connector.connect(name, stream).await?;
                stream.write_all(&get_request("/")).await?;
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await?;
                Ok::<_, io::Error>(answer)
            };
            let answer = timeout(Duration::from_secs(20), exchange).await;
            let answer = answer.unwrap_or_else(|_| panic!("no answer in time: {asked} beside {sent:?}"));
            let answer = answer.unwrap_or_else(|error| panic!("{asked} beside {sent:?}: {error}"));
            assert!(answer.ends_with("hello"), "{answer}");
        }
        stop.cancel();
        flood.tasks.wait().await;
    }
}

#[tokio::test]
async fn connections_to_a_socket_that_say_less_than_a_line_make_room_for_one_that_asks() {
    farthing_os::process::allow_open_files();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("call.sock");
    let minute = Duration::from_secs(60);
    let limits = Limits { head: minute, idle: minute, handshake: minute, body: minute, ..Limits::default() };
    let (tls, trusted_proxies, budget) = (None, Vec::new(), budget());
    let port = Port { router: router(), tls, trusted_proxies, limits, budget, wording };
    let stop = CancellationToken::new();
    let task = tokio::spawn(port.serve(Listener::unix(&path).unwrap(), stop.clone()));
    for sent in [&b""[..], b"G"] {
        let mut silent = Vec::new();
        // More than have a place and wait for one.
        for _ in 0..600 {
            let mut stream = UnixStream::connect(&path).await.unwrap();
            // One that had to go hears nothing.
            let _ = stream.write_all(sent).await;
            silent.push(stream);
        }
        for _ in 0..3 {
            let mut stream = UnixStream::connect(&path).await.unwrap();
            stream.write_all(&get_request("/")).await.unwrap();
            let mut answer = String::new();
            let read = timeout(Duration::from_secs(20), stream.read_to_string(&mut answer)).await;
            assert!(read.is_ok() && answer.ends_with("hello"), "after {sent:?}: {read:?}: {answer}");
        }
    }
    stop.cancel();
    task.await.unwrap();
}
