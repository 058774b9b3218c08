# The front door.  `make demo` shows what Temper does, `make test` proves it.
BUILD := build/default
PRESET := default

.PHONY: all demo test deps configure build asan tsan clang fuzz coverage bench format check clean

all: build

deps:
	@scripts/install-deps

configure: deps
	@test -f $(BUILD)/build.ninja || cmake --preset $(PRESET) >/dev/null

build: configure
	@cmake --build $(BUILD)

demo: build
	@scripts/demo $(BUILD)/src/cli/temper

# The closing line "N passed, M failed" is what .ci/run reports.
test: build
	@scripts/run-tests $(BUILD)

asan tsan clang coverage: deps
	@cmake --preset $@ >/dev/null && cmake --build build/$@ && scripts/run-tests build/$@

fuzz: deps
	@cmake --preset fuzz >/dev/null && cmake --build build/fuzz && scripts/run-fuzzers build/fuzz

format:
	@clang-format -i $$(git ls-files 'src/*.c' 'src/*.h' 'tests/*.c' 'tests/*.h' 'bench/*.c')

check:
	@tools/check-layers

clean:
	rm -rf build
