#!/usr/bin/env bash
# Programs as they are shipped: by the profile `shipped` of Cargo.toml, and with what the linker adds to it. Says in which
# folder they are; what cargo says goes to standard error.
#
# Usage: build.sh PROGRAM…, such as build.sh farthing
#
# TARGET=… builds for another platform, such as aarch64-unknown-linux-gnu. It is linked by the cross compiler that Debian has
# for it (gcc-aarch64-linux-gnu), unless cargo's variable names a linker.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $# -ge 1 ]] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
host="$(rustc -vV | sed -n 's/^host: //p')"
target="${TARGET:-$host}"
if [[ "$target" != "$host" ]]; then
    linker="CARGO_TARGET_$(tr a-z- A-Z_ <<<"$target")_LINKER"
    export "$linker=${!linker:-${target%%-*}-linux-gnu-gcc}"
fi
# What the loader has to move is a list of several megabytes, which linkers can pack; glibc has unpacked it since 2.36. The
# toolchain's own linker can for every platform. Where a distribution left it out, the system's is asked, and warns if it cannot.
# That linker also keeps one copy of functions that are the same instructions; no code here tells functions apart by their address.
lld="$(rustc --print sysroot)/lib/rustlib/$host/bin/gcc-ld"
flags=(-C "link-arg=-Wl,-z,pack-relative-relocs")
if [[ -x "$lld/ld.lld" ]]; then flags+=(-C "link-arg=-B$lld" -C link-arg=-fuse-ld=lld -C link-arg=-Wl,--icf=all); fi
export RUSTFLAGS="${RUSTFLAGS:-} ${flags[*]}"
# QUIC's cryptography has a megabyte for the newest processors and for the curves of others' certificates. It does without: what it
# encrypts takes a little longer on those, and so does meeting a node. Ports 3000 and 3002 are not encrypted by it.
export AWS_LC_SYS_SMALL=1
# The target is named also where it is this machine: build scripts run here, whatever C library there is, and are linked as ever.
# The package of simulations is left out: cargo gives a package the features that all selected ones ask for, and what connects nodes
# within one process is for simulations alone.
cargo build --profile shipped --target "$target" --workspace --exclude farthing-peers --locked "${@/#/--bin=}" >&2
folder="$(cargo metadata --no-deps --offline --format-version 1 | sed -E 's/.*"target_directory":"([^"]*)".*/\1/')"
# The page of components is for development: no program that is shipped has it.
for program in "$@"; do
    ! grep --quiet --binary-files=text --fixed-strings /panel/help/design "$folder/$target/shipped/$program" || {
        printf 'error: %s contains the page of components, which is only for development\n' "$program" >&2
        exit 1
    }
done
printf '%s\n' "$folder/$target/shipped"
