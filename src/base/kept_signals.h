// SPDX-License-Identifier: Apache-2.0
//
// A library that is loaded late must not take the program's signals: libfabric brings PSM's, whose
// constructors put handlers of their own in the place of the program's, to print where it crashed.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>

namespace carillon {

/// What happens on each signal is at the end of its life as it was at the beginning. Other threads
/// should change none meanwhile.
class KeptSignals {
 public:
  KeptSignals() {
    for (std::size_t i = 1; i < kept_.size(); ++i) {
      known_[i] = sigaction(static_cast<int>(i), nullptr, &kept_[i]) == 0;
    }
  }
  ~KeptSignals() {
    for (std::size_t i = 1; i < kept_.size(); ++i) {
      struct sigaction now = {};
      if (!known_[i] || sigaction(static_cast<int>(i), nullptr, &now) != 0) continue;
      if (now.sa_sigaction != kept_[i].sa_sigaction || now.sa_flags != kept_[i].sa_flags) {
        sigaction(static_cast<int>(i), &kept_[i], nullptr);
      }
    }
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  std::array<struct sigaction, NSIG> kept_;
  std::array<bool, NSIG> known_ = {};  // the C library keeps some for itself
};

}  // namespace carillon
