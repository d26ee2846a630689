#!/usr/bin/env bash
# Make the virtual environments of the Pong peers: .peers and .peers/sample-factory. Safe to call again.
#   PYTHON=python3.12 benchmarks/pong/setup_peers.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
benchmarks/time_to_target/setup_peers.sh
.peers/bin/python -m pip install --quiet --requirement benchmarks/pong/requirements-peers.txt

requirements=benchmarks/pong/requirements-sample-factory.txt
[ -x .peers/sample-factory/bin/python ] || "${PYTHON:-python3}" -m venv .peers/sample-factory
# torch first and alone: what comes after finds it satisfied and brings no other build.
.peers/sample-factory/bin/python -m pip install --quiet "$(grep '^torch==' "$requirements")"
.peers/sample-factory/bin/python -m pip install --quiet --requirement "$requirements"
.peers/bin/python -c "import ale_py, envpool; print(f'pong peers ready: ale-py {ale_py.__version__}, envpool {envpool.__version__}')"
.peers/sample-factory/bin/python -c "import sample_factory; print('sample-factory ready')"
