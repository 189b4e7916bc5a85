# Every target sets up what it needs on a bare clone: Python 3.11+, JDK 17+ and Maven are all that must be there.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test fuzz check bench jar docs pictures clean tools format

VENV := .venv
PY := $(VENV)/bin/python
WORKERS := 2
JAR := spark_regions/jars/4.3/spark-regions-shim.jar
SHIM_SOURCES := $(shell find jvm-shim/pom.xml jvm-shim/src/main spark_regions/reports/view -print 2>/dev/null) \
  spark_regions/conf.py spark_regions/reasons.py spark_regions/costs/policy.py spark_regions/wire/scala.py
# A shim of a version manager can exist and not run: try, do not only look.
PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
  $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo $$p; break; }; done)
MVN = cd jvm-shim && SPARK_JARS_DIR="$$(../$(PY) ../hatch_build.py --jars-dir)" mvn -q -B -ntp

help:
	@echo "make demo   the example job, plain and three times with the plugin"
	@echo "make test   all tests, those of the shim too; needs chromium, chromedriver and a PostgreSQL server,"
	@echo "            or PYTEST_ARGS=\"-m 'not browser and not postgresql'\""
	@echo "make fuzz   10,000 generated programs, with the plugin against plain Spark"
	@echo "make check  format, lint, types, layers"
	@echo "make bench  measurements; results go to benchmarks/results/"
	@echo "make jar    the shim's jar"
	@echo "make docs   generated pages, and the site in site/"
	@echo "make pictures  the pictures of the Regions tab in docs/images/; needs chromium and chromedriver"
	@echo "make format rewrites the layout of Python and Scala files"
	@echo "make clean  removes what was built"

tools:
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer (with venv) on PATH. Hint: install one."; exit 1; }
	@command -v mvn >/dev/null || { echo "error: Maven (mvn) not found on PATH. Hint: install Maven 3.8 or newer."; exit 1; }
	@command -v java >/dev/null || test -n "$$JAVA_HOME" || { echo "error: no Java. Hint: install a JDK 17 and set JAVA_HOME."; exit 1; }
	@version=$$(mvn -B -v 2>/dev/null | sed -n 's/^Java version: \([0-9]*\).*/\1/p'); \
	  test "$${version:-0}" -ge 17 || { echo "error: Maven runs with Java $${version:-none}, a JDK 17 or newer is needed. Hint: set JAVA_HOME."; exit 1; }

# PySpark first, and no build isolation: the build hook needs its jars, and an isolated build would download them again.
$(VENV)/.installed: pyproject.toml | tools
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q 'pyspark>=4.3,<4.4' 'hatchling>=1.27' editables
	$(PY) -m pip install -q --no-build-isolation -e '.[test,bench,docs]'
	@touch $@

# The messages of both sides; the build makes Scala of it.
SCHEMA := spark_regions/wire/schema.json
$(SCHEMA): spark_regions/wire/base.py spark_regions/wire/actions.py spark_regions/wire/messages.py spark_regions/wire/schema.py \
  | $(VENV)/.installed
	$(PY) -m spark_regions.wire.schema

$(JAR): $(SCHEMA) $(SHIM_SOURCES) hatch_build.py | $(VENV)/.installed
	$(PY) hatch_build.py >/dev/null
	@touch $@

jar: $(JAR)
	@echo $(JAR)

demo: $(VENV)/.installed $(JAR)
	$(PY) examples/demo.py

bench: $(VENV)/.installed $(JAR)
	$(PY) -m benchmarks --out benchmarks/results/

# In two workers: a file is in one of them, with its fixtures; those that take long start first.
test: $(VENV)/.installed $(JAR)
	$(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations=30 $(PYTEST_ARGS)

# Goes on where the last run ended; FUZZ_ARGS="--seconds 600" stops in time, "--seed 7" repeats a batch.
fuzz: $(VENV)/.installed $(JAR)
	$(PY) -m tests.fuzz --state data/fuzz/state.json --save $(FUZZ_ARGS)

check: $(VENV)/.installed
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(MVN) spotless:check
	$(PY) -m pytest -q tests/test_layers.py tests/test_api.py

docs: $(VENV)/.installed
	$(PY) docs/generate.py
	$(PY) docs/images/draw.py
	$(PY) -m spark_regions plan docs/images/workflow.json --svg docs/images/region-plan.svg >/dev/null
	$(PY) hatch_build.py --generate
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo site/index.html

pictures: $(VENV)/.installed $(JAR)
	$(PY) docs/images/take.py

format: $(VENV)/.installed
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .
	$(MVN) spotless:apply

clean:
	rm -rf $(VENV) dist build site spark_regions/jars jvm-shim/target .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	find spark_regions tests -name __pycache__ -type d -prune -exec rm -rf {} +
