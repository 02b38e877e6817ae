//! Payer, book and contract agree on random calls: what an honest payer promises is let in, what is let in the contract pays, and
//! what is charged the payer's books explain.
//!
//! Vouchers arrive in any order, calls rely on earlier ones, run at once and end in any order, receipts come late, and a part of
//! each deposit may be taken back by the chain. All of it is counted here, call by call, and not read from the book.
//! Every run takes a seed of its own and prints it; `FARTHING_TEST_SEED` repeats one.

use farthing_protocol::channel::PayerState;

use super::*;
use crate::random::{Random, seed};

const STEPS: usize = 2_000;
const PRICE_MAX: u64 = 9;
const UNSAFE_MAX: u64 = 15;

/// One channel: what its payer's books say, and what is counted beside both sides.
struct PlayedChannel {
    id: ChannelId,
    payer: PayerState,
    /// The part of the deposit that stays.
    safe: u64,
    /// The highest promise that the owner has let in.
    best: u64,
    charged: u64,
    /// Calls on their way to the owner, with their prices.
    sent: Vec<(Verified<Voucher>, u64)>,
    running: Vec<(Reserved, u64)>,
    /// Price, charge and total of receipts on their way back.
    receipts: Vec<[u64; 3]>,
}

impl PlayedChannel {
    fn new(n: u8) -> Self {
        Self {
            id: ChannelId::from_bytes([n; 32]),
            payer: PayerState { deposited: usdc(50), ..PayerState::default() },
            safe: 0,
            best: 0,
            charged: 0,
            sent: Vec::new(),
            running: Vec::new(),
            receipts: Vec::new(),
        }
    }

    const fn deposited(&self) -> u64 {
        self.payer.deposited.micros()
    }

    /// With calls in progress.
    fn served(&self) -> u64 {
        self.charged + self.running.iter().map(|(_, price)| price).sum::<u64>()
    }

    fn at_risk(&self, price: u64) -> u64 {
        (self.served() + price).saturating_sub(self.safe)
    }
}

/// An owner's book, and one payer with two channels.
struct Play {
    book: Book,
    domain: Domain,
    key: SecretKey,
    channels: [PlayedChannel; 2],
    dice: Random,
    /// Calls that were let in, that waited in vain for a deposit to be safe, and that asked for too much.
    counts: [usize; 3],
}

impl Play {
    fn new(seed: u64) -> Self {
        let play = Self {
            book: Book::new(usdc(UNSAFE_MAX), usdc(0)),
            domain: Domain::new(1, Address::ZERO),
            key: SecretKey::from_bytes(&[7; 32]).unwrap(),
            channels: [PlayedChannel::new(1), PlayedChannel::new(2)],
            dice: Random::new(seed),
            counts: [0; 3],
        };
        (0..play.channels.len()).for_each(|at| play.show_chain(at));
        play
    }

    fn show_chain(&self, at: usize) {
        let channel = &self.channels[at];
        let row = PayeeChannelRow { id: channel.id, ..row(channel.deposited(), 0) };
        self.book.apply(&row, None, View { safe_deposited: usdc(channel.safe), ..SAFE });
    }

    fn signed(&self, at: usize, cumulative: u64) -> Verified<Voucher> {
        let voucher = Voucher { channel: self.channels[at].id, cumulative: usdc(cumulative) };
        voucher.verify(&self.domain, voucher.sign(&self.domain, &self.key), self.key.address()).unwrap()
    }

    /// The refusal that a call at `price` has to hear, with a promise of so much in all.
    fn refusal(&self, at: usize, promised: u64, price: u64) -> Option<RefusalCode> {
        let channel = &self.channels[at];
        let of_others = self.channels.iter().filter(|other| other.id != channel.id);
        let beside: u64 = of_others.map(|other| other.at_risk(0)).sum();
        let at_risk = channel.at_risk(price);
        if promised > channel.best.max(channel.deposited()) {
            Some(RefusalCode::VoucherAboveDeposit)
        } else if channel.served() + price > promised.max(channel.best) {
            Some(RefusalCode::InsufficientVoucher)
        } else {
            (at_risk > 0 && at_risk + beside > UNSAFE_MAX).then_some(RefusalCode::DepositNotSafe)
        }
    }

    /// Asks the book, which has to say what is right by the counts, and to change nothing when it refuses.
    fn admit(
        &mut self,
        at: usize,
        voucher: Option<&Verified<Voucher>>,
        price: u64,
    ) -> Result<Reserved, RefusalCode> {
        let promised = voucher.map_or(0, |voucher| voucher.cumulative.micros());
        let (id, refusal) = (self.channels[at].id, self.refusal(at, promised, price));
        let before = self.book.get(id).unwrap().state;
        let admitted = self.book.admit(id, voucher, usdc(price), GasMeans::UNLIMITED);
        assert_eq!(
            admitted.as_ref().err().copied(),
            refusal,
            "{promised} promised, {price} asked: {before:?}"
        );
        match &admitted {
            Ok(reserved) => {
                let channel = &mut self.channels[at];
                channel.best = channel.best.max(promised);
                // As far as its voucher and the deposit go.
                let best = reserved.voucher().map_or(0, |voucher| voucher.cumulative.micros());
                let (paid, served) = (best.min(channel.deposited()), channel.served() + price);
                assert!(paid >= served, "{served} are served, and the contract pays {paid}");
            }
            Err(_) => assert_eq!(self.book.get(id).unwrap().state, before),
        }
        admitted
    }

