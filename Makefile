# Everything here starts from Python 3.11 and make: a target builds .venv first if it must.

PYTHON ?= python3
BIN := .venv/bin
PYTEST = $(BIN)/python -m pytest

REQUIRE_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
  { echo "error: $(PYTHON) is not Python 3.11 or newer; name one with PYTHON=..." >&2; exit 1; }

# Pytest says 5 when no test carries the mark asked for, which is no failure.
NONE_IS_FINE = || [ $$? -eq 5 ]

# Neighbours stay on one worker, which keeps their fixtures, until the other one has nothing left and takes some.
SPREAD := -n 2 --dist worksteal

QUICK := not slow and not fuzz and not crash and not powercut and not damage
SUITES := format-check lint types imports test slow

# Tests start hundreds of processes: each would compile the package anew where the environment forbids to keep it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test slow fuzz guards mutants crash powercut damage check format format-check lint types imports conformance coverage bench wheel lock clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-15s %s\n", $$1, $$2}'

setup: .venv/installed ## Build .venv from the lock files

demo: setup ## Run the tour in examples/demo.sh
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

test: setup ## Run the quick tests
	$(PYTEST) $(SPREAD) -m "$(QUICK)"

slow: setup ## Run the slow tests
	$(PYTEST) $(SPREAD) -m "slow and not crash and not powercut and not damage" --timeout 1800 $(NONE_IS_FINE)

fuzz: setup ## Run the fuzz tests, with fresh random seeds
	$(PYTEST) -m fuzz --timeout 0 --hypothesis-profile fuzz $(NONE_IS_FINE)

guards: setup ## Check every fact about Lance that the engine leans on
	$(PYTEST) tests/engine/storage -k guard

mutants: setup ## Break each line of the kept list of guards, and name those that no test misses (GUARDS=text, JOBS=n)
	$(BIN)/python -m tests.mutants.run --jobs $(or $(JOBS),2) "$(GUARDS)"

crash: setup ## Kill and interrupt writers, hundreds of times, and print the counts (CRASH_ROUNDS, CRASH_SEED, HTTP_LOAD_WRITES)
	$(PYTEST) tests/protocol tests/surfaces/http/test_load.py -m crash --timeout 0 --capture no

powercut: setup ## Cut the power at every sync of a commit, and print the counts
	$(PYTEST) tests/protocol/powercut -m powercut --timeout 0 --capture no

damage: setup ## Damage every file of a graph in every way, and print the counts
	$(PYTEST) tests/protocol/damage -m damage --timeout 0 --capture no

check: setup ## Run all that a change must pass, and say what took how long
	@started=$$(date +%s); failed=0; summary=; \
	for suite in $(SUITES); do \
	  echo "== $$suite"; began=$$(date +%s); \
	  if $(MAKE) --no-print-directory $$suite; then result=ok; else result=FAILED; failed=1; fi; \
	  line=$$(printf '%-13s %-7s %4d s' $$suite $$result $$(($$(date +%s) - began))); \
	  echo "== $$line"; summary="$$summary$$line\n"; \
	done; \
	printf "\n$$summary%-13s %-7s %4d s\n" check $$([ $$failed = 0 ] && echo ok || echo FAILED) $$(($$(date +%s) - started)); \
	exit $$failed

format: setup ## Rewrite the code in the one format, and mend what lint can mend
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

format-check: setup
	$(BIN)/ruff format --check

lint: setup ## Look for mistakes and bad style
	$(BIN)/ruff check

types: setup ## Check the types
	$(BIN)/mypy

imports: setup ## Check who imports whom
	$(BIN)/lint-imports

conformance: setup ## Say which numbered cases of docs/spec pass (DOC=languages for one document)
	$(PYTEST) $(SPREAD) -m "not fuzz and not crash and not powercut and not damage" --timeout 1800 --conformance $(or $(DOC),all) $(NONE_IS_FINE)

coverage: setup ## Say which lines the quick tests reach
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(SPREAD) -m "$(QUICK)"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

bench: setup ## Run every benchmark in bench/
	@set -e; for script in $(wildcard bench/*.py); do echo "== $$script"; $(BIN)/python $$script; done

wheel: setup ## Build the source archive and the wheel into dist/
	$(BIN)/python -m build --no-isolation --outdir dist

lock: ## Refresh the lock files, keeping the versions that still fit (UPGRADE=1 takes the newest)
	@$(REQUIRE_PYTHON)
	$(PYTHON) -m venv --clear .venv-lock
	.venv-lock/bin/pip install --quiet uv
	printf 'setuptools\nwheel\n' | $(COMPILE) - --output-file build.lock
	$(COMPILE) pyproject.toml --all-extras --group dev --constraint build.lock --output-file requirements.lock
	rm -rf .venv-lock

# One lock for all platforms and Pythons: names, versions, hashes and markers, and no address.
COMPILE = .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-header --no-annotate --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade)

clean: ## Remove what the other targets made
	rm -rf .venv .venv-lock build dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache \
	  .mypy_cache .pytest_cache .ruff_cache spark-warehouse metastore_db derby.log
	find . -name __pycache__ -prune -exec rm -rf {} +

# Two stamps: the third-party packages take minutes and change with the locks, ours takes seconds.
# --clear, so that a package dropped from the lock is gone and cannot hide a missing dependency.
.venv/locked: build.lock requirements.lock
	@$(REQUIRE_PYTHON)
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --require-hashes -r build.lock
	$(BIN)/pip install --quiet --require-hashes --no-build-isolation --no-deps -r requirements.lock
	@touch $@

.venv/installed: .venv/locked pyproject.toml
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $@
