#!/usr/bin/env bash
# The container image and the compose testnet, tried out: `make compose-test`.
#
# In order: an engine, the one that answers or one of our own; images from the programs that are built already, over
# a base made of this machine's C library; the network started one container at a time in a shuffled order; one call
# bought of each service through the published port, one of them from an owner whom nobody can connect to; what the
# image promises; a node killed and started again; the whole network restarted. Nothing is downloaded, and at the end
# nothing is left, whatever happened.
#
# Usage: compose-test.sh PROGRAMS ANVIL: the folder with farthing, earthquakes and exoplanets, and the local chain.
# SEED=… repeats a start order.
set -euo pipefail
cd "$(dirname "$0")/../.."

programs="$1"
anvil="$2"
nodes=(bootstrap neighbour earthquake-owner planet-owner consumer)
services=("${nodes[@]}" earthquakes exoplanets router chain setup)
# Two slow cores make five wallets here, a second of hashing each, and may have other work at the same time. What
# the network promises is told by the seconds in front of each line; these limits only end a test that hangs.
healthy_within_secs=180
connected_within_secs=120
# A node whose port was not reached in the first test relays nobody until the second, a minute later.
relayed_within_secs=300

project="farthing-test-$$"
export FARTHING_IMAGE="$project-node" FARTHING_TESTNET_IMAGE="$project-tools"
is_up=""
. deploy/test/engine.sh

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

skip() {
    printf '\n  SKIPPED: the compose testnet, because %s.\n\n' "$1" >&2
    exit 0
}

fail() {
    printf '\nFAILED: %s\n' "$*" >&2
    exit 1
}

compose() { "${compose_program[@]}" -p "$project" -f deploy/compose.testnet.yaml "$@"; }

# The one node of compose.yaml.
compose_one() { "${compose_program[@]}" -p "$project-one" -f deploy/compose.yaml -f "$work/one.yaml" "$@"; }

one_is_healthy() { [[ "$(docker inspect --format '{{.State.Health.Status}}' "$(compose_one ps -q node)")" == healthy ]]; }

container() { docker ps --all --quiet --filter "label=com.docker.compose.project=$project" --filter "label=com.docker.compose.service=$1"; }

# says TEXT COMMAND…: the command prints the text. It is read to its end: a pipe into `grep -q` closes at the first
# match, and under `pipefail` a command that still writes would be taken for one that failed.
says() {
    local text="$1" printed
    shift
    printed="$("$@" 2>/dev/null)" || return 1
    [[ "$printed" == *"$text"* ]]
}

# The command line of one node.
farthing() {
    local node="$1"
    shift
    docker exec "$(container "$node")" /usr/local/bin/farthing "$@"
}

state_of() { docker inspect --format "$2" "$(container "$1")"; }

tear_down() {
    local code="$?"
    trap - EXIT INT TERM
    if [[ -n "$is_up" ]]; then
        if [[ "$code" != 0 ]]; then
            docker ps --all --filter "label=com.docker.compose.project=$project" || true
            for service in "${services[@]}"; do
                printf '\n--- %s\n' "$service"
                docker logs --tail 25 "$(container "$service")" 2>&1 || true
            done
        fi
        if [[ -e "$work/one.yaml" ]]; then
            [[ "$code" == 0 ]] || compose_one logs --tail 25 || true
            compose_one down --volumes --timeout 40 >"$work/down.log" 2>&1 || { cat "$work/down.log" >&2; code=1; }
        fi
        compose down --volumes --timeout 40 >"$work/down.log" 2>&1 || { cat "$work/down.log" >&2; code=1; }
        docker image rm --force "$project-node" "$project-tools" "$project-node-base" >/dev/null || true
        for kind in container volume network; do
            [[ -z "$(docker "$kind" ls --quiet --filter "label=com.docker.compose.project=$project" \
                $([[ $kind == container ]] && echo --all))" ]] || { echo "a $kind was left behind" >&2; code=1; }
        done
    fi
    stop_engine "$code"
    rm -rf "$work"
    exit "$code"
}

# until_within SECONDS WHAT COMMAND…: repeats a command until it succeeds.
until_within() {
    local deadline="$((SECONDS + $1))" what="$2"
    shift 2
    until "$@"; do
        if ((SECONDS >= deadline)); then
            [[ "$1" != planet_owner_is_relayed ]] || tell_ways
            fail "$what did not happen in time"
        fi
        sleep 1
    done
}

