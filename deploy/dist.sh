#!/usr/bin/env bash
# One platform's files of a release, from its program: `make dist`.
#
#   farthing-VERSION-TARGET.tar.gz         the program, man pages, completions, licences, the unit
#   farthing_VERSION_ARCHITECTURE.deb      the same files, at Debian's places
#   farthing-VERSION-TARGET.image.tar.gz   the program as a container image, for `docker load`; with --base alone
#   farthing-VERSION-TARGET.cdx.json       what the program is made of (components.py)
#   SHA256SUMS                             of all of these in the folder, other platforms' too
#
# `lay_out` is the one list of files. All but the image are the same bytes whenever they are made: names are sorted, and
# every time is that of the last commit, or SOURCE_DATE_EPOCH.
#
# Usage: dist.sh [--base IMAGE] TARGET PROGRAM FOLDER
#   IMAGE: what the container image is built over, such as the Dockerfile's BASE_IMAGE. TARGET: as rustc says it, such as
#   aarch64-unknown-linux-gnu. PROGRAM: built for it. FOLDER: where the files go.
#
# SPEAKER=… names a program of the same version that runs here, to print man pages and completions, where PROGRAM does not
# and qemu-user is not installed. BYTES_MAX=… refuses a larger program. QUICK=1 packs quickly rather than small.
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC

base=""
if [[ "${1:-}" == --base ]]; then
    base="$2"
    shift 2
fi
[[ $# == 3 ]] || { sed -n '2,20s/^# \{0,1\}//p' "$0" >&2; exit 2; }
target="$1" program="$(realpath "$2")" folder="$(realpath -m "$3")"
cd "$(dirname "$0")/.."

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

machine="${target%%-*}"
case "$target" in
    x86_64-*-linux-*) architecture=amd64 ;;
    aarch64-*-linux-*) architecture=arm64 ;;
    *) fail "$target is not supported; use x86_64 or aarch64 with Linux" ;;
esac
for tool in cargo dpkg-deb gzip python3 readelf sha256sum strip tar; do
    command -v "$tool" >/dev/null || fail "$tool is missing (apt-get install binutils dpkg python3)"
done
[[ -x "$program" ]] || fail "$program is missing; build it with: make dist"
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" ||
    fail "the time of the files is unknown: there is no git history; set SOURCE_DATE_EPOCH"
# A number of threads of its own for each machine would give packages of its own.
export SOURCE_DATE_EPOCH DPKG_DEB_THREADS_MAX=1
if [[ -n "${QUICK:-}" ]]; then
    compression=-1 debian_compression=(-Zgzip -z1)
else
    compression=-9 debian_compression=(-Zxz)
fi
work="$(mktemp -d "${TMPDIR:-/tmp}/farthing-dist.XXXXXX")"
trap 'rm -rf "$work"' EXIT

# Runs the program, here or in an emulator.
find_speaker() {
    local emulator
    speaker=("${SPEAKER:-$program}")
    "${speaker[@]}" --version >/dev/null 2>&1 && return
    for emulator in "qemu-$machine-static" "qemu-$machine"; do
        speaker=("$emulator" -L "/usr/$machine-linux-gnu" "$program")
        if command -v "$emulator" >/dev/null && "${speaker[@]}" --version >/dev/null 2>&1; then return; fi
    done
    fail "$program does not run here: install qemu-user-static, or set SPEAKER=… to a program that runs here"
}

# The program without symbols, by tools of its own platform where there are two.
strip_program() {
    local strip=strip
    if command -v "$machine-linux-gnu-strip" >/dev/null; then strip="$machine-linux-gnu-strip"; fi
    "$strip" -o "$work/farthing" "$program"
    local bytes
    bytes="$(stat --format %s "$work/farthing")"
    ((bytes <= ${BYTES_MAX:-bytes})) || fail "the program has $bytes bytes, more than $BYTES_MAX"
    printf 'the program has %d bytes\n' "$bytes"
}

