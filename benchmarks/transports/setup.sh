#!/usr/bin/env bash
# Put the transports into .peers, the virtual environment of the peers. Safe to call again.
#   PYTHON=python3.12 benchmarks/transports/setup.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
requirements=benchmarks/transports/requirements.txt

[ -x .peers/bin/python ] || "${PYTHON:-python3}" -m venv .peers
# torch first and alone: what comes after finds it satisfied and brings no other build.
.peers/bin/python -m pip install --quiet "$(grep '^torch==' "$requirements")"
.peers/bin/python -m pip install --quiet --requirement "$requirements"
echo "transports ready: $(.peers/bin/python -m benchmarks.transports.contestant --list)"