# Says how each node is reached: in its own words, by its log, and, because that is a test that changes both, by asking peers last.
tell_ways() {
    local node
    for node in "${nodes[@]}"; do
        printf '\n--- how %s is reached\n' "$node"
        farthing "$node" status 2>&1 | grep -E '^(Wallet|Network|Addresses)' || true
        docker logs --tail 1000 "$(container "$node")" 2>&1 | grep -E 'relay|others can connect|reach' | tail -n 30 || true
    done
    printf '\n--- a test of the port of each node, as it is now\n'
    for node in "${nodes[@]}"; do farthing "$node" net reach --json 2>&1 || true; done
}

all_are_healthy() {
    local service
    for service in "${services[@]}"; do
        [[ "$(state_of "$service" '{{.State.Health.Status}}')" == healthy ]] || return 1
    done
}

# Every node is connected to all four others.
all_are_connected() {
    local node
    for node in "${nodes[@]}"; do
        [[ "$(farthing "$node" net peers --json 2>/dev/null | grep -c '"wallet"')" -ge 4 ]] || return 1
    done
}

# Two relays were shown to lead to the planet owner, and others are told of them.
planet_owner_is_relayed() { [[ "$(farthing planet-owner status --json 2>/dev/null | grep -c '/p2p-circuit"')" == 2 ]]; }

# Every node finds both services by what they are about.
all_find_the_services() {
    local node
    for node in "${nodes[@]}"; do
        says "$earthquakes" farthing "$node" catalog search geojson --json || return 1
        says "$planets" farthing "$node" catalog search planets --json || return 1
    done
}

# Two numbers with which the addresses of no network of this engine begin.
free_range() {
    local taken n
    taken="$(docker network ls --quiet | xargs docker network inspect --format '{{range .IPAM.Config}} {{.Subnet}}{{end}}')"
    for n in {203..249}; do
        [[ "$taken" == *" 10.$n."* ]] || { echo "10.$n"; return; }
    done
    fail "10.203 to 10.249 are all taken by networks of this engine"
}

# field NAME: the first text of that name in JSON on standard input.
field() { grep -oE "\"$1\": *\"[^\"]*\"" | awk -F '"' 'NR == 1 { print $4 }'; }

# buy PRICE WORD CURL-ARGUMENTS…: one call through the published port; the answer must hold the word.
buy() {
    local price="$1" word="$2"
    shift 2
    beside_engine curl --silent --show-error --max-time 60 --noproxy '*' --cacert "$work/ca.pem" --dump-header "$work/head" \
        --output "$work/body" --header "Authorization: Bearer $(farthing consumer secret show)" "$@" || return 1
    grep -q "^HTTP/[0-9.]* 200" "$work/head" || { head -c 500 "$work/head" "$work/body" >&2; return 1; }
    grep -qi "^x-farthing-charged: $price"$'\r'"\$" "$work/head" || { cat "$work/head" >&2; return 1; }
    grep -q "$word" "$work/body"
}

buy_earthquakes() {
    buy 0.002 '"FeatureCollection"' "https://localhost:$port/internal/call" --data "{\"api_id_public\":\"$earthquakes\",
        \"method\":\"GET\",\"path\":\"/v1/earthquakes/recent\",\"params\":{\"limit\":\"2\"}}"
}

buy_planets() { buy 0.003 '"hostStar"' "https://localhost:$port/services/$planets/planets?limit=2"; }

# Milliseconds that NODE looks for WALLET in the directory and among its peers, whatever it knows already.
look_up_ms() {
    farthing "$1" net lookup "$2" --json | tr -d ' \n' | grep -oE '"name":"(directory|peers)","took_us":[0-9]+' |
        grep -oE '[0-9]+$' | sort -n | awk 'END { if (NR) printf "%d\n", ($1 + 999) / 1000 }'
}

expect() { [[ "$2" == "$3" ]] || fail "$1: expected $3, found $2"; }

[[ "$(uname -s)" == Linux ]] || skip "its images need the programs of this machine, and this machine is not Linux"
case "${DOCKER_HOST:-unix}" in
    unix*) ;;
    *) skip "the engine at DOCKER_HOST is on another machine" ;;
esac
if command -v docker >/dev/null && docker compose version >/dev/null 2>&1; then
    compose_program=(docker compose)
elif command -v docker >/dev/null && command -v docker-compose >/dev/null; then
    compose_program=(docker-compose)
else
    skip "docker or docker-compose is missing (apt-get install docker.io docker-compose)"
fi
PATH="$PATH:/usr/sbin:/sbin"
for tool in curl strip ip nft; do
    command -v "$tool" >/dev/null || skip "$tool is missing (apt-get install curl binutils iproute2 nftables)"
done
for program in "$programs"/{farthing,earthquakes,exoplanets} "$anvil"; do
    [[ -x "$program" ]] || fail "$program is missing; build it with: make compose-test"
done
work="$(mktemp -d "${TMPDIR:-/tmp}/farthing-compose.XXXXXX")"
trap tear_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
find_engine
say "the engine answers: $(docker version --format '{{.Server.Version}}')"

"${compose_program[@]}" -f deploy/compose.yaml config --quiet || fail "compose.yaml is not valid"
is_up=yes
code=0
deploy/prebuilt-images.sh "$programs" "$anvil" "$FARTHING_IMAGE" "$FARTHING_TESTNET_IMAGE" || code="$?"
[[ "$code" != 3 ]] || skip "the engine cannot run a container here"
[[ "$code" == 0 ]] || fail "the images were not built"
say "both images are built: $(docker image inspect --format '{{.Size}}' "$project-node") and $(docker image inspect --format '{{.Size}}' "$project-tools") bytes"

# With an engine of somebody else, ports 3000 and 3002 may be taken.
ports=(3000 3002)
[[ -n "$engine_pid" ]] || read -r -a ports < <(python3 -c 'import socket
sockets = [socket.socket() for _ in range(2)]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))')
port="${ports[0]}" console_port="${ports[1]}"
range="$(free_range)"
export FARTHING_GATEWAY_PORT="$port" FARTHING_PANEL_PORT="$console_port" FARTHING_TESTNET_RANGE="$range"
seed="${SEED:-$RANDOM}"
mapfile -t order < <(shuf --echo "${services[@]}" --random-source=<(yes "$seed"))
say "starting, SEED=$seed: ${order[*]}"
for service in "${order[@]}"; do
    compose up --detach "$service" >"$work/up.log" 2>&1 || { cat "$work/up.log" >&2; fail "$service was not started"; }
