//! The queries that ask a server for its schema.

/// The query with what newer servers know of types, where arguments are listed, and of arguments.
macro_rules! query {
    (types: $types:literal, deprecated: $deprecated:literal, inputs: $inputs:literal) => {
        concat!(
            "query Introspection { __schema { queryType { name } mutationType { name } subscriptionType { name } ",
            "types { ...Type } } } ",
            "fragment Type on __Type { kind name description ",
            $types,
            "fields(includeDeprecated: true) { name description args",
            $deprecated,
            " { ...Input } type { ...Ref } isDeprecated deprecationReason } inputFields",
            $deprecated,
            " { ...Input } interfaces { kind name } ",
            "enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } ",
            "possibleTypes { kind name } } ",
            "fragment Input on __InputValue { name description type { ...Ref } defaultValue",
            $inputs,
            " } fragment Ref on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ",
            "ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ",
            "ofType { kind name } } } } } } } } } }",
        )
    };
}

/// The query that every server answers. Its nine levels of `ofType` reach into `[[[[T!]!]!]!]!`.
pub const QUERY: &str = query!(types: "", deprecated: "", inputs: "");

/// The same with `@oneOf`, `@specifiedBy` and deprecated arguments, which older servers refuse: ask it first, and
/// [`QUERY`] when it is refused.
pub const QUERY_RICH: &str = query!(
    types: "specifiedByURL isOneOf ",
    deprecated: "(includeDeprecated: true)",
    inputs: " isDeprecated deprecationReason"
);
