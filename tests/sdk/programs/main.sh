#!/usr/bin/env bash
# What every language does: see tests/tests/sdk.
set -euo pipefail
quakes() { ./quakes/quakes.sh "$@"; }
planets() { ./planets/planets.sh "$@"; }

# What was paid for the call before.
charged() { sed -n 's/^paid \(.*\) USDC.*/\1/p' said; }

# How a command was refused: its code and whether it was charged.
refused() {
  local what=$1 named=$2 code charged
  shift 2
  if "$@" >answer 2>said; then
    echo "$what: no error"
    exit 1
  fi
  code=$(sed -n 's/.*(\([a-z-]*\), charged: .*/\1/p' said)
  charged=$(sed -n 's/.*charged: \([a-z]*\).*/\1/p' said)
  if grep -q -- "$named" said; then named=true; else named=false; fi
  echo "$what $code $charged $named"
}

# docs: begin
answer=$(./quakes/quakes.sh recent_earthquakes limit=3 2>said) # CONSUMER_SECRET and FARTHING_CA_FILE are set
jq -r '.features[].properties | "\(.place) \(.mag)"' <<<"$answer"
cat said # what was paid, and the receipt
# docs: end
jq -r '"recent \(.features | length) \(.features[0].id) \(.features[0].properties.time) \(.features[0].properties.mag * 10 | round) \($ARGS.positional[0])"' \
  --args "$(charged)" <<<"$answer"

answer=$(FARTHING_URL=$DROPPING_URL quakes recent_earthquakes limit=40 2>said)
echo "again $(jq '.features | length' <<<"$answer") $(charged)"

refused refused limit quakes recent_earthquakes limit=0
FARTHING_MAX_PRICE=0.001 refused budget '' quakes recent_earthquakes
FARTHING_CA_FILE=$WRONG_CA_FILE refused untrusted '' quakes recent_earthquakes

answer=$(planets planets discoveryMethod=Transit limit=2 2>said)
jq -r '"planets \(length) \(.[0].name) \(.[0].discoveryYear) \($ARGS.positional[0])"' --args "$(charged)" <<<"$answer"

answer=$(FARTHING_URL=$DROPPING_PLANETS_URL planets planets limit=40 2>said)
echo "planets-again $(jq length <<<"$answer") $(charged)"

refused planets-refused fields planets planets fields=nothing
FARTHING_MAX_PRICE=0.001 refused planets-budget '' planets planets
FARTHING_CA_FILE=$WRONG_CA_FILE refused planets-untrusted '' planets planets