done
say "all are started"
until_within "$connected_within_secs" "that all five nodes are connected" all_are_connected
say "all five nodes are connected"
until_within "$healthy_within_secs" "that every container is healthy" all_are_healthy
say "every container is healthy"

declare -A wallets
for node in "${nodes[@]}"; do wallets[$node]="$(farthing "$node" wallet address)"; done
mapfile -t looks < <(
    for node in "${nodes[@]}"; do
        for other in "${nodes[@]}"; do [[ "$node" == "$other" ]] || look_up_ms "$node" "${wallets[$other]}"; done
    done | sort -n
)
expect "look-ups that found their node" "${#looks[@]}" 20
say "a look-up of each node by each other takes ${looks[10]} ms (median of 20; slowest ${looks[19]} ms)"

docker cp "$(container consumer):/data/tls/ca.pem" "$work/ca.pem" >/dev/null
earthquakes="$(farthing earthquake-owner api list --json | field id)"
planets="$(farthing planet-owner api list --json | field id)"
until_within "$connected_within_secs" "that every node finds both services" all_find_the_services
say "every node finds both services"
until_within "$relayed_within_secs" "that the planet owner is reached through two relays" planet_owner_is_relayed
# A test of its port, which no peer comes through.
reach="$(farthing planet-owner net reach --json)" || fail "nobody reaches the planet owner: $reach"
[[ "$reach" == *'"reachable": false'* ]] || fail "the router lets somebody in: $reach"
say "nobody connects to the planet owner, and two relays lead there"
buy_earthquakes || fail "the earthquakes were not bought"
buy_planets || fail "the planets were not bought"
expect "the consumer's spending" "$(farthing consumer status --json | field spent_today)" 0.005
expect "the earthquake owner's earnings" "$(farthing earthquake-owner wallet balance --json | field unclaimed)" 0.002
expect "the planet owner's earnings" "$(farthing planet-owner wallet balance --json | field unclaimed)" 0.003
say "bought one call of each service; the books agree"

for node in "${nodes[@]}"; do
    expect "the user of $node" "$(awk '/^Uid:/ { print $2 }' "/proc/$(state_of "$node" '{{.State.Pid}}')/status")" 10001
    written="$(farthing "$node" init --data /elsewhere 2>&1)" && fail "the root of $node can be written"
    [[ "$written" == *"mount a volume"* ]] || fail "$node does not say how it gets a folder: $written"
