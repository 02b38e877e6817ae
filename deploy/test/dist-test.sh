#!/usr/bin/env bash
# The files of a release, tried out: `make dist-test`.
#
# In order: all of them made twice, of a program that is built already, and compared; checksums; the bill of materials,
# judged by its standard's schema; a stand-in packed for arm64; `cargo install` held against what is tested; features
# that are for simulations alone; the .deb installed into a clean Debian, its service's command run as its user, upgraded,
# removed and purged; the seller's quickstart followed there with it, by a user who has no compiler; the archive unpacked there;
# the container image loaded, and run as a node that is stopped and started again.
#
# The clean Debian needs root and debootstrap, which asks the mirror of this machine's apt once; then it is in the cache.
# The image needs an engine, as in compose-test.sh. What cannot be tried is skipped and says so.
#
# Usage: dist-test.sh PROGRAMS: the folder with farthing.
set -euo pipefail

script="$(realpath "$0")"
cd "$(dirname "$script")/../.."
. deploy/test/engine.sh
cache="${XDG_CACHE_HOME:-$HOME/.cache}/farthing"
# Two slow cores make a wallet here, a second of hashing, and may have other work at the same time.
healthy_within_secs=90
# From the installation to the seller's first USDC, as the quickstart promises it.
sold_within_secs=600
data=/var/lib/farthing
settings=/etc/farthing/farthing.env

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

skipped() { printf '\n  SKIPPED: %s.\n\n' "$1" >&2; }

# The image is tried last, so that nothing else is skipped with it.
skip() {
    skipped "the container image, because $1"
    exit 0
}

fail() {
    printf '\nFAILED: %s\n' "$*" >&2
    exit 1
}

expect() { [[ "$2" == "$3" ]] || fail "$1: expected $3, found $2"; }

contains() { [[ "$2" == *"$3"* ]] || fail "$1: expected something with $3, found $2"; }

# quietly WHAT COMMAND…: its words are shown when it fails, and are in `said`.
quietly() {
    local what="$1"
    shift
    said="$("$@" 2>&1)" || fail "$what: $said"
}

# --- In the clean Debian -----------------------------------------------------------------------------------------

# All paths, but for the package manager's own books.
paths() {
    (cd "$root" && find etc home opt root srv usr var -xdev -not -path 'var/cache/*' -not -path 'var/lib/dpkg/*' \
        -not -path 'var/log/*' -not -path 'etc/*-' -not -name .pwd.lock | sort)
}

of_unit() { sed -n "s/^$1=-\{0,1\}//p" "$root/usr/lib/systemd/system/farthing.service"; }

is_healthy() {
    [[ "$(curl --silent --max-time 5 --noproxy '*' --cacert "$root$data/tls/ca.pem" https://localhost:3000/healthz)" == ok ]]
}

# What systemd does with the unit: its command, with its settings, as its user.
start_service() {
    local command values deadline="$((SECONDS + healthy_within_secs))"
    read -r -a command < <(of_unit ExecStart)
    mapfile -t values < <(grep -E '^[A-Z_]+=' "$root$(of_unit EnvironmentFile)")
    "${as_user[@]}" env "${values[@]}" "${command[@]}" >"$work/service.log" 2>&1 &
    service="$!"
    until is_healthy; do
        kill -0 "$service" 2>/dev/null || fail "the service's command ended: $(tail -20 "$work/service.log")"
        ((SECONDS < deadline)) || fail "the service does not answer at /healthz: $(tail -20 "$work/service.log")"
        sleep 0.2
    done
}

stop_service() {
    local code=0
    kill -TERM "$service"
    wait "$service" || code="$?"
    expect "the exit code of a service that is told to end" "$code" 0
}

wallet() { sha256sum <"$root$data/wallet.json"; }

