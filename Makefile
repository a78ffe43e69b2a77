# Every target makes what it needs and is quick the second time.
# Python 3.11 or newer, git and make are enough; PYTHON=python3.12 picks another interpreter.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SITE_READY := $(VENV)/.site-ready

.DEFAULT_GOAL := help
.PHONY: help run test check format bench soak pictures docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(READY) ## show hilt at work: offline, without a key, in a scratch directory
	@sh scripts/show.sh $(BIN)/hilt

test: $(READY) ## run the tests
	@$(BIN)/pytest

check: $(READY) ## lint, types, import directions
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY) ## format the code and fix what can be fixed
	@$(BIN)/ruff check --fix-only
	@$(BIN)/ruff format

bench: $(READY) ## measure, as ratios against a baseline of the same run
	@$(BIN)/python benchmarks/run.py

soak: $(READY) ## a day of use in a quarter of an hour; SOAK="--minutes 2" for less. Then what is tried at random, at length
	@PYTHONPATH=tests $(BIN)/python -m soak.soak $(SOAK)
	@HILT_PROPERTIES=1000 $(BIN)/pytest --timeout 900 -m hypothesis
	@HILT_MODEL_EXAMPLES=300 HILT_KILL_ROUNDS=200 HILT_KILL_SEED=$$$$ HILT_LEAK_ROUNDS=15 HILT_DAMAGE_RECORDS=50 \
		$(BIN)/pytest --timeout 900 tests/extensions/test_model.py tests/extensions/test_leaks.py tests/agent/test_killed.py tests/sessions

pictures: $(READY) ## draw the pictures in docs/pictures anew, from the program itself
	@PYTHONPATH=tests $(BIN)/python scripts/draw_pictures.py

docs: $(SITE_READY) ## build the documentation as a site in site/; a link that leads nowhere fails
	@$(BIN)/python scripts/build_site.py

clean: ## remove what the other targets made
	rm -rf $(VENV) site build/docs .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# An install from an earlier Python or an earlier list of dependencies is made anew.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "hilt needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12"; exit 1; }
	@echo "setting up $(VENV) (once)…"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

# What only the site needs is fetched when it is first built.
$(SITE_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group docs
	@touch $@
