# `make demo` and `make test` each set up what they need, starting from nothing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ROOMS := analysis cli decode figures front gates models record replay store tasks view
SOURCES := pyproject.toml $(shell find $(ROOMS) -type f -not -name '*.pyc')

.PHONY: demo docs-figures browser test lint types unit slow coverage oldest matrix benchmarks locks dist clean

# The model is so small that more threads only wait for one another.
demo: export OMP_NUM_THREADS ?= 1
demo: $(VENV)/.installed
	$(BIN)/c4 demo --out demo-out

# Draws the pictures of README.md from new recordings of 20 evaluation examples per task.
docs-figures: $(VENV)/.installed
	for task in mmlu gsm8k math humaneval; do \
		$(BIN)/c4 record --task $$task --n 20 --out docs-out || exit 1; \
	done
	$(BIN)/c4 figures stabilization phase-diagram --runs docs-out --out docs/figures --format png

# The browser that looks at the viewer's page in the tests. Needs root or sudo.
browser:
	.ci/browser

# Types are checked beside the tests, because they keep one core busy.
test: lint
	$(MAKE) --no-print-directory --jobs=2 types unit

lint: $(VENV)/.tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy sees the rooms under their installed names; `training` is not installed and comes from here.
types: $(VENV)/.tools $(VENV)/.installed
	cd $(VENV) && MYPYPATH=.. bin/mypy --config-file ../pyproject.toml -p c4 -p training

# A process for every core and one more, because some tests wait; one thread each.
PROCESSES ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist loadfile \
	--no-loadscope-reorder
unit: $(VENV)/.tools $(VENV)/.installed
	$(PYTEST)

# The long forms of property, fuzz, kill and sandbox tests, which CI leaves out.
slow: $(VENV)/.tools $(VENV)/.installed
	$(PYTEST) -m slow $(TESTS)

# Lines and branches that the tests reach. Not part of `make test`, because it slows the tests down.
coverage: $(VENV)/.tools $(VENV)/.installed
	$(PYTEST) --cov --cov-report=term

# The oldest versions that pyproject.toml allows, torch excepted. TESTS chooses some of the tests.
# Old libraries call deprecated functions of newer ones, so those warnings are not errors here.
oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/pip install --quiet --requirement requirements-oldest.txt
	rm -rf build
	.venv-oldest/bin/pip install --quiet --no-deps --force-reinstall .
	.venv-oldest/bin/python -m pytest -W ignore::DeprecationWarning $(TESTS)

# Every Python version that pyproject.toml names and that is installed here.
matrix:
	.ci/matrix $(TESTS)

# The newest versions of all libraries that pyproject.toml allows, torch excepted.
locks:
	.ci/locks

# Wheel and sdist, checked, and the wheel tried in an empty environment.
dist:
	.ci/dist

benchmarks: $(VENV)/.installed
	for script in benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

$(VENV)/.ready: requirements.lock
	$(PYTHON) -m venv $(VENV)
	@echo "installing what c4 needs into $(VENV): about 1 GB, a minute or two with a fast network"
	$(BIN)/pip install --disable-pip-version-check --requirement requirements.lock
	touch $@

# What tests and extras need; `make demo` does not.
$(VENV)/.tools: requirements-dev.lock $(VENV)/.ready
	$(BIN)/pip install --quiet --requirement requirements-dev.lock
	touch $@

# Not editable, so that the tests run what a user installs.
$(VENV)/.installed: $(VENV)/.ready $(SOURCES)
	rm -rf build
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --force-reinstall .
	touch $@

clean:
	rm -rf $(VENV) .venv-* build dist *.egg-info demo-out docs-out
