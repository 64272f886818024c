# Everything runs in .venv, which is made from constraints.txt if it is missing, and updated if it is out of date: by uv
# if it is installed, else by pip.

# A name on PATH may be a shim without a Python behind it, so each candidate has to run to count.
PYTHON ?= $(shell for each in python3.13 python3.12 python3.11 python3; do \
	$$each -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo $$each; break; }; done)
BIN := .venv/bin
RUNS ?= 20
SEED ?= $(shell date +%s)
STORE ?=
SECONDS ?= 60
ARGS ?=

# Set in many containers. Without compiled modules every process that a test starts would compile all of them anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run demo test check format formatted lint imports types fast-tests quick-tests slow-tests cover docs bench prove prove-tickets recovery screenshots services clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# `make run` needs the default dependencies alone; everything else comes on top of them.
.venv/run: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { \
		echo "No Python 3.11 or newer with venv was found. Install one (Debian, Ubuntu:"; \
		echo "apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python ..."; \
		exit 1; } >&2
	@tools/install $(PYTHON) '.'
	@touch $@

.venv/ready: .venv/run
	@tools/install $(PYTHON) '.[dev,bench]'
	@touch $@

# Once, while servers are downloaded: without it each process of the tests compiles all packages and tests. Errors are
# shown by the tests themselves.
.venv/compiled: .venv/ready
	@$(BIN)/pytest --collect-only --quiet >/dev/null || true
	@touch $@

run: .venv/run ## start Carteiro on SQLite with the sandbox provider (ARGS=... are passed on)
	$(BIN)/carteiro up $(ARGS)

demo: .venv/run ## play a few minutes of mixed traffic, alongside make run (ARGS="--seconds 20")
	$(BIN)/python demo/play.py $(ARGS)

# Servers are downloaded and built while packages are installed and files are looked at: neither waits for the other.
test: ## everything that must pass: lint, imports, types, all tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target services .venv/compiled formatted lint imports types
	@$(MAKE) --no-print-directory fast-tests
	@$(MAKE) --no-print-directory slow-tests

check: ## what to run before each commit: as test, on SQLite alone
	@$(MAKE) --no-print-directory --jobs 2 quick-tests types lint imports formatted

format: .venv/ready ## write all files as the formatter wants them
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

formatted: .venv/ready
	$(BIN)/ruff format --check .

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/python tools/words.py

imports: .venv/ready
	$(BIN)/lint-imports

types: .venv/ready
	$(BIN)/mypy

# A part of the modules is one process's, which starts their servers and fills their databases once; a process that has
# done its part takes some of another's.
fast-tests: .venv/ready
	$(BIN)/pytest -n 4 --dist worksteal --ignore tests/end_to_end $(ARGS)

# What packages and many processes do is left to `make test`, and so are random requests, the simulation of lessons, and
# most of the random lives of messages.
quick-tests: .venv/ready
	WITHOUT_SERVERS=1 MODEL_EXAMPLES=20 $(BIN)/pytest -n 3 --dist worksteal -m 'not servers' \
		$(addprefix --ignore tests/,end_to_end deploy docs support_checks providers/test_third_party.py \
		api/test_any_request.py bench/test_measures.py policy/test_lessons_simulated.py) $(ARGS)

# These start, kill and wait for real processes: mostly they wait. More at a time would wait for each other, and their
# short leases would end while they wait for a processor.
slow-tests: .venv/ready
	$(BIN)/pytest -n 3 --dist worksteal tests/end_to_end $(ARGS)

cover: .venv/ready ## branch coverage of the fast tests; model, policy, path and ports must have all
	$(BIN)/pytest -n 2 --ignore tests/end_to_end --cov $(ARGS)
	$(BIN)/coverage report --fail-under 100 \
		--include '*/carteiro/model/*,*/carteiro/policy/*,*/carteiro/path/*,*/carteiro/ports/*'

docs: .venv/ready ## write the pages that are generated from code
	$(BIN)/python docs/generate.py

bench: .venv/ready ## measure, beside a peer and the raw store in the same run
	$(BIN)/python bench/core.py $(ARGS)

prove: .venv/ready ## kill real processes RUNS times, reproducibly by SEED, on STORE (sqlite, postgres, redis+sqlite, redis+postgres), and check that nothing is lost
	$(BIN)/python tests/end_to_end/crash/prove.py --runs $(RUNS) --seed $(SEED) --store $(or $(STORE),sqlite)

prove-tickets: .venv/ready ## kill workers of the ticket lane, restart its servers, RUNS times, reproducibly by SEED, and check that nothing is lost
	$(BIN)/python tests/end_to_end/tickets/prove.py --runs $(RUNS) --seed $(SEED)

recovery: .venv/ready ## lose the queue in every way, then kill processes and servers for SECONDS, all under load, on STORE; print how long it takes to recover
	$(BIN)/python tests/end_to_end/crash/recovery.py --seconds $(SECONDS) --seed $(SEED) --store $(or $(STORE),redis+postgres)

screenshots: .venv/ready ## a picture of each page of the console, in each language, into .bench/screenshots (ARGS=--docs: those of the docs)
	$(BIN)/python tests/console/screenshots.py $(ARGS)

services: ## install the servers that the tests start
	@tools/services

clean: ## remove .venv, caches and build results (never a database)
	rm -rf .bench .services .venv build dist src/*.egg-info .coverage .coverage.* .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
