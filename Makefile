# cockpit: `make help` lists what there is.
SHELL := /bin/sh
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled once, as where cockpit is installed, and not by every process that a test or a bench starts.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-lab test-busy check fuzz mutants lab lab-down studies bench statistics tutorial screenshots docs dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(BIN)/cockpit ## build .venv with .venv/bin/cockpit

$(BIN)/cockpit: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "cockpit needs Python 3.11 or newer; found $$($(PYTHON) --version). Set PYTHON=/path/to/python3.11"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(BIN)/cockpit

demo: setup ## open the cockpit on an embedded web server and SSH host
	@$(BIN)/cockpit demo

test: setup ## set up, and run all tests that need neither root nor packages of the system
	@$(BIN)/python -m tests.parts test

test-lab: setup ## run the tests on real servers: as root on Debian; asks before it installs packages (YES=1 answers yes)
	@sh tests/lab/install
	@$(BIN)/python -m tests.parts lab; code=$$?; sh tests/lab/install list; exit $$code

test-busy: setup ## run both suites three times while every CPU is busy (ROUNDS=1 for once)
	@sh tests/lab/install
	@$(BIN)/python -m tests.busy $(ROUNDS)

check: setup ## lint, types and import contracts
	@$(BIN)/python -m tests.parts check

fuzz: setup ## feed 100,000 inputs to each parser (INPUTS=N for fewer; 20 minutes), then streams, then files to real servers
	@$(BIN)/python -m tests.hostile.parsers $(or $(INPUTS),100000)
	@COCKPIT_EXAMPLES=1000 COCKPIT_FUZZ_SEEDS=50 COCKPIT_FUZZ_FILES=1000 COCKPIT_FUZZ_STREAMS=100000 \
		$(BIN)/python -m pytest tests/load/http2/test_hostile.py tests/hostile tests/servers tests/imports tests/profiles tests/model -m "not lab"
	@COCKPIT_ORACLE_FILES=2000 $(BIN)/python -m pytest -rA tests/lab/test_oracles.py

mutants: setup ## change COUNT=300 random places of a copy in COPY=/tmp/copy, and count the changes that the tests notice
	@$(BIN)/python -m tests.mutants $(COPY) $(COUNT)

lab: setup ## bring the lab up to play with; prints the profile and options to use
	@sh tests/lab/install
	@$(BIN)/python -m tests.lab up

lab-down: setup ## take the lab down, leaving nothing
	@$(BIN)/python -m tests.lab down

studies: setup ## run all shipped studies in their short form on the lab; results go into profiles/README.md
	@sh tests/lab/install
	@$(BIN)/python -m tests.lab.studies --publish

bench: setup ## generator cost beside wrk, ab and hey; screen cost
	@$(BIN)/python -m tests.bench

statistics: setup ## simulate verdicts on known noise: how often they are wrong, what they find
	@$(BIN)/python -m tests.statistics

tutorial: setup ## drive the first session of the README on the demo N times (N=20): word, effect, seconds
	@$(BIN)/python -m tests.tutorial $(or $(N),20)

screenshots: setup ## write screenshots/ from a recording
	@$(BIN)/python -m tests.screenshots

docs: setup ## build the guide into site/, from the help topics and recordings
	@$(BIN)/python -m docs
	@echo "site/index.html is written; with search: $(BIN)/python -m http.server -b 127.0.0.1 -d site"

dist: setup ## write source archive, wheel, single file and SBOM into dist/, built twice and tried out (PYTHONS="3.11 3.13")
	@$(BIN)/python .ci/dist.py

clean: ## remove what setup and tests made
	@rm -rf $(VENV) build dist site cockpit.1 *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
