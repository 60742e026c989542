# make demo      see align find known faults in real training runs, on this machine's CPU
# make test      lint, types, tests, docs
# make bench     what capturing costs, how fast the commands start and captures are compared
# make bench-localization   how often the right place is named, on known faults (hours; LOCALIZATION=--quick is less)
# make bench-accept   how often acceptance is right on curves with known faults (minutes)
# make bench-cases   what is said of the cases that people reported (a minute)
# make bench-nan   how often the start of a NaN is named in one run, on known cases (a minute)
# make bench-page   how large the page of a big model is, and how fast it opens, sorts and filters
# make bench-relations   how often a tensor's relation to another is told right, on known cases (minutes)
# make lint, make format, make clean
#
# Variables: PYTHON, the interpreter that makes .venv (its torch is used when it has one);
#            PIP_OPTIONS, passed to pip, for example --index-url;
#            PEER_PYTHON, an interpreter with msprobe, which `make bench` then measures beside (benchmarks/README.md).

PYTHON ?= python3
PIP_OPTIONS ?=
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# The tests run side by side, one thread each.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help demo test bench bench-accept bench-cases bench-localization bench-nan bench-page bench-relations lint format chromium clean

help:
	@sed -n 's/^# \{0,1\}//p; /^$$/q' Makefile

demo: $(INSTALLED)
	$(BIN)/python fixtures/demo.py

# A file stays with one process, since its tests share costly captures; the longest files start first.
test: lint chromium
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

bench: $(INSTALLED)
	$(BIN)/python benchmarks/capture_overhead.py $(if $(PEER_PYTHON),--peer-python $(PEER_PYTHON))
	$(BIN)/python benchmarks/writing.py
	$(BIN)/python benchmarks/statistics_kernel.py
	$(BIN)/python benchmarks/device_kernels.py
	$(BIN)/python benchmarks/start_up.py
	$(BIN)/python benchmarks/comparing.py
	$(BIN)/python benchmarks/checkpoint_reading.py

bench-page: $(INSTALLED)
	$(BIN)/python benchmarks/page.py

bench-localization: $(INSTALLED)
	$(BIN)/python -m benchmarks.localization --only two-files,perturbed,values,replay --left-out --check-effects --kinds $(LOCALIZATION)

bench-accept: $(INSTALLED)
	$(BIN)/python -m benchmarks.acceptance --write docs/accept.md
	$(BIN)/python -m benchmarks.acceptance_trainings --write docs/accept.md

bench-cases: $(INSTALLED)
	$(BIN)/python -m benchmarks.reported --write docs/cases.md

bench-nan: $(INSTALLED)
	$(BIN)/python -m benchmarks.nan_origins --quiet

bench-relations: $(INSTALLED)
	$(BIN)/python -m benchmarks.relations --write docs/relations.md

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

chromium:
	bash scripts/ensure_chromium.sh

clean:
	rm -rf $(VENV) build dist out .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt scripts/make_environment.sh
	@PYTHON="$(PYTHON)" PIP_OPTIONS="$(PIP_OPTIONS)" bash scripts/make_environment.sh $(VENV)
	@touch $@
