//! Signed documents: their limits, below, at and above; and those of a newer version, passed on.

use farthing_protocol::{
    Listing, NodeRecord, SecretKey, ServiceId, ServiceNonce, Signed, Usdc,
    call::Method,
    keccak256,
    limits::{
        CLOCK_SKEW_SECS_MAX, DETAILS_BYTES_MAX, HISTORY_BYTES_MAX, LISTING_ACCEPTS_MAX, LISTING_BYTES_MAX,
        LISTING_CATEGORY_CHARS_MAX, LISTING_NAME_CHARS_MAX, LISTING_SUMMARY_CHARS_MAX, LISTING_TAG_CHARS_MAX,
        LISTING_TAGS_MAX, NETWORK_NAME_BYTES_MAX, OPERATIONS_MAX, RECORD_ADDRESS_BYTES_MAX,
        RECORD_ADDRESSES_MAX, RECORD_BYTES_MAX, RECORD_LIFETIME_SECS_MAX,
    },
    listing::{Details, DetailsError, Pin},
    signed::{Document, DocumentError},
    wire,
};
use minicbor::bytes::ByteVec;

use crate::examples::{consumer, details, listing, node_record, owner, signed_listing, signed_record};

/// A document of which only the bytes are known, signed as the protocol says.
fn sign_bytes<T: Document>(bytes: &[u8], key: &SecretKey) -> Signed<T> {
    sign_bytes_as(T::DOMAIN, bytes, key)
}

fn sign_bytes_as<T: Document>(domain: &str, bytes: &[u8], key: &SecretKey) -> Signed<T> {
    let parts: [&[u8]; 4] = [b"\x19Farthing signed document:\0", domain.as_bytes(), b"\0", bytes];
    let signature = key.sign(&keccak256(&parts));
    let mut out = Vec::new();
    let mut encoder = minicbor::Encoder::new(&mut out);
    encoder.map(2).unwrap().u8(0).unwrap().bytes(bytes).unwrap().u8(1).unwrap().encode(signature).unwrap();
    wire::decode(&out).unwrap()
}

#[test]
fn a_document_of_a_newer_version_keeps_its_signature_when_passed_on() {
    // A record with a thirteenth entry: `13: "of a later day"`.
    let mut bytes = wire::encode(&node_record());
    assert_eq!(bytes[0], 0xac, "twelve entries, the network key being absent");
    bytes[0] += 1;
    bytes.push(13);
    bytes.extend(wire::encode(&"of a later day"));
    let newer: Signed<NodeRecord> = sign_bytes(&bytes, &owner());
    let sent = wire::encode(&newer);

    let verified = newer.verify().unwrap();
    assert_eq!(*verified, node_record(), "this version reads what it knows");
    assert_eq!(wire::encode(&verified.to_signed()), sent, "and passes on every byte");
    let received: Signed<NodeRecord> = wire::decode(&sent).unwrap();
    assert_eq!(received.content_hash(), keccak256(&[&bytes]));
    assert!(received.verify().is_ok());
}

#[test]
fn what_is_packed_is_unpacked_as_it_was_with_every_byte_of_a_newer_version() {
    let mut bytes = wire::encode(&node_record());
    bytes[0] += 1;
    bytes.push(13);
    bytes.extend(wire::encode(&"of a later day"));
    let verified = sign_bytes::<NodeRecord>(&bytes, &owner()).verify().unwrap();
    let packed = verified.pack();
    assert_eq!(packed.as_bytes(), wire::encode(&verified.to_signed()));
    assert_eq!(packed.unpack(), verified);
}

#[test]
fn a_signature_covers_every_byte_and_the_kind_of_document() {
    let verified = signed_listing().verify().unwrap();
    assert_eq!((verified.signer(), &*verified), (owner().address(), &listing()));
    let bytes = wire::encode(&signed_record());
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        let accepted =
            wire::decode::<Signed<NodeRecord>>(&changed).is_ok_and(|signed| signed.verify().is_ok());
        assert!(!accepted, "byte {at} can be changed");
    }
    let record = wire::encode(&node_record());
    let as_listing: Signed<NodeRecord> = sign_bytes_as(Listing::DOMAIN, &record, &owner());
    assert!(matches!(as_listing.verify(), Err(DocumentError::Signature(_))));
}

