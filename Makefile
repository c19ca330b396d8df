# The targets of this project. They need make and Python >= 3.11 with venv, and set up everything else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TORCH_VENV ?= .venv-torch
TORCH ?=

# The container image. The first tool that works (a docker without its daemon does not), and the command that runs a container up to
# the image's name.
IMAGE ?= m2bridge
CONTAINERS = $(firstword $(foreach tool,docker podman buildah,$(if $(shell $(tool) info >/dev/null 2>&1 && echo works),$(tool))))
BUILD_OPTIONS = -t $(IMAGE)
IMAGE_BUILD ?= $(or $(CONTAINERS),docker) build --build-arg REVISION=$(shell git rev-parse HEAD 2>/dev/null) $(BUILD_OPTIONS) .
IMAGE_RUN ?= $(if $(filter podman buildah,$(CONTAINERS)),podman,docker) run --rm --network none --read-only --tmpfs /tmp \
	--cap-drop all --security-opt no-new-privileges

.PHONY: run test test-m2 test-all test-cluster test-torch lint check format engine image image-cluster image-test image-sizes docs \
	browser schemas clean help

help:            ## list the targets; times are those of two quiet cores
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

run: engine      ## set everything up and print the singular locus of M(2,1,2): 1 minute
	$(BIN)/m2bridge singular-locus --d 2 --dp 1

# What `make test` leaves out: long cases (slow), and suites that need more than Python and a Macaulay2.
ELSEWHERE := faults or image or cluster or browser or docs
PARALLEL := -n auto --maxprocesses 4 --dist worksteal

test: engine     ## the quick tests, with the real Macaulay2: 6 minutes
	$(BIN)/python -m pytest -q $(PARALLEL) -m "not (slow or $(ELSEWHERE))"

test-m2: engine  ## every test that starts a Macaulay2, the long ones too
	$(BIN)/python -m pytest -q $(PARALLEL) -m "macaulay2 and not ($(ELSEWHERE))"

test-all: engine ## every suite but the image and clusters: faults, browser (needs Chromium), pages of the site too
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs,browser]"
	$(BIN)/python -m pytest -q $(PARALLEL) -m "not (faults or image or cluster)"
	$(BIN)/python -m pytest -q -m faults tests/faults

test-cluster: engine ## batches on Dask and on a real Slurm on loopback (root, slurm-wlm, munge)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dask]"
	$(BIN)/python -m pytest -q -m cluster tests/cluster

test-torch:      ## the tests of PyTorch networks, in a separate environment; TORCH is added to the arguments of pip
	test -x $(TORCH_VENV)/bin/python || $(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH) -e ".[dev,torch]"
	$(TORCH_VENV)/bin/python -m pytest -q tests/torch

lint: $(STAMP)   ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check: lint      ## format, lint, types, and the tests that need no Macaulay2: before every commit
	$(BIN)/python -m pytest -q $(PARALLEL) -m "not (slow or macaulay2 or $(ELSEWHERE))"

format: $(STAMP) ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

engine: $(STAMP) ## make sure that a Macaulay2 works; install one if none does
	@$(BIN)/m2bridge doctor --quiet || $(BIN)/m2bridge engine install

schemas: $(STAMP) ## write the JSON Schemas and the help texts that ship with the package
	$(BIN)/python -m m2bridge.schemas
	$(BIN)/python -m m2bridge.cli.help

image:           ## build the container image with docker, podman or buildah, the first that works
	$(IMAGE_BUILD)

image-cluster: BUILD_OPTIONS = --target cluster -t $(IMAGE):cluster
image-cluster:   ## the image with Dask inside, for image/compose.yaml
	$(IMAGE_BUILD)

image-test: engine ## run the tests of the image; IMAGE_RUN is how a container is run
	M2BRIDGE_IMAGE="$(IMAGE)" M2BRIDGE_IMAGE_RUN="$(IMAGE_RUN)" $(BIN)/python -m pytest -q -m image tests/image

image-sizes: $(STAMP) ## sizes of the image's parts, and how long a container takes to start
	M2BRIDGE_IMAGE="$(IMAGE)" M2BRIDGE_IMAGE_RUN="$(IMAGE_RUN)" $(BIN)/python benchmarks/image.py

docs: engine     ## build the site into docs/_build/html: every example is run and compared, warnings are errors
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	$(BIN)/python -m pytest -q -m docs tests/docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/_site/links.py docs/_build/html

browser: engine  ## open the site, a report and the figures in Chromium (after make docs)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[browser]"
	$(BIN)/python -m pytest -q -m browser

clean:           ## remove the virtual environment and caches
	rm -rf $(VENV) $(TORCH_VENV) .mypy_cache .ruff_cache .pytest_cache dist build

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev,plot]"
	touch $(STAMP)