try_package() {
    local before wallet
    before="$(paths)"
    quietly "the package is not installed" "${in_root[@]}" dpkg --install /tmp/farthing.deb
    contains "what an installation says" "$said" "systemctl enable --now farthing"
    contains "the version" "$("${in_root[@]}" farthing version)" "farthing $version"
    expect "the user of the unit" "$(of_unit User)" farthing
    expect "that user's folder and shell" "$("${in_root[@]}" getent passwd farthing | cut -d: -f6,7)" "$data:/usr/sbin/nologin"
    expect "who may look into the folder" "$("${in_root[@]}" stat --format '%U:%G %a' "$data")" "farthing:farthing 700"
    expect "who may look into the settings" "$("${in_root[@]}" stat --format '%U %a' "$settings")" "root 600"
    expect "files that are not the package's" "$("${in_root[@]}" dpkg --verify farthing)" ""
    gzip --test "$root/usr/share/man/man1/farthing-api-add.1.gz"
    bash -n "$root/usr/share/bash-completion/completions/farthing"

    start_service
    expect "who runs it" "$(awk '/^Uid:/ { print $2 }' "/proc/$service/status")" "$("${in_root[@]}" id --user farthing)"
    expect "where scripts and browsers are let in" \
        "$(ss -Hltn | awk '{ print $4 }' | grep -E ':300[02]$' | sort | paste -sd ' ')" "127.0.0.1:3000 127.0.0.1:3002"
    contains "the running node" "$("${as_user[@]}" farthing version --json --data "$data" | tr -d ' \n')" "\"node\":\"$version\""
    stop_service
    wallet="$(wallet)"
    say "installed; the service's command answers as its user, on this machine alone"

    echo "# changed by hand" >>"$root$settings"
    quietly "the package is not upgraded" "${in_root[@]}" dpkg --install /tmp/farthing.deb
    contains "the settings after an upgrade" "$(<"$root$settings")" "# changed by hand"
    quietly "the package is not removed" "${in_root[@]}" dpkg --remove farthing
    [[ ! -e "$root/usr/bin/farthing" ]] || fail "a removed package left its program"
    contains "the settings after a removal" "$(<"$root$settings")" "# changed by hand"
    quietly "the package is not purged" "${in_root[@]}" dpkg --purge farthing
    contains "what a purge says" "$said" "$data is kept"
    expect "the wallet after a purge" "$(wallet)" "$wallet"
    expect "what else stays" "$(comm -13 <(echo "$before") <(paths) | grep -v "^${data#/}/")" "${data#/}"
    say "upgraded, removed and purged: settings are kept, then gone; the wallet stays, and nothing else"

    quietly "the package is not installed again" "${in_root[@]}" dpkg --install /tmp/farthing.deb
    start_service
    stop_service
    expect "the wallet of a package that was installed again" "$(wallet)" "$wallet"
    find "$root$data" -mindepth 1 -delete
    quietly "the package is not purged" "${in_root[@]}" dpkg --purge farthing
    expect "what stays without a wallet" "$(comm -13 <(echo "$before") <(paths))" ""
    say "installed again, with the same wallet; and purged without one: nothing stays"
}

# An ordinary user with the package and no compiler sells a call: every command of the seller's quickstart, in order, against a chain
# that poses as Base Sepolia. The test plays that chain and the buyer, who lives on this machine.
try_quickstart() {
    local tool began="$SECONDS"
    for tool in cc gcc clang rustc cargo; do
        ! "${in_root[@]}" sh -c "command -v $tool" >/dev/null || fail "the clean Debian has a compiler: $tool"
    done
    quietly "apt does not install the package" "${in_root[@]}" apt-get install --yes -o Dpkg::Use-Pty=0 /tmp/farthing.deb
    quietly "there is no seller" "${in_root[@]}" useradd --create-home --shell /bin/sh --user-group seller
    quietly "the quickstart does not lead to a sale" env FARTHING_CLEAN_ROOT="$root" \
        "$first_steps" --exact quickstart::whoever_follows_the_quickstarts_sells_and_buys
    # No test at all would pass as well.
    contains "the test of the quickstart" "$said" "1 passed; 0 failed"
    [[ -s "$root/home/seller/.local/share/farthing/wallet.json" ]] || fail "the seller of the clean Debian has no wallet"
    ((SECONDS - began < sold_within_secs)) || fail "the first sale took $((SECONDS - began)) s, more than $sold_within_secs"
    quietly "the package is not purged" "${in_root[@]}" dpkg --purge farthing
    say "a user without a compiler has sold a call and claimed its price, $((SECONDS - began)) s after the installation began"
}

# As deploy/README.md says it.
try_archive() {
    local tree="/tmp/$name" licence
    "${in_root[@]}" tar -xzf "$tree.tar.gz" -C /tmp
    "${in_root[@]}" cp -r "$tree/bin" "$tree/share" /usr/local/
    contains "the version of the archive's program" "$("${in_root[@]}" farthing version)" "farthing $version"
    expect "the program of the archive's unit" "$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$root$tree/lib/systemd/system/farthing.service")" \
        "$("${in_root[@]}" sh -c 'command -v farthing')"
    for licence in LICENSE-MIT LICENSE-APACHE licences-of-others.gz; do
        [[ -s "$root/usr/local/share/doc/farthing/$licence" ]] || fail "the archive lacks $licence"
    done
    quietly "the archive's program makes no node" "${in_root[@]}" farthing init --chain base-sepolia --data /tmp/node --yes
    contains "what is said of a new node" "$said" "New wallet 0x"
    expect "the chain of the new node" "$("${in_root[@]}" farthing config get chain.preset --data /tmp/node)" base-sepolia
    say "the archive's program runs from /usr/local, and makes a node there"
}

