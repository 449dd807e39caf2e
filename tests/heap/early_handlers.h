// SPDX-License-Identifier: Apache-2.0
//
// A library whose constructor tells of its handlers of fork, before the program begins: they do
// what a test asks for, null: nothing.
#pragma once

namespace heap_test {

struct EarlyHandlers {
  void (*before)() = nullptr;
  void (*in_parent)() = nullptr;
  void (*in_child)() = nullptr;
};
__attribute__((visibility("default"))) EarlyHandlers& early_handlers();

}  // namespace heap_test
