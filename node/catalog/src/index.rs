//! The search index: which slots hold certain words, and how well. Everything else about a listing is on the
//! listings.
//!
//! A folder of tantivy's, derived from the store and rebuilt whenever it is missing, damaged, or of another
//! store or schema. Words are folded (case and diacritics) when they are written and when they are looked for.
//! What people type is data: it is cut into words, and no word has a meaning to the query.

use std::{fs, path::Path};

use tantivy::{
    DocId, Index as Tantivy, IndexReader, IndexWriter, ReloadPolicy, Score, Searcher, SegmentOrdinal,
    SegmentReader, TantivyDocument, Term,
    collector::{Collector, SegmentCollector},
    columnar::Column,
    query::{BooleanQuery, BoostQuery, ConstScoreQuery, FuzzyTermQuery, Occur, Query, RegexQuery, TermQuery},
    schema::{FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{
        AsciiFoldingFilter, LowerCaser, RemoveLongFilter, SimpleTokenizer, TextAnalyzer, TokenStream,
    },
};

use crate::{
    error::{CatalogError, Result},
    listings::Slot,
    store::{attempt, cause_of, move_aside},
};

/// Of the fields below. Another one is rebuilt.
const SCHEMA: u32 = 1;
/// The least that tantivy accepts; given back when nothing was written for a while.
const WRITER_BYTES: usize = 15_000_000;
const TOKENIZER: &str = "folded";
/// Letters of a word; longer ones are no words.
const WORD_CHARS_MAX: usize = 48;
/// Words of a query. Each is looked up in three fields.
const WORDS_MAX: usize = 12;
/// From here on a word that nobody wrote may be mistyped in one place, or stand within another.
const TYPO_CHARS_MIN: usize = 5;
const INNER_CHARS_MIN: usize = 4;
/// Words of a query that nobody wrote, so that they are looked for as mistyped and as parts of words: each takes some ten
/// milliseconds, and strangers ask as well. In a longer query, and in longer words, nobody is helped by guesses.
const GUESSED_MAX: usize = 3;
const GUESSED_CHARS_MAX: usize = 20;

/// The worth of a word in each field.
const NAME_BOOST: Score = 4.0;
const TEXT_BOOST: Score = 1.0;
const OPERATIONS_BOOST: Score = 0.5;
/// The worth of the beginning of a word, and of a mistyped word or a part of one, against the word itself.
const PREFIX_SCORE: Score = 1.0;
const TYPO_SCORE: Score = 0.5;

#[derive(Clone, Copy, Debug)]
struct Fields {
    slot: Field,
    name: Field,
    text: Field,
    operations: Field,
}

#[derive(Debug)]
pub(crate) struct ListingWords<'a> {
    pub(crate) slot: Slot,
    pub(crate) name: &'a str,
    /// Summary, category and tags.
    pub(crate) text: String,
    pub(crate) operations: &'a str,
}

/// The index, to look things up in.
pub(crate) struct Index {
    tantivy: Tantivy,
    fields: Fields,
    reader: IndexReader,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Index")
    }
}

#[derive(Debug)]
pub(crate) struct OpenedIndex {
    pub(crate) index: Index,
    /// True if it has to learn everything anew; `notice` says why, when there was one before.
    pub(crate) rebuild: bool,
    pub(crate) notice: Option<String>,
}

impl Index {
    /// Opens the index of the store with this epoch.
    pub(crate) fn open(folder: &Path, epoch: &str) -> Result<OpenedIndex> {
        let mark = format!("{SCHEMA} {epoch}");
        let failed = || CatalogError::folder(folder);
        if folder.exists() && !folder.is_dir() {
            let aside = move_aside(folder).map_err(failed())?;
            let opened = Self::open(folder, epoch)?;
            let notice = format!(
                "{} was not a folder and was moved to {}; the search index is rebuilt",
                folder.display(),
                aside.display()
            );
            return Ok(OpenedIndex { notice: Some(notice), ..opened });
        }
        let existed = folder.join("meta.json").exists();
        let problem = match attempt(folder, || Self::open_existing(folder, &mark)) {
            Ok(Ok(index)) => return Ok(OpenedIndex { index, rebuild: false, notice: None }),
            Ok(Err(problem)) => problem.to_owned(),
            Err(error) => cause_of(&error),
        };
        if let Err(source) = fs::remove_dir_all(folder)
            && source.kind() != std::io::ErrorKind::NotFound
        {
            return Err(failed()(source));
        }
        fs::create_dir_all(folder).map_err(failed())?;
        let (schema, _) = schema();
        let tantivy = Tantivy::create_in_dir(folder, schema)?;
        fs::write(folder.join("mark"), &mark).map_err(failed())?;
        let notice = existed.then(|| format!("the search index is rebuilt: {problem}"));
        Ok(OpenedIndex { index: Self::over(tantivy)?, rebuild: true, notice })
    }

