# Everything a newcomer or CI needs. The first use of a target sets up what it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := constraints.txt
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)

# Tests start some hundred processes, and each would compile all sources again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: train test test-slow test-newest constraints check lines docs peers wheel clean

train: $(VENV)/.core  ## set up, train PPO on CartPole-v1 to 475, show what was done
	$(BIN)/tianji train

test: check $(VENV)/.dev  ## set up, check everything, run the tests in their short form
	$(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist worksteal
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test-slow: $(VENV)/.dev  ## the rest: longer learning, soak and fault runs, new examples
	$(BIN)/python -m pytest -m slow
	$(BIN)/python -m pytest -m hypothesis --hypothesis-profile default

test-newest:  ## the same as test, with the newest versions of everything, in a venv of its own
	rm -rf .venv-newest
	$(MAKE) test VENV=.venv-newest CONSTRAINTS=/dev/null

constraints:  ## record the versions that `make test-newest` has passed with
	.venv-newest/bin/pip freeze --all --exclude-editable > .venv-newest/versions.txt
	{ grep '^#' constraints.txt; sed 's/+[a-z0-9.]*$$//' .venv-newest/versions.txt; } > constraints.new
	mv constraints.new constraints.txt

check: $(VENV)/.dev  ## format, lint, types, imports
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports

lines: $(VENV)/.core  ## code lines of each room, without blank lines, comments and docstrings
	$(BIN)/python -m benchmarks.code_lines

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

peers:  ## what the benchmarks compare with, apart from our own packages
	benchmarks/time_to_target/setup_peers.sh
	benchmarks/transports/setup.sh

wheel: $(VENV)/.core
	$(BIN)/pip wheel --quiet --build-constraint $(CONSTRAINTS) --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) .venv-newest build dist site src/*.egg-info .mypy_cache .ruff_cache .pytest_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(VENV)/bin/python pyproject.toml $(CONSTRAINTS)
	$(PIP) --upgrade pip
	$(PIP) --build-constraint $(CONSTRAINTS) --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) --build-constraint $(CONSTRAINTS) --editable '.[all,test,docs]'
	touch $@
