# The everyday commands. CMake does the building (CMakePresets.json); this file saves typing, and
# has tools/setup install what is missing first, so that each command works on a bare Debian 12.

JOBS ?= $(shell nproc)
ONLY ?=
SUITES ?= unit program
SECONDS ?= 30

CONFIGURE = cmake --preset
BUILD = cmake --build --parallel $(JOBS) --preset
TEST = ctest --parallel $(JOBS) --preset
SOURCES = find src tests bench fuzz -name '*.h' -o -name '*.cc'

.DEFAULT_GOAL := help
.PHONY: help setup build demo test check lint format bench fuzz torture asan tsan dist wheel clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  JOBS=n sets how many things run at a time (default: one per core)."

setup: ## Install all that is missing from the distribution's packages
	@tools/setup all

build: ## Build the release binary at build/millrace
	@tools/setup build
	@$(CONFIGURE) release >/dev/null
	$(BUILD) release --target millrace
	@ln -sfn release/millrace build/millrace

demo: build ## Publish a few thousand images, mount them, read them cold and warm, print how fast
	@tools/setup demo
	@tools/demo build/millrace

test: ## Run all tests, the long suites at small scale; installs what they need
	@tools/setup build test
	@$(CONFIGURE) release >/dev/null
	$(BUILD) release
	$(TEST) release

check: lint ## Before a commit: lint, headers alone, clang build with thread-safety analysis, fast tests
	@tools/setup test
	@$(CONFIGURE) clang >/dev/null
	$(BUILD) clang --target check_headers
	$(BUILD) clang
	$(TEST) clang -L "unit|program"

lint: ## Only the static part of check: format, style, layers, clang-tidy
	@tools/setup build check
	@$(SOURCES) 2>/dev/null | xargs clang-format-19 --dry-run -Werror
	@python3 tools/check_style.py
	@python3 tools/check_layers.py
	@$(CONFIGURE) lint >/dev/null
	python3 tools/tidy build/lint $(JOBS)

format: ## Rewrite the C++ sources in our format
	@tools/setup check
	@$(SOURCES) 2>/dev/null | xargs clang-format-19 -i

bench: ## Run the benchmarks and print the table; ONLY=name runs one
	@tools/setup build test bench
	@$(CONFIGURE) release >/dev/null
	$(BUILD) release
	tools/bench "$(ONLY)"

fuzz: ## Run each fuzzer for SECONDS=30; ONLY=name runs one
	@tools/setup build check
	@$(CONFIGURE) asan >/dev/null
	$(BUILD) asan --target fuzzers
	tools/fuzz $(SECONDS) $(JOBS) "$(ONLY)"

torture: ## Run the long suites at full scale; appends to build/torture/results.jsonl
	@tools/setup build test
	@$(CONFIGURE) release >/dev/null
	$(BUILD) release
	@mkdir -p build/torture
	MILLRACE_SCALE=full MILLRACE_TORTURE_RESULTS=$(CURDIR)/build/torture/results.jsonl \
	  $(TEST) release -L torture --timeout 86400

asan: ## Run the fast tests under the address and undefined-behaviour sanitizers; SUITES=unit fewer
tsan: ## Run the fast tests under the thread sanitizer; SUITES=unit leaves out the whole program
asan tsan:
	@tools/setup build test check
	@$(CONFIGURE) $@ >/dev/null
	$(BUILD) $@ --target $(SUITES:=_tests)
	$(TEST) $@ -L "$$(echo $(SUITES) | tr ' ' '|')"

dist: build ## Write a relocatable tarball to build/dist
	tools/dist

wheel: build ## Write the Python package, with all that it needs, to build/dist
	$(BUILD) release --target millrace_shared
	tools/wheel

clean: ## Remove all that was built
	rm -rf build
