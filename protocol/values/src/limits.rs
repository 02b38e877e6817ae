//! Every bound of the protocol on one page, each with its reason.
//!
//! A bound is checked where bytes enter, before they are stored or allocated for.

/// A call's head: method, path, parameters and payment. Servers commonly accept 8–16 KiB of request line
/// and headers; twice that leaves room for the payment.
pub const CALL_HEAD_BYTES_MAX: usize = 32 * 1024;
/// A request body. Uploads beyond this belong in object storage, not in a paid call.
pub const REQUEST_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A response body, the most any owner may configure. It is held in memory once on each side.
pub const RESPONSE_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A response body unless the owner raises it: 128 of them fit the memory of a small board.
pub const RESPONSE_BODY_BYTES_DEFAULT: usize = 8 * 1024 * 1024;
/// Parameters of one call, and the longest name and value.
pub const PARAMS_MAX: usize = 64;
pub const PARAM_NAME_BYTES_MAX: usize = 128;
pub const PARAM_VALUE_BYTES_MAX: usize = 8 * 1024;
/// Headers of one call in either direction.
pub const HEADERS_MAX: usize = 32;
/// The headers of an answer, encoded: the receipt and everything else in its head take less than what is left.
pub const RESPONSE_HEADERS_BYTES_MAX: usize = CALL_HEAD_BYTES_MAX - 1024;
/// The path of a call, as most servers limit the request line.
pub const PATH_BYTES_MAX: usize = 2 * 1024;

/// Calls of one wallet that an owner's node takes at once. A consumer keeps further ones waiting.
pub const CALLS_PER_PEER_MAX: usize = 64;
/// Deadline of a call unless the caller names one.
pub const CALL_DEADLINE_MS_DEFAULT: u64 = 30_000;
/// The shortest deadline under which an owner asks its service: less would only make the service work for nothing.
pub const CALL_DEADLINE_MS_MIN: u64 = 1_000;
/// The longest deadline; a longer job should answer with a handle to poll.
pub const CALL_DEADLINE_MS_MAX: u64 = 300_000;
/// The waits beyond a call's deadline, each longer than the one before, so that the owner's word that the time is over
/// arrives: its node gives the word after the first, the caller waits for it during the second, the owner's network still
/// sends it during the third, and the caller's network reads it during the fourth.
pub const DEADLINE_TOLD_MS: u64 = 1_000;
pub const ANSWER_MARGIN_MS: u64 = 2 * DEADLINE_TOLD_MS;
pub const LAST_WORD_MS: u64 = 5_000;
pub const LAST_WORD_READ_MS: u64 = 2 * LAST_WORD_MS;

/// A signed node record. Eight addresses of 100 bytes and the fixed part fit.
pub const RECORD_BYTES_MAX: usize = 1024;
pub const RECORD_ADDRESSES_MAX: usize = 8;
pub const RECORD_ADDRESS_BYTES_MAX: usize = 128;
/// The longest life of a record: long enough to survive a weekend of missed refreshes, short enough that
/// departed nodes vanish.
pub const RECORD_LIFETIME_SECS_MAX: u64 = 48 * 3600;
/// The largest difference between two honest clocks.
pub const CLOCK_SKEW_SECS_MAX: u64 = 300;

/// A signed listing travels in gossip and lists; details are fetched by hash.
pub const LISTING_BYTES_MAX: usize = 4 * 1024;
pub const LISTING_NAME_CHARS_MAX: usize = 80;
pub const LISTING_SUMMARY_CHARS_MAX: usize = 280;
pub const LISTING_CATEGORY_CHARS_MAX: usize = 40;
pub const LISTING_TAGS_MAX: usize = 8;
pub const LISTING_TAG_CHARS_MAX: usize = 32;
pub const LISTING_ACCEPTS_MAX: usize = 8;
/// Services per owner that a node will remember.
pub const LISTINGS_PER_OWNER_MAX: usize = 64;
/// A details document: the API, compressed, and prices. GitHub's GraphQL schema of 64,000 lines fits.
pub const DETAILS_BYTES_MAX: usize = 512 * 1024;
/// GitHub's REST API has about 1,100.
pub const OPERATIONS_MAX: usize = 2_000;
/// Samples of a service, as one document.
pub const SAMPLES_BYTES_MAX: usize = 64 * 1024;
/// The differences between a service's versions, as one document: some hundred of them, a few sentences each.
pub const HISTORY_BYTES_MAX: usize = 32 * 1024;

/// `info/1` frames.
pub const INFO_REQUEST_BYTES_MAX: usize = 64 * 1024;
pub const INFO_RESPONSE_BYTES_MAX: usize = 1024 * 1024;
/// Items asked for, or answered with, in one info message.
pub const INFO_ITEMS_MAX: usize = 64;

/// A frame of `sync/1`: a batch of listings, or a comparison of some 25,000, compressed. Larger ones would only
/// be held in memory longer.
pub const SYNC_FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Listings offered or asked for in one sync message: 140 KB of names.
pub const SYNC_ITEMS_MAX: usize = 8 * 1024;
/// `reach/1` frames: eight addresses of 128 bytes, or twice eight reasons, and what is around them.
pub const REACH_FRAME_BYTES_MAX: usize = 16 * 1024;
/// IPs that a request names as written to: as many as a node has neighbours of its own choice.
pub const REACH_KNOWN_MAX: usize = 32;
/// Addresses of one request to be dialled: as many as a record holds.
pub const REACH_ADDRESSES_MAX: usize = RECORD_ADDRESSES_MAX;
/// The reason that a dial failed.
pub const REACH_REASON_CHARS_MAX: usize = 160;

/// Text of a refusal: one line for a person.
pub const REFUSAL_DETAIL_BYTES_MAX: usize = 1024;

/// The name that somebody chose for a network.
pub const NETWORK_NAME_CHOSEN_BYTES_MAX: usize = 32;
/// A network's name in protocol names and documents: the chosen one, a dash, and a chain id of up to 20 digits.
pub const NETWORK_NAME_BYTES_MAX: usize = NETWORK_NAME_CHOSEN_BYTES_MAX + 1 + 20;

/// Channel delay bounds that the contract enforces as well (`PayChannels.sol`).
pub const CLOSE_DELAY_SECS_MIN: u64 = 3600;
pub const CLOSE_DELAY_SECS_MAX: u64 = 30 * 24 * 3600;
pub const CLOSE_DELAY_SECS_DEFAULT: u64 = 24 * 3600;

/// Calls of one operation that an owner serves one wallet a minute although they cost nothing, unless it says otherwise.
/// A charged one clears the count.
pub const UNCHARGED_PER_MINUTE: u32 = 20;

/// The same at all operations of an owner together.
pub const UNCHARGED_PER_MINUTE_IN_ALL: u32 = 100;

/// Beyond these, the time between two calls that are tried all the same. A failed upstream that is back is found out
/// with the first of them.
pub const UNCHARGED_TRIAL_MS: u64 = 1_000;
