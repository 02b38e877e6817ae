//! The promises of access to the console, on a real folder.

use std::{net::Ipv4Addr, os::unix::fs::PermissionsExt};

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn password(text: &str) -> SecretText {
    SecretText::new(text)
}

async fn set_up(folder: &Path) -> (Access, Token) {
    let access = Access::open(folder, None).unwrap();
    let code = access.setup_code().unwrap();
    let begun = access.set_up(code.expose(), password("four random words"), HERE).await.unwrap();
    (access, begun.token)
}

#[tokio::test]
async fn the_setup_code_is_good_once_and_nothing_else_sets_up() {
    let folder = tempfile::tempdir().unwrap();
    let access = Access::open(folder.path(), None).unwrap();
    let code = access.setup_code().unwrap();
    let wrong = access.set_up("AAAA-AAAA-AAAA", password("four random words"), HERE).await;
    assert!(matches!(wrong, Err(Refused::WrongCode)));
    let short = access.set_up(code.expose(), password("short"), HERE).await;
    assert!(matches!(short, Err(Refused::Unfit(Unfit::Short))));
    let printed = access.set_up(code.expose(), password(&code.expose().to_lowercase()), HERE).await;
    assert!(matches!(printed, Err(Refused::Unfit(Unfit::Printed))));
    assert!(matches!(access.log_in(password("short"), None, HERE).await, Err(Refused::NotSetUp)));
    let begun = access.set_up(code.expose(), password("four random words"), HERE).await.unwrap();
    assert!(access.session(&begun.token).is_some() && access.setup_code().is_none());
    let again = access.set_up(code.expose(), password("other random words"), HERE).await;
    assert!(matches!(again, Err(Refused::SetUpAlready)));
    assert!(access.log_in(password("four random words"), None, HERE).await.is_ok());
}

#[tokio::test]
async fn a_restart_logs_nobody_out_and_forgets_no_password() {
    let folder = tempfile::tempdir().unwrap();
    let (_, token) = set_up(folder.path()).await;
    let file = folder.path().join(file_names::CONSOLE);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let stored = std::fs::read_to_string(&file).unwrap();
    assert!(!stored.contains(token.expose()) && !stored.contains("four random words"));
    let access = Access::open(folder.path(), None).unwrap();
    assert!(access.setup_code().is_none());
    let session = access.session(&token).unwrap();
    assert!(session.reauthenticated(clock::now_secs()).is_none());
    access.confirm(&session, password("four random words"), HERE, false).await.unwrap();
    assert!(access.session(&token).unwrap().reauthenticated(clock::now_secs()).is_some());
}

#[tokio::test]
async fn a_log_in_ends_the_session_that_the_browser_had() {
    let folder = tempfile::tempdir().unwrap();
    let (access, first) = set_up(folder.path()).await;
    let had = access.session(&first).unwrap();
    let second = access.log_in(password("four random words"), Some(&had), HERE).await.unwrap().token;
    assert!(access.session(&first).is_none());
    let session = access.session(&second).unwrap();
    access.log_out(&session).await;
    assert!(access.session(&second).is_none());
}

#[tokio::test]
async fn a_new_password_ends_the_other_sessions_and_a_reset_ends_all() {
    let folder = tempfile::tempdir().unwrap();
    let (access, first) = set_up(folder.path()).await;
    let second = access.log_in(password("four random words"), None, HERE).await.unwrap().token;
    let session = access.session(&second).unwrap();
    let proof = access.confirm(&session, password("four random words"), HERE, false).await.unwrap();
    access.change_password(&session, proof, password("five random words")).await.unwrap();
    assert!(access.session(&first).is_none() && access.session(&second).is_some());
    let old = access.log_in(password("four random words"), None, HERE).await;
    assert!(matches!(old, Err(Refused::WrongPassword)));
    let code = access.reset().await.unwrap();
    assert!(access.session(&second).is_none());
    assert_eq!(access.setup_code().unwrap().expose(), code.expose());
    let reopened = Access::open(folder.path(), None).unwrap();
    assert!(reopened.setup_code().is_some());
}

#[tokio::test]
async fn guesses_are_slowed_down_however_many_come_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (access, _) = set_up(folder.path()).await;
    let guesses = (0..20).map(|_| access.log_in(password("a wrong password"), None, HERE));
    let outcomes = futures::future::join_all(guesses).await;
    let checked = outcomes.iter().filter(|outcome| matches!(outcome, Err(Refused::WrongPassword))).count();
    assert_eq!(checked, 5);
    let waiting = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Err(Refused::Wait(left)) if *left <= Duration::from_secs(1)));
    assert_eq!(waiting.count(), 15);
}

