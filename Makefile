# Everything a newcomer or CI needs. The first use of a target sets up what it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: train test test-slow check docs peers wheel clean

train: $(VENV)/.core  ## set up, train PPO on CartPole-v1 to 475, show what was done
	$(BIN)/tianji train

test: check $(VENV)/.dev  ## set up, check everything, run the tests in their short form
	$(BIN)/python -m pytest -m "not slow"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test-slow: $(VENV)/.dev  ## the rest: longer learning, soak and fault runs
	$(BIN)/python -m pytest -m slow

check: $(VENV)/.dev  ## format, lint, types, imports
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

peers:  ## what the benchmarks compare with, apart from our own packages
	benchmarks/time_to_target/setup_peers.sh
	benchmarks/transports/setup.sh

wheel: $(VENV)/.core
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .mypy_cache .ruff_cache .pytest_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/.core: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) --editable '.[all,test,docs]'
	touch $@
