//! An [`ApiDescription`] as a document that a listing pins by its hash: JSON, deflated, behind a magic line.
//!
//! [`encode`] writes, checks the bounds that every reader will check, and packs. [`decode`] looks at the magic,
//! unpacks no more than the bound, counts brackets and values before anything is built from them, and reads the
//! JSON. What a stranger sends costs at most the bounds of [`crate::limits`].
//!
//! Invariant: what `encode` returns, `decode` reads, and the result is equal to what was given. (Fractions keep
//! 15 significant digits, as JSON does between programs.)

use miniz_oxide::{deflate::compress_to_vec, inflate::decompress_to_vec_with_limit};

use crate::{
    description::ApiDescription,
    limits::{
        ENCODED_BYTES_MAX, PATH_SEGMENTS_MAX, UNPACKED_BYTES_MAX, UNPACKED_DEPTH_MAX, UNPACKED_VALUES_MAX,
    },
};

/// Values that an object or a list counts as: those that hold others take more memory than those that do not.
const COMPOUND_VALUES: usize = 4;
/// Memory that a value may take: an empty entry of a map with its key, or a schema in which nothing is set.
const VALUE_BYTES: usize = 230;
/// Memory that a segment of a path may take once it is indexed: its pieces, a branch of the tree of routes, and a
/// parameter that is declared by the path alone.
const SEGMENT_BYTES: usize = 2_000;
/// Copies of the text of a path that are then in memory.
const PATH_COPIES: usize = 4;

/// The first line of a document; the number grows when the form changes.
pub const MAGIC: &[u8] = b"farthing-api/1\n";

/// Higher levels take twice the time for less than a hundredth of the size.
const DEFLATE_LEVEL: u8 = 8;

/// The reason that a description is not packed, or a document not read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error(
        "the description has {bytes} bytes when packed, and {ENCODED_BYTES_MAX} are allowed; \
         leave operations out, or offer them as several services"
    )]
    TooLarge { bytes: usize },
    #[error(
        "the description has more than {bytes_max} bytes; \
         leave operations out, or offer them as several services"
    )]
    TooLargeUnpacked { bytes_max: usize },
    #[error(
        "the description has more than {values_max} values; \
         leave operations out, or offer them as several services"
    )]
    TooManyValues { values_max: usize },
    #[error(
        "the paths of the description have more than {segments_max} segments; \
         leave operations out, or offer them as several services"
    )]
    TooManySegments { segments_max: usize },
    #[error(
        "the description nests more than {UNPACKED_DEPTH_MAX} levels deep; \
         give its inner schemas names, or leave the operations that use them out"
    )]
    TooDeep,
    #[error("this version cannot read the description: it does not begin with `farthing-api/1`")]
    UnknownForm,
    #[error("the document is damaged and cannot be unpacked; ask its owner to publish it again")]
    Damaged,
    #[error("the document has no description that this version can read; ask its owner to publish it again")]
    Json(#[source] serde_json::Error),
}

/// Packs a description.
///
/// # Errors
/// [`DocumentError`] when it is larger or nests deeper than readers accept; the text says what to leave out.
pub fn encode(description: &ApiDescription) -> Result<Vec<u8>, DocumentError> {
    let json = serde_json::to_vec(description).map_err(DocumentError::Json)?;
    if json.len() > UNPACKED_BYTES_MAX {
        return Err(DocumentError::TooLargeUnpacked { bytes_max: UNPACKED_BYTES_MAX });
    }
    check_bounds(&json, UNPACKED_VALUES_MAX)?;
    path_memory(description, PATH_SEGMENTS_MAX)?;
    let packed = compress_to_vec(&json, DEFLATE_LEVEL);
    let document = [MAGIC, &packed].concat();
    if document.len() > ENCODED_BYTES_MAX {
        return Err(DocumentError::TooLarge { bytes: document.len() });
    }
    Ok(document)
}

/// The most that reading a document may cost.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub unpacked_bytes_max: usize,
    pub values_max: usize,
    /// Of all paths.
    pub segments_max: usize,
}

