# Rust: with the crates that this workspace has built, and every warning an error.
read -ra externs <<< "$EXTERNS"
compile() { rustc --edition 2024 -D warnings -L "dependency=$DEPENDENCIES" "${externs[@]}" "$@"; }
compile --crate-name "$PACKAGE" --crate-type rlib -o "lib$PACKAGE.rlib" "$PACKAGE/src/lib.rs"
cp "$PROGRAMS/$PROGRAM.rs.txt" program.rs
compile --crate-name program --extern "$PACKAGE=lib$PACKAGE.rlib" -o program program.rs
exec ./program
