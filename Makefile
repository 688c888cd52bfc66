# Every target works in .venv, which it sets up when it is missing or older than its pins. PYTHON chooses the interpreter.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
OLDEST := .venv-oldest
CLOUDS := .venv-clouds
AIRFLOW := 3.3
SPARK := 4.2
MATRIX = .venv-$(AIRFLOW)-$(SPARK)
# Most tests wait for a server or a driver, but those of these targets keep their cores busy.
WORKERS := 3
unit nightly test-oldest test-matrix clouds: WORKERS := 2
# Packages whose tests need no server.
UNIT := merge naming plans settings secrets launch emit declare
comma := ,
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)

# spark-submit asks the first python3 of PATH where Spark is, unless SPARK_HOME names another Spark.
export PATH := $(CURDIR)/$(BIN):$(PATH)
unexport SPARK_HOME PYTHONPATH
# Hundreds of processes of the tests import the same modules: compiled once.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo unit test test-oldest test-matrix clouds check truth nightly bench docs pictures dist backends clusters clean java

help: ## Explain the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) java ## Run the example DAG on Spark local[2], show its lineage (MARQUEZ_URL=http://host:5000 sends it there, EVIDENCE=event_log needs no jar)
	@$(BIN)/python dags_example/demo.py

unit: $(READY) ## Run the tests of the pure packages, without Java, in a minute (ARGS="-k merge" chooses some, WORKERS=0 runs them one by one)
	$(BIN)/python -m pytest -n $(WORKERS) -m "not airflow and not truth and not nightly and not clouds" $(UNIT:%=tests/%) $(ARGS)

test: $(READY) java ## Run all tests but those of make truth and make nightly; one has a real Spark in a real Airflow
	$(BIN)/python -m pytest -n $(WORKERS) -m "not truth and not nightly and not clouds" $(ARGS)

test-oldest: $(OLDEST)/.ready java ## Run a real task and each of its ends on the oldest Airflow, Spark and providers that are supported
	$(OLDEST)/bin/python -m pytest -o cache_dir=.pytest_cache/oldest -n $(WORKERS) -m oldest $(or $(ARGS),$$(grep -rlF --include="*.py" mark.oldest tests))

test-matrix: $(MATRIX)/.ready java ## Run the same tests on the newest releases of one combination (AIRFLOW=3.1 SPARK=3.5 PYTHON=python3.12)
	$(MATRIX)/bin/python -m pytest -o cache_dir=.pytest_cache/$(MATRIX) -n $(WORKERS) -m oldest $(or $(ARGS),$$(grep -rlF --include="*.py" mark.oldest tests))

check: $(READY) ## Lint, format, types, packaging, architecture and that tests cover the merge
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/packaging tests/architecture
	$(BIN)/python -m pytest -q tests/merge tests/naming -k "not any_order" --cov=spark_lineage.merge --cov=spark_lineage.naming --cov-branch --cov-report=term-missing:skip-covered --cov-fail-under=100

truth: $(READY) java ## Run the tests with real servers: Spark, Airflow's scheduler, YARN, HDFS, Kafka, a browser, and programs with a known truth
	$(BIN)/python -m pytest -n $(WORKERS) -m "truth and not nightly and not clouds" $(ARGS)

nightly: $(READY) java ## Run what takes too long for each change: every deploy mode with every way of collecting, kills under load, Kubernetes (needs Go), and make clouds
	$(BIN)/python -m pytest -n $(WORKERS) -m "nightly and not clouds" $(ARGS)
	$(MAKE) clouds

clouds: $(CLOUDS)/.ready java ## Run the operators of clouds with the clients of their providers, servers that stand in for the services, and a real Spark
	$(CLOUDS)/bin/python -m pytest -o cache_dir=.pytest_cache/clouds -n $(WORKERS) -m clouds $(or $(ARGS),$$(grep -rlF --include="*.py" mark.clouds tests))

bench: $(READY) java ## Measure imports, the policy, the merge, the outbox, a driver's output, delays, a whole task and an archive, one line a figure: name ratio [low, high] (ARGS=--busy prints those of a busy machine too)
	@for name in dag_file policy merge size_limit outbox atlas driver_output task archive trigger; do $(BIN)/python benchmarks/$$name.py $(ARGS); done
	@$(BIN)/python benchmarks/delay.py

docs: $(READY) ## Build the documentation as a site in site/, and check its links
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Open site/index.html"

pictures: $(READY) java ## Make the screenshots of the tab in docs/images anew, with a real Airflow, Spark and Chromium
	SPARK_LINEAGE_SCREENSHOTS=docs/images $(BIN)/python -m pytest -n 0 tests/view/test_tab.py -m "" -k "demo_in or failed_task or earlier_runs"

dist: $(READY) ## Build the sdist and the wheel in dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation

backends: $(READY) java ## Start an OpenLineage backend, Kafka, PostgreSQL and Data.Rentgen, and say how to reach them
	@PYTHONPATH=tests/backends exec $(BIN)/python -m lineage_backends

clusters: $(READY) java ## Start YARN, HDFS, Kubernetes, a standalone Spark cluster and a History Server, and say how to reach them
	@PYTHONPATH=tests/backends:tests/plugins exec $(BIN)/python -m lineage_backends.clusters

clean: ## Remove all that the other targets made
	rm -rf $(VENV) .venv-* .demo build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): constraints.txt
$(READY): extra := spark
$(READY): group := dev
$(OLDEST)/.ready: constraints-oldest.txt
$(OLDEST)/.ready: extra := spark3
$(OLDEST)/.ready: group := test
$(CLOUDS)/.ready: constraints-clouds.txt
$(CLOUDS)/.ready: extra := spark,remote
$(CLOUDS)/.ready: group := clouds
# PySpark 3.5 needs the Spark provider 5.
$(MATRIX)/.ready: extra = $(if $(filter 3.%,$(SPARK)),spark3,spark)
$(MATRIX)/.ready: group := test
$(MATRIX)/.ready: airflow = 'apache-airflow==$(AIRFLOW).*'
# Python has it only where it can be built: libkrb5-dev, gcc and Python's headers of Debian.
kerberos := $(if $(shell command -v krb5-config),$(comma)kerberos)

pins = $(addprefix --constraint ,$(filter constraints%,$^))

$(READY) $(OLDEST)/.ready $(CLOUDS)/.ready $(MATRIX)/.ready: pyproject.toml
	@for python in $(or $(PYTHON),python3.11 python3.12 python3.13 python3); do \
	  if "$$python" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "Setting up $(@D) with $$("$$python" --version); the first time takes some minutes"; \
	    exec "$$python" -m venv $(@D); \
	  fi; \
	done; \
	echo "No Python 3.11 or newer with venv found (on Debian: apt-get install python3-venv). PYTHON=path names one." >&2; \
	exit 1
	@$(@D)/bin/python -m pip install --quiet $(pins) --upgrade pip
	@$(@D)/bin/python -m pip install --quiet $(pins) $(airflow) --editable '.[$(extra)$(kerberos)]' --group $(group)
	@touch $@

java:
	@version=$$("$(JAVA)" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' || true); \
	if [ "$${version:-0}" -lt 17 ]; then \
	  echo "Spark 4 needs Java 17 or newer; found: $${version:-none}." >&2; \
	  echo "  Debian, Ubuntu:  apt-get install openjdk-17-jre-headless" >&2; \
	  echo "  Fedora, RHEL:    dnf install java-17-openjdk-headless" >&2; \
	  echo "  macOS:           brew install openjdk@17" >&2; \
	  echo "Then put java on PATH, or set JAVA_HOME." >&2; \
	  exit 1; \
	fi
