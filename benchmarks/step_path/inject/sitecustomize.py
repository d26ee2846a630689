"""Starts the recorder in every interpreter of a traced run: this folder is on their PYTHONPATH."""

from benchmarks.step_path.recorder import install

install()
