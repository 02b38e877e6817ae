//! Every problem there can be, against `docs/problems.md`.

use std::collections::{BTreeMap, BTreeSet};

use farthing_catalog as store;
use farthing_chain::ChainError;
use farthing_discovery::ContentError;
use farthing_ledger::LedgerError;
use farthing_node::consumer::{
    AwaitedClose, AwaitedDeposit, BooksError, Cap, LastKnown, MissingFunds, NoRoom, PendingDeposit,
    answer::Mismatch,
    conduct::{self, Flag, window::Figures},
    rest_sum::RestSum,
    rules::SpendingStop,
    terms::Unfit,
    undecided::TooMuchUndecided,
};
use farthing_protocol::{Address, ChannelId, Refusal, RefusalCode, ServiceId, call::OutOfBounds, wire};
use farthing_shared::chain_view::NotReady;
use farthing_wallet::PolicyError;
use farthing_x402::NoOffer;

use super::*;

/// Statuses and words for `charged` of each name.
type Catalogue = BTreeMap<String, (BTreeSet<u16>, BTreeSet<String>)>;

const USDC: Usdc = Usdc::from_micros(1);

/// One of each.
fn every_error() -> Vec<BuyError> {
    let text = String::new;
    let service = ServiceId::from_bytes([0; 16]);
    let missing = MissingFunds {
        address: Address::ZERO,
        chain: text(),
        usdc_have: USDC,
        usdc_need: USDC,
        wei_missing: Some(200_000_000_000_000),
        not_sponsored: Some(text()),
        signed: Some((USDC, 1)),
    };
    let figures = Figures { failed: 6, broke: 0, of: 6, since_secs: 0, last: text() };
    let errors: Vec<BuyError> = vec![
        CatalogError::Unknown(service).into(),
        CatalogError::Retired { service, owner: Address::ZERO, on_secs: 0 }.into(),
        CatalogError::DetailsUnavailable { owner: Address::ZERO, reason: ContentError::Gone }.into(),
        CatalogError::DetailsUnavailable { owner: Address::ZERO, reason: ContentError::OtherContent }.into(),
        CatalogError::NoMemory(service).into(),
        CatalogError::NotRead(service).into(),
        BuyError::NotScoped { secret: text(), service },
        BuyError::Plan(PlanError::UnknownPath(text())),
        BuyError::Plan(PlanError::MethodNotAllowed(text())),
        BuyError::Plan(PlanError::BadParameter(text())),
        BuyError::OutOfBounds(OutOfBounds { what: "body", size: 2, size_max: 1 }),
        BuyError::AboveMaxPrice { price: USDC, max_price: USDC },
        BuyError::OverLimit(OverLimit::Price { price: USDC, price_max: USDC }),
        BuyError::NoCommonScheme { offered: text(), chain: text() },
        BuyError::TermsRefused(Unfit::Deposit { asked: USDC, deposit_max: USDC }),
        BuyError::TermsRefused(Unfit::Delay { asked_secs: 2, max_secs: 1 }),
        BuyError::Unfunded(missing),
        BuyError::ChannelLow { owner: Address::ZERO, available: USDC, price: USDC },
        BuyError::Flagged {
            service,
            refused: conduct::ServiceRefusal { flag: Flag::Fails(figures), wait_secs: 1, is_tried: false },
        },
        BuyError::TooMuchUndecided(TooMuchUndecided::Call {
            owner: Address::ZERO,
            sum: USDC,
            limit: USDC,
            wait_secs: 1,
        }),
        BuyError::TooMuchUndecided(TooMuchUndecided::Deposit {
            owner: Address::ZERO,
            sum: USDC,
            limit: USDC,
        }),
        BuyError::ChannelClosing,
        BuyError::CloseAwaited { owner: Address::ZERO, channel: ChannelId::NONE, close: AwaitedClose::Soon },
        BuyError::DelayTooShort { channel: ChannelId::NONE, has_secs: 3_600, asks_secs: 86_400 },
        BuyError::OwnerDistrusted,
        BuyError::ChainNotReady(NotReady::BalanceUnknown),
        BuyError::ChainUnreachable(ChainError::Unreachable { chain: text(), reason: text() }),
        BuyError::OpenFailed(ChainError::Invalid(text())),
        BuyError::DepositPending(PendingDeposit {
            owner: Address::ZERO,
            amount: USDC,
            left_secs: 1,
            why: text(),
        }),
        BuyError::Unsigned(PolicyError::VoucherAboveDeposit { cumulative: USDC, deposited: Usdc::ZERO }),
        BuyError::Ledger(LedgerError::Ending),
        CatalogError::Store(store::CatalogError::Closed).into(),
        BuyError::Unread(LedgerError::Ending),
        BuyError::NotStored(LedgerError::Ending),
        BuyError::SpendingStopped(SpendingStop::ByConfiguration),
        BuyError::SpendingStopped(SpendingStop::Since(0)),
        BuyError::ShuttingDown,
        BuyError::Cancelled(CancelStage::Unpromised),
        BuyError::Cancelled(CancelStage::Promised),
        BuyError::Failed,
        BuyError::PriceChanged { before: USDC, now: USDC, cap: None },
        BuyError::DeclinedCharged { price: USDC },
        BuyError::PriceChanged { before: USDC, now: USDC, cap: Some(Cap::MaxPrice(USDC)) },
        BuyError::PriceChanged {
            before: USDC,
            now: USDC,
            cap: Some(Cap::Limit(OverLimit::Price { price: USDC, price_max: USDC })),
        },
        BuyError::CallIdConflict,
        BuyError::CallIdOfAnother,
        BuyError::OwnerUnreachable(LastKnown::NeverServed),
        BuyError::BooksUnseen(BooksError::Slow),
        BuyError::TimeUp(None),
        BuyError::TimeUp(Some(AwaitedDeposit::Made(USDC))),
        BuyError::Busy(NoRoom::Places { owner_max: 1, secret_max: 1 }),
        BuyError::ShareUsed { secret: text(), wait_secs: 1 },
        BuyError::UpstreamFailed { why: Unanswered::TimedOut, status: 0 },
        BuyError::UpstreamFailed { why: Unanswered::Oversize, status: 200 },
        BuyError::UpstreamFailed { why: Unanswered::ServerError(500), status: 500 },
        BuyError::BadAnswer { mismatch: Mismatch::Unasked, charged: None },
        BuyError::BadAnswer { mismatch: Mismatch::Unasked, charged: Some(Usdc::ZERO) },
        BuyError::BadAnswer { mismatch: Mismatch::Unasked, charged: Some(USDC) },
        BuyError::NotRepeated { charged: Usdc::ZERO, reason: LastKnown::Running.into() },
        BuyError::NotRepeated { charged: USDC, reason: LastKnown::Running.into() },
        BuyError::BodyGone { charged: Usdc::ZERO },
        BuyError::BodyGone { charged: USDC },
        BuyError::Undecided(LastKnown::Running.into()),
        BuyError::Foreign(ForeignError::Removed(service)),
        BuyError::Foreign(ForeignError::NoMaxPrice),
        BuyError::Foreign(ForeignError::AboveMaxPrice { price: USDC, max_price: Usdc::ZERO }),
        BuyError::Foreign(ForeignError::AboveServerPrice { price: USDC, most: Usdc::ZERO }),
        BuyError::Foreign(ForeignError::Path),
        BuyError::Foreign(ForeignError::BadPath("it must begin with a slash")),
        BuyError::Foreign(ForeignError::Unreachable(text())),
        BuyError::Foreign(ForeignError::Plain),
        BuyError::Foreign(ForeignError::Late),
        BuyError::Foreign(ForeignError::Offer(NoOffer::Token)),
        BuyError::Foreign(ForeignError::Unfunded { have: Usdc::ZERO, need: USDC }),
        BuyError::Foreign(ForeignError::Clocks { secs: 121, is: "after" }),
        BuyError::Foreign(ForeignError::Lapsed),
        BuyError::Foreign(ForeignError::Open { why: text(), until: text() }),
        BuyError::Foreign(ForeignError::Elsewhere { place: text() }),
        BuyError::Foreign(ForeignError::Withheld { charged: USDC, why: text() }),
        BuyError::Undecided(BooksError::Ledger(LedgerError::Ending).into()),
    ];
    // The decoder knows every one.
    let codes = (0_u8..=u8::MAX).filter_map(|code| wire::decode::<RefusalCode>(&wire::encode(&code)).ok());
    let refused = codes.map(|code| BuyError::Refused(Refusal::new(code, "")));
    let errors: Vec<BuyError> = errors.into_iter().chain(refused).collect();
    for variant in variants() {
        let is_it = |error: &BuyError| format!("{error:?} ").split([' ', '(']).next() == Some(variant);
        assert!(errors.iter().any(is_it), "`BuyError::{variant}` is missing here");
    }
    errors
}

