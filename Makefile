# `make setup` installs everything, `make test` proves it, `make run` shows it.
# Each target installs what it needs by itself; a second run finds it there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup lint format test run bench soak clean

help:  ## say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 10

# The newest pip knows dependency groups; the one that Python ships may not.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'

# The package alone: what `make run` needs.
$(VENV)/.package: pyproject.toml | $(BIN)/python
	$(PIP) install --editable .
	@touch $@

# The package, all extras, and the tools that check it.
$(VENV)/.everything: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[all]' --group dev
	@touch $@ $(VENV)/.package

setup: $(VENV)/.everything  ## make .venv with the package, all extras and the tools

lint: $(VENV)/.everything  ## format, lint, types, layers
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/basedpyright --warnings
	$(BIN)/lint-imports

format: $(VENV)/.everything  ## rewrite the sources as `make lint` wants them
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format --quiet .

test: $(VENV)/.everything  ## set up and run all tests
	$(BIN)/python -m pytest $(ARGS)

run: $(VENV)/.package  ## set up and start the main job (today: the demo)
	$(BIN)/keryx demo

bench: $(VENV)/.everything  ## measure, each figure as a ratio within one run
	@for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

soak: $(VENV)/.everything  ## the long forms of the chaos and property tests
	KERYX_SOAK=1 $(BIN)/python -m pytest --timeout=3600 $(ARGS)

clean:  ## forget everything that was installed or built
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
