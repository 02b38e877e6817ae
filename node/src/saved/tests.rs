//! What is saved, what is refused, and what is never kept.

use farthing_control::types::RequestPart;
use farthing_ledger::OpenMode;

use super::*;

const SERVICE: ServiceId = ServiceId::from_bytes([1; 16]);
const OTHER: ServiceId = ServiceId::from_bytes([2; 16]);

fn opened(folder: &tempfile::TempDir, mode: OpenMode) -> SavedRequests {
    SavedRequests::restore(Ledger::open(&folder.path().join("ledger.redb"), mode).unwrap()).unwrap()
}

fn request(name: &str, service: ServiceId) -> NewSavedRequest {
    NewSavedRequest {
        name: name.to_owned(),
        service: service.into(),
        operation: "GET /v1/things".to_owned(),
        fields: RequestFields::default(),
    }
}

fn text(names: &[SavedTitle]) -> Vec<&str> {
    names.iter().map(|title| title.name.as_str()).collect()
}

#[tokio::test]
async fn a_request_is_there_after_a_restart_under_its_new_name_until_it_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let saved = opened(&folder, OpenMode::Create);
    let parameters = BTreeMap::from([("place".to_owned(), "שלום 🪐\n".to_owned())]);
    let fields = RequestFields { parameters, body: "{\"a\": 1}".to_owned(), ..RequestFields::default() };
    let first =
        saved.save(NewSavedRequest { fields: fields.clone(), ..request("b", SERVICE) }).await.unwrap();
    saved.save(request("A", SERVICE)).await.unwrap();
    saved.save(request("b", OTHER)).await.unwrap();
    let id = &first.title.id;
    assert_eq!(saved.rename(id, " שלום 🪐 ").await.unwrap().name, "שלום 🪐");
    drop(saved);

    let saved = opened(&folder, OpenMode::Existing);
    assert_eq!(text(&saved.titles(Some(SERVICE))), ["A", "שלום 🪐"]);
    assert_eq!(saved.titles(None).len(), 3);
    let found = saved.get(id).unwrap();
    assert_eq!((found.fields, found.left_out), (fields, Vec::new()));
    saved.remove(id).await.unwrap();
    for none in [id.as_str(), "", "none"] {
        assert!(matches!(saved.get(none), Err(SavedError::NotFound)), "{none}");
        assert!(matches!(saved.remove(none).await, Err(SavedError::NotFound)), "{none}");
    }
    drop(saved);
    assert_eq!(text(&opened(&folder, OpenMode::Existing).titles(Some(SERVICE))), ["A"]);
}

#[tokio::test]
async fn a_name_is_a_line_of_a_hundred_characters_that_no_other_request_of_the_service_has() {
    let folder = tempfile::tempdir().unwrap();
    let saved = opened(&folder, OpenMode::Create);
    let longest = "🪐".repeat(NAME_CHARS_MAX);
    let first = saved.save(request(&longest, SERVICE)).await.unwrap();
    let save = async |name: &str| saved.save(request(name, SERVICE)).await.map(|saved| saved.title.name);
    assert!(matches!(save(&format!("{longest}x")).await, Err(SavedError::LongName)));
    assert!(matches!(save(" \u{202e}\n").await, Err(SavedError::NoName)));
    let taken = save(&format!("{longest}\u{200b} ")).await;
    assert!(matches!(&taken, Err(SavedError::Exists(name)) if *name == longest), "{taken:?}");
    assert_eq!(save("two\r\nlines \u{202e}turned").await.unwrap(), "two  lines turned");
    let taken = saved.rename(&first.title.id, "two  lines turned").await;
    assert!(matches!(taken, Err(SavedError::Exists(_))), "{taken:?}");
    assert_eq!(saved.rename(&first.title.id, &longest).await.unwrap().name, longest, "its own");
}

#[tokio::test]
async fn two_hundred_requests_are_kept_of_sixteen_kib_each() {
    let folder = tempfile::tempdir().unwrap();
    let saved = opened(&folder, OpenMode::Create);
    let room = REQUEST_KIB_MAX * 1024 - "GET /v1/things".len();
    let with = |bytes: usize, name: &str| {
        let fields = RequestFields { body: "x".repeat(bytes), ..RequestFields::default() };
        NewSavedRequest { fields, ..request(name, SERVICE) }
    };
    assert!(matches!(saved.save(with(room + 1, "large")).await, Err(SavedError::TooLarge)));
    let last = saved.save(with(room, "0")).await.unwrap();
    for number in 1..ALL_MAX {
        saved.save(request(&number.to_string(), OTHER)).await.unwrap();
    }
    assert!(matches!(saved.save(request("more", OTHER)).await, Err(SavedError::TooMany)));
    saved.remove(&last.title.id).await.unwrap();
    saved.save(request("more", OTHER)).await.unwrap();
}

#[tokio::test]
async fn no_secret_is_kept_and_what_is_left_out_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let saved = opened(&folder, OpenMode::Create);
    let pairs = [
        ("Authorization", "Basic Zm9v"),
        ("X-Api-Key", "k3y"),
        ("q", "Bearer of news"),
        ("place", "Bern"),
        ("note", "use farthing_sk_00"),
    ];
    let parameters = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let part = |name: &str| RequestPart { name: name.to_owned(), value: "v4lue".to_owned() };
    let fields = RequestFields {
        parameters,
        extra: "access_token = t0ken\nlimit=5\nplain".to_owned(),
        body: "{\"key\": \"farthing_sk_00\"}".to_owned(),
        parts: vec![part("title"), part("user.password")],
        file: "a.png".to_owned(),
    };
    let kept = saved.save(NewSavedRequest { fields, ..request("all", SERVICE) }).await.unwrap();
    assert_eq!(kept.fields.parameters, BTreeMap::from([("place".to_owned(), "Bern".to_owned())]));
    assert_eq!(kept.fields.extra, "limit=5\nplain");
    assert_eq!(kept.fields.parts, [part("title")]);
    assert_eq!((kept.fields.body.as_str(), kept.fields.file.as_str()), ("", "a.png"));
    let left_out = ["Authorization", "X-Api-Key", "note", "q", "user.password", "access_token", "body"];
    assert_eq!(kept.left_out, left_out);
    let stored = saved.0.ledger.list(Namespace::Requests).unwrap();
    let stored = String::from_utf8_lossy(&stored[0].1).into_owned();
    for secret in ["Zm9v", "k3y", "t0ken", "farthing_sk_", "news"] {
        assert!(!stored.contains(secret), "{secret} in {stored}");
    }
}