/// Lists the names of all ways to fail, as they stand in the code.
fn variants() -> impl Iterator<Item = &'static str> {
    let text = include_str!("../../../src/consumer/error.rs");
    let (_, text) = text.split_once("pub enum BuyError {\n").expect("it is there");
    let (text, _) = text.split_once("\n}\n").expect("it ends");
    let names = text.lines().filter_map(|line| line.strip_prefix("    "));
    let names = names.filter(|line| line.starts_with(char::is_uppercase));
    names.filter_map(|line| line.split(|sign: char| !sign.is_alphanumeric()).next())
}

fn every_problem() -> Vec<Problem> {
    let mut no_such_method = Problem::no_such_route("");
    no_such_method.status = StatusCode::METHOD_NOT_ALLOWED;
    let of_requests = [
        Problem::unauthorized(""),
        Problem::malformed(""),
        Problem::too_large(""),
        Problem::no_such_route(""),
        no_such_method,
        Problem::unknown_host(),
        Problem::origin_refused(),
        Problem::no_room(),
    ];
    every_error().iter().map(Problem::from).chain(of_requests).collect()
}

fn produced() -> Catalogue {
    let mut catalogue = Catalogue::new();
    for problem in every_problem() {
        let (statuses, charged) = catalogue.entry(problem.name.to_string()).or_default();
        statuses.insert(problem.status.as_u16());
        let word = match problem.charged {
            ChargeStatus::No => "no",
            ChargeStatus::Yes => "yes",
            ChargeStatus::Undecided => "unknown",
        };
        charged.insert(word.to_owned());
    }
    catalogue
}

