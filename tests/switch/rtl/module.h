// SPDX-License-Identifier: Apache-2.0
//
// Modules that Verilator made into classes: how they begin, how a cycle goes.
#pragma once

#include <verilated.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "switch/frames/signals.h"
#ifdef CARILLON_RTL_COVERAGE
#include <verilated_cov.h>

#include <cstdlib>
#include <string>
#endif

namespace carillon::rtl {

/// Ends a module. In a build that counts lines (scripts/coverage-rtl), what has been reached in all
/// modules that are there goes to the next file of $CARILLON_RTL_COVERAGE, which begins their
/// names.
template <class Module>
struct EndModule {
  void operator()(Module* module) const {
#ifdef CARILLON_RTL_COVERAGE
    static int files = 0;
    if (const char* const name = std::getenv("CARILLON_RTL_COVERAGE"); name != nullptr) {
      VerilatedCov::write((name + std::to_string(files++) + ".dat").c_str());
      VerilatedCov::clear();
    }
#endif
    delete module;
  }
};

template <class Module>
using ModulePointer = std::unique_ptr<Module, EndModule<Module>>;

/// A module whose registers hold anything, with its clock low. The random values are the same each
/// time.
template <class Module>
ModulePointer<Module> make_module() {
  Verilated::randReset(2);
  ModulePointer<Module> module(new Module);
  module->clk_i = 0;
  module->eval();
  return module;
}

template <class Signal>
bool bit_of(const Signal& signal, std::size_t at) {
  return (byte_of(signal, at / 8) >> (at % 8) & 1) != 0;
}

template <class Signal>
void set_bit(Signal& signal, std::size_t at, bool value) {
  const unsigned others = byte_of(signal, at / 8) & ~(1U << (at % 8));
  set_byte(signal, at / 8, static_cast<std::uint8_t>(others | unsigned{value} << (at % 8)));
}

/// The clock rises; what comes of it can be read after this.
template <class Module>
void rise(Module& module) {
  module.clk_i = 1;
  module.eval();
}

/// The clock falls.
template <class Module>
void fall(Module& module) {
  module.clk_i = 0;
  module.eval();
}

/// With the clock low, as it stays.
template <class Module>
void reset(Module& module) {
  for (const int level : {1, 0, 1}) {
    module.rst_ni = level != 0;
    module.eval();
  }
}

}  // namespace carillon::rtl
