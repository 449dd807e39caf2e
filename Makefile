# SPDX-License-Identifier: Apache-2.0
#
# make          build everything into build/
# make run      set up, build what is not for tests, and do the main job: a program with its own MPI,
#               then with carillon
# make test     set up, build, test; e.g. make test CTEST="-L fast"
# make lint     style, and clang-tidy
# make format   clang-format every source file, in place
.PHONY: all setup configure build programs run test format lint clean

CTEST ?=

all: build

setup:
	@scripts/setup

configure: setup
	@test -f build/build.ninja || cmake --preset release

build: configure
	@cmake --build build

programs: configure
	@cmake --build build --target programs

run: programs
	@scripts/demo

test: build
	@ctest --test-dir build --output-on-failure -j $$(nproc) $(CTEST)

format: setup
	@git ls-files '*.cc' '*.h' '*.c' | xargs clang-format -i

lint: build
	@scripts/check-style
	@scripts/lint

clean:
	@rm -rf build build-asan build-tsan build-debug build-dev
