# make demo    set up, then index, rank and evaluate the demo collection
# make test    set up, then lint and run the whole test suite
# make bench   ratios against peers, measured in one run each
# make results regenerate docs/RESULTS.md from the collections in ../shared/data
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Nothing may be left outside the checkout: caches of the tools live inside it.
export PIP_NO_CACHE_DIR := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
export MPLCONFIGDIR := $(abspath $(VENV))/cache/matplotlib
export XDG_CACHE_HOME := $(abspath $(VENV))/cache
export IR_DATASETS_HOME := $(abspath $(VENV))/cache/ir_datasets
export PYSERINI_CACHE := $(abspath $(VENV))/cache/pyserini

.PHONY: help venv dev demo test lint bench results java clean
help:
	@sed -n 's/^# //p' Makefile | head -4

venv: $(VENV)/.runtime
dev: $(VENV)/.dev

# The stamp names the interpreter, so that `make test PYTHON=python3.12` does not reuse another's environment.
PYTAG := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
$(VENV)/.python-$(PYTAG):
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.runtime: requirements/runtime.txt pyproject.toml $(VENV)/.python-$(PYTAG)
	@echo "installing the pinned run-time packages into $(VENV) (once; no torch, no Java needed)"
	$(BIN)/python -m pip install -q --no-deps -r requirements/runtime.txt
	$(BIN)/python -m pip install -q --no-deps setuptools==84.2.1 wheel==0.48.0
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.runtime
	$(BIN)/python -m pip install -q --no-deps -r requirements/dev.txt
	touch $@

demo: venv
	$(BIN)/sdretrieval demo --folder runs/demo --index indexes/demo

lint: dev
	$(BIN)/ruff check sdretrieval tests benchmarks
	$(BIN)/mypy

test: dev lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

bench: dev
	$(BIN)/python -m benchmarks

results: dev
	$(BIN)/python -m benchmarks.results

# Rebuilds the shipped Java class; needs a JDK, which users do not.
java: venv
	$(BIN)/python -m sdretrieval.lucene.java.build

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
