# Two commands: `make demo` and `make test`. They need Python 3.11+ with venv, g++ and make; what
# else they need goes into .venv. PYTHON=python3.12 takes another Python.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests also compile for GPUs by NVRTC and nvcc, which the extra `cuda` brings; EXTRAS=dev leaves
# them out (they are skipped, and say so).
EXTRAS ?= dev,cuda
JOBS ?= auto

.PHONY: demo test check mutations lint format clean

demo: $(VENV)/.plain
	$(BIN)/monocu demo

test: lint check

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

check: $(VENV)/.tools $(VENV)/.model
	$(BIN)/pytest -n $(JOBS)

# Every planted fault of tests/mutations is caught: ten minutes of two cores. ONLY="a b": those alone.
mutations: $(VENV)/.tools
	$(BIN)/python -m tests.mutations.run $(if $(ONLY),--only $(ONLY))

format: $(VENV)/.tools
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/monocu fmt examples/*.model

clean:
	rm -rf $(VENV) build *.egg-info

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.plain: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.tools: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	touch $(VENV)/.plain $@

# Without it the tests of the real model are skipped.
$(VENV)/.model: | $(VENV)/.tools
	$(BIN)/monocu fetch smollm2 && touch $@ || echo "SmolLM2 is not there: its tests are skipped"
