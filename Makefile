# Two commands do everything: `make demo` and `make test`. `make help` lists the rest.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test lint format proof clean

VENV ?= .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input
INSTALL := $(PIP) install --quiet -c constraints.txt
STAMPS := $(VENV)/.stamps
PEERS := $(VENV)-peers
WORKERS ?= 2

help: ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

setup: $(STAMPS)/setup ## make .venv and install goodput into it, with lint and test tools

$(STAMPS)/python:
	@tools/make_venv.sh $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/setup: $(STAMPS)/python pyproject.toml constraints.txt
	@echo "installing goodput and its tools into $(VENV) (about 300 MB)"
	@$(INSTALL) pip
	@$(INSTALL) -e . --group lint --group test
	@touch $@

# The tests run on the pinned torch and trainers, never on borrowed ones.
$(STAMPS)/trainers: $(STAMPS)/setup
	@$(PY) tools/borrow_torch.py --give-back
	@echo "installing torch, transformers, accelerate, lightning, jax, ray and playwright for the" \
	  "tests (about 2.1 GB with a CPU build of torch)"
	@$(INSTALL) torch==2.13.0 --group integration
	@touch $@

demo: $(STAMPS)/setup ## train a real job through two faults and account for its time (about 4 minutes)
	@$(PY) tools/borrow_torch.py || { \
	  echo "no torch at hand: installing torch==2.13.0 into $(VENV)" \
	    "(about 900 MB and a minute for a CPU build, several GB where only a CUDA build is offered)"; \
	  $(INSTALL) torch==2.13.0; }
	@$(PY) -m goodput.demo

test: $(STAMPS)/trainers ## set up and run every test (under 10 minutes)
	$(PY) -m pytest -n $(WORKERS) --durations=10

lint: $(STAMPS)/setup ## ruff, mypy --strict, import-linter
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	@for file in $$(find tests -mindepth 2 -name conftest.py); do $(VENV)/bin/mypy $$file || exit 1; done
	$(VENV)/bin/lint-imports

format: $(STAMPS)/setup ## rewrite files the way lint wants them
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

# What the benchmarks measure us against, in an environment of its own.
$(PEERS)/.stamp:
	@echo "installing ml-goodput-measurement and opentelemetry-sdk into $(PEERS) (about 350 MB)"
	@tools/make_venv.sh $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet ml-goodput-measurement==0.2.3 opentelemetry-sdk==1.45.2
	@touch $@

proof: $(STAMPS)/trainers $(PEERS)/.stamp ## soaks and benchmarks: everything that docs/benchmarks.md claims
	GOODPUT_PROOF=1 $(PY) -m pytest -n $(WORKERS) -m proof
	PEER_PYTHON=$(PEERS)/bin/python $(PY) benchmarks/import_cost.py
	$(PY) benchmarks/recorder_cost.py --otel-python $(PEERS)/bin/python
	$(PY) benchmarks/instrument_cost.py
	$(PY) benchmarks/kill_anywhere.py
	$(PY) benchmarks/training_ledger.py --peer-python $(PEERS)/bin/python

clean: ## remove .venv, caches and what the demo wrote
	rm -rf $(VENV) $(PEERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build \
	  demo-out
