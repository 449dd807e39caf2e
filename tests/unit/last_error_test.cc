// SPDX-License-Identifier: Apache-2.0
//
// What crl_last_error says where the objects of the process's threads have gone: in functions that
// are called as it ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "carillon/carillon.h"

namespace {

bool last_error_has(std::string_view text) {
  return std::string_view(crl_last_error()).find(text) != std::string_view::npos;
}

void end_late() {
  bool good = last_error_has("crl_context_create");
  // Of the program, which get what memory others have given back.
  constexpr std::size_t kBlocks = 2000, kMost = 256, kStep = 8;
  std::vector<std::string> blocks;
  blocks.reserve(kBlocks);
  for (std::size_t i = 0; i < kBlocks; ++i) blocks.emplace_back(i * kStep % kMost + kStep, 'w');
  good = crl_barrier(nullptr) == CRL_ERR_INVALID_ARGUMENT && last_error_has("crl_barrier") && good;
  for (const std::string& block : blocks) {
    good = good && std::all_of(block.begin(), block.end(), [](char byte) { return byte == 'w'; });
  }
  std::_Exit(good ? 0 : 1);
}

[[noreturn]] void end_with_errors() {
  crl_context_create(nullptr, nullptr);
  if (std::atexit(end_late) != 0) std::_Exit(2);
  std::exit(3);
}

TEST(LastError, IsThereWhileTheProcessEnds) {
  EXPECT_EXIT(end_with_errors(), testing::ExitedWithCode(0), "");
}

TEST(LastError, IsOfTheThread) {
  EXPECT_EQ(crl_barrier(nullptr), CRL_ERR_INVALID_ARGUMENT);
  std::thread([] {
    EXPECT_STREQ(crl_last_error(), "");
    EXPECT_EQ(crl_context_create(nullptr, nullptr), CRL_ERR_INVALID_ARGUMENT);
    EXPECT_TRUE(last_error_has("crl_context_create"));
  }).join();
  EXPECT_TRUE(last_error_has("crl_barrier"));
}

}  // namespace