done
for service in "${services[@]}"; do
    # In bits of the kernel; the thirteenth is CAP_NET_ADMIN.
    rights=0000000000000000
    [[ "$service" != router ]] || rights=0000000000001000
    expect "the rights of $service" "$(awk '/^CapBnd:/ { print $2 }' "/proc/$(state_of "$service" '{{.State.Pid}}')/status")" "$rights"
done
published="$(docker ps --filter "label=com.docker.compose.project=$project" --format '{{.Ports}}' | grep -oE '[^ ,]+->' | sort | paste -sd ' ')"
expect "published ports" "$published" "$(printf '127.0.0.1:%s->\n' "$port" "$console_port" | sort | paste -sd ' ')"
say "no node runs as root or can write outside of its volume; the router alone changes a network, its own; two ports are published, to this machine"

beside_engine curl --silent --show-error --max-time 30 --noproxy '*' --cacert "$work/ca.pem" --location \
    --output "$work/page" "https://localhost:$console_port/panel/stay?next=%2Fpanel" || fail "the console does not answer"
grep -qi "setup code" "$work/page" || { head -c 800 "$work/page" >&2; fail "the console does not ask for the set-up code"; }
says "Setup code" farthing consumer console url || fail "the consumer does not tell its set-up code"
says "https://localhost:$console_port/panel" docker logs "$(container setup)" || fail "setup does not say where the console is"
say "the consumer's console answers at the address that is printed"

wallet="$(farthing consumer wallet address)"
docker kill "$(container consumer)" >/dev/null
docker start "$(container consumer)" >/dev/null
until_within "$healthy_within_secs" "that the killed consumer is healthy again" all_are_healthy
expect "the wallet after a kill" "$(farthing consumer wallet address)" "$wallet"
buy_earthquakes || fail "the killed consumer does not buy"
say "a killed node came back as itself and buys"

compose stop --timeout 40 >"$work/stop.log" 2>&1
for node in "${nodes[@]}"; do expect "the exit code of $node" "$(state_of "$node" '{{.State.ExitCode}}')" 0; done
compose start >"$work/start.log" 2>&1
until_within "$healthy_within_secs" "that the restarted network is healthy" all_are_healthy
buy_planets || fail "the restarted network does not sell"
expect "the earthquake owner's earnings after a restart" "$(farthing earthquake-owner wallet balance --json | field unclaimed)" 0.004
expect "services after a restart" "$(farthing planet-owner api list --json | grep -c '"listing_version"')" 1
say "the whole network stopped in good order and started again with its money"

# The ports of one node are fixed; an engine of somebody else may have them in use.
if [[ -n "$engine_pid" ]]; then
    compose stop --timeout 40 >"$work/stop.log" 2>&1
    # On the chain of the network before, with its coin and its contract.
    cat >"$work/one.yaml" <<END
services:
  node:
    environment:
      FARTHING_CHAIN__PRESET: local
      FARTHING_CHAIN__RPC_URLS: http://chain:8545
      FARTHING_CHAIN__TOKEN: "0x5FbDB2315678afecb367f032d93F642f64180aa3"
  chain:
    image: $project-tools
    entrypoint: ["/usr/local/bin/anvil", "--quiet", "--host", "0.0.0.0", "--state", "/data/chain.json"]
    environment: { HOME: /tmp }
    tmpfs: [/tmp]
    volumes: ["chain:/data"]
volumes:
  chain: { external: true, name: ${project}_chain }
END
    one() { compose_one exec -T node farthing "$@"; }
    compose_one up --detach >"$work/one.log" 2>&1 || { cat "$work/one.log" >&2; fail "compose.yaml does not start"; }
    until_within "$healthy_within_secs" "that the one node is healthy" one_is_healthy
    wallet="$(one wallet address)"
    docker cp "$(compose_one ps -q node):/data/tls/ca.pem" "$work/one.pem" >/dev/null
    for path in 3002/panel 3000/internal/call; do
        answer="$(beside_engine curl --silent --show-error --max-time 30 --noproxy '*' --cacert "$work/one.pem" \
            --output "$work/body" --write-out '%{http_code}' "https://localhost:$path")" || fail "nobody answers at $path"
        [[ "$answer" =~ ^(200|30[0-9]|40[0-9])$ ]] || fail "https://localhost:$path answers with $answer"
    done
    compose_one down --timeout 40 >"$work/one.log" 2>&1
    compose_one up --detach >"$work/one.log" 2>&1
    until_within "$healthy_within_secs" "that the one node is healthy again" one_is_healthy
    expect "the wallet in a new container" "$(one wallet address)" "$wallet"
    say "the one node of compose.yaml answers on its ports, and a new container is the same node"
fi
