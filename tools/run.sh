#!/usr/bin/env bash
# Runs a scene: sets up an environment of its own, runs, and says where the picture is.
# Usage: tools/run.sh [avrswarm run arguments], for example: tools/run.sh gradient --film
# Without arguments one robot orbits another for 45 simulated seconds. Needs Python 3.11 or newer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/environment.sh

make_venv
install_package
if [ $# -eq 0 ]; then
    set -- orbit --seconds 45
fi
exec .venv/bin/avrswarm run "$@"
