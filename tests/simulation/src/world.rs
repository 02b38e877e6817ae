//! The network between the machines: distances, handshakes, loss, limits, and virtual time.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    time::Duration,
};

use farthing_directory::{
    AskId, CommandId, Config, Contact, Dice, Directory, Failure, Input, K, Key, Now, Outcome, Output, Token,
    VerifiedRecord,
    wire::{Request, Response},
};

use crate::{
    adversary::{Lie, Lies, nearest_in},
    people::{Notary, Person, START_SECS, record},
};

/// A message is lost so often, in a thousand, and sent again after so long at least.
const LOST_PERMILLE: u64 = 5;
const RESENT_AFTER: u64 = 200_000;
/// Handshakes that a node allows at once, each way; calls take some of them.
const PENDING_MAX: usize = 32;
const PENDING_OF_CALLS_MAX: usize = 12;
const DIALS_MAX: usize = 20;
/// A connection that nobody needs is closed after this.
const IDLE_MAX: u64 = 20_000_000;

/// Microseconds since the beginning.
pub(crate) type Micros = u64;

pub(crate) struct Node {
    pub(crate) person: Person,
    pub(crate) directory: Directory<Notary>,
    pub(crate) is_there: bool,
    pub(crate) is_liar: bool,
    dialling: Vec<AskId>,
    incoming: usize,
}

enum Event {
    Arrival {
        to: usize,
        from: usize,
        ask: AskId,
        request: Request,
        was_dialled: bool,
    },
    Input {
        to: usize,
        input: Input<()>,
    },
    Idle {
        pair: (usize, usize),
    },
    /// Something of the plan's.
    Planned(usize),
}

struct Scheduled {
    at: Micros,
    order: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// What a command of a node's came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// When which number was found.
    pub(crate) found: Vec<(Micros, u64)>,
    pub(crate) done: Option<(Outcome, u32)>,
}

/// All nodes, and what is on its way between them.
pub(crate) struct World {
    pub(crate) nodes: Vec<Node>,
    pub(crate) now: Micros,
    pub(crate) dice: Dice,
    pub(crate) lies: Lies,
    pub(crate) told: HashMap<CommandId, Told>,
    pub(crate) questions: u64,
    /// Nodes in order of their keys.
    sorted: Vec<(Key, usize)>,
    by_key: HashMap<Key, usize>,
    connections: HashMap<(usize, usize), Micros>,
    events: BinaryHeap<Reverse<Scheduled>>,
    order: u64,
}

impl World {
    /// Nodes that know nobody; those for whom `is_there` says no come later.
    pub(crate) fn new(people: Vec<Person>, is_there: impl Fn(usize) -> bool, mut dice: Dice) -> Self {
        let nodes: Vec<Node> = people
            .into_iter()
            .enumerate()
            .map(|(number, person)| Node {
                directory: Directory::new(config(&person, dice.throw()), Notary),
                person,
                is_there: is_there(number),
                is_liar: false,
                dialling: Vec::new(),
                incoming: 0,
            })
            .collect();
        let by_key: HashMap<Key, usize> =
            nodes.iter().enumerate().map(|(number, node)| (node.person.key(), number)).collect();
        let mut sorted: Vec<(Key, usize)> = by_key.iter().map(|(key, number)| (*key, *number)).collect();
        sorted.sort_unstable();
        Self {
            nodes,
            now: 0,
            dice,
            lies: Lies::default(),
            told: HashMap::new(),
            questions: 0,
            sorted,
            by_key,
            connections: HashMap::new(),
            events: BinaryHeap::new(),
            order: 0,
        }
    }

    /// Nodes in order of their keys.
    pub(crate) fn sorted(&self) -> &[(Key, usize)] {
        &self.sorted
    }

    /// Lets the events of this much time happen; `planned` is what the plan does when its moments come.
    pub(crate) fn run_until(&mut self, end: Micros, mut planned: impl FnMut(&mut Self, usize)) {
        while self.events.peek().is_some_and(|Reverse(next)| next.at <= end) {
            let Some(Reverse(Scheduled { at, event, .. })) = self.events.pop() else { break };
            self.now = at;
            match event {
                Event::Arrival { to, from, ask, request, was_dialled } => {
                    self.arrive(to, from, ask, request, was_dialled);
                }
                Event::Input { to, input } => self.input(to, input),
                Event::Idle { pair } => self.close_if_idle(pair),
                Event::Planned(number) => planned(self, number),
            }
        }
        self.now = end;
    }

