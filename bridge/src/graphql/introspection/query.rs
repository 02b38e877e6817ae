//! The queries that ask a server for its schema.

/// What every server answers. Nine levels of `ofType` are `[[[[T!]!]!]!]!`.
pub const QUERY: &str = "query Introspection { __schema { queryType { name } mutationType { name } subscriptionType { name } \
types { ...Type } } } \
fragment Type on __Type { kind name description \
fields(includeDeprecated: true) { name description args { ...Input } type { ...Ref } isDeprecated deprecationReason } \
inputFields { ...Input } interfaces { kind name } \
enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } \
possibleTypes { kind name } } \
fragment Input on __InputValue { name description type { ...Ref } defaultValue } \
fragment Ref on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name \
ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } } }";

/// The same with `@oneOf`, `@specifiedBy` and deprecated arguments, which servers older than these refuse: ask it
/// first and [`QUERY`] when it is refused.
pub const QUERY_RICH: &str = "query Introspection { __schema { queryType { name } mutationType { name } subscriptionType { name } \
types { ...Type } } } \
fragment Type on __Type { kind name description specifiedByURL isOneOf \
fields(includeDeprecated: true) { name description args(includeDeprecated: true) { ...Input } type { ...Ref } \
isDeprecated deprecationReason } \
inputFields(includeDeprecated: true) { ...Input } interfaces { kind name } \
enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } \
possibleTypes { kind name } } \
fragment Input on __InputValue { name description type { ...Ref } defaultValue isDeprecated deprecationReason } \
fragment Ref on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name \
ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } } }";
