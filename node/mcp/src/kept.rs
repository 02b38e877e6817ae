//! Parts of calls that stay in memory: the rest of long answers, and calls whose end is not known.
//!
//! Both are bounded: the oldest make room for new ones.

use std::{collections::VecDeque, sync::Arc};

/// The most of a body that one result has.
pub const PART_BYTES_MAX: usize = 64 * 1024;
/// The most bodies that are kept, and the most bytes of all.
const BODIES_MAX: usize = 16;
const BODIES_BYTES_MAX: usize = 96 * 1024 * 1024;
/// The most calls without a known end.
const OPEN_MAX: usize = 64;

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

/// The parts of earlier calls that stay in memory.
#[derive(Debug, Default)]
pub struct Kept {
    /// By call id, the oldest first.
    bodies: VecDeque<(String, Arc<LongBody>)>,
    /// Call ids by fingerprint, the oldest first.
    open: VecDeque<(u64, String)>,
}

impl Kept {
    /// Keeps a body. One that is longer than all may be is not kept.
    pub fn keep(&mut self, call_id: &str, body: Arc<LongBody>) {
        self.bodies.retain(|(id, _)| id != call_id);
        if body.text.len() > BODIES_BYTES_MAX {
            return;
        }
        self.bodies.push_back((call_id.to_owned(), body));
        while self.bodies.len() > BODIES_MAX || self.bytes() > BODIES_BYTES_MAX {
            self.bodies.pop_front();
        }
    }

    fn bytes(&self) -> usize {
        self.bodies.iter().map(|(_, body)| body.text.len()).sum()
    }

    #[must_use]
    pub fn body(&self, call_id: &str) -> Option<Arc<LongBody>> {
        self.bodies.iter().find(|(id, _)| id == call_id).map(|(_, body)| Arc::clone(body))
    }

    /// Notes that a call leaves whose end is not known.
    pub fn open(&mut self, fingerprint: u64, call_id: &str) {
        self.close(call_id);
        self.open.push_back((fingerprint, call_id.to_owned()));
        if self.open.len() > OPEN_MAX {
            self.open.pop_front();
        }
    }

    /// Notes that the end of a call is known.
    pub fn close(&mut self, call_id: &str) {
        self.open.retain(|(_, id)| id != call_id);
    }

    /// The id of the newest such call without a known end: an agent that repeats it without its id pays once.
    #[must_use]
    pub fn open_call(&self, fingerprint: u64) -> Option<String> {
        self.open.iter().rev().find(|(print, _)| *print == fingerprint).map(|(_, id)| id.clone())
    }
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
            kept.keep(&n.to_string(), body("x"));
        }
        assert_eq!(kept.body("0"), None);
        assert!(kept.body("1").is_some() && kept.body(&BODIES_MAX.to_string()).is_some());
        kept.keep("long", body(&"x".repeat(BODIES_BYTES_MAX)));
        assert!(kept.body("long").is_some() && kept.body("1").is_none());
        kept.keep("too long", body(&"x".repeat(BODIES_BYTES_MAX + 1)));
        assert!(kept.body("too long").is_none() && kept.body("long").is_some());
    }

    #[test]
    fn a_call_without_a_known_end_is_found_again_until_it_has_one() {
        let mut kept = Kept::default();
        kept.open(7, "a");
        assert_eq!(kept.open_call(7).as_deref(), Some("a"));
        assert_eq!(kept.open_call(8), None);
        kept.close("a");
        assert_eq!(kept.open_call(7), None);
        for n in 0..=OPEN_MAX as u64 {
            kept.open(n, &n.to_string());
        }
        assert_eq!(kept.open_call(0), None);
        assert_eq!(kept.open_call(1).as_deref(), Some("1"));
    }
}
