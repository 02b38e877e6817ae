#!/usr/bin/env bash
# A base image made of this machine's C library and certificates: the least that programs which were built here need,
# in place of a distribution's. Nothing is downloaded.
#
# Usage: local-base.sh TAG PROGRAM…: the image, and the programs whose libraries it gets.
#
# Ends with 3 where the engine cannot run a container at all.
set -euo pipefail

[[ $# -ge 2 ]] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
tag="$1"
shift

[[ "$(uname -s)" == Linux ]] || { echo "images need the libraries of this machine, and this machine is not Linux" >&2; exit 1; }
work="$(mktemp -d "${TMPDIR:-/tmp}/farthing-base.XXXXXX")"
trap 'rm -rf "$work"' EXIT
root="$work/base"

mkdir -p "$root"/{mnt,tmp,etc/ssl/certs,usr/local/bin}
chmod 1777 "$root/tmp"
printf 'root:x:0:0::/root:/sbin/nologin\n' >"$root/etc/passwd"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
# Lines such as `libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
for library in $(ldd "$@" | grep -oE '/[^ ]+ \(0x' | cut -d' ' -f1 | sort -u); do
    install -D -m 0755 "$library" "$root$library"
done
# glibc loads these when a name is looked up.
libc_folder="$(dirname "$(ldd "$1" | grep -oE '/[^ ]*/libc\.so\.6')")"
for library in libnss_files.so.2 libnss_dns.so.2 libresolv.so.2; do
    install -D -m 0755 "$libc_folder/$library" "$root$libc_folder/$library"
done
tar -C "$root" -c . | docker import - "$tag" >/dev/null
# Some machines let an engine start and then keep it from running anything.
loader="$(ldd "$1" | grep -oE '/[^ ]*/ld-linux[^ ]*')"
docker run --rm "$tag" "$loader" --version >/dev/null 2>"$work/run.log" || { cat "$work/run.log" >&2; exit 3; }