if [[ "${1:-}" == --inside ]]; then
    work="$2" kept="$3" name="$4" version="$5" SECONDS="$6" first_steps="$7" root="$2/clean"
    in_root=(chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
    as_user=("${in_root[@]}" setpriv --reuid farthing --regid farthing --clear-groups --no-new-privs --bounding-set=-all)
    ip link set lo up
    # In memory, and in no sight but this process's: it ends with it.
    mkdir "$root"
    mount -t tmpfs -o mode=755 tmpfs "$root"
    tar --extract --file "$kept" --directory "$root"
    mount --bind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    cp "$work/once/farthing_$version"_*.deb "$root/tmp/farthing.deb"
    cp "$work/once/$name.tar.gz" "$root/tmp/"
    say "a clean Debian is ready"
    try_package
    try_quickstart
    try_archive
    exit
fi

# --- On this machine ---------------------------------------------------------------------------------------------

tear_down() {
    local code="$?"
    trap - EXIT INT TERM
    if [[ -n "$container" ]]; then docker rm --force --volumes "$container" >/dev/null 2>&1 || true; fi
    if [[ -n "$image" ]]; then docker image rm --force "$image" "$image-base" >/dev/null 2>&1 || true; fi
    stop_engine "$code"
    rm -rf "$work"
    exit "$code"
}

# pack FOLDER [OPTION…]: quick rather than small.
pack() {
    local folder="$1"
    shift
    QUICK=1 quietly "the release is not packed" deploy/dist.sh "$@" "$target" "$programs/farthing" "$folder"
}

try_files() {
    local file
    pack "$work/once"
    # Another hour, another user's habits, another place of the same program: the same bytes.
    mkdir "$work/elsewhere"
    cp "$programs/farthing" "$work/elsewhere/"
    (umask 077 && cd / && TZ=Asia/Tokyo LC_ALL=C.UTF-8 QUICK=1 "$(dirname "$script")/../dist.sh" "$target" \
        "$work/elsewhere/farthing" "$work/again" >"$work/again.log") || fail "the release is not packed again: $(<"$work/again.log")"
    diff --recursive --brief "$work/once" "$work/again" || fail "a second packing differs from the first"
    (cd "$work/once" && sha256sum --quiet --check SHA256SUMS) || fail "the checksums are wrong"
    name="$(basename "$work/once"/*.tar.gz .tar.gz)"
    version="${name#farthing-}" version="${version%"-$target"}"
    for file in "farthing-$version-$target".{tar.gz,cdx.json} "farthing_${version}_$(dpkg --print-architecture).deb"; do
        grep -q "  $file\$" "$work/once/SHA256SUMS" || fail "$file has no checksum"
    done
    if said="$(QUICK=1 BYTES_MAX=1000 deploy/dist.sh "$target" "$programs/farthing" "$work/large" 2>&1)"; then
        fail "a program that is too large was packed"
    fi
    contains "what is said of a program that is too large" "$said" "more than 1000"
    say "packed twice, with the same bytes: $(cd "$work/once" && stat --format '%n %s' farthing* | paste -sd ' ')"
}

try_bill() {
    local python=tests/tools/.venv/bin/python bill="$work/once/$name.cdx.json" part
    for part in '"name": "libp2p"' '"name": "alloy"' '"name": "farthing-node"'; do
        grep -q "$part" "$bill" || fail "the bill of materials lacks $part"
    done
    ! grep -q '"name": "fantoccini"' "$bill" || fail "the bill of materials lists a package that only tests use"
    if "$python" -c 'import cyclonedx' 2>/dev/null; then
        quietly "the bill of materials breaks its standard" "$python" - "$bill" <<'END'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

sys.exit(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))
END
        say "the bill of materials is valid CycloneDX"
    elif [[ -n "${CI:-}" ]]; then
        fail "no tool can check the bill of materials: run make tools-deps"
    else
        skipped "the bill of materials under its standard's schema, because make tools-deps was not run"
    fi
}

