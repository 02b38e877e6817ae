//! Every bound of the bridge on one page, each with its reason.

/// A description as an owner brings it. Microsoft's and GitHub's stay below 12 MB.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// SDL; GitHub's has 1.5 MB.
pub const SDL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Brackets within brackets of SDL: what the parser's recursion survives on a worker's stack.
pub const SDL_DEPTH_MAX: usize = 64;
/// Tokens of SDL; GitHub's has about 150,000.
pub const SDL_TOKENS_MAX: usize = 400_000;
/// Names of schemas and operations, which others repeat. Readers give them at most 128 characters.
pub const NAME_BYTES_MAX: usize = 512;
/// Names of a GraphQL schema, which are repeated wherever they are referred to.
pub const GRAPHQL_NAME_BYTES_MAX: usize = 255;
/// Members of all interfaces and unions of a GraphQL schema; GitHub's has some 2,000.
pub const TYPE_MEMBERS_MAX: usize = 100_000;
/// Types of a GraphQL schema; GitHub's has 1,700.
pub const TYPES_MAX: usize = 20_000;
/// Objects within objects of a JSON or YAML description.
pub const DOCUMENT_DEPTH_MAX: usize = 100;
/// Values of a JSON or YAML description, after YAML's aliases are unfolded: 150 MB of memory.
pub const DOCUMENT_VALUES_MAX: usize = 2_000_000;
/// Text of a description after aliases are unfolded: what a file of the largest size holds, twice.
pub const DOCUMENT_TEXT_BYTES_MAX: usize = 2 * DOCUMENT_BYTES_MAX;
/// Schemas within schemas that a description is read into, after `allOf` is merged: 200 MB of memory.
pub const SCHEMA_NODES_MAX: usize = 500_000;
/// Operations of a service; GitHub's REST API has about 1,100.
pub const OPERATIONS_MAX: usize = 2_000;
/// Named schemas of a service.
pub const SCHEMAS_MAX: usize = 20_000;
/// Parameters of one operation.
pub const PARAMETERS_MAX: usize = 64;
/// An encoded description, as a listing pins it.
pub const ENCODED_BYTES_MAX: usize = 480 * 1024;
/// The same unpacked: what a stranger may make another node hold for one service.
pub const UNPACKED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Levels of brackets in an unpacked description: what `serde_json` reads, 127, and room for 16 inline schemas.
pub const UNPACKED_DEPTH_MAX: usize = 127;
/// Values in an unpacked description, an object or a list counted as four; a value may take 230 bytes of memory.
pub const UNPACKED_VALUES_MAX: usize = 1_000_000;
/// Segments of all paths of an unpacked description; GitHub's REST API has about 6,000. Each may take 2,000 bytes of
/// memory: with its parameter, and a branch of its own in the tree of routes.
pub const PATH_SEGMENTS_MAX: usize = 20_000;
/// Text of `fields`.
pub const FIELDS_BYTES_MAX: usize = 4 * 1024;
/// Levels of `fields`.
pub const FIELDS_DEPTH_MAX: usize = 6;
/// Lists within lists of objects that a query may ask for, the result's own included, unless the owner of the service
/// says otherwise. The lengths are the server's own, so that every further list multiplies what one call costs it.
pub const LISTS_DEPTH_MAX: u8 = 2;
/// Fields that a caller may select.
pub const FIELDS_MAX: usize = 500;
pub const DEFAULT_FIELDS_MAX: usize = 250;
/// Text of a query; longer ones are refused by common gateways.
pub const QUERY_BYTES_MAX: usize = 8 * 1024;
/// Nesting of JSON values in `params` and bodies.
pub const VALUE_DEPTH_MAX: usize = 32;
/// One sample; a page of text.
pub const SAMPLE_BYTES_MAX: usize = 8 * 1024;
/// Samples of a service, together.
pub const SAMPLES_BYTES_MAX: usize = 64 * 1024;
/// Parts of a body. Go's servers take as many, and PHP's as many names.
pub const PARTS_MAX: usize = 1_000;
/// The head of a part: its name, and a file's.
pub const PART_HEAD_BYTES_MAX: usize = 8 * 1024;
/// Problems told about one call; nobody reads more.
pub const PROBLEMS_MAX: usize = 20;
/// Steps of checking one call's values: some for every value of the largest body, about 50 ms in all. Schemas of
/// alternatives within alternatives would take for ever.
pub const CHECKS_MAX: usize = 1_000_000;
/// References to references; readers make none.
pub const REFERENCES_MAX: usize = 32;
/// Objects that a default selection looks into; it selects fewer than [`DEFAULT_FIELDS_MAX`] of them.
pub const SELECTION_VISITS_MAX: usize = 2_000;
/// Fields that are looked at for one selection, the caller's own or the default one: about 20 ms.
pub const SELECTION_STEPS_MAX: usize = 2_000_000;
/// Fields that are looked at to describe all operations of a GraphQL schema: 3 s of its owner's time. One of 400 types
/// with 130 fields each, half of them lists, takes half of it.
pub const DESCRIPTION_STEPS_MAX: usize = 100_000_000;
/// Fields of one type that a default selection looks at; GitHub's largest type has 130.
pub const TYPE_FIELDS_VISITED_MAX: usize = 1_000;
/// Members of a union, or object types behind an interface, whose fields can be selected; GitHub's largest union
/// has 60.
pub const UNION_MEMBERS_MAX: usize = 100;
/// A path template; servers refuse longer request lines.
pub const TEMPLATE_BYTES_MAX: usize = 4 * 1024;
/// Segments of a path template: what bounds the tree of routes.
pub const TEMPLATE_SEGMENTS_MAX: usize = 64;
