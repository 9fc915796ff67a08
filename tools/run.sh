#!/usr/bin/env bash
# Runs a first demonstration: one chip, one firmware, from reset.
# Usage: tools/run.sh [avrswarm exec arguments]; needs nothing but Python 3.11 or newer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/environment.sh

make_venv
install_package
if [ $# -eq 0 ]; then
    set -- firmware/blink/blink.elf --max-cycles 8000000
fi
exec .venv/bin/avrswarm exec "$@"
