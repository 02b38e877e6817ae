//! Parts of calls that stay in memory: the rest of long answers, and questions to a user.
//!
//! All are bounded: the oldest make room for new ones. No secret takes the room of another's questions, nor more than
//! half of the room for bodies from others. A secret counts by its name and its age: one that has the name of a revoked one finds
//! nothing of that one's. Only once more than a hundred revoked ones have left all that they may, the oldest of all make room.

use std::{collections::VecDeque, sync::Arc};

use farthing_values::Usdc;
use uuid::Uuid;

use crate::{Trouble, arguments::Fingerprint};

/// The most of a body that one result has.
pub const PART_BYTES_MAX: usize = 64 * 1024;
/// The most bodies that are kept, and the most bytes of all.
const BODIES_MAX: usize = 16;
const BODIES_BYTES_MAX: usize = 96 * 1024 * 1024;
/// The most questions of one secret, and of all together: revoked ones leave theirs.
const QUESTIONS_MAX: usize = 64;
const QUESTIONS_MAX_IN_ALL: usize = 128 * QUESTIONS_MAX;

/// The body of a long answer.
#[derive(Debug, PartialEq, Eq)]
pub struct LongBody {
    pub text: String,
    /// True if the text is base64, because the body is no text.
    pub is_base64: bool,
}

/// A part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    pub text: &'a str,
    /// The offset of the next part, if there is one.
    pub next_offset: Option<usize>,
}

impl LongBody {
    /// The part that begins at an offset, or at the beginning of the character there; `None` behind the end.
    #[must_use]
    pub fn part(&self, offset: usize) -> Option<Part<'_>> {
        if offset > self.text.len() {
            return None;
        }
        let rest = self.text.get(self.text.floor_char_boundary(offset)..)?;
        let text = rest.get(..rest.floor_char_boundary(PART_BYTES_MAX))?;
        let next_offset = self.text.len() - rest.len() + text.len();
        Some(Part { text, next_offset: (next_offset < self.text.len()).then_some(next_offset) })
    }
}

/// A call that leaves: its id, and what its user agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunCall {
    pub call_id: String,
    /// True if a call of this id may have left before, so that it may have been charged.
    pub is_repeat: bool,
    /// The price that was confirmed.
    pub confirmed: Option<Usdc>,
}

/// A price that a user is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    print: Fingerprint,
    call_id: String,
    token: String,
    price: Usdc,
    is_confirmed: bool,
}

/// The parts of earlier calls that stay in memory.
#[derive(Debug, Default)]
pub struct Kept {
    /// By secret and call id, the oldest first.
    bodies: VecDeque<(String, String, Arc<LongBody>)>,
    /// The oldest first.
    asked: VecDeque<Question>,
}

impl Kept {
    /// Keeps a body. One that is longer than all may be is not kept.
    pub fn keep(&mut self, secret: &str, call_id: &str, body: Arc<LongBody>) {
        self.bodies.retain(|(by, id, _)| (by.as_str(), id.as_str()) != (secret, call_id));
        if body.text.len() > BODIES_BYTES_MAX {
            return;
        }
        self.bodies.push_back((secret.to_owned(), call_id.to_owned(), body));
        while self.bodies.len() > BODIES_MAX || self.bytes() > BODIES_BYTES_MAX {
            self.bodies.remove(self.next_to_go(secret));
        }
    }

    /// The place of the body that makes room for the newest, which is of this secret: the oldest of that secret if it has more than
    /// half of all, and another; otherwise the oldest of all.
    fn next_to_go(&self, secret: &str) -> usize {
        let own = || self.bodies.iter().filter(|(by, ..)| by == secret);
        let bytes: usize = own().map(|(.., body)| body.text.len()).sum();
        let has_most = own().count() > BODIES_MAX / 2 || bytes > BODIES_BYTES_MAX / 2;
        let oldest = self.bodies.iter().position(|(by, ..)| by == secret);
        oldest.filter(|_| has_most && own().count() > 1).unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        self.bodies.iter().map(|(.., body)| body.text.len()).sum()
    }

    #[must_use]
    pub fn body(&self, secret: &str, call_id: &str) -> Option<Arc<LongBody>> {
        let is_it = |(by, id, _): &&(String, String, _)| (by.as_str(), id.as_str()) == (secret, call_id);
        self.bodies.iter().find(is_it).map(|(.., body)| Arc::clone(body))
    }

