# Everything from a bare machine: only Python 3.11, make and git are assumed.
PYTHON ?= python3.11
VENV ?= .venv

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps
# Nothing is fetched whose hash is not in requirements/; only pyspark, which is published as source, is built here.
FETCH := $(UV) --require-hashes
PYSPARK := /^pyspark==/,/[^\\]$$/
CODE := sqlmesh_like tests demo docs bench tools examples
WITHOUT_JVM := tests/unit tests/properties tests/security
SITE_LIBRARIES := sqlmesh_like/docs/assets/libraries
WITH_PROGRAMS := tests/dbt_core tests/faults tests/orchestrators tests/packaging tests/pages tests/spark
# One plans while the other computes; each has a Spark of its own, of 3 GB.
SPARKS := 2
FAST_TESTS = $(BIN)/python -m pytest -n auto --dist worksteal $(WITHOUT_JVM)
SPARK_TESTS = $(BIN)/python -m pytest -n $(SPARKS) --dist worksteal $(WITH_PROGRAMS)
# What takes its time is noted: `tools.suite_times` prints it, and CI at its end.
TIMES := target/suite
# Each of some hundred processes of the tests would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
timed = @mkdir -p $(TIMES); began=$$(date +%s); $(2); code=$$?; echo "$$(($$(date +%s) - began))" > "$(TIMES)/$(1).stage"; exit $$code
DEEP_WITH_JVM := $(addprefix tests/spark/lakes/test_,random_lakes.py shop_lake.py retail_lake.py estate_lake.py) tests/spark/cdc/test_ingest_kills.py $(addprefix tests/faults/test_,kills.py released_kills.py service_kills.py erasure.py) tests/spark/cdc/test_event_fuzz.py tests/spark/test_soak.py tests/spark/tables/test_spark_kills.py tests/spark/sql/test_random_cases.py

OF_EVENTS := $(addprefix tests/spark/cdc/test_,encodings.py event_fuzz.py generated_events.py generated_values.py ingest_formats.py ingest_further_formats.py ingest_late.py ingest_names.py ingest_rows.py ingest_types.py)

.PHONY: demo demo-shop demo-retail demo-estate demo-live test test-fast test-all test-deep bench check lint lint-types lint-style lint-layers lint-layout fmt lock site-libraries sbom audit clean
.DEFAULT_GOAL := check

demo: demo-shop demo-retail demo-estate

# Three lakes: changes of a shop's database, a chain's files of AWS DMS, a property developer's log.
demo-shop demo-retail demo-estate: $(VENV)/.installed-run
	$(BIN)/sml deps
	$(BIN)/python -m demo.$(@:demo-%=%)

# MariaDB (Debian's mariadb-server), Debezium and Kafka on this machine, and `sml watch` between them and the tables.
demo-live: $(VENV)/.installed-dev
	$(BIN)/sml deps
	$(BIN)/python -m demo.live

# Which tests run when: CONTRIBUTING.md, and tests/levels.py.
test: test-fast
	$(call timed,jars and class archive,$(BIN)/sml deps)
	$(call timed,tests on Spark,$(SPARK_TESTS) -m "not release and not deep" --times $(TIMES)/spark.json)

test-fast: $(VENV)/.installed-dev
	$(call timed,tests without a JVM,$(FAST_TESTS) -m "not release and not deep" --times $(TIMES)/fast.json)

test-all: $(VENV)/.installed-dev
	$(call timed,tests without a JVM,SML_RELEASE=1 $(FAST_TESTS) -m "not deep" --times $(TIMES)/fast.json)
	$(call timed,jars and class archive,$(BIN)/sml deps)
	$(call timed,tests on Spark,SML_RELEASE=1 $(SPARK_TESTS) -m "not deep" --times $(TIMES)/spark.json)
	$(call timed,small batches without Spark,SML_SMALL_BATCHES=1 SML_RELEASE=1 $(BIN)/python -m pytest -n $(SPARKS) --dist worksteal $(OF_EVENTS) -m "not deep")

# 10,000 random cases instead of 150, others each time: two hours of one core, and 500 on Spark; 24,000 broken texts of projects
# instead of 48: one hour more. What fails is filed in tests/properties/failed_once. 3,000 payloads of attackers instead of 16, and
# a hundred kinds of ten megabytes with five commands each: three hours of one core.
# Calls without a JVM are killed 1,000 times instead of 40, an ingestion 35 times instead of 5, other calls that need Spark
# at each of their steps and ten times at random: docs/reliability.md has the counts. A lake is ingested, run, maintained and verified 1,000 times instead of 6.
test-deep: $(VENV)/.installed-dev
	SML_DEEP=1 $(BIN)/python -m pytest -n auto --dist worksteal tests/properties
	SML_DEEP=1 $(BIN)/python -m pytest -n auto --dist worksteal tests/security/test_generated.py tests/security/test_ten_megabytes.py
	$(BIN)/sml deps
	rm -rf target/kills target/faults
	SML_DEEP=1 $(BIN)/python -m pytest $(DEEP_WITH_JVM)
	SML_DEEP=1 $(BIN)/python -m pytest -m fault tests/unit tests/faults tests/spark
	$(BIN)/python docs/generate_faults.py target

