//! Frames' contents, compressed: bounded before they are made and while they are read.

use std::io::Read;

use super::ReconciliationError;
use crate::{
    signed::{Document, Signed},
    wire,
};

/// Bytes of a frame's content before compression. What zstd cannot compress grows by less than a hundredth, so
/// this fits into a frame of 1 MiB whatever it is.
const CONTENT_BYTES_MAX: usize = 1_000_000;
/// The most bytes of an array's own beginning.
const ARRAY_BYTES_MAX: usize = 5;
/// zstd's fast levels: a batch takes milliseconds.
const LEVEL: i32 = 3;
/// A peer may not make us hold a larger window than the content can be: 2^20 bytes.
const WINDOW_LOG_MAX: u32 = 20;

/// Signed documents on their way into one frame.
#[derive(Debug)]
pub struct Batch<T> {
    documents: Vec<Signed<T>>,
    bytes: usize,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self { documents: Vec::new(), bytes: 0 }
    }
}

impl<T: Document> Batch<T> {
    /// False when it is full.
    pub fn add(&mut self, document: Signed<T>) -> bool {
        let bytes = self.bytes + minicbor::len(&document);
        if bytes + ARRAY_BYTES_MAX > CONTENT_BYTES_MAX {
            return false;
        }
        self.bytes = bytes;
        self.documents.push(document);
        true
    }

    pub fn count(&self) -> usize {
        self.documents.len()
    }

    /// The frame's content.
    pub fn pack(self) -> Result<Vec<u8>, ReconciliationError> {
        compress(&wire::encode(&self.documents))
    }
}

/// The documents of a frame.
///
/// # Errors
/// [`ReconciliationError::Malformed`] when they cannot be read, or are too large.
pub fn unpack<T: Document>(packed: &[u8]) -> Result<Vec<Signed<T>>, ReconciliationError> {
    wire::decode(&decompress(packed)?).map_err(ReconciliationError::malformed)
}

/// Compresses the content of a frame.
pub fn compress(content: &[u8]) -> Result<Vec<u8>, ReconciliationError> {
    zstd::bulk::compress(content, LEVEL).map_err(ReconciliationError::malformed)
}

/// Never takes more memory than the bound and the window, whatever the frame says about itself.
pub(super) fn decompress(packed: &[u8]) -> Result<Vec<u8>, ReconciliationError> {
    let mut decoder =
        zstd::stream::read::Decoder::with_buffer(packed).map_err(ReconciliationError::malformed)?;
    decoder.window_log_max(WINDOW_LOG_MAX).map_err(ReconciliationError::malformed)?;
    let mut content = Vec::new();
    decoder
        .take(CONTENT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut content)
        .map_err(ReconciliationError::malformed)?;
    if content.len() > CONTENT_BYTES_MAX {
        return Err(ReconciliationError::Malformed(format!("it is larger than {CONTENT_BYTES_MAX} bytes")));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Listing, limits};

    #[test]
    fn content_at_the_bound_passes_and_above_it_does_not() {
        // Bytes that zstd cannot make smaller.
        let mut state = 1_u64;
        let mut noise = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        let largest: Vec<u8> = (0..CONTENT_BYTES_MAX).map(&mut noise).collect();
        let packed = compress(&largest).unwrap();
        assert!(packed.len() < limits::SYNC_FRAME_BYTES_MAX - 16, "{}", packed.len());
        assert_eq!(decompress(&packed).unwrap(), largest);
        let more: Vec<u8> = largest.into_iter().chain([0]).collect();
        assert!(decompress(&compress(&more).unwrap()).is_err());
    }

    #[test]
    fn a_bomb_is_defused() {
        // 1 GiB of zeros in 32 KiB, streamed so that no size is declared.
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        let zeros = vec![0; 1 << 20];
        for _ in 0..64 {
            std::io::Write::write_all(&mut encoder, &zeros).unwrap();
        }
        let bomb = encoder.finish().unwrap();
        assert!(bomb.len() < 64 * 1024);
        assert!(matches!(decompress(&bomb), Err(ReconciliationError::Malformed(_))));
    }

    #[test]
    fn noise_is_no_content() {
        for packed in [&b""[..], b"x", &[0x28, 0xb5, 0x2f, 0xfd], &[0xff; 100]] {
            assert!(unpack::<Listing>(packed).is_err());
        }
    }
}
