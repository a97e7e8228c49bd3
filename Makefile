# `make demo` and `make test` do all their own set-up; they need Python 3.11+, make and a package index.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

# The tests run on all cores as one process each: more threads than cores would only wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --quiet

.PHONY: demo test test-all lint wheel bench clean

demo: .venv/demo-installed .venv/loops
	rm -rf runs/demo
	$(BIN)/hyperboloid train disease --task link --model lgcn --out runs/demo
	$(BIN)/hyperboloid plot runs/demo

test: lint wheel .venv/loops
	$(PYTEST) -m "not slow"

test-all: lint wheel .venv/loops
	$(PYTEST)

lint: .venv/test-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# the wheel must hold the whole package: it is built, installed into an environment of its own, and used there
wheel: .venv/test-installed
	rm -rf build/wheel
	$(BIN)/python -m build --wheel --outdir build/wheel . > build-wheel.log 2>&1 || (cat build-wheel.log; exit 1)
	rm build-wheel.log
	$(PYTHON) -m venv --clear build/clean
	build/clean/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt build/wheel/*.whl
	cd build && clean/bin/python -c "import hyperboloid.nn, hyperboloid.training; print('wheel', hyperboloid.__version__)"
	cd build && rm -rf wheel-run && clean/bin/hyperboloid train karate --epochs 3 --out wheel-run

bench: .venv/test-installed .venv/loops
	$(BIN)/hyperboloid bench

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo-installed: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable .
	touch $@

.venv/test-installed: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[test]'
	touch $@

# numba keeps a compiled loop until its own file changes, though loops of other files may be part of it
.venv/loops: $(wildcard src/hyperboloid/kernels/*.py src/hyperboloid/graphs/*.py) | .venv/bin/python
	find src -name '*.nb[ic]' -delete
	touch $@

clean:
	rm -rf .venv build dist runs
