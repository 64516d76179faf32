# make demo, make test: set up .venv when it is missing or out of date, then run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.set-up

CSRC := $(wildcard src/spherule/csrc/*)

# Threads that wait for each other asleep, not spinning: on a busy machine many times as fast.
demo test test-all test-browser: export OMP_WAIT_POLICY = passive

# Both sides of a comparison keep the memory that they free: else what is measured is how often glibc gave it back.
bench: export MALLOC_TRIM_THRESHOLD_ = 2000000000
bench: export MALLOC_MMAP_THRESHOLD_ = 33554432

.PHONY: demo test test-all test-browser check format sanitize bench clean

demo: $(SETUP)
	$(BIN)/spherule demo --out out/demo

test: $(SETUP)
	$(BIN)/pytest -m "not slow and not browser" -n 2

test-all: $(SETUP)
	$(BIN)/pytest -m "not browser" -n 2

# Pages in Chromium, which must be installed; it renders WebGL2 without a GPU.
test-browser: $(SETUP) $(VENV)/.browser
	$(BIN)/pytest tests/browser

check: $(SETUP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(CSRC) tests/native/*.cpp

format: $(SETUP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(CSRC) tests/native/*.cpp

# The native library alone, without Python, under the address and undefined-behaviour sanitizers.
sanitize:
	mkdir -p build
	$(CXX) -std=gnu++17 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fopenmp \
	    -DSPHERULE_ISA=baseline -Isrc/spherule/csrc src/spherule/csrc/*.cpp tests/native/*.cpp \
	    -o build/sanitize
	build/sanitize

bench: $(SETUP) $(VENV)/.peer
	$(BIN)/python benchmarks/sht.py
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/disco.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/shallow_water.py
	$(BIN)/python benchmarks/rooms.py

$(SETUP): pyproject.toml constraints.txt CMakeLists.txt $(CSRC)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

$(VENV)/.browser: $(SETUP)
	$(BIN)/pip install --quiet "playwright>=1.50"
	touch $@

# The peer to measure against. Its metadata asks for another torch than it needs.
$(VENV)/.peer: $(SETUP)
	$(BIN)/pip install --quiet --no-deps torch-harmonics==0.9.3
	touch $@

clean:
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
