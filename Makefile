# Two commands on a fresh machine: `make demo` runs the main job, `make test` the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help

# Where Python is told to write no bytecode, each of the hundreds of processes that tests start compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE
FUZZ_SECONDS ?= 120
# Twice the cores, because what tests do most is wait for servers.
TEST_WORKERS ?= 4
.PHONY: help demo test faults test-cluster models test-models lint unit chaos fuzz sbom clean

help: ## Show what can be made.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Proctor needs Python 3.11 or newer; $(PYTHON) is older. Set PYTHON=/path/to/python3.11."; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "Python's venv is missing: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# torch first, by itself and by its exact version, so that nothing else can choose another build of it.
$(VENV)/.local: $(BIN)/python pyproject.toml constraints.txt services/proctor/localstack/triton_setup.py
	@echo "Installing Proctor and what it runs on (a few minutes the first time) …"
	$(PIP) install --quiet --constraint constraints.txt torch==2.13.0
	$(PIP) install --quiet --constraint constraints.txt --editable '.[local]'
	$(BIN)/python scripts/setup_triton.py
	@touch $@

$(VENV)/.dev: $(VENV)/.local scripts/setup_harness.sh scripts/setup_prometheus.sh scripts/setup_sandbox.sh
	$(PIP) install --quiet --constraint constraints.txt --editable '.[local,dev]'
	scripts/setup_browser.sh
	scripts/setup_postgres.sh
	scripts/setup_prometheus.sh
	scripts/setup_sandbox.sh
	scripts/setup_harness.sh
	@touch $@

demo: $(VENV)/.local ## Audit the two reference models end to end and print the decisions.
	$(BIN)/proctor demo

test: $(VENV)/.dev ## Lint, types, import rules, and every test but those of `make faults`, `make test-cluster` and `make test-models`.
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest -n $(TEST_WORKERS) --no-loadscope-reorder -m "not faults and not cluster and not models"

# One worker a lane of tests/scheduling.py: a third would have nothing to do.
faults: $(VENV)/.dev ## Short runs of faults: workers, broker, stores and a local stack that are killed, stopped and starved.
	$(BIN)/python -m pytest -n 2 --no-loadscope-reorder -m faults tests/chaos tests/end_to_end

# Two lanes of tests/scheduling.py on one cluster: what is about the release, and what has namespaces of its own.
test-cluster: $(VENV)/.dev ## The chart on a real Kubernetes: the kit's, or the one that KUBECONFIG names.
	scripts/setup_helm.sh
	$(BIN)/python -m pytest -n 2 --no-loadscope-reorder -p no:randomly -m cluster tests/cluster

models: $(VENV)/.local ## A real language model and three servers of it, 3 GB: llama.cpp, vLLM, Triton's vLLM backend (docs/models.md).
	$(BIN)/python scripts/setup_models.py

# In order and in one process: a server has the memory and the cores to itself.
test-models: $(VENV)/.dev ## Audits of the real model through each of its servers; `make models` first.
	PROCTOR_TEST_MODELS=1 $(BIN)/python -m pytest -p no:randomly -m models tests/models

lint: $(VENV)/.dev ## Style, types and import rules.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports --no-cache

unit: $(VENV)/.dev ## The tests that need no server.
	$(BIN)/python -m pytest tests/unit

chaos: $(VENV)/.dev ## The long chaos run: a thousand faults over a million trials (docs/faults.md).
	$(BIN)/python -m tests.chaos.run --faults 1650 --trials 1000000 $(CHAOS)

fuzz: $(VENV)/.dev ## Every parser of foreign bytes under a fuzzer, FUZZ_SECONDS (120) each (docs/security.md).
	$(BIN)/python -m tests.fuzz.run --seconds $(FUZZ_SECONDS) $(FUZZ)
	$(BIN)/python -m tests.fuzz.growth

sbom: $(VENV)/.dev ## A bill of materials for each image, and what is known against what it lists.
	$(BIN)/python scripts/make_sbom.py
	$(BIN)/python scripts/audit_dependencies.py

clean: ## Remove the environment and everything that was made.
	rm -rf $(VENV) .proctor .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
