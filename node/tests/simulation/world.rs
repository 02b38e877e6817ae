//! The world between two nodes: a chain that both see late, a network, a service, and time.

use std::{cell::RefCell, time::Duration};

use farthing_protocol::{
    Address, CallId, CallMessage, CallReply, ChannelConfig, ChannelId, Domain, Outcome, SecretKey, Usdc,
    call::CallStatus,
};

use crate::{
    choices::{Choices, Made},
    payee::Payee,
    payer::{Next, Payer, request},
    wire::{Brought, Wire},
};

mod deaths;
mod leaving;
mod rest;
mod told;

/// Who deals with whom, on which channel.
#[derive(Clone, Debug)]
pub struct Terms {
    pub domain: Domain,
    pub payer: SecretKey,
    pub payee: SecretKey,
    pub config: ChannelConfig,
    pub channel: ChannelId,
}

/// What the contract says of the channel.
#[derive(Debug, Default)]
pub struct Chain {
    pub deposited: Usdc,
    pub claimed: Usdc,
}

pub struct World {
    choices: Choices,
    now: Duration,
    /// Crashes of the consumer may come before its promises are stored.
    is_forgetful: bool,
    /// The consumer stops and starts, and never crashes.
    stops: bool,
    /// Deaths fall into commits.
    dies_in_commits: bool,
    /// Commits of which a death left a part.
    commits_cut: usize,
    /// What happened, where somebody wants to read it.
    log: Option<RefCell<String>>,
    terms: Terms,
    payer: Payer,
    payee: Payee,
    wire: Wire,
    chain: Chain,
    /// Everything that the consumer deposited, and what came back to it.
    paid_in: Usdc,
    returned: Usdc,
    is_closing: bool,
    last: u64,
}

impl World {
    pub fn new(mut choices: Choices, tells: bool) -> Self {
        let terms = terms();
        let (payer, payee) = (Payer::new(&terms), Payee::new(&terms));
        let kind = choices.kind();
        let mut world = Self {
            choices,
            now: Duration::from_secs(100),
            is_forgetful: kind % 2 == 1,
            stops: kind.is_multiple_of(4),
            // Those of the seeds that failed before, when no death fell into a commit, are of the other kinds.
            dies_in_commits: matches!(kind, 0 | 2 | 4..7),
            commits_cut: 0,
            log: tells.then(RefCell::default),
            terms,
            payer,
            payee,
            wire: Wire::default(),
            chain: Chain::default(),
            paid_in: Usdc::ZERO,
            returned: Usdc::ZERO,
            is_closing: false,
            last: 0,
        };
        world.deposit();
        world.payee.see(&world.terms, &world.chain);
        world.payer.see(&world.chain);
        world
    }

    /// Plays all steps, and comes to rest. What was charged.
    pub fn run(&mut self) -> u64 {
        while self.choices.begin_step() {
            self.step();
        }
        self.come_to_rest()
    }

    pub const fn commits_cut(&self) -> usize {
        self.commits_cut
    }

    pub fn made(&self) -> Made {
        self.choices.made()
    }

    fn step(&mut self) {
        let pause = [0, 50, 100, 300, 1_500][self.choices.below(5)];
        self.now += Duration::from_millis(pause);
        self.wire.sweep(self.now);
        match self.choices.below(100) {
            0..10 => self.buy(),
            10..30 => self.act(),
            30..50 => self.arrive(),
            50..62 => self.serve(),
            62..78 => self.bring(),
            78..81 => self.break_stream(),
            81..83 => self.payer.store_promises(1),
            83..87 => self.payer.store(&self.payee, self.choices.below(64), self.now),
            87..89 => self.give_up(),
            89..93 => self.see_chain(),
            93..95 => self.claim(),
            95..97 if self.is_closing || self.choices.chance(10) => self.close(),
            97..98 => self.restart_payer(),
            98 if self.choices.chance(50) => self.restart_payee(),
            _ => self.compare(),
        }
        self.payee.check();
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if let Some(log) = &self.log {
            let line = format!("{:>8.3} {}\n", self.now.as_secs_f64(), what());
            log.borrow_mut().push_str(&line);
        }
    }

    /// A new call, or one that was ordered before.
    fn buy(&mut self) {
        self.order();
        if !self.is_forgetful {
            self.payer.store_promises(usize::MAX);
        }
    }

