// SPDX-License-Identifier: Apache-2.0
//
// What some processes of a test say on stderr, for another one to hear.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

namespace carillon::test {

/// What all ranks but one write to stderr, which that one reads.
class Words {
 public:
  Words() { EXPECT_EQ(pipe(ends_.data()), 0); }
  ~Words() {
    for (const int end : ends_) close(end);
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  void speak() const { ASSERT_GE(dup2(ends_[1], STDERR_FILENO), 0); }
  /// Reads on until it is there.
  void listen_for(const std::string& words) {
    std::array<char, 4096> some{};
    while (heard_.find(words) == std::string::npos) {
      const ssize_t count = read(ends_[0], some.data(), some.size());
      ASSERT_GT(count, 0);
      heard_.append(some.data(), static_cast<std::size_t>(count));
    }
  }
  /// What is heard before it is forgotten.
  void listen_for_next(const std::string& words) {
    listen_for(words);
    const std::size_t found = heard_.find(words);
    if (found != std::string::npos) heard_.erase(0, found + words.size());
  }
  [[nodiscard]] const std::string& heard() const { return heard_; }

 private:
  std::array<int, 2> ends_{};
  std::string heard_;
};

}  // namespace carillon::test
