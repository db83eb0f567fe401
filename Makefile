# Each target does its own set-up: a virtual environment in .venv, with the extras it needs.
# Stamp files in .venv record what is installed, so a second run installs nothing.
#
#     make demo                      train a small CNN on digits
#     make test                      the first tier of the tests: minutes
#     make test-all                  both tiers: toolchains, processes, mutants of kernels, mistakes
#                                    of learners; test-second: without the first
#     make test-nightly              all variants of what the second tier tries in part, and more
#                                    examples for the first
#     make test-cupy                 the tests of device cuda on the real CuPy, without a GPU: installed in
#                                    .venv/cupy; needs a C++ compiler, else it says so and passes
#     make host-time                 microseconds of Python for each op on device cuda, with launches that do
#                                    nothing; ARGS="--before ../checkout": beside another checkout
#     make browser                   install Chromium for the tests of pages, where apt can; else it says so
#     make lint | docs               ruff and mypy; the documentation
#     make dist                      build wheel and sdist, and use both: in a new environment, outside of
#                                    the checkout; ARGS=--all-tests: every test of the sdist's first tier
#     make kernels                   compile all CUDA kernels without a GPU; none may spill
#     make ledger                    try new mutants of kernels, and write down how they ended;
#                                    ARGS=--all: all of them
#     make bench                     time training steps, and the emulator; a quick look
#     make bench PEERS="torch jax"   at every size, beside these: installs each in .venv/peers;
#                                    ARGS="--only w1 --output docs/benchmarks"
#     make torture                   kill -9, damaged files, no memory, threads, NaN: the full figures;
#                                    ARGS="--only kills --count 100 --seed 7"
#     make gpu                       on a machine with an NVIDIA GPU: one page of tests and timings;
#                                    installs nothing, uses the CuPy of PYTHON; ARGS=--rehearse: no GPU;
#                                    ARGS="--minutes 9", then ARGS="--minutes 9 --continue": in parts
#     make test PYTHON=python3.13    another interpreter
#     make test ARGS="-k relu -x"    arguments for pytest; -n 0: in one process

PYTHON ?= python3
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
CUPY := $(VENV)/cupy

.PHONY: help demo test test-second test-nightly test-all test-cupy browser host-time ledger kernels lint docs dist bench torture gpu clean
.DELETE_ON_ERROR:
# keep stamps that only a pattern rule mentions
.SECONDARY:

help:
	@sed -n 's/^#     //p' Makefile

demo: $(VENV)/.has-plot
	$(BIN)/tinygraph train numba_cnn

test: $(VENV)/.has-test
	$(BIN)/python -m pytest -n auto $(ARGS)

# mutants of one kernel file in one process, which makes their launches once
test-second: $(VENV)/.has-test
	HYPOTHESIS_PROFILE=ci $(BIN)/python -m pytest -n auto --dist loadgroup -m "second and not nightly" $(ARGS)

# what the second tier leaves out of its sweeps, and more examples for the first
test-nightly: $(VENV)/.has-test
	HYPOTHESIS_PROFILE=ci $(BIN)/python -m pytest -n auto --dist loadgroup \
	    -m "nightly or (hypothesis and not second)" $(ARGS)

test-all: test test-second

# Tests of pages that are stepped through read them in a browser, and are skipped where there is none.
browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing Chromium, for the tests of pages"; \
	    { apt-get update && apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 && exit 0; \
	fi; \
	echo "There is no Chromium, and it cannot be installed from here: tests that read pages in it are skipped."

# In an environment of its own: tests of the others find out whether CuPy gets imported.
test-cupy: $(CUPY)/.made
	@$(CUPY)/bin/python -m tests.real_cupy.install && $(CUPY)/bin/python -m tests.real_cupy.build; \
	status=$$?; \
	if [ $$status = 77 ]; then exit 0; elif [ $$status != 0 ]; then exit $$status; fi; \
	HYPOTHESIS_PROFILE=ci $(CUPY)/bin/python -m pytest -n auto -p tests.real_cupy.plugin \
	    -m "not nightly" $(ARGS)

host-time: $(CUPY)/.made
	@$(CUPY)/bin/python -m tests.real_cupy.install
	@$(CUPY)/bin/python -m benchmarks.host_time $(ARGS)

ledger: $(VENV)/.has-test
	$(BIN)/python -m tests.cuda.ledger $(ARGS)

kernels: $(VENV)/.has-kernels
	$(BIN)/python -m benchmarks.kernels

lint: $(VENV)/.has-lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@$(BIN)/python -m tests.rooms

docs: $(VENV)/.has-docs
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b revealjs -c docs/slides -d docs/_build/slides docs/course docs/_build/html/course/slides
	@echo "docs/_build/html/index.html"

dist: $(VENV)/.has-dist
	@$(BIN)/python .ci/dist.py $(ARGS)

bench: $(VENV)/.has-test
	$(BIN)/python -m benchmarks.cpu $(if $(PEERS),--peers "$(PEERS)") $(or $(ARGS),$(if $(PEERS),,--quick))
	$(BIN)/python benchmarks/emulator.py
	$(BIN)/python -m benchmarks.exercise_check
	$(BIN)/python -m benchmarks.course_check

torture: $(VENV)/.has-test
	@$(BIN)/python -m tests.faults.torture $(ARGS)

# In the user's own Python, not in .venv: CuPy and PyTorch are large and fit one driver.
gpu:
	@$(PYTHON) -m benchmarks.gpu $(ARGS)

clean:
	rm -rf $(VENV) dist docs/_build docs/reference/generated

$(VENV)/.has-%: $(VENV)/.made pyproject.toml
	@echo "installing tinygraph with the extra '$*' into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

$(CUPY)/.made: $(VENV)/.made
	@$(BIN)/python -m venv $(CUPY)
	@touch $@

$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { \
	    echo "There is no '$(PYTHON)'. Install Python 3.11 or newer, or name it: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "tinygraph needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Way out: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	    echo "'$(PYTHON)' cannot make virtual environments. Way out: install its venv module (Debian, Ubuntu: apt install python3-venv)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@