# Packing asks little of a program, so that a program of two lines does. Its table of addresses is packed as deploy/build.sh has it.
try_arm64() {
    if ! command -v aarch64-linux-gnu-gcc >/dev/null; then
        skipped "packing for arm64, because its compiler is missing (apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
        return
    fi
    local lld
    lld="$(rustc --print sysroot)/lib/rustlib/$target/bin/gcc-ld"
    if [[ ! -x "$lld/ld.lld" ]]; then
        skipped "packing for arm64, because this toolchain has no linker of its own; rustup's have"
        return
    fi
    printf '%s\n' 'const char *const words[] = {"one", "two"};' 'int main(int count, char **given) { return !words[count & 1]; }' |
        aarch64-linux-gnu-gcc -pie -fPIE -O0 -B"$lld" -fuse-ld=lld -Wl,-z,pack-relative-relocs -x c -o "$work/stand-in" -
    SPEAKER="$programs/farthing" QUICK=1 quietly "arm64 is not packed" \
        deploy/dist.sh aarch64-unknown-linux-gnu "$work/stand-in" "$work/arm64"
    local package="$work/arm64/farthing_${version}_arm64.deb"
    expect "the architecture of arm64's package" "$(dpkg-deb --field "$package" Architecture)" arm64
    contains "what a program with packed addresses needs" "$(dpkg-deb --field "$package" Depends)" "libc6 (>= 2.36)"
    tar --extract --to-stdout --file "$work/arm64/farthing-$version-aarch64-unknown-linux-gnu.tar.gz" --wildcards '*/bin/farthing' >"$work/packed"
    contains "arm64's program" "$(readelf --file-header "$work/packed")" AArch64
    say "a stand-in is packed for arm64"
}