    /// The payer makes a call, as far as its deposit goes.
    fn send(&mut self, at: usize) {
        let price = 1 + self.dice.u64_below(PRICE_MAX);
        let Some(promised) = self.channels[at].payer.reserve(usdc(price)) else { return };
        let voucher = self.signed(at, promised.micros());
        self.channels[at].sent.push((voucher, price));
    }

    /// One of its calls arrives. It lacks nothing, but that its deposit may not be safe.
    fn deliver(&mut self, at: usize) {
        let Some((voucher, price)) = self.dice.take(&mut self.channels[at].sent) else { return };
        // Of what promises no more than an earlier one, the signature need not be looked at.
        let is_looked_at =
            voucher.cumulative.micros() > self.channels[at].best || self.dice.u64_below(2) == 0;
        match self.admit(at, is_looked_at.then_some(&voucher), price) {
            Ok(reserved) => {
                self.channels[at].running.push((reserved, price));
                self.counts[0] += 1;
            }
            Err(RefusalCode::DepositNotSafe) => {
                self.channels[at].payer.release(usdc(price));
                self.counts[1] += 1;
            }
            Err(code) => panic!("an honest call is refused with {code:?}"),
        }
    }

    /// A call ends, and costs its price, a part of it, or nothing.
    fn end(&mut self, at: usize) {
        let Some((reserved, price)) = self.dice.take(&mut self.channels[at].running) else { return };
        let charge = match self.dice.u64_below(3) {
            0 => 0,
            1 => price,
            _ => self.dice.u64_below(price + 1),
        };
        if charge == 0 && self.dice.u64_below(2) == 0 {
            drop(reserved);
        } else {
            reserved.settle(usdc(charge));
        }
        let channel = &mut self.channels[at];
        channel.charged += charge;
        let state = self.book.get(channel.id).unwrap().state;
        assert_eq!(
            (state.spent, state.reserved),
            (usdc(channel.charged), usdc(channel.served() - channel.charged))
        );
        channel.receipts.push([price, charge, channel.charged]);
    }

    /// A receipt arrives, which the payer's books explain.
    fn hear(&mut self, at: usize) {
        let Some(receipt) = self.dice.take(&mut self.channels[at].receipts) else { return };
        let [price, charge, total] = receipt.map(usdc);
        let channel = &mut self.channels[at];
        assert_eq!(channel.payer.acknowledge(price, charge, total), Ok(()), "{:?}", channel.payer);
    }

    /// A payer asks on an earlier voucher, or on none, for whatever it likes, or promises more than there is.
    fn overreach(&mut self, at: usize) {
        let price = 1 + self.dice.u64_below(4 * PRICE_MAX);
        let (best, deposited) = (self.channels[at].best, self.channels[at].deposited());
        let promised = match self.dice.u64_below(3) {
            0 => None,
            1 => Some(self.dice.u64_below(best + 1)),
            _ => Some(deposited + 1 + self.dice.u64_below(PRICE_MAX)),
        };
        let voucher = promised.map(|promised| self.signed(at, promised));
        let is_refused = self.admit(at, voucher.as_ref(), price).is_err();
        self.counts[2] += usize::from(is_refused);
    }

    /// A deposit, or a block that stays.
    fn see_chain(&mut self, at: usize) {
        // Deposits grow faster than what stays of them, so that calls have to wait for it.
        let (more, is_deposit) = (self.dice.u64_below(20), self.dice.u64_below(2) == 0);
        let channel = &mut self.channels[at];
        if is_deposit {
            channel.payer.deposited = usdc(channel.deposited() + more);
        } else {
            channel.safe = channel.deposited().min(channel.safe + more / 2);
        }
        self.show_chain(at);
    }

    /// Everything that is under way arrives, and both sides have the same sum.
    fn come_to_rest(&mut self, at: usize) {
        while !self.channels[at].sent.is_empty() {
            self.deliver(at);
        }
        while !self.channels[at].running.is_empty() {
            self.end(at);
        }
        while !self.channels[at].receipts.is_empty() {
            self.hear(at);
        }
        let PlayedChannel { id, payer, charged, .. } = &self.channels[at];
        assert_eq!((payer.acknowledged, payer.in_flight), (usdc(*charged), usdc(0)));
        assert_eq!(self.book.get(*id).unwrap().state.spent, usdc(*charged));
    }
}

#[test]
fn what_an_honest_payer_promises_is_let_in_and_paid_by_the_contract_and_its_books_explain_the_charges() {
    let mut play = Play::new(seed());
    for _ in 0..STEPS {
        let at = play.dice.below(2);
        match play.dice.below(20) {
            0..4 => play.send(at),
            4..8 => play.deliver(at),
            8..12 => play.end(at),
            12..16 => play.hear(at),
            16 => play.overreach(at),
            _ => play.see_chain(at),
        }
    }
    (0..play.channels.len()).for_each(|at| play.come_to_rest(at));
    let [admitted, not_safe, too_much] = play.counts;
    println!(
        "{admitted} calls let in, {not_safe} refused until a deposit is safe, {too_much} that asked for too much"
    );
    assert!(admitted > STEPS / 20 && not_safe > 0 && too_much > 10);
}