#[test]
fn nobody_publishes_for_somebody_else() {
    let stranger = SecretKey::from_bytes(&[0x33; 32]).unwrap();
    assert!(matches!(Signed::sign(&listing(), &stranger), Err(DocumentError::Signature(_))));
    let forged: Signed<Listing> = sign_bytes(&wire::encode(&listing()), &stranger);
    assert!(matches!(forged.verify(), Err(DocumentError::Signature(_))));
}

/// `edit` is accepted with the sizes below and at `max`, and refused above, naming `field`.
fn limited<T: Document>(field: &str, max: usize, make: impl Fn(usize) -> T) {
    for size in [max - 1, max] {
        assert_eq!(make(size).validate(), Ok(()), "{field} of {size}");
    }
    let error = make(max + 1).validate().unwrap_err();
    assert_eq!(error.field, field, "{error}");
}

#[test]
fn a_record_is_valid_up_to_its_limits() {
    let with = |edit: &dyn Fn(&mut NodeRecord)| {
        let mut record = node_record();
        edit(&mut record);
        record
    };
    limited("network", NETWORK_NAME_BYTES_MAX, |n| with(&|r| r.network = "n".repeat(n)));
    limited("agent", 64, |n| with(&|r| r.agent = "a".repeat(n)));
    limited("addresses", RECORD_ADDRESSES_MAX, |n| with(&|r| r.addresses = vec![ByteVec::from(vec![4]); n]));
    limited("addresses", RECORD_ADDRESS_BYTES_MAX, |n| {
        with(&|r| r.addresses = vec![ByteVec::from(vec![4; n])])
    });
    let lifetime = usize::try_from(RECORD_LIFETIME_SECS_MAX).unwrap();
    limited("expires", lifetime, |n| with(&|r| r.expires_secs = r.issued_secs + n as u64));
    assert_eq!(with(&|r| r.network.clear()).validate().unwrap_err().field, "network");
    assert_eq!(with(&|r| r.expires_secs = r.issued_secs).validate(), Ok(()), "a farewell");
    assert_eq!(with(&|r| r.expires_secs = r.issued_secs - 1).validate().unwrap_err().field, "expires");
}

#[test]
fn a_record_is_used_from_its_issue_to_its_expiry() {
    let record = node_record();
    let earliest = record.issued_secs - CLOCK_SKEW_SECS_MAX;
    assert_eq!(record.check_time(earliest - 1).unwrap_err().field, "issued");
    assert_eq!(record.check_time(earliest), Ok(()));
    assert_eq!(record.check_time(record.expires_secs - 1), Ok(()));
    assert_eq!(record.check_time(record.expires_secs).unwrap_err().field, "expires");
    assert!(record.check_time(u64::MAX).is_err() && record.check_time(0).is_err());
}

#[test]
fn a_listing_is_valid_up_to_its_limits() {
    let with = |edit: &dyn Fn(&mut Listing)| {
        let mut listing = listing();
        edit(&mut listing);
        listing
    };
    // Characters, not bytes: a name may be written in any script.
    limited("name", LISTING_NAME_CHARS_MAX, |n| with(&|l| l.name = "地".repeat(n)));
    limited("summary", LISTING_SUMMARY_CHARS_MAX, |n| with(&|l| l.summary = "ß".repeat(n)));
    limited("category", LISTING_CATEGORY_CHARS_MAX, |n| with(&|l| l.category = "c".repeat(n)));
    limited("tags", LISTING_TAGS_MAX, |n| with(&|l| l.tags = vec!["t".to_owned(); n]));
    limited("tags", LISTING_TAG_CHARS_MAX, |n| with(&|l| l.tags = vec!["t".repeat(n)]));
    limited("accepts", LISTING_ACCEPTS_MAX, |n| with(&|l| l.accepts = vec![listing().accepts[0].clone(); n]));
    limited("details", DETAILS_BYTES_MAX, |n| with(&|l| l.details_bytes = u32::try_from(n).unwrap()));
    assert_eq!(with(&|l| l.name.clear()).validate().unwrap_err().field, "name");
    assert_eq!(with(&|l| l.tags = vec![String::new()]).validate().unwrap_err().field, "tags");
    assert_eq!(with(&|l| l.updated_secs = l.created_secs).validate(), Ok(()));
    assert_eq!(with(&|l| l.updated_secs = l.created_secs - 1).validate().unwrap_err().field, "updated");
}

