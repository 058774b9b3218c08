# The front door.  `make demo` shows what Temper does, `make test` proves it.
PRESET  := default
BUILD   := build/$(PRESET)
PREFIX  := /usr/local
SECONDS := 60

.PHONY: all help demo test deps configure build install package docs asan tsan clang coverage fuzz bench \
        format check clean

all: build

help:
	@echo "make            install missing Debian packages, configure and build into $(BUILD)"
	@echo "make demo       train a small model from nothing and ask what it learned (minutes)"
	@echo "make test       every test that needs no special hardware"
	@echo "make install    into $(PREFIX) (PREFIX=DIR, DESTDIR=DIR)"
	@echo "make package    .deb packages, a relocatable tarball and a wheel, into $(BUILD)/packages"
	@echo "make docs       renew the pages that are made from tables in the code"
	@echo "make clang | asan | tsan | coverage    build and test with that preset; lines that ran"
	@echo "make fuzz       run every fuzzer for SECONDS=$(SECONDS)"
	@echo "make bench      build the programs in bench/"
	@echo "make check      which folder may include which"
	@echo "make format     clang-format over the sources"
	@echo "make clean      remove build/"

deps:
	@scripts/install-deps

# A copied checkout brings a build/ that belongs to the original: it would build and install that.
configure: deps
	@home=$$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' $(BUILD)/CMakeCache.txt 2>/dev/null); \
	if [ -n "$$home" ] && [ "$$(realpath -m "$$home")" != "$$(pwd -P)" ]; then \
	    echo "$(BUILD) was made in $$home: configuring anew for $$(pwd -P)"; \
	    cmake --fresh --preset $(PRESET); \
	elif ! [ -f $(BUILD)/build.ninja ]; then \
	    cmake --preset $(PRESET); \
	fi

build: configure
	@cmake --build $(BUILD)

# Only what it runs, and first of all what is going on.
demo: configure
	@echo "building the program (the tests are left out), then: train, ask, reward, ask again"
	@cmake --build $(BUILD) --target temper
	@scripts/demo $(BUILD)/src/cli/temper

# The closing line "N passed, M failed, K skipped" is what .ci/run reports.
test: build
	@scripts/run-tests $(BUILD)

# Without the tests, which nobody installs.
install: configure
	@cmake --build $(BUILD) --target installed
	@cmake --install $(BUILD) --prefix $(PREFIX)

package: configure
	@scripts/package $(BUILD)

docs: build
	@tools/gen-docs $(BUILD)

clang asan tsan:
	@$(MAKE) --no-print-directory test PRESET=$@

coverage:
	@$(MAKE) --no-print-directory test PRESET=$@
	@scripts/coverage build/$@

fuzz:
	@$(MAKE) --no-print-directory build PRESET=fuzz
	@scripts/run-fuzzers build/fuzz $(SECONDS)

bench: build
	@cmake --build $(BUILD) --target benches

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

check:
	@tools/check-layers

clean:
	rm -rf build
