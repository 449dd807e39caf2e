// SPDX-License-Identifier: Apache-2.0
//
// Modules that Verilator made into classes: how they begin, how a cycle goes.
#pragma once

#include <verilated.h>

#include <memory>

namespace carillon::rtl {

/// A module whose registers hold anything, with its clock low. The random values are the same each
/// time.
template <class Module>
std::unique_ptr<Module> make_module() {
  Verilated::randReset(2);
  auto module = std::make_unique<Module>();
  module->clk_i = 0;
  module->eval();
  return module;
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