/// Entries look like `` ## `name` ``, then `Status 404 or 405. Charged: no or yes.`
fn documented() -> Catalogue {
    let text = include_str!("../../../../docs/problems.md");
    let mut catalogue = Catalogue::new();
    let mut lines = text.lines().filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("## `").and_then(|rest| rest.strip_suffix('`')) else { continue };
        let facts = lines.next().unwrap_or_default();
        let (statuses, charged) = facts
            .strip_prefix("Status ")
            .and_then(|rest| rest.strip_suffix('.'))
            .and_then(|rest| rest.split_once(". Charged: "))
            .unwrap_or_else(|| panic!("`{name}`: `{facts}` is not `Status N. Charged: WORD.`"));
        let statuses = statuses.split(" or ").map(|status| status.parse().unwrap()).collect();
        let charged = charged.split(" or ").map(str::to_owned).collect();
        assert!(catalogue.insert(name.to_owned(), (statuses, charged)).is_none(), "`{name}` has two entries");
    }
    catalogue
}

#[test]
fn every_problem_has_its_entry_and_every_entry_its_problem() {
    let (produced, documented) = (produced(), documented());
    for (name, facts) in &produced {
        assert_eq!(documented.get(name), Some(facts), "docs/problems.md, `{name}`");
    }
    let unknown: Vec<_> = documented.keys().filter(|name| !produced.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "docs/problems.md describes what cannot occur: {unknown:?}");
}

#[test]
fn every_problem_says_what_to_do_next() {
    for problem in every_problem() {
        assert!(!problem.title.is_empty() && problem.next.ends_with('.'), "{problem:?}");
        let document = problem.to_json();
        assert_eq!(document["type"], format!("urn:farthing:problem:{}", problem.name));
        assert_eq!(document["status"], problem.status.as_u16());
    }
}