    pub(crate) fn plan(&mut self, after: Micros, number: usize) {
        self.push(after, Event::Planned(number));
    }

    /// Gives a node that is there an input, and does what comes out.
    pub(crate) fn input(&mut self, to: usize, input: Input<()>) {
        let now = self.clock();
        let node = &mut self.nodes[to];
        if node.is_there {
            let outputs = node.directory.handle(now, input);
            self.perform(to, outputs);
        }
    }

    /// Two that are there connect by themselves, as a newcomer does with whom it was told of.
    pub(crate) fn connect(&mut self, a: usize, b: usize) {
        self.used(a, b);
        let [of_a, of_b] = [a, b].map(|node| self.nodes[node].person.contact.clone());
        self.input(a, Input::Connected(of_b));
        self.input(b, Input::Connected(of_a));
    }

    /// A node is gone without a word; those it is connected to notice.
    pub(crate) fn leave(&mut self, gone: usize) {
        self.nodes[gone].is_there = false;
        let pairs = self.connections.keys().filter(|(a, b)| [*a, *b].contains(&gone)).copied();
        let mut pairs: Vec<(usize, usize)> = pairs.collect();
        // A map's order is another one in each run.
        pairs.sort_unstable();
        pairs.into_iter().for_each(|pair| self.close(pair));
    }

    /// The record of a node, as verified as records are.
    pub(crate) fn record_of(&self, node: usize, seq: u64) -> VerifiedRecord<()> {
        let filed = record(&self.nodes[node].person, seq);
        VerifiedRecord::of(&Notary, filed).unwrap_or_else(|untrue| panic!("{untrue:?}"))
    }

