#!/usr/bin/env bash
# make bench: builds the load generator, the origin and the relay, measures, prints tables.
# MODES, TARGETS (words), REPS, IDLE, SCALE and SCRATCH are taken from make's command line; README.md explains them.
set -euo pipefail
build=${1:-build}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$build/bench"
warn="-Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes"
compile() { # program, sources...
    local program=$build/bench/$1
    shift
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c17 -D_GNU_SOURCE -O2 -g $warn -o "$program" "${@/#/$here/}" -lssl -lcrypto -lpthread
}
compile load load.c load_step.c load_result.c wire.c body.c
compile origin origin.c wire.c body.c
compile relay relay.c wire.c
python3 "$here/launch.py" --build "$build"
exec python3 "$here/run.py" --build "$build" --out "$build/bench/results.jsonl" \
    ${MODES:+--modes "$MODES"} ${TARGETS:+--targets "$TARGETS"} ${REPS:+--reps "$REPS"} \
    ${IDLE:+--idle "$IDLE"} ${SCALE:+--scale "$SCALE"} ${SCRATCH:+--scratch "$SCRATCH"}