    /// A call whose promise is not stored yet.
    fn order(&mut self) {
        let number = if self.last > 0 && self.choices.chance(40) {
            1 + self.choices.u64_below(self.last)
        } else {
            self.last += 1;
            self.last
        };
        self.tell(|| format!("buy {number} at {}", request(number).price));
        self.payer.buy(&self.payee, request(number), self.now);
    }

    fn pick(&mut self, wanted: impl Fn(Next) -> bool) -> Option<CallId> {
        let works = self.payer.works.iter().filter(|(_, work)| wanted(work.next));
        let mut ids: Vec<CallId> = works.map(|(id, _)| *id).collect();
        self.choices.take(&mut ids)
    }

    /// A copy or a question leaves, unless no connection is to be had.
    fn act(&mut self) {
        let Some(id) = self.pick(|next| matches!(next, Next::Send | Next::Ask)) else { return };
        let work = &self.payer.works[&id];
        let asks = work.next == Next::Ask;
        // Nothing is asked before the books were compared.
        if work.is_in_background && !self.payer.is_compared() {
            return;
        }
        let message = match asks {
            true => CallMessage::Status(id),
            false => CallMessage::Call(work.attempt.promise.request.clone()),
        };
        if !asks && self.choices.chance(5) {
            self.tell(|| format!("{} is not sent", short(id)));
            self.payer.waits_for(id, Next::HearCopy(0), self.now);
            return self.payer.hear(&self.payee, id, &Brought::NotSent, self.now);
        }
        let number = self.wire.send(id, message);
        self.tell(|| format!("{} leaves on {number}{}", short(id), if asks { " as a question" } else { "" }));
        let next = if asks { Next::HearWord(number) } else { Next::HearCopy(number) };
        self.payer.waits_for(id, next, self.now);
    }

    /// A message arrives at the owner.
    fn arrive(&mut self) {
        let open = self.wire.streams.iter().filter(|stream| !stream.has_arrived);
        let mut numbers: Vec<u64> = open.map(|stream| stream.number).collect();
        let Some(number) = self.choices.take(&mut numbers) else { return };
        let Some(stream) = self.wire.stream(number) else { return };
        stream.has_arrived = true;
        let message = stream.message.clone();
        let (what, reply) = match message {
            CallMessage::Call(request) => ("copy", self.payee.call(number, request)),
            CallMessage::Status(id) => ("question", Some(self.payee.status(id))),
            message => panic!("{message:?} is not sent here"),
        };
        self.tell(|| {
            format!("{what} {number} arrives: {}", reply.as_ref().map_or_else(|| "waits".to_owned(), say))
        });
        if let Some(stream) = self.wire.stream(number) {
            stream.reply = reply;
        }
    }

    /// The service is done with a call, or its payer's deadline passes first.
    fn serve(&mut self) {
        let Some(id) = self.choices.take(&mut self.payee.serving()) else { return };
        if self.choices.chance(10) {
            for number in self.payee.tell_running(id) {
                self.reply(number, &CallReply::Status(CallStatus::Running));
            }
            return;
        }
        let outcomes = [Outcome::Answered, Outcome::Answered, Outcome::Answered, Outcome::ServerError];
        let outcome = outcomes[self.choices.below(outcomes.len())];
        self.finish(id, outcome);
    }

    fn finish(&mut self, id: CallId, outcome: Outcome) {
        let Some((receipt, waiting, reply)) = self.payee.finish(id, outcome) else { return };
        self.tell(|| {
            format!("{} is served: {} charged, {} in all", short(id), receipt.charged, receipt.spent_total)
        });
        let is_known = self.payer.works.get(&id).is_some_and(|work| work.next != Next::Stored)
            || self.payer.forgotten.contains(&id);
        assert!(
            receipt.charged.is_zero() || is_known,
            "C4: {} is charged and was told to be free",
            short(id)
        );
        for number in waiting {
            self.reply(number, &reply);
        }
    }

    fn reply(&mut self, number: u64, reply: &CallReply) {
        if let Some(stream) = self.wire.stream(number) {
            stream.reply = Some(reply.clone());
        }
    }

    /// A reply arrives at the consumer.
    fn bring(&mut self) {
        let replied = self.wire.streams.iter().filter(|stream| stream.reply.is_some() && !stream.is_given_up);
        let mut numbers: Vec<u64> = replied.map(|stream| stream.number).collect();
        if let Some(number) = self.choices.take(&mut numbers) {
            self.bring_on(number);
        }
    }

