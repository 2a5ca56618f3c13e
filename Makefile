# The targets set up everything they need; a new machine needs Python 3.11+, Java 17+ and make.
#   make demo         the console on a simulated incident, with a guide that says which keys to press
#   make demo-kafka   an incident on a real Kafka, and its recovery
#   make test         lint, types, import rules and the tests that show every rule (real Kafka included)
#   make test-long    the tests marked long: the rest on real Kafka, slow screens, long Spark cases (docs/tests.md)
#   make setup        only ktriage, in .venv/bin/ktriage
#   make wheel        what spark-submit takes: dist/ktriage-VERSION-py3-none-any.whl and dist/ktriage_submit.py
#   make release      dist/release: wheel, source, wheelhouse, ktriage.pyz, bill of materials, checksums; tries them
#   make tag          the tag of the version in pyproject.toml
#   make screenshots  draw README's pictures again
#   make bench        speed and memory, compared with Kafka's own tools; writes benchmarks/results*
#   make soak         the long random tests, what make test leaves out, and make mutants; an hour or more
#   make mutants      breaks one rule at a time in a copy of the tree; the fast tests must notice each
#   make lock         resolve the dependencies again (needs uv)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
# Where it is set, each of thousands of processes would compile the same modules.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup wheel release tag pipeline-setup demo demo-kafka screenshots test test-long lanes lane-here lane-screens lane-live-1 lane-live-2 lane-spark lint unit spark live bench soak mutants lock clean
.DEFAULT_GOAL := help

help:
	@sed -n '2,15s/^#  *//p' Makefile

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "ktriage needs Python 3.11 or newer; $$($(PYTHON) --version) was found. Try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	    || { echo "no virtual environment could be made; on Debian: apt install python3-venv" >&2; exit 1; }
	@touch $@

$(VENV)/.tool: $(VENV)/.made requirements/tool.txt pyproject.toml
	@echo "installing ktriage into $(VENV)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/tool.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	    --config-settings editable_mode=compat -e .
	@touch $@

$(VENV)/.testbed: $(VENV)/.tool requirements/testbed.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/testbed.txt
	@touch $@

# PySpark comes as source, and pip builds a wheel of it. Its jars are compressed already.
$(VENV)/.spark $(VENV)/.dev: export DIST_EXTRA_CONFIG := $(CURDIR)/requirements/stored_wheel.cfg

$(VENV)/.spark: $(VENV)/.tool requirements/spark.txt
	@echo "installing Spark into $(VENV)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/spark.txt
	@touch $@

# Most modules of these libraries are never imported: Python compiles the others when it first does.
$(VENV)/.dev: $(VENV)/.tool requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements/dev.txt
	@touch $@