#[test]
fn a_name_that_deceives_the_eye_is_refused() {
    for deceptive in [
        "a\nb",
        "a\0",
        "\u{202e}gpj",
        "zero\u{200b}width",
        "\u{feff}mark",
        "\u{2066}isolate",
        "\u{85}",
        "\u{3164}",
        "\u{2800}\u{2800}",
        "no\u{a0}break",
        "tag\u{e0041}",
        " ",
        "trailing ",
    ] {
        let text = || deceptive.to_owned();
        let edited = [
            ("name", Listing { name: text(), ..listing() }),
            ("category", Listing { category: text(), ..listing() }),
            ("tags", Listing { tags: vec![text()], ..listing() }),
        ];
        for (field, listing) in edited {
            assert_eq!(listing.validate().unwrap_err().field, field, "{deceptive:?}");
        }
    }
}

#[test]
fn a_listing_names_a_network_that_can_be_one() {
    for network in ["", "\u{3164}", "local ", "a/b"] {
        let listing = Listing { network: network.to_owned(), ..listing() };
        assert_eq!(listing.validate().unwrap_err().field, "network", "{network:?}");
    }
}

#[test]
fn a_summary_is_prose_of_any_script_and_hides_nothing() {
    let with = |summary: &str| Listing { summary: summary.to_owned(), ..listing() };
    for summary in ["می\u{200c}خواهم", "क्\u{200d}ष", "\u{26a1}\u{fe0f} fast"] {
        assert_eq!(with(summary).validate(), Ok(()), "{summary}");
    }
    for summary in ["pay \u{202e}ecnuob", "\u{e0041}\u{e0042}", "\u{2800}", " "] {
        assert_eq!(with(summary).validate().unwrap_err().field, "summary", "{summary:?}");
    }
}

#[test]
fn a_document_is_refused_above_its_size() {
    // Padding under an unknown key brings a document to any size.
    fn padded<T: Document>(document: &T, size: usize) -> Vec<u8> {
        let mut bytes = wire::encode(document);
        match bytes[0] {
            0xb8 => bytes[1] += 1,
            short => bytes[0] = short + 1,
        }
        bytes.extend([0x18, 0x63, 0x59]);
        let padding = u16::try_from(size - bytes.len() - 2).unwrap();
        bytes.extend(padding.to_be_bytes());
        bytes.extend(vec![0; padding.into()]);
        assert_eq!(bytes.len(), size);
        bytes
    }
    fn check<T: Document + std::fmt::Debug>(document: &T, bytes_max: usize) {
        for size in [bytes_max - 1, bytes_max] {
            assert!(sign_bytes::<T>(&padded(document, size), &owner()).verify().is_ok(), "{size} bytes");
        }
        let error = sign_bytes::<T>(&padded(document, bytes_max + 1), &owner()).verify().unwrap_err();
        assert_eq!(error, DocumentError::TooLarge { bytes: bytes_max + 1, bytes_max });
    }
    check(&node_record(), RECORD_BYTES_MAX);
    check(&listing(), LISTING_BYTES_MAX);
}

#[test]
fn a_listing_of_before_samples_and_history_were_told_is_as_good_as_ever() {
    let today = Listing { samples_count: 0, history: None, ..listing() };
    let mut bytes = wire::encode(&today);
    // The head of a map of 21, and near its end the number of samples: a map of 20 without it.
    let nonce = bytes.split_off(bytes.len() - 18);
    assert_eq!((bytes[0], bytes.split_off(bytes.len() - 2), nonce[0]), (0xb5, vec![19, 0], 21));
    bytes[0] = 0xb4;
    bytes.extend(nonce);
    let signed = sign_bytes::<Listing>(&bytes, &owner());
    let read = signed.clone().verify().unwrap();
    assert_eq!(*read, today);
    assert_eq!(read.to_signed(), signed, "its bytes stay those that were signed");
}