#[test]
fn a_call_that_is_refused_for_its_price_tells_the_price_as_an_amount() {
    let above = BuyError::AboveMaxPrice { price: USDC, max_price: Usdc::ZERO };
    let changed = BuyError::PriceChanged { before: Usdc::ZERO, now: USDC, cap: None };
    let foreign = BuyError::Foreign(ForeignError::AboveMaxPrice { price: USDC, max_price: Usdc::ZERO });
    // The amount that a user confirms is sent as an agent's highest price.
    assert!(Problem::from(&above).next.contains("wait for your approval"));
    // A call of an x402 server without `max_price` is refused.
    assert!(!Problem::from(&foreign).next.contains("leave it out"));
    for error in [above, changed, foreign] {
        assert_eq!(Problem::from(&error).to_json()["price_usdc"], "0.000001", "{error:?}");
    }
    assert_eq!(Problem::from(&BuyError::CallIdConflict).to_json().get("price_usdc"), None);
}

#[test]
fn a_call_over_a_limit_tells_which_as_a_word_that_the_documents_have() {
    let (owner, secret, deposit) = (Address::ZERO, "a".to_owned(), USDC);
    let (spent, per_day, price, price_max) = (USDC, USDC, USDC, USDC);
    let resting = RestSum::default();
    let told = [
        OverLimit::Price { price, price_max },
        OverLimit::Day { spent, per_day, price },
        OverLimit::SecretDay { spent, per_day, price },
        OverLimit::SecretPrice { secret: secret.clone(), price, price_max },
        OverLimit::SecretBudget { secret, spent, per_day, price },
        OverLimit::RestOfOwner { owner, resting, per_owner: USDC, deposit },
        OverLimit::Rest { resting, in_all: USDC, deposit },
        OverLimit::Refilled { owner, hours: 1 },
        OverLimit::ClosedUnasked { owner, hours: 1 },
    ]
    .map(|over| Problem::from(&BuyError::from(over)).to_json());
    let mut words: Vec<&str> = told.iter().map(|problem| problem["limit"].as_str().unwrap()).collect();
    let settings = told.iter().map(|problem| problem["next"].as_str().unwrap());
    for ((word, next), way) in words.iter().zip(settings).zip([
        "spending limits --per-call",
        "spending limits --per-day",
        "spending limits --per-secret-day",
        "secret limit --per-call",
        "secret limit --per-day",
    ]) {
        assert!(next.contains(way), "{word}: {next}");
    }
    words.dedup();
    assert_eq!(words, LimitKind::ALL.map(LimitKind::name));
    let described: Value = serde_json::from_str(include_str!("../openapi.json")).unwrap();
    assert_eq!(described["components"]["schemas"]["Problem"]["properties"]["limit"]["enum"], json!(words));
    let documented = include_str!("../../../../docs/problems.md");
    for word in words {
        assert!(documented.contains(&format!("\n| `{word}` |")), "docs/problems.md: {word}");
    }
    assert_eq!(Problem::from(&BuyError::CallIdConflict).to_json().get("limit"), None);
}

#[tokio::test]
async fn what_a_port_turns_away_is_told_as_a_problem_and_never_as_free_when_it_may_repeat_a_call() {
    for (what, status, name) in [
        (TurnedAway::UnknownHost, 421, "unknown-host"),
        (TurnedAway::FromWebPage, 403, "origin-refused"),
        (TurnedAway::NoRoom, 503, "no-room"),
    ] {
        let answer = turned_away(what);
        assert_eq!(answer.status().as_u16(), status);
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/problem+json");
        let retry_after = answer.headers().get(header::RETRY_AFTER).cloned();
        let body = axum::body::to_bytes(answer.into_body(), 4096).await.unwrap();
        let problem: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["type"], format!("urn:farthing:problem:{name}"));
        if what == TurnedAway::NoRoom {
            assert_eq!((&problem["charged"], retry_after.unwrap().as_bytes()), (&Value::Null, &b"1"[..]));
        }
    }
}

#[test]
fn what_failed_below_a_purchase_stays_its_cause() {
    let not_stored = BuyError::NotStored(LedgerError::Ending);
    let cause = std::error::Error::source(&not_stored).unwrap();
    assert_eq!(cause.to_string(), LedgerError::Ending.to_string());
    let unread = BuyError::from(LedgerError::Ending);
    assert_eq!(Problem::from(&unread).detail, LedgerError::Ending.to_string(), "and is told word for word");
}