    /// Returns whether nothing is on its way, nobody dials, and no connection is open.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        let dials = self.nodes.iter().filter(|node| node.is_there).all(|node| node.dialling.is_empty());
        self.events.is_empty() && self.connections.is_empty() && dials
    }

    fn clock(&self) -> Now {
        Now { since: Duration::from_micros(self.now), unix_secs: START_SECS + self.now / 1_000_000 }
    }

    fn push(&mut self, after: Micros, event: Event) {
        self.order += 1;
        self.events.push(Reverse(Scheduled { at: self.now + after, order: self.order, event }));
    }

    fn perform(&mut self, node: usize, outputs: Vec<Output<()>>) {
        for output in outputs {
            match output {
                Output::Ask { id, contact, request, .. } => self.ask(node, id, &contact, request),
                Output::Abandon(id) => self.nodes[node].dialling.retain(|other| *other != id),
                Output::Wake(at) => {
                    let at = u64::try_from(at.as_micros()).unwrap_or(u64::MAX);
                    self.push(at.saturating_sub(self.now), Event::Input { to: node, input: Input::Tick });
                }
                Output::Found(id, record) => {
                    let found = (self.now, record.facts().seq);
                    self.told.entry(id).or_default().found.push(found);
                }
                Output::Done { id, outcome, questions } => {
                    self.told.entry(id).or_default().done = Some((outcome, questions));
                }
                Output::Reply(..) | Output::Refuse(_) | Output::Heard { .. } | Output::Misbehaved(..) => {}
            }
        }
    }

    fn ask(&mut self, from: usize, ask: AskId, contact: &Contact, request: Request) {
        self.questions += 1;
        let right_place = |to: &usize| self.nodes[*to].person.contact.addresses() == contact.addresses();
        let to = self.by_key.get(&contact.key()).copied().filter(right_place);
        let is_connected = to.is_some_and(|to| self.connections.contains_key(&pair(from, to)));
        if !is_connected {
            let of_calls = self.dice.index(PENDING_OF_CALLS_MAX);
            if self.nodes[from].dialling.len() + of_calls >= PENDING_MAX {
                let input = Input::Failed(ask, Failure::Denied);
                return self.push(1_000, Event::Input { to: from, input });
            }
            self.nodes[from].dialling.push(ask);
        }
        // A dial to nobody ends when whoever asked gives up.
        let Some(to) = to.filter(|to| self.nodes[*to].is_there) else { return };
        let round_trip = self.round_trip(from, to);
        let mut after = round_trip / 2;
        if !is_connected {
            if self.nodes[to].incoming >= PENDING_MAX {
                return;
            }
            self.nodes[to].incoming += 1;
            let are_quick = self.nodes[from].person.is_quic && self.nodes[to].person.is_quic;
            after += round_trip * if are_quick { 1 } else { 2 };
        }
        let was_dialled = !is_connected;
        self.push(after, Event::Arrival { to, from, ask, request, was_dialled });
    }

    fn arrive(&mut self, to: usize, from: usize, ask: AskId, request: Request, was_dialled: bool) {
        if was_dialled {
            let node = &mut self.nodes[to];
            node.incoming = node.incoming.saturating_sub(1);
            self.nodes[from].dialling.retain(|other| *other != ask);
        }
        if !self.nodes[to].is_there || !self.nodes[from].is_there {
            return;
        }
        if self.connections.contains_key(&pair(from, to)) {
            self.used(from, to);
        } else {
            self.connect(from, to);
        }
        if let Some(input) = self.answer(to, from, ask, request) {
            let back = self.round_trip(from, to) / 2;
            self.push(back, Event::Input { to: from, input });
        }
    }

    fn answer(&mut self, to: usize, from: usize, ask: AskId, request: Request) -> Option<Input<()>> {
        if self.nodes[to].is_liar {
            let (mut lies, mut dice) = (std::mem::take(&mut self.lies), self.dice.clone());
            let lie = lies.tell(&request, |target| self.nearest(target), &mut dice);
            (self.lies, self.dice) = (lies, dice);
            match lie {
                Lie::Truth => {}
                Lie::Silence => return None,
                Lie::Answer(response) => return Some(Input::Answer(ask, response)),
            }
        }
        let asker = self.nodes[from].person.contact.clone();
        let now = self.clock();
        let outputs = self.nodes[to].directory.handle(now, Input::Request(Token(0), asker, request));
        let mut answer: Option<Result<Response, Failure>> = None;
        let mut others = Vec::new();
        for output in outputs {
            match output {
                Output::Reply(_, response) => answer = Some(Ok(response)),
                Output::Refuse(_) => answer = Some(Err(Failure::Malformed)),
                other => others.push(other),
            }
        }
        self.perform(to, others);
        answer.map(|answer| match answer {
            Ok(response) => Input::Answer(ask, response),
            Err(failure) => Input::Failed(ask, failure),
        })
    }

    /// The true peers nearest to a place.
    fn nearest(&self, target: Key) -> Vec<Contact> {
        let near = nearest_in(&self.sorted, target, K);
        near.into_iter().map(|node| self.nodes[node].person.contact.clone()).collect()
    }

    fn round_trip(&mut self, a: usize, b: usize) -> Micros {
        let round_trip = self.nodes[a].person.round_trip(&self.nodes[b].person, &mut self.dice);
        let is_lost = self.dice.happens(LOST_PERMILLE);
        round_trip + if is_lost { 2 * RESENT_AFTER.max(round_trip) } else { 0 }
    }

    fn used(&mut self, a: usize, b: usize) {
        let pair = pair(a, b);
        if self.connections.insert(pair, self.now).is_none() {
            self.push(IDLE_MAX, Event::Idle { pair });
        }
    }

    fn close_if_idle(&mut self, pair: (usize, usize)) {
        let Some(used) = self.connections.get(&pair) else { return };
        match (used + IDLE_MAX).checked_sub(self.now) {
            None | Some(0) => self.close(pair),
            Some(left) => self.push(left, Event::Idle { pair }),
        }
    }

    fn close(&mut self, pair: (usize, usize)) {
        self.connections.remove(&pair);
        let [a, b] = [pair.0, pair.1].map(|node| self.nodes[node].person.key());
        self.input(pair.0, Input::Disconnected(b));
        self.input(pair.1, Input::Disconnected(a));
    }
}

fn pair(a: usize, b: usize) -> (usize, usize) {
    (a.min(b), a.max(b))
}

fn config(person: &Person, seed: u64) -> Config {
    Config {
        own_id: person.contact.id().to_vec(),
        seed,
        allow_private: false,
        records_max: 10_000,
        records_per_source_max: 2_000,
        dials_max: DIALS_MAX,
    }
}