# lay_out TREE: all files of a release, as they stand under a prefix such as /usr/local.
lay_out() {
    local tree="$1" documents="$1/share/doc/farthing" page shell
    install -D -m 0755 -t "$tree/bin" "$work/farthing"
    install -D -m 0644 -t "$tree/lib/systemd/system" deploy/farthing.service
    install -D -m 0644 -t "$tree/etc/farthing" deploy/farthing.env
    install -D -m 0644 -t "$documents" LICENSE-MIT LICENSE-APACHE
    install -D -m 0644 CHANGELOG.md "$documents/changelog"
    python3 deploy/components.py licences "$target" >"$documents/licences-of-others"
    mkdir -p "$work/man" "$tree/share/man/man1"
    "${speaker[@]}" man --to "$work/man"
    for page in "$work/man"/*.1; do install -m 0644 -t "$tree/share/man/man1" "$page"; done
    for shell in bash:bash-completion/completions/farthing zsh:zsh/site-functions/_farthing \
        fish:fish/vendor_completions.d/farthing.fish; do
        page="$tree/share/${shell#*:}"
        mkdir -p "$(dirname "$page")"
        "${speaker[@]}" completions "${shell%%:*}" >"$page"
    done
    gzip --no-name -9 "$tree/share/man/man1"/*.1 "$documents/changelog" "$documents/licences-of-others"
}

archive() {
    tar --create --directory "$work" --sort=name --format=gnu --mtime "@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
        --numeric-owner "$name" | gzip --no-name "$compression" >"$folder/$name.tar.gz"
}

# The newest version of a library's symbols that the program names: `newest GLIBC` is such as 2.36. That its addresses are packed
# (deploy/build.sh) is told by a name of its own.
newest() {
    readelf --version-info --wide "$work/farthing" | sed 's/\bGLIBC_ABI_DT_RELR\b/GLIBC_2.36/' |
        grep -oE "\b$1_[0-9]+(\.[0-9]+)+" | cut -d_ -f2 | sort --version-sort | tail -n 1
}

# Debian's packages of the libraries that the program is linked with.
needs() {
    local library wanted=()
    for library in $(readelf --dynamic --wide "$work/farthing" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]$/\1/p'); do
        case "$library" in
            libc.so.* | libm.so.* | ld-linux*) wanted+=("libc6 (>= $(newest GLIBC))") ;;
            libgcc_s.so.1) wanted+=("libgcc-s1 (>= $(newest GCC))") ;;
            *) fail "the program needs $library, and deploy/dist.sh does not know its package" ;;
        esac
    done
    # The service's user is made by adduser; the chain's endpoint is asked over TLS.
    printf '%s\n' adduser ca-certificates "${wanted[@]}" | sort -u | paste -sd , | sed 's/,/, /g'
}

# Debian's places are the same under /usr, but for settings and for zsh.
debian() {
    local root="$work/debian" depends
    mkdir -p "$root/DEBIAN" "$root/usr"
    cp -r "$work/$name"/{bin,lib,share} "$root/usr/"
    cp -r "$work/$name/etc" "$root/"
    # Secrets may be written into it, and systemd reads it as root.
    chmod 0600 "$root/etc/farthing/farthing.env"
    mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
    sed -i 's|^ExecStart=/usr/local/bin/|ExecStart=/usr/bin/|' "$root/usr/lib/systemd/system/farthing.service"
    {
        printf 'Farthing is under the licence of your choice of two: MIT, which follows, or Apache 2.0, which is in\n'
        printf '/usr/share/common-licenses/Apache-2.0. Licences of what it is made with: licences-of-others.gz.\n\n'
        cat LICENSE-MIT
    } >"$root/usr/share/doc/farthing/copyright"
    rm "$root/usr/share/doc/farthing"/LICENSE-*
    install -m 0755 -t "$root/DEBIAN" deploy/debian/{postinst,prerm,postrm}
    (cd "$root" && find etc -type f -printf '/%p\n' | sort >DEBIAN/conffiles)
    (cd "$root" && find usr -type f | sort | xargs md5sum >DEBIAN/md5sums)
    depends="$(needs)"
    # 1.0.0-rc.1 comes before 1.0.0, which Debian writes with a tilde.
    cat >"$root/DEBIAN/control" <<END
Package: farthing
Version: ${version/-/\~}
Architecture: $architecture
Maintainer: The Farthing developers <farthing@localhost>
Depends: $depends
Installed-Size: $(find "$root/usr" "$root/etc" -printf '%y %s\n' | awk '{ kib += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print kib }')
Section: net
Priority: optional
Description: buy and sell data by the call, paid in USDC
 A node of Farthing, a pay-per-call network for data services: whoever owns an
 HTTP service sells its answers, and anyone else's node buys them, call by call.
END
    dpkg-deb --root-owner-group "${debian_compression[@]}" --build "$root" "$folder/farthing_${version/-/\~}_$architecture.deb" >/dev/null
}

# The same program over a base: nothing runs while the image is built, so that it may be another platform's.
image() {
    local tree="$work/image" tag="farthing:$version-$architecture"
    install -D -m 0755 -t "$tree/usr/local/bin" "$work/farthing"
    install -D -m 0644 -t "$tree/etc/ssl/certs" /etc/ssl/certs/ca-certificates.crt
    docker build --quiet --platform "linux/$architecture" --file deploy/Dockerfile --target prebuilt \
        --build-arg "BASE_IMAGE=$base" --tag "$tag" "$tree" >"$work/build.log" 2>&1 ||
        { cat "$work/build.log" >&2; fail "the image was not built"; }
    docker save "$tag" | gzip --no-name "$compression" >"$folder/$name.image.tar.gz"
}

find_speaker
version="$("${speaker[@]}" --version | sed -n 's/^farthing //p')"
[[ -n "$version" ]] || fail "${speaker[*]} --version prints no version"
name="farthing-$version-$target"
mkdir -p "$folder"
strip_program
lay_out "$work/$name"
archive
debian
python3 deploy/components.py bill "$version" "$target" >"$folder/$name.cdx.json"
[[ -z "$base" ]] || image
(cd "$folder" && sha256sum farthing[-_]* >SHA256SUMS && cat SHA256SUMS)