check: lint test

# All suites of bench/ as ratios within one run, into docs/benchmarks: hours at the default size. BENCH holds options and
# suites, e.g. make bench BENCH="tpch --scale 0.01 --repeat 1 --out target/bench".
BENCH ?= --out docs/benchmarks
bench: $(VENV)/.installed-dev
	$(BIN)/sml deps
	$(BIN)/python -m bench $(BENCH)

# With `-j2` its parts run side by side.
lint: lint-types lint-style lint-layers lint-layout
lint-types: $(VENV)/.installed-dev
	$(BIN)/mypy
lint-style: $(VENV)/.installed-dev
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
lint-layers: $(VENV)/.installed-dev
	$(BIN)/lint-imports
lint-layout: $(VENV)/.installed-dev
	$(BIN)/python -m tools.check_layout

# What the product consists of (CycloneDX), and what is known to be wrong with it; a database out of reach is skipped.
sbom: $(VENV)/.installed-audit
	$(BIN)/python -m tools.sbom target/sbom.json

audit: $(VENV)/.installed-audit
	$(BIN)/python -m tools.audit

# requirements/*.txt from pyproject.toml, and npm's lock where it is there: versions stay where they still fit; LOCK="--upgrade" takes the newest.
LOCK ?=
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
  --no-emit-index-url --no-emit-find-links $(LOCK)
PRODUCT := pyproject.toml --extra speed --extra report --extra lineage --extra lsp --extra s3 --extra hdfs --extra protobuf
lock: $(VENV)/.installed-audit
	$(COMPILE) requirements/build.in -o requirements/build.txt
	$(COMPILE) $(PRODUCT) -o requirements/run.txt
	$(COMPILE) $(PRODUCT) --extra dev --extra bench -c requirements/run.txt -o requirements/dev.txt
	$(COMPILE) $(PRODUCT) --extra audit -c requirements/run.txt -o requirements/audit.txt
	$(COMPILE) tests/dbt_core/requirements.in -o tests/dbt_core/requirements.txt
	$(COMPILE) -c tests/dbt_core/requirements.txt tests/dbt_core/adapter_suite.in -o tests/dbt_core/adapter_suite.txt
	$(COMPILE) tests/orchestrators/dagster.in -o tests/orchestrators/dagster.txt
	$(COMPILE) tests/orchestrators/airflow.in -o tests/orchestrators/airflow.txt
	$(COMPILE) tests/services/s3.in -o tests/services/s3.txt
	$(COMPILE) bench/dbt/requirements.in -o bench/dbt/requirements.txt
	$(COMPILE) bench/dbt_duckdb/requirements.in -o bench/dbt_duckdb/requirements.txt
	! command -v npm >/dev/null || \
	  npm install --prefix $(SITE_LIBRARIES) --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved

# What the documentation site draws and searches with, from npm by the hashes of its lock. Installing does so as well.
site-libraries: $(VENV)/.installed-run
	$(BIN)/python -m tools.site_libraries

fmt: $(VENV)/.installed-dev
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

clean:
	rm -rf $(VENV) target warehouse .demo build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -f $(SITE_LIBRARIES)/*.js $(SITE_LIBRARIES)/*.txt $(SITE_LIBRARIES)/fetched
	find sqlmesh_like tests bench -name __pycache__ -prune -exec rm -rf {} +

# What each kind of environment has: run, dev or audit; the last two have the first as well.
$(VENV)/.installed-%: requirements/build.txt requirements/%.txt pyproject.toml $(SITE_LIBRARIES)/package-lock.json | $(BIN)/python
	@echo "installing sqlmesh_like and requirements/$*.txt into $(VENV)"
	@$(PIP) install --require-hashes --no-deps --only-binary :all: --requirement requirements/build.txt
	@sed '$(PYSPARK)d' requirements/$*.txt | $(FETCH) --only-binary :all: --requirement -
	@sed -n '$(PYSPARK)p' requirements/$*.txt | $(FETCH) --no-build-isolation --requirement -
	@$(UV) --no-build-isolation --editable .
	@$(BIN)/python -m tools.site_libraries
	@touch $(VENV)/.installed-run $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "error: no $(PYTHON). Install Python 3.11 or newer, or name yours: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is older than 3.11; name a newer one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "error: $(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt install python3.11-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
