# Everything that a person or a machine runs here; `make` alone lists it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TOOLS := build/tools
TOOLBOX := build cyclonedx-bom pip-audit
BUILD_NEEDS := scikit-build-core nanobind cmake ninja
BUILT_FROM := pyproject.toml CMakeLists.txt $(shell find native -type f)
NATIVE := $(wildcard native/*/*.?pp)
SOURCES := $(BUILT_FROM) $(shell find src -type f -not -name '*.pyc' -not -name '*.so')

# The exact versions of all that is installed here, and of what builds the package. Older pips know only
# the first variable, and take it for builds too.
export PIP_CONSTRAINT := requirements/dev.txt requirements/build.txt
export PIP_BUILD_CONSTRAINT := requirements/build.txt

# What was compiled once stays so, whatever the environment says: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo dev check unit test test-all freeze lint types tidy memory faults kills serve-kills serve-targets serve-speed serve-soak losses soak mutants sanitize sanitize-threads fuzz build audit-deps sbom licences pins stubs charts browser bench docs screenshots clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

demo: $(VENV)/.demo ## Install and run the main job on built-in data; results in run/
	$(BIN)/limelight demo -o run

dev: $(VENV)/.editable ## Install for work: Python as it stands in src/, kernels built where they changed

check: lint types unit ## Style, types and unit tests: what to run while working

# Two workers, each on a core of its own: tests/conftest.py.
PYTEST = $(BIN)/python -m pytest --numprocesses 2

unit: $(VENV)/.editable ## Run the unit tests and the examples of docstrings, with few examples of properties
	TMPDIR=$(or $(wildcard /dev/shm),$(TMPDIR),/tmp) $(PYTEST) tests/unit --pyargs limelight -m unit --hypothesis-profile dev $(TESTS)

# The gate says COVERAGE=1, which costs a third of the time.
test: $(VENV)/.dev ## Install and run all tests, doctests included, but those of memory
	$(PYTEST) tests --pyargs limelight -m "not memory" $(if $(COVERAGE),--cov=limelight --cov-fail-under=90) $(TESTS)

test-all: test memory kills serve-kills serve-targets serve-speed serve-soak losses soak ## All of that, and what takes long or the whole machine

memory: $(VENV)/.dev ## Run the tests that count the memory of a process, alone
	$(BIN)/python -m pytest tests/memory

serve-targets: $(VENV)/.dev ## Serve ten made-up days, and look how near Gini index and caps stay to what was asked
	$(BIN)/python -m limelight.lab.bench.held_targets ml-1m-like --a-day 5000
	$(BIN)/python -m limelight.lab.bench.held_targets ml-1m-like --a-day 5000 --halves popularity --cap 0.03

serve-speed: $(VENV)/.dev ## Measure what a request costs, and how fast a service answers at a fixed rate
	$(BIN)/python -m limelight.lab.bench.serve_engine --requests 1000000
	$(BIN)/python -m limelight.lab.bench.serve_load --rate 200 --seconds 300 --limit-ms 50
	$(BIN)/python -m limelight.lab.bench.serve_load --kind rerank --rate 200 --seconds 300 --limit-ms 50

serve-soak: $(VENV)/.dev ## Ask a service for an hour: nothing is lost, and its memory stays as it is
	$(BIN)/python -m limelight.lab.bench.serve_load --rate 40 --seconds 3600 --most-growth 20 -- --gini 0.9 --window 10m --count served

soak: $(VENV)/.dev ## Try the properties with twenty times as many examples
	$(PYTEST) tests -m "hypothesis and not memory" --hypothesis-profile soak

mutants: $(VENV)/.editable ## Change one line after the other of the mathematics and settings; tests must notice
	$(BIN)/python -m tests.mutants.mutants $(MUTANTS)

freeze: $(VENV)/.editable ## Write the snapshots of what must not change anew
	LIMELIGHT_FREEZE=1 $(BIN)/python -m pytest -q tests/unit/test_frozen.py tests/process/test_frozen_bits.py

lint: $(VENV)/.packages ## Check the style, and that no room imports from one above it
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(NATIVE)
	PYTHONPATH=src $(BIN)/lint-imports

types: $(VENV)/.packages ## Check the types
	$(BIN)/mypy --num-workers 2

tidy: build/tidy/compile_commands.json ## Look for mistakes in the C++; takes a minute
	$(BIN)/clang-tidy -p build/tidy --quiet $(filter %.cpp,$(NATIVE))

bench: $(VENV)/.bench ## Measure speed and memory against other libraries; results in docs/
	$(BIN)/limelight bench -o docs $(BENCH)

losses: $(VENV)/.dev ## Kill workers, machines and the driver of a fit on a cluster, and compare what comes out
	$(BIN)/python -m tests.kills.losses

faults: $(VENV)/.dev ## Fail or kill every verb at every system call that touches its output, and look at what is left
	$(BIN)/python -m tests.reliability.faults $(FAULTS)

KILLS ?= 1000
kills: $(VENV)/.dev ## Kill commands at random moments, and look at what is left
	$(BIN)/python -m tests.kills.kills --kills $(KILLS)

SERVE_KILLS ?= 200
serve-kills: $(VENV)/.dev ## Kill services under load, and the server that they share, and compare their ledgers
	$(BIN)/python -m tests.kills.serving --kills $(SERVE_KILLS)

# All tests but those that count memory, of which a sanitizer takes a lot.
sanitize: build/address/.done ## Run the tests under the address and undefined-behaviour sanitizers
	LD_PRELOAD="$(call library,asan) $(call library,ubsan)" ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$(CURDIR)/build/address \
	$(PYTEST) tests --pyargs limelight -m "not memory"

# Polars, Ray's processes, threads of a forked process and pipes of a shell do not live beside the thread
# sanitizer, so tests that need them are left out, and the guide, whose commands other tests run, too.
# Only our own code is watched: NumPy, Arrow and Python were not built for it, and BLAS gets no threads.
sanitize-threads: build/thread/.done ## Run the tests under the thread sanitizer
	OPENBLAS_NUM_THREADS=1 LD_PRELOAD="$(call library,tsan)" PYTHONPATH=$(CURDIR)/build/thread \
	TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1:log_path=$(CURDIR)/build/thread/race \
	setarch --addr-no-randomize $(BIN)/python -m pytest tests -m "not (memory or ray or docs or kills)" \
	--ignore tests/unit/lab \
	$(addprefix --ignore ,$(shell grep -rl --include='*.py' '^import polars' tests)) \
	--deselect tests/process/test_process.py::test_a_reader_that_has_enough

fuzz: $(VENV)/.fuzz build/address/.done ## Feed everything that reads with damaged input, FUZZ_SECONDS a target
	$(BIN)/python fuzz/run.py --seconds $(or $(FUZZ_SECONDS),60) --sanitized build/address $(FUZZ)

# The wheel is built from the source distribution, so that this is known to be complete.
build: $(TOOLS)/.tools ## Build sdist and wheel, check what is in them, try the wheel in an empty environment
	rm -rf dist build/empty
	$(TOOLS)/bin/python -m build --outdir dist .
	$(TOOLS)/bin/python .ci/contents.py dist
	$(PYTHON) -m venv build/empty
	build/empty/bin/pip install --quiet dist/*.whl
	build/empty/bin/limelight doctor

audit-deps: $(TOOLS)/.tools ## Ask the advisory services about all that is pinned
	$(TOOLS)/bin/python .ci/audit_deps.py

sbom: build ## Write what the wheel brings with it as CycloneDX, to dist/limelight.cdx.json
	$(TOOLS)/bin/cyclonedx-py environment build/empty --pyproject pyproject.toml --mc-type library \
	  --output-reproducible --output-file dist/limelight.cdx.json

licences: $(VENV)/.dev ## Write THIRD_PARTY.md anew from what is installed
	$(BIN)/python .ci/licences.py

pins: ## Pin the newest versions of everything in requirements/
	rm -rf build/pins && $(PYTHON) -m venv build/pins/dev && $(PYTHON) -m venv build/pins/build
	PIP_CONSTRAINT= PIP_BUILD_CONSTRAINT= build/pins/dev/bin/pip install --quiet '.[bench,dev,docs,fuzz]' $(TOOLBOX)
	PIP_CONSTRAINT= build/pins/build/bin/pip install --quiet $(BUILD_NEEDS)
	build/pins/dev/bin/pip freeze --exclude limelight > requirements/dev.txt
	build/pins/build/bin/pip freeze > requirements/build.txt

stubs: $(VENV)/.dev ## Refresh the checked-in types of the native module
	cp "$$($(BIN)/python -c 'import limelight._native as n; print(n.__path__[0])')/_kernels.pyi" src/limelight/_native/

charts: ## Bundle the charts library of the report page anew; needs npm
	npm ci --prefix page --no-audit --no-fund
	npm run build --prefix page

# Without a browser its tests are skipped, so this never stops the rest.
browser: ## Install Chromium, which the tests of the report page drive
	@if command -v chromium >/dev/null; then echo "chromium is there"; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium \
	    || echo "chromium could not be installed: the tests of the report page will be skipped"; \
	else echo "the tests of the report page will be skipped; to run them, install chromium"; fi

docs: $(VENV)/.docs ## Build the documentation into site/, which needs no network to be read
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

screenshots: $(VENV)/.editable ## Take the pictures of audit pages anew, into docs/figures; needs Chromium
	$(BIN)/python tools/screenshots.py

clean: ## Remove everything that was built
	rm -rf $(VENV) build dist run site page/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage*

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(TOOLS)/.tools: requirements/dev.txt
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet $(TOOLBOX)
	@touch $@

# All that is needed to work on limelight and to build it, but not limelight itself.
$(VENV)/.packages: pyproject.toml $(wildcard requirements/*.txt) | $(VENV)/bin/python
	mkdir -p build
	$(PYTHON) -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; print(*project["dependencies"], *project["optional-dependencies"]["dev"], sep="\n")' > build/packages.txt
	$(BIN)/pip install --quiet $(BUILD_NEEDS) -r build/packages.txt
	@touch $@

# There is one limelight in the environment: the source tree for those who work on it, or the package
# as users get it. Each way to install removes the marks of the other, so that none is taken for it.
PACKAGED := $(addprefix $(VENV)/.,dev demo docs fuzz bench)

# Objects that did not change are taken from the build folder, where no isolated build would find them.
$(VENV)/.editable: $(BUILT_FROM) | $(VENV)/.packages
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@rm -f $(PACKAGED) && touch $@

$(VENV)/.dev: $(SOURCES) | $(VENV)/.packages
	$(BIN)/pip install --quiet --no-deps --no-build-isolation .
	@rm -f $(VENV)/.editable && touch $@

$(VENV)/.demo: EXTRA = plot
$(VENV)/.docs: EXTRA = docs
$(VENV)/.fuzz: EXTRA = fuzz
$(VENV)/.bench: EXTRA = bench
$(filter-out %.dev,$(PACKAGED)): $(SOURCES) requirements/dev.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet '.[$(EXTRA)]'
	@rm -f $(VENV)/.editable && touch $@

# How each file is compiled, without compiling it.
build/tidy/compile_commands.json: CMakeLists.txt | $(VENV)/.packages
	PATH=$(CURDIR)/$(BIN):$$PATH cmake -S . -B build/tidy -G Ninja --log-level=WARNING \
	  -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	@touch $@

# A build of its own for each kind of sanitizer: address (with undefined behaviour) and thread. It goes
# before the package in PYTHONPATH, but an editable installation would go before it.
build/address/.done build/thread/.done: build/%/.done: $(SOURCES) | $(VENV)/.dev
	$(BIN)/pip install --quiet --no-deps --upgrade --target build/$* . -C build-dir=build/cmake-$* -C cmake.define.LIMELIGHT_SANITIZE=$*
	@touch $@

library = $$($(or $(CXX),c++) -print-file-name=lib$(1).so)
