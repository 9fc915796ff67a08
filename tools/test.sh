#!/usr/bin/env bash
# Every check of the project, on a fresh Debian with Python 3.11 or newer.
# Usage: tools/test.sh [pytest arguments], for example: tools/test.sh tests/program -k checksum
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/environment.sh

# Tests compile firmware with avr-gcc, compare with simavr and make films with ffmpeg.
missing=()
for package in gcc-avr avr-libc binutils-avr simavr libsimavr-dev libelf-dev gcc libc6-dev ffmpeg; do
    dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ] || apt_install "${missing[@]}"; then
    export AVRSWARM_REQUIRE_TOOLS=1 # a test that would skip for want of a tool fails instead
elif [ -n "${CI:-}" ]; then
    say "could not install ${missing[*]}; continuous integration runs every test, so this is a failure"
    exit 1
else
    say "could not install ${missing[*]}; tests that need them are skipped"
fi

make_venv
install_package dev
export PATH="$PWD/.venv/bin:$PATH"

failed=()

# step NAME COMMAND...: run one check; go on after a failure and remember it.
step() {
    local name=$1 began=$SECONDS
    shift
    say "== $name"
    if "$@"; then
        say "== $name: passed in $((SECONDS - began)) s"
    else
        say "== $name: FAILED in $((SECONDS - began)) s"
        failed+=("$name")
    fi
}

# again WHAT...: pytest on the unit tests of compiled code, in another mode. With arguments of the user's
# it is no failure that none of those tests is among the chosen ones (pytest's exit code 5).
narrowed=$#
again() {
    local code=0
    "$@" || code=$?
    [ "$code" -eq 0 ] || { [ "$code" -eq 5 ] && [ "$narrowed" -gt 0 ]; }
}

step "ruff check" ruff check .
step "ruff format" ruff format --check .
step "mypy" mypy --strict
step "tests" pytest "$@"
step "tests with the JIT off" again env NUMBA_DISABLE_JIT=1 pytest -m jit_off "$@"
step "tests with bounds checking" again env NUMBA_BOUNDSCHECK=1 pytest -m "jit_off or bounds_checked" "$@"
if [ "$narrowed" -eq 0 ]; then
    step "tests of the chip on translated code" env AVRSWARM_TEST_TRANSLATED=1 pytest tests/chip/test_faults.py tests/chip/test_section11_*.py
fi

if [ ${#failed[@]} -gt 0 ]; then
    say "FAILED:"
    for name in "${failed[@]}"; do say "  $name"; done
    exit 1
fi
say "all checks passed in $SECONDS s"
