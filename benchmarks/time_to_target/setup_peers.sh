#!/usr/bin/env bash
# Make .peers, the virtual environment of the peers. Safe to call again.
#   PYTHON=python3.12 benchmarks/time_to_target/setup_peers.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
requirements=benchmarks/time_to_target/requirements-peers.txt

[ -x .peers/bin/python ] || "${PYTHON:-python3}" -m venv .peers
# torch first and alone: what comes after finds it satisfied and brings no other build.
.peers/bin/python -m pip install --quiet "$(grep '^torch==' "$requirements")"
.peers/bin/python -m pip install --quiet --requirement "$requirements"
.peers/bin/python - <<'END'
import gymnasium, ray, stable_baselines3, torch
print(f"peers ready: torch {torch.__version__}, gymnasium {gymnasium.__version__}, "
      f"stable-baselines3 {stable_baselines3.__version__}, ray {ray.__version__}")
if torch.version.cuda:
    print("note: this torch was built for CUDA; the peers run on the CPU all the same")
END
