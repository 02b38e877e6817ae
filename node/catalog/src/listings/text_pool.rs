//! Categories and tags, each kept once: listings hold numbers.

use std::{collections::HashMap, sync::Arc};

/// A number for a text.
pub(crate) type WordId = u32;

/// The texts in use.
#[derive(Debug, Default)]
pub(crate) struct TextPool {
    ids: HashMap<Arc<str>, WordId>,
    words: Vec<(Arc<str>, u32)>,
    free: Vec<WordId>,
}

impl TextPool {
    /// The number of `text`, in lower case; one more listing uses it.
    pub(crate) fn add(&mut self, text: &str) -> WordId {
        let text = normal(text);
        if let Some(&id) = self.ids.get(text.as_str()) {
            self.words[id as usize].1 += 1;
            return id;
        }
        let text: Arc<str> = text.into();
        let id = if let Some(id) = self.free.pop() {
            self.words[id as usize] = (Arc::clone(&text), 1);
            id
        } else {
            self.words.push((Arc::clone(&text), 1));
            WordId::try_from(self.words.len() - 1).unwrap_or(WordId::MAX)
        };
        self.ids.insert(text, id);
        id
    }

    /// One listing less uses it.
    pub(crate) fn release(&mut self, id: WordId) {
        let (text, uses) = &mut self.words[id as usize];
        *uses -= 1;
        if *uses == 0 {
            let text = std::mem::replace(text, Arc::from(""));
            self.ids.remove(&text);
            self.free.push(id);
        }
    }

    pub(crate) fn find(&self, text: &str) -> Option<WordId> {
        self.ids.get(normal(text).as_str()).copied()
    }

    pub(crate) fn text(&self, id: WordId) -> Arc<str> {
        self.words.get(id as usize).map_or_else(|| Arc::from(""), |(text, _)| Arc::clone(text))
    }

    /// One more than the highest number in use.
    pub(crate) fn bound(&self) -> usize {
        self.words.len()
    }
}

/// `Weather ` and `weather` are one category.
fn normal(text: &str) -> String {
    text.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_nobody_uses_is_forgotten() {
        let mut words = TextPool::default();
        let weather = words.add("Weather");
        assert_eq!(words.add(" weather"), weather);
        words.release(weather);
        assert_eq!(words.find("WEATHER"), Some(weather));
        words.release(weather);
        assert_eq!(words.find("weather"), None);
        for number in 0..1_000 {
            let id = words.add(&format!("word {number}"));
            words.release(id);
        }
        assert_eq!(words.bound(), 1);
    }
}
