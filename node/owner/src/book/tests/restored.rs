//! A book whose ledger lacks what the chain has paid out.

use std::collections::BTreeMap;

use farthing_ledger::{Call, OpenMode, PayeeChannelFacts, Served};
use farthing_protocol::{Address, CallId, Outcome, Receipt, SecretKey, ServiceId, call::Method};

use super::*;

const PRICE: Usdc = usdc(2);

/// One channel with a ledger and a book behind it.
struct Channel {
    ledger: farthing_ledger::Ledger,
    book: Book,
    config: ChannelConfig,
    domain: Domain,
    key: SecretKey,
    payee: SecretKey,
    _folder: tempfile::TempDir,
}

impl Channel {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.redb");
        let [key, payee] = [7, 8].map(|n| SecretKey::from_bytes(&[n; 32]).unwrap());
        Self {
            ledger: farthing_ledger::Ledger::open(&path, OpenMode::Create).unwrap(),
            book: Book::new(usdc(0), usdc(0)),
            config: terms(key.address(), payee.address()),
            domain: Domain::new(1, Address::ZERO),
            key,
            payee,
            _folder: folder,
        }
    }

    fn id(&self) -> ChannelId {
        self.config.id(&self.domain)
    }

    /// The chain says that so much was paid out.
    async fn observe(&self, claimed: u64) {
        let facts = PayeeChannelFacts {
            id: self.id(),
            config: self.config,
            deposited: usdc(100),
            claimed: usdc(claimed),
            closing: false,
        };
        let row = self.ledger.put_payee_channel(facts).await.unwrap();
        self.book.apply(&row, proof(&row, &self.domain), SAFE);
    }

    fn admit(&self, cumulative: u64) -> Result<Reserved, RefusalCode> {
        let voucher = Voucher { channel: self.id(), cumulative: usdc(cumulative) };
        let signature = voucher.sign(&self.domain, &self.key);
        let voucher = voucher.verify(&self.domain, signature, self.key.address()).unwrap();
        self.book.admit(self.id(), Some(&voucher), PRICE, GasMeans::UNLIMITED)
    }

    /// The payer shows a receipt over so much.
    async fn recover(&self, total: u64) -> PayeeChannelRow {
        let (channel, total) = (self.id(), usdc(total));
        let receipt = Receipt {
            channel,
            call_id: CallId::from_bytes([99; 16]),
            request_hash: [0; 32],
            response_hash: [0; 32],
            outcome: Outcome::Answered.code(),
            charged: PRICE,
            spent_total: total,
            time_secs: 1,
        };
        let signature = receipt.sign(&self.domain, &self.payee);
        let receipt = receipt.verify(&self.domain, signature, self.payee.address()).unwrap();
        let voucher = Voucher { channel, cumulative: total };
        let signature = voucher.sign(&self.domain, &self.key);
        let voucher = voucher.verify(&self.domain, signature, self.key.address()).unwrap();
        self.ledger.recover_earned(receipt, voucher).await.unwrap()
    }

    /// Commits an admitted call; whether the ledger took it.
    async fn commit(&self, number: u8, reserved: &Reserved) -> bool {
        let call = Call {
            call_id: CallId::from_bytes([number; 16]),
            service: ServiceId::from_bytes([3; 16]),
            method: Method::Get,
            path: "/ok".to_owned(),
            request_hash: [number; 32],
            response_hash: [0; 32],
            price: PRICE,
            charged: PRICE,
            outcome: Outcome::Answered,
            status: 200,
            headers: BTreeMap::new(),
            body: None,
            fault: None,
            upstream_us: None,
            time_secs: 1,
        };
        let (channel, voucher) = (self.id(), reserved.voucher().cloned());
        let served = Served { payer: self.key.address(), channel, voucher, call };
        self.ledger.serve(served).await.is_ok()
    }

    fn entry(&self) -> PayeeChannel {
        self.book.get(self.id()).unwrap()
    }

    fn stored(&self) -> PayeeState {
        self.ledger.payee_channel(self.id()).unwrap().unwrap().state()
    }
}

#[tokio::test]
async fn what_was_paid_out_elsewhere_is_counted_once_beside_calls_that_are_under_way() {
    let channel = Channel::new();
    channel.observe(0).await;
    let first = channel.admit(2).unwrap();
    assert!(channel.commit(1, &first).await);
    first.settle(PRICE);
    let committed = channel.admit(4).unwrap();
    assert!(channel.commit(2, &committed).await);
    let uncommitted = channel.admit(6).unwrap();

    channel.observe(10).await;
    channel.observe(10).await;
    committed.settle(PRICE);
    assert!(!channel.commit(3, &uncommitted).await, "its promise is claimed already");
    drop(uncommitted);
    assert_eq!(channel.entry().state, channel.stored());
    assert_eq!((channel.entry().state.spent, channel.entry().state.reserved), (usdc(10), usdc(0)));
    assert_eq!(channel.entry().proof(), None, "no voucher here is worth anything");

    assert_eq!(channel.admit(10).err(), Some(RefusalCode::InsufficientVoucher), "paid out is used up");
    let next = channel.admit(12).unwrap();
    assert!(channel.commit(4, &next).await);
    next.settle(PRICE);
    let entry = channel.entry();
    assert_eq!((entry.state, entry.state.unclaimed()), (channel.stored(), PRICE));
    assert_eq!(entry.best_voucher.map(|voucher| voucher.cumulative), Some(usdc(12)));
}

