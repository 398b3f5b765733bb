# make demo: the description length of MNIST under LeNet.  make test: every check.  make bench, bench-gpu: speed.
PYTHON ?= python3
BIN := .venv/bin
export OMP_WAIT_POLICY := passive

.PHONY: demo test test-trackers bench bench-gpu install clean

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
	rm -rf .venv runs/demo .mypy_cache .ruff_cache .hypothesis
