//! Every bound of the bridge on one page, each with its reason.

/// A description as an owner brings it. Microsoft's and GitHub's stay below 12 MB.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// SDL; GitHub's has 1.5 MB.
pub const SDL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Brackets within brackets of SDL: what the parser's recursion survives on a worker's stack.
pub const SDL_DEPTH_MAX: usize = 64;
/// Tokens of SDL; GitHub's has about 150,000.
pub const SDL_TOKENS_MAX: usize = 400_000;
/// Types of a GraphQL schema; GitHub's has 1,700.
pub const TYPES_MAX: usize = 20_000;
/// Objects within objects of a JSON or YAML description.
pub const DOCUMENT_DEPTH_MAX: usize = 100;
/// Operations of a service; GitHub's REST API has about 1,100.
pub const OPERATIONS_MAX: usize = 2_000;
/// Named schemas of a service.
pub const SCHEMAS_MAX: usize = 20_000;
/// Parameters of one operation.
pub const PARAMETERS_MAX: usize = 64;
/// An encoded description, as a listing pins it.
pub const ENCODED_BYTES_MAX: usize = 480 * 1024;
/// The same unpacked: what a stranger may make another node hold for one service.
pub const UNPACKED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Levels of brackets in an unpacked description: what `serde_json` reads, 127, and room for 16 inline schemas.
pub const UNPACKED_DEPTH_MAX: usize = 127;
/// Values in an unpacked description, each of which may take 100 bytes of memory.
pub const UNPACKED_VALUES_MAX: usize = 1_000_000;
/// Text of `fields`.
pub const FIELDS_BYTES_MAX: usize = 4 * 1024;
/// Levels of `fields`.
pub const FIELDS_DEPTH_MAX: usize = 6;
/// Fields that a caller may select.
pub const FIELDS_MAX: usize = 500;
/// Fields of a default selection.
pub const DEFAULT_FIELDS_MAX: usize = 250;
/// Text of a query; longer ones are refused by common gateways.
pub const QUERY_BYTES_MAX: usize = 8 * 1024;
/// Nesting of JSON values in `params` and bodies.
pub const VALUE_DEPTH_MAX: usize = 32;
/// Samples of a service, together.
pub const SAMPLES_BYTES_MAX: usize = 64 * 1024;
