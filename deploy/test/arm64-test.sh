#!/usr/bin/env bash
# An arm64 node that sells to a node of this machine and buys from one, under an emulator: `make arm64-test`.
#
# Builds the node for arm64 in the development profile, with a second build of all that it is made of, and has the tests of
# tests/tests/paid_calls/arm64.rs run it. What is missing for that is an error that says what to install. On a machine that is
# arm64 itself every test runs such nodes, and this one adds nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=aarch64-unknown-linux-gnu
# Both: as owner, and as consumer.
tests=2

fail() {
    printf '\nFAILED: %s\n' "$*" >&2
    exit 1
}

if [[ "$(rustc -vV | sed -n 's/^host: //p')" == "$target" ]]; then
    echo "This machine is arm64: make test already tests its nodes."
    exit
fi
missing=()
[[ -d "$(rustc --print target-libdir --target "$target")" ]] || missing+=("rustup target add $target")
command -v aarch64-linux-gnu-gcc >/dev/null || missing+=("apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross")
command -v qemu-aarch64-static >/dev/null || missing+=("apt-get install qemu-user-static")
[[ ${#missing[@]} == 0 ]] || fail "an arm64 node cannot be built and run here; install first:" \
    "$(printf '\n  %s' "${missing[@]}")"

folder="$(cargo metadata --no-deps --offline --format-version 1 | sed -E 's/.*"target_directory":"([^"]*)".*/\1/')"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER="${CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER:-aarch64-linux-gnu-gcc}"
cargo build --workspace --bin farthing --target "$target" --locked
export FARTHING_ARM64_PROGRAM="$folder/$target/debug/farthing"
said="$(cargo test --workspace --test paid_calls --locked arm64:: | tee >(cat >&2))" || fail "the tests of an arm64 node"
# No test at all would pass as well.
[[ "$said" == *" $tests passed; 0 failed"* ]] || fail "the $tests tests of an arm64 node were not run"
