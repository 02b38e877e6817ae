#!/usr/bin/env bash
# Runs the histories of the contract in forge, then its proofs in halmos.
#
#   SEED=N      repeats the histories of that seed; a new one is drawn and printed otherwise
#   RUNS=N      how many histories, 64 unless said
#   PROOF=NAME  only the proofs whose names contain this; `PROOF=^open_` tries the rules that have no proof yet
set -euo pipefail
cd "$(dirname "$0")"

export PATH="$PWD/node_modules/.bin:$PWD/.venv/bin:$PATH"
for program in forge halmos; do
    command -v "$program" >/dev/null || {
        echo "$program is missing: run \`make contract-proof\` on a machine with node and python3" >&2
        exit 1
    }
done

seed="${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}"
echo "histories of seed $seed; SEED=$seed repeats them"
FOUNDRY_INVARIANT_RUNS="${RUNS:-64}" forge test --fuzz-seed "$seed"

export FOUNDRY_PROFILE=proofs
forge test
halmos ${PROOF:+--match-test "$PROOF"}
