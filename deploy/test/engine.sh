#!/usr/bin/env bash
# A Docker engine for a test: the one that answers, or one of the test's own, which ends with it. To be sourced.
#
# Reads `work`, a folder of the test's own, and calls its `skip` where there can be no engine.

engine_pid=""

# The engine that answers, or a new one.
find_engine() {
    docker version >/dev/null 2>&1 || start_engine
}

# An engine of our own lives in namespaces of its own: bridges, packet filters and mounts end with it.
start_engine() {
    [[ "$(id -u)" == 0 ]] || skip "no Docker engine answers and only root can start one"
    local tool
    for tool in dockerd unshare nsenter ip; do
        command -v "$tool" >/dev/null || skip "no Docker engine answers and $tool is missing (apt-get install docker.io)"
    done
    export DOCKER_HOST="unix://$work/engine.sock"
    unshare --net --mount bash -c 'ip link set lo up && exec dockerd "$@"' engine \
        --data-root "$work/engine" --exec-root "$work/exec" --pidfile "$work/engine.pid" --host "$DOCKER_HOST" \
        >"$work/engine.log" 2>&1 &
    engine_pid="$!"
    for _ in $(seq 240); do
        if docker version >/dev/null 2>&1; then return; fi
        if ! kill -0 "$engine_pid" 2>/dev/null; then
            engine_pid=""
            tail -5 "$work/engine.log" >&2
            skip "no Docker engine can start here (see its last messages above)"
        fi
        sleep 0.25
    done
    skip "the Docker engine did not start within a minute"
}

# Ends an engine of our own; CODE other than 0 shows its last words.
stop_engine() {
    [[ -n "$engine_pid" ]] || return 0
    kill "$engine_pid" && wait "$engine_pid" || true
    [[ "$1" == 0 ]] || tail -5 "$work/engine.log" >&2
}

# Runs a command where the engine's published ports are.
beside_engine() {
    if [[ -n "$engine_pid" ]]; then nsenter --net="/proc/$engine_pid/ns/net" "$@"; else "$@"; fi
}
