# make demo     set up, then index, rank and evaluate the demo collection
# make test     set up, then lint and run the whole test suite
# make lint     ruff (rules and format), mypy, and the rooms of the package with import-linter
# make faults   kill, cut the power, fill disks, damage files: the long form of tests/faults
# make docs     build the site into build/site; it needs no network to read
# make fuzz     altered files for every reader, N of them (default 10000); a short form is part of the tests
# make bench    ratios against peers, measured in one run each
# make results  regenerate docs/RESULTS.md from the collections in ../shared/data
# make java     recompile the shipped Java classes; needs a JDK, which users do not
# make venv     set up what runs need; make dev: and what tests and lint need
# make clean    remove the environment, the tools' caches and build/
# PYTHON=python3.12 takes another interpreter, VENV=folder another place for the environment.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
N      ?= 10000
# Nothing may be left outside the checkout: caches of the tools live inside it.
export PIP_NO_CACHE_DIR := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# pip would compile every file it installs; Python compiles what is imported, also where it is told to keep no bytecode.
export PIP_NO_COMPILE := 1
export PYTHONDONTWRITEBYTECODE :=
export MPLCONFIGDIR := $(abspath $(VENV))/cache/matplotlib
export XDG_CACHE_HOME := $(abspath $(VENV))/cache
export IR_DATASETS_HOME := $(abspath $(VENV))/cache/ir_datasets
export PYSERINI_CACHE := $(abspath $(VENV))/cache/pyserini

.PHONY: help venv dev demo test debian faults fuzz lint docs bench results java clean
help:
	@sed -n '1,/^[^#]/s/^# //p' Makefile

venv: $(VENV)/.runtime
dev: $(VENV)/.dev

# The stamp names the interpreter, so that `make test PYTHON=python3.12` does not reuse another's environment.
PYTAG := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
$(VENV)/.python-$(PYTAG):
	@$(PYTHON) -c ''  # before anything is removed
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.runtime: requirements/runtime.txt pyproject.toml $(VENV)/.python-$(PYTAG)
	@echo "installing the pinned run-time packages into $(VENV) (once; no torch, no Java needed)"
	$(BIN)/python -m pip install -q --no-deps -r requirements/runtime.txt
	$(BIN)/python -m pip install -q --no-deps setuptools==84.2.1 wheel==0.48.0
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q sdretrieval
	$(BIN)/python -c 'import fastapi, matplotlib.pyplot, mcp, numba, sklearn.linear_model, uvicorn'  # what commands import
	touch $@

$(VENV)/.tools: requirements/dev.txt $(VENV)/.python-$(PYTAG)
	$(BIN)/python -m pip install -q --no-deps -r requirements/dev.txt
	touch $@

$(VENV)/.dev: $(VENV)/.runtime $(VENV)/.tools
	touch $@

$(VENV)/.docs: requirements/docs.txt $(VENV)/.dev
	$(BIN)/python -m pip install -q --no-deps -r requirements/docs.txt
	touch $@

demo: venv
	$(BIN)/sdretrieval demo --folder runs/demo --index indexes/demo

lint: dev
	$(BIN)/ruff check sdretrieval tests benchmarks
	$(BIN)/ruff format --check -q sdretrieval tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/lint-imports --no-cache --no-logo --config tests/house/cycles.toml

# Two cores are kept busy: by Debian's packages and pip's, then by lint and the loops, compiled once for all processes.
# In the order of the folders, not by how many tests a file has: the long files (a browser, Spark) do not come last.
test:
	$(MAKE) -j 3 debian dev
	$(MAKE) -j 2 loops-ranking lint loops-learning
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

debian:
	$(PYTHON) tests/packages.py

loops-%: dev
	$(BIN)/python tests/compile_loops.py $*

faults: dev
	FAULTS=1000 $(BIN)/python -m pytest tests/faults

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir build/site

fuzz: dev
	$(BIN)/python tests/fuzzing.py $(N)

bench: dev
	$(BIN)/python -m benchmarks

results: dev
	$(BIN)/python -m benchmarks.results

java: venv
	$(BIN)/python -m sdretrieval.index.lucene.java.build

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
