//! Comparing two sets by ranges (range-based set reconciliation, Meyer 2023), in the encoding of negentropy 1.

use negentropy::{Error, Id, Negentropy};

use super::{
    ReconciliationError, batch,
    picture::{Item, Picture},
};

/// Bytes of one message before compression: some 16,000 names.
const MESSAGE_BYTES_MAX: u64 = 512 * 1024;
/// Rounds of comparison. Sixteen to the power of the rounds is what they tell apart; frames of full lists need
/// one round each.
pub const ROUNDS_MAX: u32 = 64;

/// Of the encoding, in a message that the library does not make.
const VERSION: u8 = 0x61;
/// Ways to speak of a range: nothing is said of it, or all names in it are.
const SKIP: u64 = 0;
const NAMES: u64 = 2;

/// The side of a comparison that begins.
#[derive(Debug)]
pub struct Comparison {
    picture: Picture,
    rounds: u32,
}

/// The other side. It keeps nothing of what is compared: each answer is made from the picture that there is then, so that whoever
/// holds sessions open holds no old pictures.
#[derive(Debug, Default)]
pub struct Answers {
    rounds: u32,
    bytes: usize,
}

/// The difference that the side that began knows after a round.
#[derive(Debug, Default)]
pub struct Difference {
    pub only_here: Vec<Item>,
    pub only_there: Vec<Item>,
}

impl Comparison {
    pub const fn new(picture: Picture) -> Self {
        Self { picture, rounds: 0 }
    }

    /// A comparison of what has come since then, which `items` are, and its first message: it skips all that lies before,
    /// and names them.
    pub fn since(since_secs: u64, items: &[(u64, Item)]) -> Result<(Self, Vec<u8>), ReconciliationError> {
        let mut message = vec![VERSION];
        // The end of a range is a time, one more than it is, and the beginning of a name; 0 is the end of all.
        [since_secs.saturating_add(1), 0, SKIP].into_iter().for_each(|value| number(&mut message, value));
        [0, 0, NAMES, items.len() as u64].into_iter().for_each(|value| number(&mut message, value));
        items.iter().for_each(|(_, item)| message.extend(item));
        Ok((Self::new(Picture::of(items.iter().copied())), batch::compress(&message)?))
    }

    /// The first message.
    pub fn begin(&self) -> Result<Vec<u8>, ReconciliationError> {
        batch::compress(&side(&self.picture)?.initiate()?)
    }

    /// Reads what an answer tells the side that began, and makes the next message unless everything is known.
    ///
    /// # Errors
    /// [`ReconciliationError`] when the answer cannot be read, or is one too many.
    pub fn learn(&mut self, message: &[u8]) -> Result<(Difference, Option<Vec<u8>>), ReconciliationError> {
        let message = read(message, &mut self.rounds)?;
        let (mut have, mut need) = (Vec::new(), Vec::new());
        let mut side = side(&self.picture)?;
        side.set_initiator();
        let next = side.reconcile_with_ids(&message, &mut have, &mut need)?;
        let items = |ids: Vec<Id>| ids.into_iter().map(Id::to_bytes).collect();
        let difference = Difference { only_here: items(have), only_there: items(need) };
        Ok((difference, next.map(|next| batch::compress(&next)).transpose()?))
    }
}

impl Answers {
    /// Answers one message from what is there now.
    ///
    /// # Errors
    /// [`ReconciliationError`] when the message cannot be read, or is one too many.
    pub fn answer(&mut self, picture: &Picture, message: &[u8]) -> Result<Vec<u8>, ReconciliationError> {
        let message = read(message, &mut self.rounds)?;
        self.bytes += message.len();
        let answer = side(picture)?.reconcile(&message)?;
        self.bytes += answer.len();
        batch::compress(&answer)
    }

    /// Bytes that were read and answered so far, before compression: what they cost goes with that.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The library's side, which knows nothing from one message to the next.
fn side(picture: &Picture) -> Result<Negentropy<'_, Picture>, Error> {
    Negentropy::borrowed(picture, MESSAGE_BYTES_MAX)
}

fn read(message: &[u8], rounds: &mut u32) -> Result<Vec<u8>, ReconciliationError> {
    *rounds += 1;
    if *rounds > ROUNDS_MAX {
        return Err(ReconciliationError::TooLong);
    }
    batch::decompress(message)
}

/// Writes a number as the encoding does: seven bits a byte, the highest first.
fn number(out: &mut Vec<u8>, value: u64) {
    let digits = (0..10).rev().map(|place| (place, value >> (7 * place)));
    for (place, left) in digits.filter(|(place, left)| *place == 0 || *left != 0) {
        let goes_on = if place == 0 { 0 } else { 0x80 };
        out.push((left.to_le_bytes()[0] & 0x7f) | goes_on);
    }
}

impl From<Error> for ReconciliationError {
    fn from(error: Error) -> Self {
        Self::malformed(error)
    }
}
