# Thin: each target is a few scripts or cmake calls. VERBOSE=1 shows all output, JOBS=N limits the processes.
# `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
MAKEFLAGS += --no-print-directory
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
export JOBS
RELEASE := build/release
STEP := scripts/step.sh
PRESETS := release clang asan tsan fuzz arm64

.PHONY: help bootstrap build demo test check check-all long-tests asan tsan clang arm64 fuzz bench install format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "%-11s %s\n", $$1, $$2}' Makefile

bootstrap:
	@scripts/bootstrap.sh

build: bootstrap ## the program, optimised, in build/release
	@$(STEP) "build ($(RELEASE))" scripts/build.sh release headrace
	@echo "built: $(RELEASE)/headrace"

demo: build ## build, then let the small model that ships with the project write a story
	@$(RELEASE)/headrace run demo --raw "Once upon a time" -n 200

test: bootstrap ## build everything and run all tests
	@$(STEP) "build ($(RELEASE), with tests)" scripts/build.sh release
	@scripts/run_tests.py $(RELEASE)
	@scripts/run_tests.py --python
	@echo "make test: passed"

check: ## what must hold before a change goes in: format, layers, source rules, headers, clang-tidy, tests
	@scripts/bootstrap.sh --with-dev
	@$(STEP) "format" scripts/check_format.sh
	@$(STEP) "layers" scripts/check_layers.py
	@$(STEP) "source rules" scripts/check_source.py
	@$(STEP) "every header alone" scripts/build.sh release headers_alone
	@$(STEP) "configure clang" cmake --preset clang
	@$(STEP) "clang-tidy (changed files)" scripts/tidy.sh
	@$(MAKE) test
	@echo "make check: passed"

check-all: check ## check, and: sanitizers, clang, arm64 in the emulator, fuzzers, clang-tidy on all files, long tests
	@$(MAKE) asan tsan clang arm64 fuzz long-tests
	@$(STEP) "clang-tidy (all files)" scripts/tidy.sh --all
	@echo "make check-all: passed"

asan: ## all tests under AddressSanitizer and UBSan
	@$(STEP) "build (build/asan)" scripts/build.sh asan
	@scripts/run_tests.py build/asan

tsan: ## tests of the layers with threads under ThreadSanitizer
	@$(STEP) "build (build/tsan)" scripts/build.sh tsan
	@scripts/run_tests.py build/tsan --only '^(base|io|weights|engine)\.'

clang: ## all tests, built with clang
	@$(STEP) "build (build/clang)" scripts/build.sh clang
	@scripts/run_tests.py build/clang

arm64: ## tests of base, formats and kernels for 64-bit ARM, in the emulator
	@$(STEP) "build (build/arm64)" scripts/build.sh arm64
	@scripts/run_tests.py build/arm64

fuzz: ## every fuzzer for half a minute
	@$(STEP) "build (build/fuzz)" scripts/build.sh fuzz
	@$(STEP) "fuzzers" scripts/run_fuzzers.sh build/fuzz 30

long-tests: ## the whole matrix of settings, in the release build
	@$(STEP) "build ($(RELEASE), with tests)" scripts/build.sh release
	@HEADRACE_LONG_TESTS=1 scripts/run_tests.py $(RELEASE)

bench: bootstrap ## kernel benchmarks
	@$(STEP) "build ($(RELEASE))" scripts/build.sh release headrace_bench
	@$(RELEASE)/headrace_bench

install: build ## program and demo model, under PREFIX (default /usr/local) and DESTDIR
	@$(STEP) "install to $(DESTDIR)$(PREFIX)" cmake --install $(RELEASE) --prefix $(PREFIX)

format: ## lay out all sources
	@scripts/check_format.sh --fix
	@echo "formatted"

clean: ## remove the build folders
	@rm -rf $(addprefix build/,$(PRESETS))
	@echo "removed the build folders"
