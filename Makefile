# make demo, make test: set up .venv when it is missing or out of date, then run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.set-up

.PHONY: demo test test-all check format bench clean

demo: $(SETUP)
	$(BIN)/spherule demo --out out/demo

test: $(SETUP)
	$(BIN)/pytest -m "not slow" -n 2

test-all: $(SETUP)
	$(BIN)/pytest -n 2

check: $(SETUP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(SETUP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(SETUP) $(VENV)/.peer
	$(BIN)/python benchmarks/sht.py
	$(BIN)/python benchmarks/shallow_water.py

$(SETUP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

# The peer to measure against. Its metadata asks for another torch than it needs.
$(VENV)/.peer: $(SETUP)
	$(BIN)/pip install --quiet --no-deps torch-harmonics==0.9.3
	touch $@

clean:
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