/// Neither its own rules nor another's signature let a wallet speak for a service whose id follows from another's
/// address: there is no verified listing of it, so nothing that takes one can be given it.
#[test]
fn nobody_lists_a_service_whose_id_follows_from_another_wallet() {
    let thief = consumer();
    let under = |change: &dyn Fn(&mut Listing)| {
        let mut listing = Listing { owner: thief.address(), ..listing() };
        change(&mut listing);
        listing
    };
    let own_nonce = ServiceNonce::from_bytes([1; 16]);
    let random = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b".parse().unwrap();
    let stolen = [
        under(&|_| {}),
        under(&|listing| listing.nonce = own_nonce),
        under(&|listing| listing.seq = u64::MAX),
        under(&|listing| listing.tombstone = true),
        under(&|listing| listing.service = random),
    ];
    for listing in stolen {
        let is_forged =
            |error: DocumentError| matches!(error, DocumentError::Invalid(rule) if rule.is_forged);
        assert!(is_forged(Signed::sign(&listing, &thief).unwrap_err()));
        let sent = sign_bytes::<Listing>(&wire::encode(&listing), &thief);
        assert!(is_forged(sent.claimed().unwrap_err()) && is_forged(sent.verify().unwrap_err()));
    }
    let own = under(&|listing| listing.service = ServiceId::derive(listing.owner, listing.nonce));
    assert!(
        Signed::sign(&own, &thief).unwrap().verify().is_ok(),
        "the same nonce of another wallet is its own"
    );
}

#[test]
fn a_listing_without_a_nonce_is_none() {
    let mut bytes = wire::encode(&listing());
    bytes.truncate(bytes.len() - 18);
    bytes[0] -= 1;
    let error = sign_bytes::<Listing>(&bytes, &owner()).verify().unwrap_err();
    assert!(matches!(error, DocumentError::Malformed(_)), "{error}");
}

#[test]
fn a_history_is_bounded_like_the_details() {
    let with = |bytes: usize| {
        let history = Some(Pin { hash: [9; 32], bytes: u32::try_from(bytes).unwrap() });
        Listing { history, ..listing() }.validate()
    };
    assert!(with(HISTORY_BYTES_MAX).is_ok());
    assert_eq!(with(HISTORY_BYTES_MAX + 1).unwrap_err().field, "history");
}

#[test]
fn details_are_those_the_listing_pins_within_their_limits() {
    let pin = |details: &Details| {
        let (bytes, details_hash) = details.to_blob();
        let details_bytes = u32::try_from(bytes.len()).unwrap();
        (bytes, Listing { details_hash, details_bytes, ..listing() })
    };
    let with = |edit: &dyn Fn(&mut Details)| {
        let mut details = details();
        edit(&mut details);
        let (bytes, listing) = pin(&details);
        Details::from_blob(&bytes, &listing).map(|read| assert_eq!(read, details))
    };
    let price = details().prices[0].clone();
    for (size, expected) in [(0, Ok(())), (1, Err(DetailsError::OutOfBounds))] {
        assert_eq!(with(&|d| d.prices = vec![price.clone(); OPERATIONS_MAX + size]), expected);
    }
    let (mut bytes, listing) = pin(&details());
    for details_bytes in [0, 1, listing.details_bytes - 1, listing.details_bytes + 1] {
        let lying = Listing { details_bytes, ..listing.clone() };
        assert_eq!(Details::from_blob(&bytes, &lying), Err(DetailsError::WrongContent), "{details_bytes}");
    }
    bytes.push(0);
    assert_eq!(Details::from_blob(&bytes, &listing), Err(DetailsError::WrongContent));
    let too_large = vec![0; DETAILS_BYTES_MAX + 1];
    assert_eq!(Details::from_blob(&too_large, &listing), Err(DetailsError::OutOfBounds));
}

#[test]
fn an_operation_costs_its_own_price_or_the_listings() {
    let price = |method, path| listing().price_of(&details(), method, path);
    assert_eq!(price(Method::Post, "/events/{id}"), Usdc::from_micros(5_000));
    assert_eq!(price(Method::Get, "/events/{id}"), Usdc::from_micros(2_000));
    assert_eq!(price(Method::Post, "/events"), Usdc::from_micros(2_000));
}
