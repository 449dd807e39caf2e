// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a call that the host may have to do after it has returned. MPI lets the program
// free types and operators in between; and the lists may be gone (Fortran functions of hosts pass
// copies that they free).
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <vector>

#include "call.h"
#include "communicator.h"
#include "datatype.h"
#include "reduction.h"

namespace carillon::shim {

class KeptArguments {
 public:
  /// While the call runs, and carillon takes it.
  KeptArguments(Collective collective, Communicator& communicator, const Call& call);
  KeptArguments(const KeptArguments&) = delete;
  KeptArguments& operator=(const KeptArguments&) = delete;
  /// The same, with lists that stay.
  [[nodiscard]] const Call& call() const { return call_; }

 private:
  struct Lists {
    std::vector<std::byte> counts, offsets;
    std::vector<MPI_Datatype> types;
  };
  static void keep(Lists& lists, Blocks& blocks, int count);
  void hold(const Buffer& buffer, const Blocks& blocks, int count);

  Call call_;
  Lists in_, out_;
  std::list<TypeUse> types_;
  std::optional<ReductionUse> reduction_;
};

/// A list of a call, in whatever integers the host's function has it.
struct AnyList {
  const void* address = nullptr;
  template <typename Integer>
  // NOLINTNEXTLINE(google-explicit-constructor): it stands for an argument
  operator const Integer*() const {
    return static_cast<const Integer*>(address);
  }
};

}  // namespace carillon::shim
