# Everything runs in .venv, which each target sets up as far as it needs: core and [view] for the demo, [dev] for the
# rest, [bench] as well for the benchmarks. Versions are those of constraints.txt.

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11,\
            $(shell $(p) -c 'import sys; sys.version_info >= (3, 11) and print("$(p)")' 2>/dev/null)))
JOBS ?= 2
GALLERY ?= 1
TORCH ?= torch

BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Each job has one core: threads of NumPy's linear algebra would only wait for each other, at full speed.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile

.PHONY: help demo test test-release test-debug test-slow test-extras test-gpu test-pythons lint coverage api pairs bench docs clean
.DELETE_ON_ERROR:

help: ## what the targets do
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24

demo: .venv/view.stamp ## two meshes meet: pictures and the time of first contact (3 minutes at most, set-up included)
	$(BIN)/tangere demo

test: test-release test-debug ## the test suite, and its kernels once more with bounds checks

test-release: .venv/dev.stamp
	$(PYTEST) -m "not slow"

# Warp's debug mode checks every array index in a kernel and stops the process at the first one out of range. It is
# slow, so sizes are a tenth. Its kernels have names of their own in Warp's cache.
test-debug: .venv/dev.stamp
	TANGERE_DEBUG=1 TANGERE_EFFORT=0.1 $(PYTEST) -m "not slow and not release and not long_in_debug"

test-slow: .venv/dev.stamp ## the tests too long for every run
	$(PYTEST) -m slow
	TANGERE_DEBUG=1 $(PYTEST) -m "long_in_debug and not slow and not release"

test-extras: .venv/extras.stamp ## the tests that need more packages: robots, peers, planners, Ray, JAX and Torch (5 GB; TORCH= leaves it out)
	$(PYTEST) -m "not slow" tests/robot tests/query/gradients tests/test_examples.py tests/cli/test_check_robot.py \
	    tests/cli/test_needle.py tests/shape/test_tets.py tests/shape/test_mjcf.py tests/fleet/test_ray.py \
	    tests/crowd/test_floor_measures.py tests/crowd/test_steering_models.py

test-gpu: .venv/dev.stamp ## the tests of CUDA kernels, on a machine with an NVIDIA GPU (they are skipped elsewhere)
	$(PYTEST) -m "cuda and not slow"

test-pythons: ## the test suite with each of Python 3.11, 3.12 and 3.13 that is on this machine, in environments of their own
	@for version in 3.11 3.12 3.13; do \
	    for python in python$$version $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version.*/bin/python none; do \
	        $$python -c 'import sys' 2>/dev/null && break; \
	    done; \
	    test $$python != none || { echo "no Python $$version here"; continue; }; \
	    echo "== Python $$version"; \
	    test -x .venv-$$version/bin/python || $$python -m venv .venv-$$version || exit 1; \
	    .venv-$$version/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	        --editable '.[view,dev]' || exit 1; \
	    OPENBLAS_NUM_THREADS=1 .venv-$$version/bin/python -m pytest --numprocesses $(JOBS) --dist loadfile -m "not slow" || exit 1; \
	done

lint: .venv/dev.stamp ## style, format, types, and which room imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

coverage: .venv/dev.stamp ## docs/coverage.md: which test or benchmark proves which feature
	$(BIN)/python -m tools.coverage

api: .venv/dev.stamp ## docs/api.md: every public class and function
	$(BIN)/python -m tools.api

pairs: .venv/dev.stamp ## docs/pairs.md: which engine answers which question about which two things
	$(BIN)/python -m tools.pairs

bench: .venv/bench.stamp ## ours beside the peers, into docs/benchmarks/ (BENCH="meshes ..." chooses)
	$(BIN)/python -m bench $(BENCH)

docs: .venv/dev.stamp ## the documentation, into docs/_build/html (GALLERY=0 executes no examples and notebooks)
	$(BIN)/python -m sphinx -W --keep-going -q -D gallery_runs=$(GALLERY) -b html docs docs/_build/html

clean: ## remove what was built, but not .venv
	rm -rf docs/_build docs/gallery out dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "tangere needs Python 3.11 or later; name one with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/view.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) --editable '.[view]'
	@touch $@

.venv/dev.stamp: .venv/view.stamp
	$(PIP) --editable '.[view,dev]'
	@touch $@

.venv/extras.stamp: .venv/dev.stamp
	$(PIP) example-robot-data coal ompl meshio mujoco ray jupedsim pedpy jax $(TORCH)
	@touch $@

.venv/bench.stamp: .venv/dev.stamp
	$(PIP) --editable '.[view,dev,bench]'
	@touch $@