    /// The index, or why it is of no use.
    fn open_existing(folder: &Path, mark: &str) -> Result<Result<Self, &'static str>> {
        if fs::read_to_string(folder.join("mark")).is_ok_and(|found| found == mark) {
            let tantivy = Tantivy::open_in_dir(folder)?;
            if tantivy.schema() != schema().0 {
                return Ok(Err("it has other fields"));
            }
            if !tantivy.validate_checksum()?.is_empty() {
                return Ok(Err("a file of it is damaged"));
            }
            return Ok(Ok(Self::over(tantivy)?));
        }
        Ok(Err("it belongs to another catalog or version"))
    }

    fn over(tantivy: Tantivy) -> Result<Self> {
        tantivy.tokenizers().register(TOKENIZER, analyzer());
        let reader = tantivy
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(0)
            .try_into()?;
        Ok(Self { tantivy, fields: schema().1, reader })
    }

    /// A writer. It holds memory and threads; drop it when there is nothing to write.
    pub(crate) fn writer(&self) -> Result<SearchWriter> {
        Ok(SearchWriter {
            writer: self.tantivy.writer_with_num_threads(1, WRITER_BYTES)?,
            fields: self.fields,
        })
    }

    /// Makes everything that was committed visible to searches from now on.
    pub(crate) fn reload(&self) -> Result<()> {
        Ok(self.reader.reload()?)
    }

    /// Every slot that has all the words, in any field; with scores when `scored`. None when there are no words.
    pub(crate) fn find(&self, words: &str, scored: bool) -> Result<Option<Vec<(Slot, Score)>>> {
        if words.trim().is_empty() {
            return Ok(None);
        }
        let words = cut(words);
        if words.is_empty() {
            // Signs alone are in no index, and are not nothing either.
            return Ok(Some(Vec::new()));
        }
        let searcher = self.reader.searcher();
        let last = words.len() - 1;
        let known = words.iter().enumerate().map(|(at, word)| self.is_known(&searcher, word, at == last));
        let known: Vec<bool> = known.collect::<Result<_>>()?;
        if known.iter().filter(|is_known| !**is_known).count() > GUESSED_MAX {
            return Ok(Some(Vec::new()));
        }
        let clauses = words.iter().zip(known).enumerate().map(|(at, (word, is_known))| {
            let clause = self.word_query(word, is_known, at == last)?;
            Ok((Occur::Must, clause))
        });
        let query = BooleanQuery::new(clauses.collect::<Result<_>>()?);
        Ok(Some(searcher.search(&query, &Slots { scored })?))
    }

    /// The fields that words are in, and how much each counts.
    const fn boosted(&self) -> [(Field, Score); 3] {
        let Fields { name, text, operations, .. } = self.fields;
        [(name, NAME_BOOST), (text, TEXT_BOOST), (operations, OPERATIONS_BOOST)]
    }

    /// Returns whether a word is in any of them, or the beginning of one that may still be typed on.
    fn is_known(&self, searcher: &Searcher, word: &str, last: bool) -> Result<bool> {
        for (field, _) in self.boosted() {
            if exists(searcher, field, word, last)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One word: as it stands, as the beginning of a word when it may still be typed on, and mistyped or as a part of
    /// a word when nobody wrote it.
    fn word_query(&self, word: &str, is_known: bool, last: bool) -> Result<Box<dyn Query>> {
        let chars = word.chars().count();
        let guesses = !is_known && chars <= GUESSED_CHARS_MAX;
        let typo = guesses && chars >= TYPO_CHARS_MIN;
        let inner = guesses && chars >= INNER_CHARS_MIN;
        // Words are letters and digits, which mean themselves in a pattern.
        let pattern = format!(".*{word}.*");
        let mut forms: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for (field, boost) in self.boosted() {
            let term = Term::from_field_text(field, word);
            let mut add = |form: Box<dyn Query>, boost: Score| {
                forms.push((Occur::Should, Box::new(BoostQuery::new(form, boost))));
            };
            if inner {
                let within = RegexQuery::from_pattern(&pattern, field)?;
                add(Box::new(ConstScoreQuery::new(Box::new(within), TYPO_SCORE)), boost);
            }
            if typo {
                let near = if last {
                    FuzzyTermQuery::new_prefix(term, 1, true)
                } else {
                    FuzzyTermQuery::new(term, 1, true)
                };
                add(Box::new(ConstScoreQuery::new(Box::new(near), TYPO_SCORE)), boost);
                continue;
            }
            if last {
                let begins = FuzzyTermQuery::new_prefix(term.clone(), 0, false);
                add(Box::new(ConstScoreQuery::new(Box::new(begins), PREFIX_SCORE)), boost);
            }
            add(Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)), boost);
        }
        Ok(Box::new(BooleanQuery::new(forms)))
    }
}

