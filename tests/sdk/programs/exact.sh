#!/usr/bin/env bash
# What is written and read exactly, and what errors tell: see tests/tests/sdk.
set -euo pipefail

sent='{"label":"shell","count":9007199254740993,"huge":18446744073709551615,"nullable":null,"both":null,"pet":{"kind":"dog","name":"Rex"},"loose":7}'
answer=$(./things/things.sh keep_thing --body "$sent" 2>said)
[[ $answer == "$sent" ]]
[[ $answer =~ \"count\":([0-9]+).*\"huge\":([0-9]+).*\"name\":\"([A-Za-z]+)\".*\"loose\":([0-9]+) ]]
printf "exact %s %s %s %s %s\n" "${BASH_REMATCH[@]:1}" "$(sed -n 's/^paid \(.*\) USDC.*/\1/p' said)"

if ./things/things.sh get_thing id=missing >answer 2>said; then exit 1; else code=$?; fi
((code == 4))
paid=$(sed -n 's/^paid \(.*\) USDC.*/\1/p' said)
if [[ $paid == 0.004 ]]; then paid=true; fi
echo "missing $(sed -n 's/^the service answered //p' said) $paid"

if FARTHING_URL=$DROPPING_THINGS_URL FARTHING_MAX_RETRIES=0 ./things/things.sh get_thing id=long >answer 2>said; then exit 1; fi
echo "unknown $(sed -n 's/.*charged: \([a-z]*\).*/\1/p' said)"

for path in '' /headers; do
  if FARTHING_URL=$DRIPPING_URL$path FARTHING_TIMEOUT=2 FARTHING_MAX_RETRIES=0 ./things/things.sh get_thing id=slow >answer 2>said; then
    exit 1
  fi
  echo "dripping${path/\//-} $(sed -n 's/.*charged: \([a-z]*\).*/\1/p' said)"
done
for node in $LEAVING_URLS; do
  if FARTHING_URL=${node#*=} FARTHING_MAX_RETRIES=1 ./things/things.sh get_thing id=gone >answer 2>said; then exit 1; fi
  echo "${node%%=*} $(sed -n 's/.*charged: \([a-z]*\).*/\1/p' said)"
done
for setting in FARTHING_TIMEOUT=0 FARTHING_TIMEOUT=x FARTHING_MAX_RETRIES=x FARTHING_MAX_PRICE=1e-05 CONSUMER_SECRET=$'a\nb' \
  FARTHING_URL=https:// FARTHING_URL=http://127.0.0.1.example.com FARTHING_URL=http://localhost:1@example.com \
  FARTHING_URL=https://localhost:3000/?x FARTHING_URL=https://u:p@localhost:3000 \
  FARTHING_CA_FILE=/nothing/here; do
  code=0
  env "$setting" ./things/things.sh get_thing id=slow >answer 2>said || code=$?
  [[ $code == 2 && $(<said) == "${setting%%=*} "* ]] || { printf '%s: %s\n' "$setting" "$(<said)" && exit 1; }
done
echo "settings refused"