    fn bring_on(&mut self, number: u64) {
        let Some(stream) = self.wire.stream(number) else { return };
        stream.is_given_up = true;
        let (id, reply) = (stream.call_id, stream.reply.take());
        let brought = reply.map_or(Brought::Lost, Brought::Reply);
        self.tell(|| {
            format!(
                "{} brings {}",
                number,
                match &brought {
                    Brought::Reply(reply) => say(reply),
                    other => format!("{other:?}"),
                }
            )
        });
        let copy = self.payer.works.get(&id).is_some_and(|work| work.next == Next::HearCopy(number));
        if copy && self.payer.is_lag(id, &brought) && self.choices.chance(70) {
            return self.payer.waits_for(id, Next::Send, self.now);
        }
        self.payer.hear(&self.payee, id, &brought, self.now);
    }

    fn break_stream(&mut self) {
        let open = self.wire.streams.iter().filter(|stream| !stream.is_given_up);
        let mut numbers: Vec<u64> = open.map(|stream| stream.number).collect();
        let Some(number) = self.choices.take(&mut numbers) else { return };
        self.lose(number);
    }

    fn lose(&mut self, number: u64) {
        self.wire.give_up(number, self.now);
        let Some(stream) = self.wire.stream(number) else { return };
        let id = stream.call_id;
        self.tell(|| format!("{number} breaks"));
        self.payer.hear(&self.payee, id, &Brought::Lost, self.now);
    }

    fn give_up(&mut self) {
        if let Some(id) = self.pick(|next| matches!(next, Next::Send | Next::Ask)) {
            self.payer.give_up(&self.payee, id, self.now);
        }
    }

    fn deposit(&mut self) {
        let amount = Usdc::from_micros(5 + self.choices.u64_below(40));
        self.pay_in(amount);
    }

    fn pay_in(&mut self, amount: Usdc) {
        self.paid_in = sum([self.paid_in, amount]);
        self.chain.deposited = sum([self.chain.deposited, amount]);
    }

    /// More is deposited, or one side sees what the chain has confirmed.
    fn see_chain(&mut self) {
        match self.choices.below(3) {
            0 if !self.is_closing => self.deposit(),
            1 => self.payer.see(&self.chain),
            _ => self.payee.see(&self.terms, &self.chain),
        }
    }

    fn claim(&mut self) {
        self.chain.claimed = self.chain.claimed.max(self.payee.claim(self.chain.deposited));
    }

    /// The payer asks to close; once nothing runs the owner claims, and the rest goes back.
    fn close(&mut self) {
        if !self.is_closing {
            self.is_closing = self.payee.end();
        } else if self.payee.serving().is_empty() {
            self.tell(|| "closed".to_owned());
            self.claim();
            let left = self.chain.deposited.saturating_sub(self.chain.claimed);
            self.returned = sum([self.returned, left]);
            self.chain.deposited = self.chain.claimed;
            self.payee.see(&self.terms, &self.chain);
            self.is_closing = false;
        }
    }

    fn compare(&mut self) {
        self.payer.compare(&self.payee, self.now, false);
    }
}

fn terms() -> Terms {
    let domain = Domain::new(31_337, Address::from_bytes([9; 20]));
    let [payer, payee] = [1, 2].map(|n| SecretKey::from_bytes(&[n; 32]).unwrap());
    let config = ChannelConfig {
        payer: payer.address(),
        payee: payee.address(),
        token: Address::from_bytes([3; 20]),
        signer: payer.address(),
        close_delay_secs: 86_400,
        salt: [0; 32],
    };
    Terms { domain, payer, payee, config, channel: config.id(&domain) }
}

pub fn sum(amounts: impl IntoIterator<Item = Usdc>) -> Usdc {
    let sum = amounts.into_iter().try_fold(Usdc::ZERO, Usdc::checked_add);
    sum.expect("the simulation moves little money")
}

fn short(id: CallId) -> u64 {
    u64::from_be_bytes(id.as_bytes()[..8].try_into().unwrap())
}

fn say(reply: &CallReply) -> String {
    match reply {
        CallReply::Response(response) => format!("an answer, {} charged", response.receipt.charged),
        CallReply::Status(CallStatus::Done { receipt, .. }) => format!("a receipt of {}", receipt.charged),
        CallReply::Status(status) => format!("{status:?}"),
        CallReply::Refused(refusal) => refusal.code.name().to_owned(),
        CallReply::Channel(_) | CallReply::Calls(_) | CallReply::Sponsor(_) => "books".to_owned(),
    }
}
