//! Which names mean what.

use super::{form, override_scalar};
use crate::graphql::schema::{ScalarForm, TypeKind};

#[test]
fn custom_scalars_are_told_apart_by_their_names() {
    let table = [
        (
            ScalarForm::CustomJson,
            "JSON JSONObject Json json Any _Any Map Object AWSJSON GraphQLJSON RawJSON jsonb Struct Mixed",
        ),
        (
            ScalarForm::CustomNumber,
            "Long BigInt BigInteger Decimal BigDecimal Int64 Int32 UInt8 UInt UnsignedInt NonNegativeInt PositiveFloat \
             Float64 float8 bigint smallint numeric Short Byte Double Money AWSTimestamp SafeInt Port Latitude",
        ),
        (
            ScalarForm::CustomString,
            "DateTime Date Time UUID URI URL Email Upload Base64 Void Point Print Pinto Interval Integrity Floating \
             Timestamp timestamptz PhoneNumber Mapping GitObjectID HTML Cursor",
        ),
        (ScalarForm::Int, "Int"),
        (ScalarForm::Id, "ID"),
    ];
    for (expected, names) in table {
        for name in names.split_whitespace() {
            assert_eq!(form(name), expected, "{name}");
        }
    }
}

#[test]
fn the_owner_overrides_custom_scalars_and_no_others() {
    let mut schema = crate::graphql::sdl::read(b"scalar Odd type Query { a: Odd }").expect("a schema").schema;
    assert!(override_scalar(&mut schema, "Odd", ScalarForm::CustomJson));
    let is_json = |ty: &crate::graphql::schema::Type| matches!(&ty.kind, TypeKind::Scalar(scalar) if scalar.form == ScalarForm::CustomJson);
    assert!(schema.types.iter().any(|ty| ty.name == "Odd" && is_json(ty)));
    for name in ["Nope", "Query", "Int", "String"] {
        assert!(!override_scalar(&mut schema, name, ScalarForm::CustomJson), "{name}");
    }
}
