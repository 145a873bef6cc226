# Commands for developers and CI. Each target builds its prerequisites; stamp files skip repeats.
#
#   make workbench             environment, browser assets, JupyterLab on the quickstart
#   make workbench HEADLESS=1  execute the same notebook without a browser
#   make test                  environment, Chromium, every check
#   make fuzz | bench          long random tests | benchmarks
#   make suites                external test suites: the node cases of ONNX
#   make mutate                disable each check once, and report the tests that notice
#   make math                  every element function on every single-precision number
#   make opinfo                PyTorch's operators, imported and compiled, against PyTorch
#   make gpu-check             results and times of the GPU kernels, on a machine with a GPU
#   make clean                 remove build products; `make distclean` also the environment

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := $(CURDIR)/.venv
PY := $(VENV)/bin/python
STAMPS := $(VENV)/.stamps
EXTRAS := dev,lab,torch,onnx,cross,demo,webgpu
# Emulators and the debugger for tests of exported libraries, and the compiler that builds PyCUDA.
TOOLS := qemu-aarch64-static qemu-x86_64-static qemu-riscv64-static g++ gdb
NOTEBOOK := notebooks/quickstart.ipynb
OUT := out
# The duration of the random walks of `make fuzz`; they continue after the last seed.
MINUTES := 60
# Versions of make before 4.0 mix the output of targets that run at the same time.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
# An HTML page has no kernel: show the static picture of the widget.
STATIC_FIRST := --NbConvertBase.display_data_priority="['text/html','image/svg+xml','image/png','text/markdown','text/plain']"

# Tools of the environment precede PATH: it contains node only if PATH has no recent version.
export PATH := $(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYDEVD_DISABLE_FILE_VALIDATION := 1
# Compiled modules are kept: without them, each of the many processes of the tests compiles the
# sources that it imports, in 0.8 s.
unexport PYTHONDONTWRITEBYTECODE

WEB_SOURCES := $(shell find extensions -type f -not -path '*/node_modules/*' -not -path '*/dist/*')

.PHONY: help env assets workbench test lint types web-test python-test fuzz suites mutate math \
	opinfo bench gpu-check \
	clean distclean

help:
	@sed -n 's/^#   //p' Makefile

$(STAMPS)/venv: .ci/venv
	.ci/venv "$(VENV)"
	mkdir -p $(STAMPS) && touch $@

$(STAMPS)/python: pyproject.toml $(STAMPS)/venv
	$(PY) -m pip install --quiet --editable '.[$(EXTRAS)]'
	touch $@

$(STAMPS)/tools: .ci/tools $(STAMPS)/venv
	.ci/tools $(TOOLS)
	touch $@

# A driver that runs kernels of WebGPU on the processor.
$(STAMPS)/vulkan: .ci/vulkan $(STAMPS)/venv
	.ci/vulkan
	touch $@

# PyCUDA is published as source only. Tests run it against a mock driver.
$(STAMPS)/pycuda: .ci/pycuda $(STAMPS)/python $(STAMPS)/tools
	.ci/pycuda $(PY) $(VENV)/wheels
	$(PY) -m pip install --quiet $(VENV)/wheels/pycuda-*.whl
	touch $@

$(STAMPS)/node: .ci/node $(STAMPS)/venv
	.ci/node "$(PY)"
	touch $@

env: $(STAMPS)/python $(STAMPS)/node

$(STAMPS)/npm: extensions/package.json extensions/package-lock.json $(STAMPS)/node
	cd extensions && npm ci --no-audit --no-fund
	touch $@

$(STAMPS)/assets: $(WEB_SOURCES) $(STAMPS)/npm
	cd extensions && npm run build
	touch $@

assets: $(STAMPS)/assets

workbench: env assets
ifdef HEADLESS
	$(PY) -m nbconvert --to notebook --execute --output-dir $(OUT) $(NOTEBOOK)
	$(PY) -m nbconvert --to html $(STATIC_FIRST) --output-dir $(OUT) $(OUT)/$(notdir $(NOTEBOOK))
	@echo "The notebook was executed:"
	@echo "  $(CURDIR)/$(OUT)/quickstart.ipynb"
	@echo "  $(CURDIR)/$(OUT)/quickstart.html"
else
	$(PY) -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) $(NOTEBOOK)
endif

# Checks that do not depend on each other run at the same time; each prints its output when it ends.
test: env $(STAMPS)/npm
	$(MAKE) --jobs=2 --keep-going $(SYNC) lint types web-test
	$(MAKE) python-test

lint: env
	ruff check .
	ruff format --check .
	lint-imports
	$(PY) .ci/language
	.ci/commits

types: env
	pyright

web-test: $(STAMPS)/npm
	cd extensions && npm run lint && npm run typecheck && npm test

# Tests that measure latencies run last, without other tests at the same time.
python-test: env assets $(STAMPS)/tools $(STAMPS)/pycuda $(STAMPS)/vulkan
	CHROMIUM="$$(.ci/chromium)"; export CHROMIUM; \
	$(PY) -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder --durations=12 -m "not browser"; \
	$(PY) -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder --durations=12 -m "browser and not alone"; \
	$(PY) -m pytest -q --durations=12 -m alone

fuzz: env assets $(STAMPS)/tools $(STAMPS)/pycuda $(STAMPS)/vulkan
	TILEWRIGHT_PROFILE=fuzz $(PY) -m pytest -q -n auto --dist loadfile --no-loadscope-reorder -m "not browser"
	$(PY) -m tests.fuzz.walk --minutes $(MINUTES) --resume --record --out $(OUT)/walks
	$(PY) -m tests.fuzz.walk --graphs --minutes $(MINUTES) --resume --record --out $(OUT)/walks

suites: env
	nice -n 10 $(PY) -m tests.suites.onnx_nodes --resume --record

mutate: env assets $(STAMPS)/tools $(STAMPS)/pycuda $(STAMPS)/vulkan
	nice -n 10 $(PY) -m tests.fuzz.mutate --record

math: env
	$(PY) -m tests.fuzz.exhaustive_math

opinfo: env
	$(PY) -m tests.suites.opinfo --resume --minutes $(MINUTES)

bench: env $(STAMPS)/tools
	$(PY) -m tests.benchmarks.spine
	$(PY) -m tests.benchmarks.probes
	$(PY) -m tests.benchmarks.steps
	$(PY) -m tests.benchmarks.exports

gpu-check: env $(STAMPS)/pycuda
	$(PY) -m tests.gpu_check

clean:
	rm -rf $(OUT) build dist *.egg-info workbench/static extensions/dist
	rm -rf .pytest_cache .ruff_cache .hypothesis .import_linter_cache $(STAMPS)/assets
	find . -name __pycache__ -type d -not -path './.venv/*' -not -path '*/node_modules/*' \
		-prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) extensions/node_modules
