//! Who is let in.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::support::{Browser, Node, PASSWORD};

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_sees_nothing_until_the_code_was_typed_and_a_password_chosen() -> Result<()> {
    let node = Node::start().await?;
    let mut stranger = node.browser()?;
    for path in ["/panel", "/panel/catalog", "/panel/network", "/panel/login", "/panel/password"] {
        let page = stranger.get(path).await?;
        ensure!(page.status == 303 && page.header("location") == "/panel/setup", "{path}: {page:?}");
    }
    let wrong = [("code", "AAAA-AAAA-AAAA"), ("password", PASSWORD), ("repeated", PASSWORD)];
    let page = stranger.post_and_follow("/panel/setup", &wrong).await?;
    ensure!(page.body.contains("Wrong setup code") && page.body.contains("AAAA-AAAA-AAAA"), "{page:?}");
    ensure!(stranger.session().is_none());

    let code = node.console().await?.setup_code.context("no code")?;
    let differing = [("code", code.as_str()), ("password", PASSWORD), ("repeated", "something else")];
    let page = stranger.post_and_follow("/panel/setup", &differing).await?;
    ensure!(page.body.contains("The two passwords differ"), "{page:?}");
    let mut browser = node.set_up().await?;
    ensure!(browser.get("/panel").await?.status == 200);

    let again = [("code", code.as_str()), ("password", PASSWORD), ("repeated", PASSWORD)];
    let page = stranger.post("/panel/setup", &again).await?;
    ensure!(page.status == 303 && stranger.session().is_none(), "{page:?}");
    ensure!(node.console().await?.setup_code.is_none());
    let page = stranger.get("/panel/catalog?q=earth").await?;
    ensure!(page.header("location") == "/panel/login?next=%2Fpanel%2Fcatalog%3Fq%3Dearth", "{page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_is_easy_to_guess_is_not_taken_anywhere() -> Result<()> {
    let node = Node::start().await?;
    let mut stranger = node.browser()?;
    let code = node.console().await?.setup_code.context("no code")?;
    let body = json!({ "code": code, "password": "aaaaaaaaaa" }).to_string();
    let request = stranger
        .request(Method::POST, "/api/v1/setup")
        .header(header::ORIGIN, &node.url)
        .header(header::CONTENT_TYPE, "application/json")
        .body(body);
    let page = stranger.send(request).await?;
    ensure!(page.status == 422 && page.body.contains("easy to guess"), "{page:?}");
    let mut browser = node.set_up().await?;
    let fields = [("password", "qwertyuiop"), ("repeated", "qwertyuiop")];
    let page = browser.post("/panel/password", &fields).await?;
    ensure!(page.status == 422 && page.body.contains("easy to guess"), "{page:?}");
    let mut other = node.browser()?;
    let page = other.post("/panel/login", &[("password", PASSWORD)]).await?;
    ensure!(page.status == 303, "the password of before holds: {page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_over_the_process_asks_this_port_as_well_and_without_a_log_in() -> Result<()> {
    let node = Node::start().await?;
    let mut stranger = node.browser()?;
    let page = stranger.get("/healthz").await?;
    ensure!(page.status == 200 && page.body == "ok\n", "{page:?}");
    let page = stranger.get("/readyz").await?;
    let told: Value = serde_json::from_str(&page.body)?;
    let health = node.process.control().ask_any_status(endpoint::Health).await?;
    let status = if health.ready { 200 } else { 503 };
    ensure!(told["ready"] == health.ready && page.status == status, "{page:?}");
    let waiting_for = told["waiting_for"].as_array().context("no list")?;
    ensure!(waiting_for.is_empty() == health.ready, "{page:?}");
    let elsewhere = stranger.request(Method::GET, "/readyz").header(header::HOST, "evil.example");
    ensure!(stranger.send(elsewhere.version(reqwest::Version::HTTP_11)).await?.status == 421);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_forms_are_sent_to_says_so_when_it_is_opened() -> Result<()> {
    let (_node, mut browser) = Node::opened().await?;
    let page = browser.get("/panel/catalog?page=-1").await?;
    ensure!(page.status == 400 && page.body.contains("The request is not valid"), "{page:?}");
    for path in ["/panel/theme", "/panel/network/test", "/panel/finance/stop", "/panel/settings/backup/daily"]
    {
        let page = browser.get(path).await?;
        ensure!(page.status == 405 && page.header("allow") == "POST", "{path}: {page:?}");
        ensure!(page.body.contains("This address is not a page") && page.body.contains("/panel"), "{page:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn logging_in_makes_a_new_session_and_never_takes_one_that_was_brought() -> Result<()> {
    let (node, first) = Node::opened().await?;
    let mut victim = node.browser()?;
    let planted = "0".repeat(64);
    victim.cookies.push(("__Host-farthing-console".to_owned(), planted.clone()));
    let page = victim.get("/panel").await?;
    ensure!(page.status == 303, "{page:?}");
    let page = victim
        .send(victim.form(
            "/panel/login",
            &[("password".into(), PASSWORD.into()), ("next".into(), "//evil.example".into())],
        ))
        .await?;
    ensure!(page.status == 303 && page.header("location") == "/panel", "{page:?}");
    let fresh = victim.session().context("no session")?;
    ensure!(fresh != planted && Some(&fresh) != first.session().as_ref());
    let cookie = page.header("set-cookie");
    for attribute in ["__Host-", "; Secure", "; HttpOnly", "; SameSite=Strict", "; Path=/"] {
        ensure!(cookie.contains(attribute), "{attribute} is not in {cookie}");
    }
    let mut again = victim.clone();
    let page = again.send(again.form("/panel/login", &[("password".into(), PASSWORD.into())])).await?;
    ensure!(page.status == 303 && again.session().as_ref() != Some(&fresh));
    ensure!(victim.get("/panel").await?.status == 303, "the former session has ended");
    ensure!(again.post("/panel/logout", &[]).await?.status == 303);
    ensure!(again.session().is_none(), "the cookie is gone");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_are_slowed_and_nobody_is_locked_out() -> Result<()> {
    let node = Node::start().await?;
    node.set_up().await?;
    let mut guesser = node.browser()?;
    // However slow this machine is, some try comes before its time: waiting grows to a minute.
    let mut refused = 0;
    for _ in 0..12 {
        if refused > 0 {
            break;
        }
        let page = guesser.post("/panel/login", &[("password", "a wrong password")]).await?;
        refused += usize::from(page.status == 429);
        ensure!(page.status != 429 || page.header("retry-after").parse::<u64>().is_ok_and(|secs| secs <= 60));
    }
    ensure!(refused >= 1, "no guess had to wait");
    let guess = guesser
        .request(Method::POST, "/api/v1/session")
        .header("sec-fetch-site", "same-origin")
        .header(header::CONTENT_TYPE, "application/json")
        .body(r#"{"password":"a wrong password"}"#);
    let page = guesser.send(guess).await?;
    ensure!(page.status == 429 || page.status == 401, "{page:?}");
    ensure!(page.status != 429 || !page.header("retry-after").is_empty(), "{page:?}");
    farthing_tests::wait::eventually("the right password is taken", async || {
        let page = guesser.post("/panel/login", &[("password", PASSWORD)]).await?;
        Ok(page.status == 303)
    })
    .await
}

/// Another program of this machine, which posts wrong passwords all the time on many connections.
#[tokio::test(flavor = "multi_thread")]
async fn a_local_program_that_guesses_all_the_time_keeps_no_browser_out_that_was_here_before() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let (slowed, mut seen) = tokio::sync::watch::channel(0_usize);
    let guessers: Result<Vec<_>> = (0..48)
        .map(|number| {
            let (mut guesser, slowed) = (node.browser()?, slowed.clone());
            Ok(tokio::spawn(async move {
                loop {
                    let address = if number % 2 == 0 { "/panel/login" } else { "/api/v1/session" };
                    let page = match address {
                        "/panel/login" => guesser.post(address, &[("password", "a wrong password")]).await,
                        _ => {
                            let body = r#"{"password":"a wrong password"}"#;
                            let guess = guesser.request(Method::POST, address);
                            let guess = guess.header("sec-fetch-site", "same-origin").body(body);
                            guesser.send(guess.header(header::CONTENT_TYPE, "application/json")).await
                        }
                    };
                    if page.is_ok_and(|page| page.status == 429) {
                        slowed.send_modify(|count| *count += 1);
                    }
                }
            }))
        })
        .collect();
    let guessers = guessers?;
    seen.wait_for(|count| *count > 100).await?;
    for round in 0..10 {
        // Idle connections make room for others, so each request has one of its own.
        browser = browser.reconnected(&node)?;
        let page = browser.post("/panel/login", &[("password", PASSWORD)]).await?;
        ensure!(page.status == 303, "log-in {round}: {page:?}");
        browser = browser.reconnected(&node)?;
        let page = browser.press("/panel/settings/secret", &[("console_password", PASSWORD)]).await?;
        ensure!(page.status == 200 && page.body.contains("farthing_sk_"), "password {round}: {page:?}");
        let device = browser.device.as_deref().context("no device")?;
        let body = format!(r#"{{"password":"{PASSWORD}","device":"{device}"}}"#);
        let mut program = browser.reconnected(&node)?;
        let request =
            program.request(Method::POST, "/api/v1/session").header("sec-fetch-site", "same-origin");
        let page = program.send(request.header(header::CONTENT_TYPE, "application/json").body(body)).await?;
        ensure!(page.status == 200, "a program's log-in {round}: {page:?}");
        browser.cookies = program.cookies;
    }
    guessers.iter().for_each(tokio::task::JoinHandle::abort);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_made_only_by_a_page_of_ours() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let key = browser.key.clone().context("no key")?;
    type Change = fn(reqwest::RequestBuilder) -> reqwest::RequestBuilder;
    let elsewhere: [(&str, Change); 4] = [
        ("another site", |form| form.header("sec-fetch-site", "cross-site")),
        ("another port", |form| form.header(header::ORIGIN, "https://localhost:3000")),
        ("nobody", |form| form),
        ("no origin", |form| form.header(header::ORIGIN, "null")),
    ];
    for (who, change) in elsewhere {
        let form = browser
            .request(Method::POST, "/panel/finance/stop")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(format!("console_key={key}"));
        let page = browser.send(change(form)).await?;
        ensure!(page.status == 403 && page.body.contains("from another site"), "{who}: {page:?}");
    }
    let spends = async || -> Result<bool> {
        let state = node.process.control().ask(endpoint::Spending).await?;
        Ok(state.stopped.is_none())
    };
    let session = browser.session().context("no session")?;
    for wrong in ["", "0", &key[1..], &"0".repeat(key.len()), &session] {
        let fields = [("console_key".to_owned(), wrong.to_owned())];
        let page = browser.send(browser.form("/panel/finance/stop", &fields)).await?;
        ensure!(page.asks_for_password() && spends().await?, "{wrong}: {page:?}");
    }
    let page = browser.press("/panel/finance/stop", &[]).await?;
    ensure!(page.status == 303 && !spends().await?, "{page:?}");
    ensure!(browser.press("/panel/theme", &[("theme", "dark")]).await?.status == 303);
    ensure!(browser.get("/panel").await?.body.contains("data-theme=\"dark\""));
    // What changes something cannot be asked for by GET.
    for path in ["/panel/theme", "/panel/logout", "/panel/network/test"] {
        ensure!(browser.get(path).await?.status == 405, "{path}");
    }
    ensure!(browser.get("/panel").await?.status == 200, "still logged in");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_rebinds_its_name_is_refused() -> Result<()> {
    let (_node, mut browser) = Node::opened().await?;
    let other = format!("{}.localhost", "0".repeat(32));
    for host in ["evil.example", "localhost.evil.example", "evil.example:3002", &other] {
        for path in ["/panel", "/panel/setup", "/ca.pem", "/api/v1/status", "/assets/console.css"] {
            let request = browser.request(Method::GET, path).version(reqwest::Version::HTTP_11);
            let page = browser.send(request.header(header::HOST, host)).await?;
            ensure!(page.status == 421, "{host}{path}: {page:?}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_of_the_machine_gets_back_in_and_everybody_else_is_out() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let mut other = node.browser()?;
    ensure!(other.post("/panel/login", &[("password", PASSWORD)]).await?.status == 303);
    let fields = [("password", "five random words"), ("repeated", "five random words")];
    let page = browser.post("/panel/password", &fields).await?;
    ensure!(page.status == 200 && page.body.contains("The password is changed"), "{page:?}");
    ensure!(other.get("/panel").await?.status == 303, "the other browser is logged out");

    let console = node.process.control().ask(endpoint::ResetConsole).await?;
    let code = console.setup_code.context("no new code")?;
    ensure!(browser.get("/panel").await?.header("location") == "/panel/setup");
    let mut owner: Browser = node.browser()?;
    let fields = [("code", code.as_str()), ("password", PASSWORD), ("repeated", PASSWORD)];
    ensure!(owner.post("/panel/setup", &fields).await?.status == 303);
    ensure!(owner.get("/panel").await?.status == 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_one_logged_in_and_asks_for_the_password_before_danger() -> Result<()> {
    let (mut node, mut browser) = Node::opened().await?;
    node.restart(&mut browser).await?;
    ensure!(browser.get("/panel").await?.status == 200);
    let page = browser.press("/panel/finance/stop", &[]).await?;
    ensure!(page.status == 303, "the key holds after a restart: {page:?}");
    const RESUME: &str = "/panel/finance/resume";
    ensure!(browser.press(RESUME, &[]).await?.asks_for_password());
    let page = browser.press(RESUME, &[("console_password", "a wrong password")]).await?;
    ensure!(page.status == 422 && page.body.contains("Wrong password"), "{page:?}");
    let page = browser.press(RESUME, &[("console_password", PASSWORD)]).await?;
    ensure!(page.status == 303, "{page:?}");
    browser.press("/panel/finance/stop", &[]).await?;
    let page = browser.press(RESUME, &[]).await?;
    ensure!(page.status == 303, "it was typed a moment ago: {page:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_from_a_file_needs_no_setup() -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), format!("{PASSWORD}\n"))?;
    let password = vec![("panel.password_file".to_owned(), file.path().display().to_string())];
    let node = Node::with(password).await?;
    ensure!(node.console().await?.setup_code.is_none());
    let mut browser = node.browser()?;
    ensure!(browser.get("/panel").await?.header("location") == "/panel/login");
    ensure!(browser.post("/panel/login", &[("password", PASSWORD)]).await?.status == 303);
    ensure!(browser.get("/panel").await?.status == 200);
    ensure!(node.process.control().ask(endpoint::ResetConsole).await.is_err());
    Ok(())
}
