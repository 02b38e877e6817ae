#!/usr/bin/env bash
# Both images of the network of compose.testnet.yaml from programs that are built already, over a base made of this
# machine's C library (local-base.sh). Nothing is downloaded. The images fit machines like this one.
#
# Usage: prebuilt-images.sh PROGRAMS ANVIL NODE_TAG TOOLS_TAG
#   PROGRAMS: the folder with farthing, earthquakes and exoplanets. ANVIL: the local chain's program. The router runs
#   this machine's sh, sleep, ip and nft.
#
# Ends with 3 where the engine cannot run a container at all.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $# == 4 ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
programs="$1" anvil="$2" node_tag="$3" tools_tag="$4"
base_tag="$node_tag-base"

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

command -v strip >/dev/null || fail "strip is missing (apt-get install binutils)"
for program in "$programs"/{farthing,earthquakes,exoplanets} "$anvil"; do
    [[ -x "$program" ]] || fail "$program is missing; build it with: make build anvil"
done
# Not everybody's PATH has the folders of root's programs.
PATH="$PATH:/usr/sbin:/sbin"
router=()
for tool in sh sleep ip nft; do
    found="$(command -v "$tool")" || fail "$tool is missing (apt-get install iproute2 nftables)"
    router+=("$found")
done
work="$(mktemp -d "${TMPDIR:-/tmp}/farthing-images.XXXXXX")"
trap 'rm -rf "$work"' EXIT

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

deploy/local-base.sh "$base_tag" "$programs"/{farthing,earthquakes,exoplanets} "$anvil" "${router[@]}"
build "$node_tag" "$programs/farthing"
build "$tools_tag" "$programs/farthing" "$programs/earthquakes" "$programs/exoplanets" "$anvil" "${router[@]}"
