# make demo: the description length of MNIST under LeNet.  make test: every check.  make docs: the site.
# make bench, bench-gpu: speed.  make test-browser, test-postgres: with a real browser, with a real server.
# make pictures: the report page on a phone and on a screen, for the docs.
PYTHON ?= python3
BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
export OMP_WAIT_POLICY := passive

.PHONY: chromium demo test test-browser test-postgres test-trackers pictures docs bench bench-gpu install clean

install: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "prequential needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: install
	@rm -rf runs/demo
	$(BIN)/preq run mnist lenet --streams 8 --out runs/demo --picture runs/demo/curve.png

test: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest --numprocesses 2

# strict: a link to nowhere, a missing docstring target or a page that loads from another host stops it
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "the site is in site/index.html"

# a real server; needs Debian's packages and the right to install them
test-postgres: install
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	  { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y --no-install-recommends postgresql; }
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[postgres]'
	$(BIN)/pytest tests/unit/test_postgres.py -rs

# Debian's chromium, unless there is one, driven by Playwright
chromium: install
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  { $(SUDO) apt-get update -qq && $(SUDO) apt-get install -y --no-install-recommends chromium; }
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[browser]'

test-browser: chromium
	$(BIN)/pytest tests/browser -rs

pictures: chromium
	$(BIN)/python -m tests.browser.pictures docs/pages

# the trackers that are too large for every environment
test-trackers: install
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[tensorboard,wandb,mlflow]'
	PREQ_TRACKERS=1 $(BIN)/pytest -rs tests/unit/test_trackers.py

bench: install
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python benchmarks/speed.py --write

# with the Python and the torch of the machine, which knows its GPU
bench-gpu:
	PYTHONPATH=src $(PYTHON) benchmarks/gpu.py

clean:
	rm -rf .venv site runs/demo .mypy_cache .ruff_cache .hypothesis