    /// Notes that a user is asked whether a call may cost so much. Returns the token of the answer.
    pub fn ask(&mut self, print: &Fingerprint, call_id: &str, price: Usdc) -> String {
        self.asked.retain(|asked| asked.print != *print || asked.call_id != call_id);
        let token = fresh();
        let question = Question {
            print: print.clone(),
            call_id: call_id.to_owned(),
            token: token.clone(),
            price,
            is_confirmed: false,
        };
        push(&mut self.asked, question, |asked| asked.print.secret == print.secret);
        token
    }

    /// Notes that the price was confirmed, once or again. The call has the id of the question that `token` answers.
    ///
    /// # Errors
    /// [`Trouble`] when the token is not of this call.
    pub fn confirm(
        &mut self,
        print: &Fingerprint,
        token: &str,
        call_id: Option<&str>,
    ) -> Result<BegunCall, Trouble> {
        let is_it = |asked: &&mut Question| {
            asked.print == *print && asked.token == token && call_id.is_none_or(|id| id == asked.call_id)
        };
        let asked = self.asked.iter_mut().find(is_it).ok_or_else(Trouble::of_unknown_token)?;
        let is_repeat = std::mem::replace(&mut asked.is_confirmed, true);
        Ok(BegunCall { call_id: asked.call_id.clone(), is_repeat, confirmed: Some(asked.price) })
    }

    /// Notes that a user did not agree to a price: its token confirms nothing any more. Returns the id of the call, or `None` if
    /// nobody was asked, or if the price was confirmed before.
    pub fn decline(&mut self, secret: &str, token: &str) -> Option<String> {
        let is_it =
            |asked: &Question| asked.print.secret == secret && asked.token == token && !asked.is_confirmed;
        let place = self.asked.iter().position(is_it)?;
        self.asked.remove(place).map(|asked| asked.call_id)
    }

    /// Returns the price that was confirmed for a call.
    #[must_use]
    pub fn confirmed(&self, print: &Fingerprint, call_id: &str) -> Option<Usdc> {
        let is_it =
            |asked: &&Question| asked.is_confirmed && asked.print == *print && asked.call_id == call_id;
        self.asked.iter().find(is_it).map(|asked| asked.price)
    }
}

fn fresh() -> String {
    Uuid::new_v4().to_string()
}