java:
	@v=$$(java -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p'); [ "$${v:-0}" -ge 17 ] \
	    || { echo "Java 17 or newer is needed to run Kafka; on Debian: apt install openjdk-17-jre-headless" >&2; exit 1; }

tmux:
	@command -v tmux >/dev/null || { echo "tmux is needed by the tests of the terminal; on Debian: apt install tmux" >&2; exit 1; }
.PHONY: java tmux help

setup: $(VENV)/.tool

wheel: $(VENV)/.tool
	@rm -rf dist
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	    --wheel-dir dist .
	@cd dist && $(CURDIR)/$(BIN)/python -m zipfile -e *.whl unpacked \
	    && cp unpacked/ktriage/console/spark_submit/ktriage_submit.py . && rm -r unpacked
	@ls dist/*

# As root, who may hide the network and the file system from what is tried.
release: $(VENV)/.tool
	@rm -rf dist/release
	@$(BIN)/python -m release dist/release
	@$(BIN)/python -m release.trial dist/release

tag: $(VENV)/.tool
	@$(BIN)/python -m release.tag

pipeline-setup: $(VENV)/.spark java

# A new run each time, in a state file of its own.
DEMO := --simulate stale-long-tail --state $(VENV)/demo.json
demo: $(VENV)/.tool
	@rm -rf $(VENV)/demo.json* $(VENV)/demo-state
	@XDG_STATE_HOME="$(CURDIR)/$(VENV)/demo-state" $(BIN)/ktriage $(DEMO) --guide

demo-kafka: $(VENV)/.testbed java
	@$(BIN)/python -m testbed.demo

# The console's panes, and the output of make demo-kafka.
screenshots: $(VENV)/.dev java
	@$(BIN)/python -m testbed.screenshots.panes screenshots
	@$(BIN)/python -m testbed.demo </dev/null > $(VENV)/demo.txt
	@sed -n '/^What each/,/one of the two logs had are there/p' $(VENV)/demo.txt \
	    | $(BIN)/python -m testbed.screenshots.terminal_svg "ktriage: a recovery on a real Kafka" > screenshots/recovery.svg

# Side by side, because the tests on a real Kafka, in terminals and on the network mostly wait. The two live lanes
# divide tests/live among them, cluster by cluster (tests/live/claims.py); a third one would take the cores from the
# others. What is marked long is in test-long and not in test, and nothing else decides (docs/tests.md).
MARKED :=
LANES := lane-here lane-screens lane-live-1 lane-live-2
LANE_LOGS := $(VENV)/live-1.log $(VENV)/live-2.log $(VENV)/screens.log $(VENV)/spark-1.log $(VENV)/spark-2.log $(VENV)/lint.log
LIVE_TESTS := tests/live
# The screens, and as much of the rest as makes the two lanes equally long.
SECOND_UNIT := tests/console tests/wire tests/unit/membership
UNIT_TESTS := tests --ignore tests/live --ignore tests/pipeline
SPARK_TESTS := tests/pipeline
# Processes of their own: without the shared session. Alone, Spark leaves a core idle.
SECOND_SPARK := test_processes* test_submit*
test:
	@$(MAKE) --no-print-directory lanes MARKED="not long" LANES="$(LANES) lane-lint"

test-long:
	@$(MAKE) --no-print-directory lanes MARKED=long

lanes: $(VENV)/.dev java tmux
	@rm -f $(LANE_LOGS)
	@echo "what is run side by side: $(LANES); the output of all but one goes to $(VENV)/*.log and is shown at the end" >&2
	@share=$$(mktemp -d); status=0; \
	    $(MAKE) --no-print-directory --keep-going -j$(words $(LANES)) $(LANES) SHARE=$$share || status=$$?; \
	    rm -r $$share; for log in $(LANE_LOGS); do [ ! -e $$log ] || cat $$log; done; exit $$status

# Spark comes after the lanes that end first: beside all the others its Python workers can be too slow to connect.
lane-here:
	@status=0; $(MAKE) --no-print-directory unit UNIT_TESTS="$(UNIT_TESTS) $(SECOND_UNIT:%=--ignore %)" || status=$$?; \
	    $(MAKE) --no-print-directory spark > $(VENV)/spark-1.log 2>&1 \
	    SPARK_TESTS="tests/pipeline $(SECOND_SPARK:%=--ignore-glob='*/%.py')" || status=$$?; exit $$status

lane-screens:
	@status=0; $(MAKE) --no-print-directory unit UNIT_TESTS="$(SECOND_UNIT)" > $(VENV)/screens.log 2>&1 || status=$$?; \
	    $(MAKE) --no-print-directory spark > $(VENV)/spark-2.log 2>&1 \
	    SPARK_TESTS="$(wildcard $(SECOND_SPARK:%=tests/pipeline/%.py))" || status=$$?; exit $$status

lane-live-1 lane-live-2:
	@$(MAKE) --no-print-directory live > $(VENV)/$(@:lane-%=%).log 2>&1 LIVE_TESTS="tests/live $(SHARE:%=--share %)"

lane-lint:
	@$(MAKE) --no-print-directory lint > $(VENV)/lint.log 2>&1

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

unit: $(VENV)/.dev java tmux
	$(BIN)/python -m pytest -m "$(MARKED)" $(UNIT_TESTS) $(PYTEST_ARGS)

# In its own process: a Spark session takes over the signals of its process.
spark: $(VENV)/.dev java
	$(BIN)/python -m pytest -m "$(MARKED)" $(SPARK_TESTS) $(PYTEST_ARGS)

live: $(VENV)/.dev java
	$(BIN)/python -m pytest -m "$(MARKED)" $(LIVE_TESTS) $(PYTEST_ARGS)

bench: $(VENV)/.dev java
	$(BIN)/python -m benchmarks
	@for area in benchmarks/*/__main__.py; do \
	    name=$$(basename $$(dirname $$area)); [ $$name = soak ] || $(BIN)/python -m benchmarks.$$name || exit 1; done

mutants: $(VENV)/.dev
	$(BIN)/python -m benchmarks.soak mutants

soak: $(VENV)/.dev java
	$(BIN)/python -m benchmarks.soak

# What one installation of everything but Arrow and Spark has (make release packs it); then each larger one.
PACKED := --extra jwt --extra metrics --extra notify --extra pkcs12 --extra serve
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
    pyproject.toml $(PACKED)
lock:
	$(COMPILE) -o requirements/release.txt
	$(COMPILE) --extra large -c requirements/release.txt requirements/build.in -o requirements/tool.txt
	$(COMPILE) --extra large --extra testbed -c requirements/tool.txt requirements/build.in -o requirements/testbed.txt
	$(COMPILE) --extra spark -c requirements/tool.txt requirements/build.in -o requirements/spark.txt
	$(COMPILE) --extra spark --extra testbed --extra dev -c requirements/testbed.txt -c requirements/spark.txt \
	    requirements/build.in -o requirements/dev.txt

clean:
	rm -rf $(VENV) build dist *.egg-info
