#!/usr/bin/env bash
# All pages, two of them, and one that is too dear: see tests/tests/sdk.
set -euo pipefail

# The items of pages in a line.
show() {
  local what=$1
  shift
  echo "$what $(./shelf/shelf.sh "$@" 2>said | jq -r .id | tr '\n' ' ')"
}

show cursor iterate_by_cursor limit=2
show page iterate_by_page limit=2
FARTHING_MAX_PAGES=2 show offset iterate_by_offset limit=2
if ! FARTHING_MAX_PRICE=0.0001 ./shelf/shelf.sh iterate_by_page limit=2 2>said; then
  sed -n 's/.*(\([a-z-]*\), charged: \([a-z]*\).*/pages-budget \1 \2/p' said
fi
