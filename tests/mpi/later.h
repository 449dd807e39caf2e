// SPDX-License-Identifier: Apache-2.0
//
// A call that is made later, with what it was written with: what std::function is, but of trivial
// types only, and one function for each where that has four. Hundreds of them take long to compile.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>

namespace mpi_test {

template <class... Given>
class Later {
 public:
  template <class Function>
  Later(Function function)
      : call_([](const std::byte* bound, Given... given) {
          return (*std::launder(reinterpret_cast<const Function*>(bound)))(given...);
        }) {
    static_assert(std::is_trivially_copyable_v<Function> && sizeof(Function) <= sizeof(bound_));
    new (bound_) Function(function);
  }
  int operator()(Given... given) const { return call_(bound_, given...); }

 private:
  int (*call_)(const std::byte* bound, Given... given);
  alignas(std::max_align_t) std::byte bound_[128];
};

}  // namespace mpi_test
