# SPDX-License-Identifier: Apache-2.0
#
# make        build everything into build/
# make run    set up, build, and do the main job: a program with its own MPI, then with carillon
# make test   set up, build, test
.PHONY: all build setup run test format lint clean

all: build

setup:
	@scripts/setup

build: setup
	@test -f build/build.ninja || cmake --preset release >/dev/null
	@cmake --build build

run: build
	@scripts/demo

test: build
	@ctest --test-dir build --output-on-failure

format:
	@git ls-files '*.cc' '*.h' '*.c' | xargs clang-format -i

lint: build
	@scripts/lint

clean:
	@rm -rf build build-asan build-tsan build-debug
