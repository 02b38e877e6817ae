//! A consumer's application, `quake-map`, beside a real node: what its visitors see, and who may spend.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use farthing_testnet::demo::{Demo, Setup};
use farthing_values::Usdc;
use reqwest::{Client, StatusCode};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

async fn press(
    client: &Client,
    url: &str,
    magnitude: &str,
    headers: &[(&str, &str)],
) -> Result<(StatusCode, String)> {
    let form = format!("magnitude={magnitude}");
    let mut request = client.post(url).header("content-type", "application/x-www-form-urlencoded").body(form);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await?;
    Ok((answer.status(), answer.text().await?))
}

#[tokio::test]
async fn a_visitor_buys_with_one_press_and_a_foreign_page_cannot() -> Result<()> {
    let folder = TempDir::new()?;
    let mut demo =
        Demo::start(folder.path(), Setup { gateway_port: 0, panel_port: 0, ..Setup::default() }).await?;
    let spent = async || anyhow::Ok(demo.consumer.status().await?.spent_today.0);
    let map = demo.quake_map(folder.path(), 0).await?;
    let client = Client::new();

    let page = client.get(&map.url).send().await?;
    let policy = page.headers().get("content-security-policy").context("no policy")?.to_str()?;
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let page = page.text().await?;
    assert!(
        page.contains("Nothing bought yet") && page.contains("<button>Buy for 0.002 USDC</button>"),
        "{page}"
    );
    assert_eq!(spent().await?, Usdc::ZERO, "looking costs nothing");

    let (status, page) = press(&client, &map.url, "5.5", &[("sec-fetch-site", "same-origin")]).await?;
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("<strong>0.002 USDC</strong>"), "{page}");
    let (dots, rows) = (page.matches("<circle").count(), page.matches("<tr><td>").count());
    assert!(dots > 5 && dots == rows, "{dots} dots and {rows} rows");
    assert!(page.contains("</strong> from 2018-0") && !page.contains("Recent"), "the data's dates: {page}");
    assert!(page.contains("Taiwan"), "the week's largest earthquakes were at Hualian, Taiwan");
    assert_eq!(spent().await?.to_string(), "0.002");

    let (status, _) = press(&client, &map.url, "5.5", &[("sec-fetch-site", "cross-site")]).await?;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let (status, _) = press(&client, &map.url, "5.5", &[("origin", "http://evil.example")]).await?;
    assert_eq!(status, StatusCode::FORBIDDEN, "a page elsewhere, in a browser that says no more");
    let (status, _) = press(&client, &map.url, "5.5", &[("host", "evil.example")]).await?;
    assert_eq!(status, StatusCode::FORBIDDEN, "a name that was made to lead here");
    let (_, page) = press(&client, &map.url, "strong", &[]).await?;
    assert!(page.contains("minmagnitude") && page.contains("You were not charged"), "{page}");
    assert_eq!(spent().await?.to_string(), "0.002", "none of them cost anything");
    drop(map);

    // An answer that is lost is asked for again, and not paid again.
    let again = folder.path().join("again");
    std::fs::create_dir(&again)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let between = format!("https://localhost:{}", listener.local_addr()?.port());
    let node = std::mem::replace(&mut demo.gateway_url, between);
    let node = node.trim_start_matches("https://").replace("localhost", "127.0.0.1");
    let map = demo.quake_map(&again, 0).await?;
    let before = demo.consumer.status().await?.spent_today.0;
    let is_paid = async || demo.consumer.status().await.is_ok_and(|status| status.spent_today.0 > before);
    let pressed = press(&client, &map.url, "5.0", &[]);
    let (_, page) = tokio::select! {
        pressed = pressed => pressed?,
        ended = lose_the_first_answer(listener, &node, is_paid) => anyhow::bail!("the way broke: {ended:?}"),
    };
    assert!(page.contains("<strong>0.002 USDC</strong>"), "{page}");
    assert_eq!(demo.consumer.status().await?.spent_today.0.to_string(), "0.004", "paid once");
    drop(map);
    farthing_tests::agreement::end(demo).await
}

/// Passes on what comes to a node, but for the first answer to a call that was paid: its connection breaks instead.
async fn lose_the_first_answer(
    listener: TcpListener,
    node: &str,
    is_paid: impl AsyncFn() -> bool,
) -> Result<()> {
    let is_lost = AtomicBool::new(false);
    loop {
        let (mut client, _) = listener.accept().await?;
        let mut node = TcpStream::connect(node).await?;
        let (mut asked, mut answered) = ([0; 16 * 1024], [0; 16 * 1024]);
        loop {
            tokio::select! {
                read = client.read(&mut asked) => match read? {
                    0 => break,
                    read => node.write_all(&asked[..read]).await?,
                },
                read = node.read(&mut answered) => {
                    let read = read?;
                    if read == 0 || is_paid().await && !is_lost.swap(true, Ordering::Relaxed) {
                        break;
                    }
                    client.write_all(&answered[..read]).await?;
                }
            }
        }
    }
}