#[tokio::test]
async fn what_the_chain_takes_back_is_taken_back_here_beside_calls_that_are_under_way() {
    let channel = Channel::new();
    channel.observe(0).await;
    let first = channel.admit(6).unwrap();
    assert!(channel.commit(1, &first).await);
    first.settle(PRICE);
    let running = channel.admit(6).unwrap();
    channel.observe(10).await;
    assert_eq!((channel.entry().state.best, channel.entry().proof()), (usdc(10), None));
    channel.observe(0).await;
    assert_eq!(channel.entry().state.best, usdc(6), "what its voucher proves");
    assert!(channel.commit(2, &running).await);
    running.settle(PRICE);
    let entry = channel.entry();
    assert_eq!((entry.state, entry.state.unclaimed()), (channel.stored(), usdc(4)));
    assert_eq!(entry.proof().map(|voucher| voucher.cumulative), Some(usdc(6)), "it can be claimed");
    let next = channel.admit(6).unwrap();
    assert!(channel.commit(3, &next).await, "the voucher covers one more");
}

#[tokio::test]
async fn a_total_that_the_payer_proves_counts_once_and_what_was_read_before_it_changes_nothing() {
    let channel = Channel::new();
    channel.observe(0).await;
    let first = channel.admit(2).unwrap();
    assert!(channel.commit(1, &first).await);
    assert!(!channel.book.is_behind(channel.id(), usdc(2)), "the call in progress may be the one");
    assert!(channel.book.is_behind(channel.id(), usdc(3)));
    first.settle(PRICE);
    assert!(!channel.book.is_behind(channel.id(), usdc(2)));

    channel.observe(4).await;
    let early = channel.ledger.payee_channel(channel.id()).unwrap().unwrap();
    let row = channel.recover(8).await;
    for row in [&row, &row, &early] {
        channel.book.look(channel.id()).unwrap().recover(row, proof(row, &channel.domain));
        assert_eq!(channel.entry().state, channel.stored());
    }
    assert_eq!(channel.entry().state.spent, usdc(8));
    assert!(channel.entry().unclaimed_since_secs.is_some(), "it is claimed by age, too");
    assert_eq!(channel.entry().proof().map(|voucher| voucher.cumulative), Some(usdc(8)));
    assert!(!channel.book.is_behind(channel.id(), usdc(8)) && channel.admit(10).is_ok());
}

#[tokio::test]
async fn nothing_is_served_on_a_restored_channel_before_the_chain_was_read() {
    let channel = Channel::new();
    channel.observe(0).await;
    let restarted = Channel { book: Book::new(usdc(0), usdc(0)), ..channel };
    let row = restarted.ledger.payee_channel(restarted.id()).unwrap().unwrap();
    restarted.book.restore(&row, None, false);
    assert_eq!(restarted.admit(2).err(), Some(RefusalCode::UnknownChannel));
    restarted.observe(2).await;
    assert_eq!(restarted.admit(2).err(), Some(RefusalCode::InsufficientVoucher));
    restarted.admit(4).unwrap().settle(PRICE);
}

#[tokio::test]
async fn while_a_payer_shows_what_was_lost_nothing_else_happens_to_its_channel() {
    let channel = Channel::new();
    channel.observe(0).await;
    let (book, id) = (&channel.book, channel.id());
    let call = channel.admit(2).unwrap();
    assert!(book.look(id).is_none(), "a call runs");
    drop(call);
    for _ in 0..30 {
        let looking = book.look(id).unwrap();
        assert_eq!(channel.admit(2).err(), Some(RefusalCode::Busy));
        assert!(!book.sign_away(id, u64::MAX, 0) && book.look(id).is_none());
        drop(looking);
    }
    assert!(book.look(id).is_none(), "so often in a minute");
    assert!(channel.admit(2).is_ok());
}

#[tokio::test]
async fn a_total_of_the_chain_waits_for_calls_in_progress_and_no_other_begins_until_then() {
    let channel = Channel::new();
    channel.observe(0).await;
    let (book, id) = (&channel.book, channel.id());
    let call = channel.admit(2).unwrap();
    for _ in 0..100 {
        assert!(book.quiet(id).is_none(), "a call runs");
        assert_eq!(
            channel.admit(4).err(),
            Some(RefusalCode::Busy),
            "its payer would keep one running for ever"
        );
    }
    drop(call);
    let taking_over = book.quiet(id).unwrap();
    assert_eq!(channel.admit(2).err(), Some(RefusalCode::Busy));
    assert!(book.quiet(id).is_none() && book.look(id).is_none() && !book.sign_away(id, u64::MAX, 0));
    drop(taking_over);
    drop(book.quiet(id).unwrap());
    assert!(channel.admit(2).is_ok());
    assert!(book.quiet(ChannelId::from_bytes([9; 32])).is_some(), "on one without a place none runs");
}
