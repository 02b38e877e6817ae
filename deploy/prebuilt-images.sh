#!/usr/bin/env bash
# Both images of the network of compose.testnet.yaml from programs that are built already, over a base made of this
# machine's C library. Nothing is downloaded. The images fit machines like this one.
#
# Usage: prebuilt-images.sh PROGRAMS ANVIL NODE_TAG TOOLS_TAG
#   PROGRAMS: the folder with farthing, earthquakes and exoplanets. ANVIL: the local chain's program.
#
# Ends with 3 where the engine cannot run a container at all.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $# == 4 ]] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
programs="$1" anvil="$2" node_tag="$3" tools_tag="$4"
base_tag="$node_tag-base"

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

[[ "$(uname -s)" == Linux ]] || fail "images are made of this machine's programs, and this machine is not Linux"
command -v strip >/dev/null || fail "strip is missing (apt-get install binutils)"
for program in "$programs"/{farthing,earthquakes,exoplanets} "$anvil"; do
    [[ -x "$program" ]] || fail "$program is missing; make build anvil makes it"
done
work="$(mktemp -d "${TMPDIR:-/tmp}/farthing-images.XXXXXX")"
trap 'rm -rf "$work"' EXIT

# The least a dynamically linked program needs, in place of a distribution's base image.
make_base() {
    local root="$work/base" library
    mkdir -p "$root"/{mnt,tmp,etc/ssl/certs,usr/local/bin}
    chmod 1777 "$root/tmp"
    printf 'root:x:0:0::/root:/sbin/nologin\n' >"$root/etc/passwd"
    cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
    # Lines such as `libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
    for library in $(ldd "$programs/farthing" "$programs/earthquakes" "$programs/exoplanets" "$anvil" |
        grep -oE '/[^ ]+ \(0x' | cut -d' ' -f1 | sort -u); do
        install -D -m 0755 "$library" "$root$library"
    done
    # glibc loads these when a name is looked up.
    local libc_folder
    libc_folder="$(dirname "$(ldd "$programs/farthing" | grep -oE '/[^ ]*/libc\.so\.6')")"
    for library in libnss_files.so.2 libnss_dns.so.2 libresolv.so.2; do
        install -D -m 0755 "$libc_folder/$library" "$root$libc_folder/$library"
    done
    tar -C "$root" -c . | docker import - "$base_tag" >/dev/null
    # Some machines let an engine start and then keep it from running anything.
    local loader
    loader="$(ldd "$programs/farthing" | grep -oE '/[^ ]*/ld-linux[^ ]*')"
    docker run --rm "$base_tag" "$loader" --version >/dev/null 2>"$work/run.log" || { cat "$work/run.log" >&2; exit 3; }
}

# build TAG PROGRAM…: the Dockerfile's target for programs that were compiled elsewhere.
build() {
    local tag="$1" tree="$work/$1" program
    shift
    mkdir -p "$tree/usr/local/bin"
    for program in "$@"; do
        # What is copied into an image and out again need not carry its debug information.
        strip -o "$tree/usr/local/bin/$(basename "$program")" "$program"
    done
    docker build --quiet --file deploy/Dockerfile --target prebuilt --build-arg "BASE_IMAGE=$base_tag" \
        --tag "$tag" "$tree" >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; fail "the image $tag was not built"; }
}

make_base
build "$node_tag" "$programs/farthing"
build "$tools_tag" "$programs/farthing" "$programs/earthquakes" "$programs/exoplanets" "$anvil"
