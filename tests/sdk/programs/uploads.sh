#!/usr/bin/env bash
# An image in a form and as a body, and a form that is sent twice: see tests/tests/sdk.
set -euo pipefail

# What was paid for the call before.
charged() { sed -n 's/^paid \(.*\) USDC.*/\1/p' said; }

note=$'Z\xc3\xbcrich --farthing-sizeshell'
form=(--part 'image=@a "dot".png;type=image/png' --part "note=$note")
answer=$(./sizes/sizes.sh image_size "${form[@]}" 2>said)
jq -r --arg note "$note" --arg charged "$(charged)" \
  '"form \(.width) \(.height) \(.type) \(.file) \(.note == $note) \(.bytes) \($charged)"' <<<"$answer"
answer=$(./sizes/sizes.sh raw_image_size --body '@a "dot".png' 2>said)
jq -r --arg charged "$(charged)" '"raw \(.width) \(.height) \(.type) \(.bytes) \($charged)"' <<<"$answer"
for _ in 1 2; do
  answer=$(FARTHING_CALL_ID=size-shell ./sizes/sizes.sh image_size "${form[@]}" 2>said)
  jq -r '"again \(.width)"' <<<"$answer"
done
