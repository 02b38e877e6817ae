//! Frames' contents, compressed: bounded before they are made and while they are read.

use std::{collections::HashSet, io::Read};

use farthing_protocol::{Listing, Signed, sync::ItemName, wire};

use super::SyncError;

/// Bytes of a frame's content before compression. What zstd cannot compress grows by less than a hundredth, so
/// this fits into a frame of 1 MiB whatever it is.
const CONTENT_BYTES_MAX: usize = 1_000_000;
/// zstd's fast levels: a batch takes milliseconds.
const LEVEL: i32 = 3;
/// A peer may not make us hold a larger window than the content can be: 2^20 bytes.
const WINDOW_LOG_MAX: u32 = 20;

/// Listings on their way into one frame.
#[derive(Debug, Default)]
pub(super) struct Batch {
    listings: Vec<Signed<Listing>>,
    bytes: usize,
}

impl Batch {
    /// False when it is full.
    pub(super) fn add(&mut self, listing: Signed<Listing>) -> bool {
        let bytes = minicbor::len(&listing);
        // Five bytes for the array's own length.
        if self.bytes + bytes + 5 > CONTENT_BYTES_MAX {
            return false;
        }
        self.bytes += bytes;
        self.listings.push(listing);
        true
    }

    pub(super) fn pack(self) -> Result<Vec<u8>, SyncError> {
        compress(&wire::encode(&self.listings))
    }
}

/// The listings of a frame.
pub(super) fn unpack(packed: &[u8]) -> Result<Vec<Signed<Listing>>, SyncError> {
    wire::decode(&decompress(packed)?).map_err(|e| SyncError::Malformed(e.to_string()))
}

/// Listings that were asked for, each of which is not asked for any more.
pub(super) fn unpack_asked(
    packed: &[u8],
    asked: &mut HashSet<ItemName>,
) -> Result<Vec<Signed<Listing>>, SyncError> {
    let listings = unpack(packed)?;
    if !listings.iter().all(|listing| asked.remove(&ItemName::of(&listing.content_hash()))) {
        return Err(SyncError::Unasked);
    }
    if listings.is_empty() {
        // The peer no longer has the rest.
        asked.clear();
    }
    Ok(listings)
}

pub(super) fn compress(content: &[u8]) -> Result<Vec<u8>, SyncError> {
    zstd::bulk::compress(content, LEVEL).map_err(|e| SyncError::Malformed(e.to_string()))
}

/// Never takes more memory than the bound and the window, whatever the frame says about itself.
pub(super) fn decompress(packed: &[u8]) -> Result<Vec<u8>, SyncError> {
    let malformed = |error: std::io::Error| SyncError::Malformed(error.to_string());
    let mut decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(malformed)?;
    decoder.window_log_max(WINDOW_LOG_MAX).map_err(malformed)?;
    let mut content = Vec::new();
    decoder.take(CONTENT_BYTES_MAX as u64 + 1).read_to_end(&mut content).map_err(malformed)?;
    if content.len() > CONTENT_BYTES_MAX {
        return Err(SyncError::Malformed(format!("it is larger than {CONTENT_BYTES_MAX} bytes")));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(packed.len() < farthing_protocol::limits::SYNC_FRAME_BYTES_MAX - 16, "{}", packed.len());
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
        assert!(matches!(decompress(&bomb), Err(SyncError::Malformed(_))));
    }

    #[test]
    fn noise_is_no_content() {
        for packed in [&b""[..], b"x", &[0x28, 0xb5, 0x2f, 0xfd], &[0xff; 100]] {
            assert!(unpack(packed).is_err());
        }
    }
}
