// SPDX-License-Identifier: Apache-2.0
//
// Speed of the reduction kernels: nanoseconds of tiny calls, bandwidth of streams next to memcpy.
// bytes_per_second counts the bytes of the result, so that it compares with memcpy's; a kernel
// reads twice as many.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/copy.h"
#include "reduce/kernels.h"

namespace {

using carillon::dtype_bytes;
using carillon::find_kernel;

constexpr std::size_t kPage = 4096;

/// Three arrays at the given offset from a page's start.
class Buffers {
 public:
  Buffers(std::size_t bytes, std::size_t offset)
      : stride_(((bytes + offset) / kPage + 1) * kPage + 256),
        offset_(offset),
        memory_(3 * stride_ + kPage) {}
  std::byte* at(std::size_t i) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (kPage - address % kPage) + i * stride_ + offset_;
  }

 private:
  std::size_t stride_;
  std::size_t offset_;
  std::vector<std::byte> memory_;
};

void run(benchmark::State& state, crl_op_kind_t op, crl_dtype_kind_t dtype, bool in_place) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Buffers buffers(bytes, static_cast<std::size_t>(state.range(1)));
  const auto kernel = find_kernel(op, dtype);
  const auto count = bytes / dtype_bytes(dtype);
  std::byte* left = buffers.at(0);
  std::byte* right = buffers.at(1);
  std::byte* dst = in_place ? right : buffers.at(2);
  for (auto _ : state) {
    kernel(dst, left, right, count);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void copy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Buffers buffers(bytes, static_cast<std::size_t>(state.range(1)));
  for (auto _ : state) {
    std::memcpy(buffers.at(2), buffers.at(0), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// From the beginning of a page to 16 bytes behind one, as from a slot to what malloc gives.
void copy_behind(benchmark::State& state, void (*how)(void*, const void*, std::size_t)) {
  constexpr std::size_t kBehind = 16;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  std::vector<std::byte> memory(2 * (bytes + 2 * kPage));
  const auto page_after = [&](std::size_t offset) {
    auto* const at = memory.data() + offset;
    return at + (kPage - reinterpret_cast<std::uintptr_t>(at) % kPage);
  };
  std::byte* const from = page_after(0);
  std::byte* const to = page_after(bytes + kPage) + kBehind;
  for (auto _ : state) {
    how(to, from, bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
void plain_memcpy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

/// Bytes of the array x offset from a cache line.
const std::vector<std::vector<std::int64_t>> kStreams = {{4 << 10, 64 << 10, 1 << 20}, {0, 16}};

BENCHMARK_CAPTURE(run, sum_double_tiny, CRL_SUM, CRL_FLOAT64, true)
    ->ArgNames({"bytes", "offset"})
    ->ArgsProduct({{8, 16, 24, 32, 64, 128}, {0}});
BENCHMARK_CAPTURE(run, min_int8_tiny, CRL_MIN, CRL_INT8, true)
    ->ArgNames({"bytes", "offset"})
    ->ArgsProduct({{1, 7, 63}, {0}});
BENCHMARK(copy)->ArgNames({"bytes", "offset"})->ArgsProduct(kStreams);
BENCHMARK_CAPTURE(copy_behind, memcpy, plain_memcpy)->Range(1 << 10, 1 << 16);
BENCHMARK_CAPTURE(copy_behind, ours, carillon::copy_memory)->Range(1 << 10, 1 << 16);
BENCHMARK_CAPTURE(run, sum_float, CRL_SUM, CRL_FLOAT32, false)
    ->ArgNames({"bytes", "offset"})
    ->ArgsProduct(kStreams);
BENCHMARK_CAPTURE(run, sum_float_in_place, CRL_SUM, CRL_FLOAT32, true)
    ->ArgNames({"bytes", "offset"})
    ->ArgsProduct(kStreams);
BENCHMARK_CAPTURE(run, max_double, CRL_MAX, CRL_FLOAT64, false)
    ->ArgNames({"bytes", "offset"})
    ->Args({64 << 10, 0});
BENCHMARK_CAPTURE(run, prod_int64, CRL_PROD, CRL_INT64, false)
    ->ArgNames({"bytes", "offset"})
    ->Args({64 << 10, 0});
BENCHMARK_CAPTURE(run, prod_complex_double, CRL_PROD, CRL_COMPLEX_FLOAT64, false)
    ->ArgNames({"bytes", "offset"})
    ->Args({64 << 10, 0});
BENCHMARK_CAPTURE(run, land_int32, CRL_LAND, CRL_INT32, false)
    ->ArgNames({"bytes", "offset"})
    ->Args({64 << 10, 0});
BENCHMARK_CAPTURE(run, maxloc_double_int, CRL_MAXLOC, CRL_FLOAT64_INT, false)
    ->ArgNames({"bytes", "offset"})
    ->Args({64 << 10, 0});

}  // namespace

BENCHMARK_MAIN();
