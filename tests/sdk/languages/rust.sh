# Rust: with the crates that this workspace has built, and every warning an error.
read -ra externs <<< "$EXTERNS"
compile() { rustc --edition 2024 -D warnings -L "dependency=$DEPENDENCIES" "${externs[@]}" "$@"; }
compile --crate-name nasty --crate-type rlib --emit metadata -o nasty.rmeta nasty/src/lib.rs
compile --crate-name loner --crate-type rlib --emit metadata -o loner.rmeta loner/loner.rs
compile --crate-name alone --crate-type rlib -o libalone.rlib alone/alone.rs
for package in quakes planets things; do
    compile --crate-name "$package" --crate-type rlib -o "lib$package.rlib" "$package/src/lib.rs"
    compile --crate-name test --test --extern "$package=lib$package.rlib" -o "test-$package" "$package/tests/client.rs"
    "./test-$package" --quiet > test.log || { cat test.log; exit 1; }
done
# One program with all that is run, each in a module of its own. The crates of this workspace leave the choice of a
# cryptography to the program; those that a package's own manifest asks for bring one.
{
    for package in quakes planets alone; do
        source="${package/alone/quakes}"
        printf 'mod example_%s {\n' "$package"
        grep -v '^//!' "$source/examples/first_call.rs" | sed "s/\b$source\b/$package/g"
        printf 'pub fn run() -> Result<(), %s::Error> { main() }\n}\n' "$package"
    done
    for snippet in quakes things; do
        printf 'mod snippet_%s {\npub async fn run() -> Result<(), Box<dyn std::error::Error>> {\n' "$snippet"
        cat "snippets/$snippet"
        printf 'Ok(())\n}\n}\n'
    done
    cat <<'END'
fn main() -> Result<(), Box<dyn std::error::Error>> {
    rustls::crypto::ring::default_provider().install_default().expect("once");
    example_quakes::run()?;
    example_planets::run()?;
    example_alone::run()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(snippet_quakes::run())?;
    runtime.block_on(snippet_things::run())
}
END
} > examples.rs
cp "$PROGRAMS/main.rs.txt" main.rs
cp "$PROGRAMS/exact.rs.txt" exact.rs
sed 's/^async fn main.*{$/&\n    rustls::crypto::ring::default_provider().install_default().expect("once");/' snippets/plain > plain.rs
for program in examples plain exact main; do
    compile --crate-name "$program" --extern quakes=libquakes.rlib --extern planets=libplanets.rlib \
        --extern things=libthings.rlib --extern alone=libalone.rlib -o "$program" "$program.rs"
done
for program in examples plain; do "./$program"; done
for program in exact main; do $BESET "./$program"; done