impl Bounds {
    /// The bounds that every reader accepts for a service that somebody asked for.
    pub const ASKED_FOR: Self = Self {
        unpacked_bytes_max: UNPACKED_BYTES_MAX,
        values_max: UNPACKED_VALUES_MAX,
        segments_max: PATH_SEGMENTS_MAX,
    };
    /// The bounds for what nobody asked for: 23 MB of memory at most.
    pub const UNASKED: Self =
        Self { unpacked_bytes_max: 1024 * 1024, values_max: 50_000, segments_max: 5_000 };
}

/// The text of a description, within its bounds: a hundredth of what reading it may take.
#[derive(Debug)]
pub struct DescriptionText {
    json: Vec<u8>,
    values: usize,
    bounds: Bounds,
}

/// A description with what it costs to keep.
#[derive(Debug)]
pub struct Unpacked {
    pub description: ApiDescription,
    /// An upper bound of its memory, in bytes, with the index of its paths that [`crate::Api::new`] makes.
    pub memory_bytes: usize,
}

/// Unpacks a description. Its form is right, what it says is not checked: [`crate::Api::new`] does that.
///
/// # Errors
/// [`DocumentError`] when it is too large, packed or unpacked, or is no description.
pub fn decode(document: &[u8]) -> Result<ApiDescription, DocumentError> {
    unpack(document, Bounds::ASKED_FOR).map(|unpacked| unpacked.description)
}

/// The same within other bounds.
pub fn unpack(document: &[u8], bounds: Bounds) -> Result<Unpacked, DocumentError> {
    open(document, bounds)?.read()
}

/// Unpacks the text of a description and counts what is in it, so that a reader can make room first.
///
/// # Errors
/// [`DocumentError`] when it is too large, packed or unpacked.
pub fn open(document: &[u8], bounds: Bounds) -> Result<DescriptionText, DocumentError> {
    if document.len() > ENCODED_BYTES_MAX {
        return Err(DocumentError::TooLarge { bytes: document.len() });
    }
    let packed = document.strip_prefix(MAGIC).ok_or(DocumentError::UnknownForm)?;
    let json = decompress_to_vec_with_limit(packed, bounds.unpacked_bytes_max).map_err(|error| {
        if error.output.len() >= bounds.unpacked_bytes_max {
            DocumentError::TooLargeUnpacked { bytes_max: bounds.unpacked_bytes_max }
        } else {
            DocumentError::Damaged
        }
    })?;
    let values = check_bounds(&json, bounds.values_max)?;
    Ok(DescriptionText { json, values, bounds })
}

impl DescriptionText {
    /// An upper bound of the memory of its values, in bytes. Paths come on top: 40 MB at most.
    pub const fn values_bytes(&self) -> usize {
        self.json.len() + self.values * VALUE_BYTES
    }

    /// Reads what was opened.
    ///
    /// # Errors
    /// [`DocumentError`] when it is no description, or has too many paths.
    pub fn read(self) -> Result<Unpacked, DocumentError> {
        let description = serde_json::from_slice(&self.json).map_err(DocumentError::Json)?;
        let of_paths = path_memory(&description, self.bounds.segments_max)?;
        Ok(Unpacked { description, memory_bytes: self.values_bytes() + of_paths })
    }
}

/// Estimates the memory of paths, their segments and parameters, beside their text in the description. A path of a few bytes is a branch of its own.
fn path_memory(description: &ApiDescription, segments_max: usize) -> Result<usize, DocumentError> {
    let paths = || description.operations.iter().map(|operation| &operation.path);
    // A parameter may be declared by its path alone.
    let segments: usize = paths().map(|path| path.matches(['/', '{']).count()).sum();
    if segments > segments_max {
        return Err(DocumentError::TooManySegments { segments_max });
    }
    Ok(segments * SEGMENT_BYTES + paths().map(String::len).sum::<usize>() * PATH_COPIES)
}

/// Counts levels and values without building any of them: an unpacked byte can become fifty in memory.
fn check_bounds(json: &[u8], values_max: usize) -> Result<usize, DocumentError> {
    let (mut depth, mut values) = (0_usize, 1_usize);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' => {
                depth += 1;
                values += COMPOUND_VALUES;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
        if depth > UNPACKED_DEPTH_MAX {
            return Err(DocumentError::TooDeep);
        }
        if values > values_max {
            return Err(DocumentError::TooManyValues { values_max });
        }
    }
    Ok(values)
}

/// Moves behind the closing quotation mark.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