/// Wrong passwords, until one has to wait.
async fn guess(access: &Access, from: Asker) {
    for _ in 0..100 {
        match access.log_in(password("a wrong password"), None, from.clone()).await {
            Err(Refused::Wait(_)) => return,
            other => assert!(matches!(other, Err(Refused::WrongPassword)), "{other:?}"),
        }
    }
    panic!("guesses are not slowed down");
}

#[tokio::test]
async fn a_program_that_guesses_keeps_nobody_out_who_was_here_before() {
    let folder = tempfile::tempdir().unwrap();
    let access = Access::open(folder.path(), None).unwrap();
    guess_codes(&access).await;
    let code = access.setup_code().unwrap();
    let begun = access.set_up(code.expose(), password("four random words"), HERE).await.unwrap();
    let device = begun.device.unwrap();
    // A restart takes nobody for a stranger.
    let access = Access::open(folder.path(), None).unwrap();
    guess(&access, HERE.into()).await;
    let right = |device: &str| {
        let from = Asker { address: HERE, device: device.to_owned() };
        access.log_in(password("four random words"), None, from)
    };
    let mut token = None;
    for _ in 0..10 {
        let begun = right(device.expose()).await.unwrap();
        assert!(begun.device.is_none(), "the one that is held is still good");
        let session = access.session(&begun.token).unwrap();
        access.confirm(&session, password("four random words"), HERE, true).await.unwrap();
        token = Some(begun.token);
    }
    // Time has passed: whoever guesses waits again, for longer each time.
    guess(&access, HERE.into()).await;
    let session = access.session(&token.unwrap()).unwrap();
    let confirmed = access.confirm(&session, password("four random words"), HERE, false).await;
    assert!(matches!(confirmed, Err(Refused::Wait(_))), "a cookie alone brings tries: {confirmed:?}");
    assert!(matches!(right("0").await, Err(Refused::Wait(_))), "what is no key makes nobody known");
    right(device.expose()).await.unwrap();
    guess(&access, Asker { address: HERE, device: device.expose().to_owned() }).await;
}

async fn guess_codes(access: &Access) {
    for _ in 0..100 {
        let outcome = access.set_up("AAAA-AAAA-AAAA", password("four random words"), HERE).await;
        if matches!(outcome, Err(Refused::Wait(_))) {
            return;
        }
    }
    panic!("codes are not slowed down");
}

#[tokio::test]
async fn a_new_password_and_logging_out_others_forget_the_other_browsers() {
    let folder = tempfile::tempdir().unwrap();
    let (access, _) = set_up(folder.path()).await;
    let log_in = || access.log_in(password("four random words"), None, HERE);
    let (one, other) = (log_in().await.unwrap(), log_in().await.unwrap());
    access.log_out_others(&access.session(&one.token).unwrap()).await;
    let find = |begun: &NewSession| {
        access.0.state.lock().stored.devices.find(begun.device.as_ref().unwrap().expose())
    };
    assert!(find(&one).is_some() && find(&other).is_none());
}

#[tokio::test]
async fn more_than_a_few_passwords_at_once_are_refused_in_words_and_count_as_no_try() {
    let folder = tempfile::tempdir().unwrap();
    let (access, _) = set_up(folder.path()).await;
    let known = access.log_in(password("four random words"), None, HERE).await.unwrap().device.unwrap();
    let addresses = (0..20_u16).map(|n| IpAddr::from([0x2620, 0xfe, 0, n, 0, 0, 0, 1]));
    let wrong = addresses.map(|from| access.log_in(password("a wrong password"), None, from));
    let from = Asker { address: HERE, device: known.expose().to_owned() };
    let right = access.log_in(password("four random words"), None, from);
    let (outcomes, right) = futures::join!(futures::future::join_all(wrong), right);
    let count = |fits: fn(&Refused) -> bool| {
        outcomes.iter().filter(|outcome| outcome.as_ref().is_err_and(fits)).count()
    };
    assert_eq!(count(|refused| matches!(refused, Refused::WrongPassword)), 10);
    assert_eq!(count(|refused| matches!(refused, Refused::Busy)), 10);
    right.unwrap();
}

#[tokio::test]
async fn a_configured_password_needs_no_setup_and_is_not_changed_here() {
    let folder = tempfile::tempdir().unwrap();
    let configured = password("from a secret file");
    let access = Access::open(folder.path(), Some(&configured)).unwrap();
    assert!(access.setup_code().is_none());
    let begun = access.log_in(password("from a secret file"), None, HERE).await.unwrap();
    let session = access.session(&begun.token).unwrap();
    let proof = access.confirm(&session, configured, HERE, false).await.unwrap();
    let changed = access.change_password(&session, proof, password("five random words")).await;
    assert!(matches!(changed, Err(Refused::Configured)));
    assert!(matches!(access.reset().await, Err(Refused::Configured)));
}

#[test]
fn a_damaged_file_is_not_replaced_silently() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file_names::CONSOLE), "{").unwrap();
    let error = Access::open(folder.path(), None).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}