/// Returns whether anybody wrote the word, or one that begins with it.
fn exists(searcher: &Searcher, field: Field, word: &str, prefix: bool) -> Result<bool> {
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(field)?;
        let mut terms =
            inverted.terms().range().ge(word).into_stream().map_err(tantivy::TantivyError::from)?;
        if terms.advance()
            && (terms.key() == word.as_bytes() || prefix && terms.key().starts_with(word.as_bytes()))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Words as the index has them.
fn cut(text: &str) -> Vec<String> {
    let mut analyzer = analyzer();
    let mut tokens = analyzer.token_stream(text);
    let mut words = Vec::new();
    while words.len() < WORDS_MAX && tokens.advance() {
        words.push(tokens.token().text.clone());
    }
    words
}

fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(WORD_CHARS_MAX))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .build()
}

fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let words =
        TextFieldIndexing::default().set_tokenizer(TOKENIZER).set_index_option(IndexRecordOption::WithFreqs);
    let words = TextOptions::default().set_indexing_options(words);
    let fields = Fields {
        slot: schema.add_u64_field("slot", INDEXED | FAST),
        name: schema.add_text_field("name", words.clone()),
        text: schema.add_text_field("text", words.clone()),
        operations: schema.add_text_field("operations", words),
    };
    (schema.build(), fields)
}

/// Teaches the index.
pub(crate) struct SearchWriter {
    writer: IndexWriter,
    fields: Fields,
}

impl SearchWriter {
    pub(crate) fn remove(&self, slot: Slot) {
        self.writer.delete_term(Term::from_field_u64(self.fields.slot, slot.into()));
    }

    /// Adds the words of a slot that was removed before.
    pub(crate) fn add(&self, words: &ListingWords<'_>) -> Result<()> {
        let mut document = TantivyDocument::new();
        document.add_u64(self.fields.slot, words.slot.into());
        document.add_text(self.fields.name, words.name);
        document.add_text(self.fields.text, &words.text);
        document.add_text(self.fields.operations, words.operations);
        self.writer.add_document(document)?;
        Ok(())
    }

    pub(crate) fn commit(&mut self) -> Result<()> {
        self.writer.commit()?;
        Ok(())
    }

    /// Waits for the segments being merged and gives everything back.
    pub(crate) fn close(self) -> Result<()> {
        Ok(self.writer.wait_merging_threads()?)
    }
}

/// Collects every match as slot and score.
struct Slots {
    scored: bool,
}

struct SegmentSlots {
    slots: Column<u64>,
    found: Vec<(Slot, Score)>,
}

impl Collector for Slots {
    type Fruit = Vec<(Slot, Score)>;
    type Child = SegmentSlots;

    fn for_segment(&self, _: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<SegmentSlots> {
        Ok(SegmentSlots { slots: segment.fast_fields().u64("slot")?, found: Vec::new() })
    }

    fn requires_scoring(&self) -> bool {
        self.scored
    }

    fn merge_fruits(&self, found: Vec<Self::Fruit>) -> tantivy::Result<Self::Fruit> {
        Ok(found
            .into_iter()
            .reduce(|mut all, more| {
                all.extend(more);
                all
            })
            .unwrap_or_default())
    }
}

impl SegmentCollector for SegmentSlots {
    type Fruit = Vec<(Slot, Score)>;

    fn collect(&mut self, document: DocId, score: Score) {
        let slot = self.slots.first(document).and_then(|slot| Slot::try_from(slot).ok());
        self.found.extend(slot.map(|slot| (slot, score)));
    }

    fn harvest(self) -> Self::Fruit {
        self.found
    }
}