# What the packages that we write name themselves, as `name version|features`, in the selection that the arguments make.
named() {
    cargo tree --locked --offline "$@" --edges normal,build --prefix depth --format ' {p}|{f}' | sed 's/ (\*)$//' | awk '
        { depth = $1; sub(/^[0-9]+ /, ""); ours[depth] = / \(\// }
        depth > 0 && ours[depth - 1] && !ours[depth]' | sort -u
}

# `cargo install --path node/cli` selects one package, and cargo chooses features by what is selected. All else is built and
# tested with the whole workspace selected: what our code names must have the same features alone. Only the clock that tests pause
# is theirs; what is shipped is built without it (deploy/build.sh).
try_cargo_install() {
    local alone
    alone="$(comm -23 <(named --package farthing) <(named --workspace | sed '/^tokio /s/,test-util//'))"
    [[ -z "$alone" ]] || fail "cargo install builds these packages with other features than the tests, so it may not compile" \
        "(ask in Cargo.toml for those that our code needs): $alone"
    say "cargo install builds our code with the features of the tests"
}

# The features of a package of ours, the first argument, in the selection that the others make.
features_of() {
    cargo tree --locked --offline "${@:2}" --edges normal,build --prefix none --format '{p}|{f}' | sed 's/ (\*)$//' |
        sed -n "s/^$1 [^|]*|//p" | sort -u
}

# Simulations connect nodes within one process, and tests play the endpoints of a chain, a service and the wall clock. Neither what
# deploy/build.sh builds nor what `cargo install` builds can.
try_shipped_features() {
    expect "what simulations ask of the network" "$(features_of farthing-network --workspace)" memory
    expect "what a release asks of it besides" "$(features_of farthing-network --workspace --exclude farthing-peers)" ""
    expect "what cargo install asks of it besides" "$(features_of farthing-network --package farthing)" ""
    for package in farthing-chain farthing-os farthing-owner farthing-shared; do
        expect "what a release asks of $package besides" "$(features_of "$package" --workspace --exclude farthing-peers)" ""
        expect "what cargo install asks of $package besides" "$(features_of "$package" --package farthing)" ""
    done
    say "the shipped program cannot connect nodes within one process, nor be played a chain, a service or a clock"
}

# A clean Debian in the cache; `kept` is its archive.
make_debian() {
    local codename mirror root="$work/root"
    codename="$(. /etc/os-release && echo "${VERSION_CODENAME:-}")"
    kept="$cache/$codename-$(dpkg --print-architecture).tar"
    [[ ! -e "$kept" ]] || return 0
    mirror="$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
        awk -v "codename=$codename" '$1 == codename && !mirror { mirror = $2 } END { print mirror }')"
    [[ -n "$mirror" ]] || return 1
    debootstrap --variant=minbase --include=ca-certificates "$codename" "$root" "$mirror" >"$work/debootstrap.log" 2>&1 ||
        { tail -3 "$work/debootstrap.log" >&2; return 1; }
    find "$root/var/cache/apt" -type f -delete
    mkdir -p "$cache"
    tar --create --file "$kept.part" --directory "$root" . && mv "$kept.part" "$kept"
}

# The program of the tests that follow the quickstarts.
find_first_steps() {
    quietly "the test of the quickstarts is not built" \
        cargo test --workspace --test first_steps --locked --no-run --color never
    first_steps="$(sed -nE 's/^ *Executable .*\((.*)\)$/\1/p' <<<"$said")"
    [[ -x "$first_steps" ]] || fail "cargo does not say where the test of the quickstarts is: $said"
    first_steps="$(realpath "$first_steps")"
}

try_in_debian() {
    local what="the packages in a clean Debian, because" tool
    [[ "$(id -u)" == 0 ]] || { skipped "$what only root can make one"; return; }
    for tool in debootstrap unshare ip curl; do
        command -v "$tool" >/dev/null || { skipped "$what $tool is missing (apt-get install debootstrap iproute2 curl)"; return; }
    done
    find_first_steps
    make_debian || { skipped "$what debootstrap could not make one (its last words may stand above)"; return; }
    unshare --net --mount --pid --fork --kill-child --mount-proc "$script" --inside "$work" "$kept" "$name" "$version" "$SECONDS" "$first_steps"
}

# The wallet of the image's node, once it answers.
wallet_of_container() {
    local deadline="$((SECONDS + healthy_within_secs))"
    until docker exec "$container" /usr/local/bin/farthing status >/dev/null 2>&1; do
        ((SECONDS < deadline)) || fail "the image's node does not answer: $(docker logs --tail 20 "$container" 2>&1)"
        sleep 0.5
    done
    docker exec "$container" /usr/local/bin/farthing wallet address
}

# With the options of deploy/README.md, and no network.
try_container() {
    local first
    container="$(docker run --detach --network none --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
        --env FARTHING_CHAIN__PRESET=base-sepolia "$image")"
    first="$(wallet_of_container)"
    contains "the wallet of the image's node" "$first" 0x
    contains "what its log says of the wallet" "$(docker logs "$container" 2>&1)" "$first"
    docker stop -t 40 "$container" >/dev/null
    expect "the exit code of a node that is stopped" "$(docker inspect --format '{{.State.ExitCode}}' "$container")" 0
    docker start "$container" >/dev/null
    expect "the wallet of the node that is started again" "$(wallet_of_container)" "$first"
}

try_image() {
    local code=0
    find_engine
    image="farthing:$version-$(dpkg --print-architecture)"
    deploy/local-base.sh "$image-base" "$programs/farthing" || code="$?"
    [[ "$code" != 3 ]] || skip "the engine cannot run a container here"
    [[ "$code" == 0 ]] || fail "the image's base was not built"
    pack "$work/image" --base "$image-base"
    docker image rm --force "$image" >/dev/null
    docker load --quiet --input "$work/image/$name.image.tar.gz" >/dev/null
    contains "the version of the image's program" "$(docker run --rm --read-only --network none "$image" version)" "farthing $version"
    expect "the user of the image" "$(docker image inspect --format '{{.Config.User}}' "$image")" 10001:10001
    try_container
    say "the image is loaded from its file and runs as a node, which keeps its wallet"
}

programs="$(realpath "$1")"
image="" container=""
work="$(mktemp -d "${TMPDIR:-/tmp}/farthing-dist-test.XXXXXX")"
trap tear_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
[[ -x "$programs/farthing" ]] || fail "$programs/farthing is missing; build it with: make dist-test"
command -v dpkg-deb >/dev/null || { skipped "the files of a release, because dpkg-deb is missing (apt-get install dpkg)"; exit 0; }
target="$(rustc -vV | sed -n 's/^host: //p')"
try_files
try_bill
try_arm64
try_cargo_install
try_shipped_features
try_in_debian
try_image