/// Puts an item behind the others; the oldest of the same secret goes if there are too many of that, or else the oldest of all.
fn push<T>(items: &mut VecDeque<T>, item: T, is_of_secret: impl Fn(&T) -> bool) {
    if items.iter().filter(|item| is_of_secret(item)).count() >= QUESTIONS_MAX
        && let Some(oldest) = items.iter().position(&is_of_secret)
    {
        items.remove(oldest);
    } else if items.len() >= QUESTIONS_MAX_IN_ALL {
        items.pop_front();
    }
    items.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(text: &str) -> Arc<LongBody> {
        Arc::new(LongBody { text: text.to_owned(), is_base64: false })
    }

    #[test]
    fn parts_make_the_whole_and_cut_no_character() {
        let long = body(&"aé€".repeat(PART_BYTES_MAX / 2));
        let (mut whole, mut offset, mut parts) = (String::new(), Some(0), 0);
        while let Some(at) = offset {
            let part = long.part(at).unwrap();
            assert!(part.text.len() <= PART_BYTES_MAX);
            whole += part.text;
            offset = part.next_offset;
            parts += 1;
        }
        assert_eq!(whole, long.text);
        assert_eq!(parts, 4);
        assert_eq!(long.part(long.text.len()), Some(Part { text: "", next_offset: None }));
        assert_eq!(long.part(long.text.len() + 1), None);
    }

    #[test]
    fn the_oldest_body_makes_room() {
        let mut kept = Kept::default();
        for n in 0..=BODIES_MAX {
            kept.keep("a", &n.to_string(), body("x"));
        }
        let has = |kept: &Kept, id: &str| kept.body("a", id).is_some();
        assert!(!has(&kept, "0") && has(&kept, "1") && has(&kept, &BODIES_MAX.to_string()));
        assert_eq!(kept.body("b", "1"), None, "another secret reads none of it");
        kept.keep("a", "long", body(&"x".repeat(BODIES_BYTES_MAX)));
        assert!(has(&kept, "long") && !has(&kept, "1"));
        kept.keep("a", "too long", body(&"x".repeat(BODIES_BYTES_MAX + 1)));
        assert!(!has(&kept, "too long") && has(&kept, "long"));
    }

    #[test]
    fn one_secret_leaves_others_half_of_the_room_however_much_it_reads() {
        let mut kept = Kept::default();
        let has = |kept: &Kept, secret: &str, id: &str| kept.body(secret, id).is_some();
        let many = |kept: &mut Kept, secret: &str, bytes: usize| {
            (0..3 * BODIES_MAX).for_each(|n| kept.keep(secret, &n.to_string(), body(&"x".repeat(bytes))));
        };
        many(&mut kept, "b", 1);
        for n in 0..BODIES_MAX / 2 {
            kept.keep("a", &n.to_string(), body("x"));
        }
        many(&mut kept, "b", 1);
        for n in 0..BODIES_MAX / 2 {
            assert!(has(&kept, "a", &n.to_string()), "{n}");
        }
        kept.keep("a", "long", body(&"x".repeat(BODIES_BYTES_MAX / 4)));
        many(&mut kept, "b", BODIES_BYTES_MAX / 8);
        assert!(has(&kept, "a", "long"));
        assert!(has(&kept, "b", &(3 * BODIES_MAX - 1).to_string()), "its newest is there as well");
    }

    fn print(secret: &str, call: u64) -> Fingerprint {
        Fingerprint { secret: secret.to_owned(), call }
    }

    #[test]
    fn what_revoked_secrets_left_makes_room_in_the_end() {
        let mut items = VecDeque::new();
        for item in 0..QUESTIONS_MAX_IN_ALL + QUESTIONS_MAX {
            let secret = item / QUESTIONS_MAX;
            push(&mut items, item, |other| other / QUESTIONS_MAX == secret);
        }
        assert_eq!(items.len(), QUESTIONS_MAX_IN_ALL);
        assert_eq!(items.front(), Some(&QUESTIONS_MAX), "those of the first secret are gone");
    }

    #[test]
    fn a_token_confirms_the_price_of_one_call_of_one_secret() {
        let mut kept = Kept::default();
        let (one, price) = (print("a", 7), Usdc::from_micros(9));
        let token = kept.ask(&one, "c1", price);
        let token = token.as_str();
        assert_eq!(kept.confirmed(&one, "c1"), None, "nobody agreed yet");
        for (print, token, call_id) in [
            (print("a", 8), token, None),
            (print("b", 7), token, None),
            (one.clone(), "other", None),
            (one.clone(), token, Some("c2")),
        ] {
            let trouble = kept.confirm(&print, token, call_id).unwrap_err();
            assert_eq!(trouble.code, "unknown-token", "{print:?} {token} {call_id:?}");
        }
        let confirmed = |is_repeat| BegunCall { call_id: "c1".to_owned(), is_repeat, confirmed: Some(price) };
        assert_eq!(kept.confirm(&one, token, None), Ok(confirmed(false)));
        assert_eq!(kept.confirm(&one, token, Some("c1")), Ok(confirmed(true)), "the same call again");
        assert_eq!(kept.confirmed(&one, "c1"), Some(price), "by its id, too");
        kept.ask(&one, "c1", Usdc::from_micros(10));
        assert_eq!(kept.confirmed(&one, "c1"), None, "a higher price is asked for");
        assert!(kept.confirm(&one, token, None).is_err());
    }

    #[test]
    fn a_price_that_was_declined_is_not_confirmed_by_its_token() {
        let mut kept = Kept::default();
        let (one, price) = (print("a", 7), Usdc::from_micros(9));
        let token = kept.ask(&one, "c1", price);
        assert_eq!(kept.decline("b", &token), None, "another secret answers no question of this one");
        assert_eq!(kept.decline("a", "other"), None);
        assert_eq!(kept.decline("a", &token), Some("c1".to_owned()));
        assert_eq!(kept.confirm(&one, &token, None).unwrap_err().code, "unknown-token");
        let token = kept.ask(&one, "c1", price);
        kept.confirm(&one, &token, None).unwrap();
        assert_eq!(kept.decline("a", &token), None, "the call may have been charged meanwhile");
    }
}
