// SPDX-License-Identifier: Apache-2.0
//
// An algorithm that is wrong, for the tests of `carillon verify`: allreduce.ring without its last
// op. The linker leads calls of emit to wrong_emit, and real_emit to the function itself
// (--wrap, in CMakeLists.txt).
#include "algorithms/registry.h"

namespace carillon {

Result<Schedule> real_emit(const Algorithm& algorithm, const Call& call) asm(
    "__real__ZN8carillon4emitERKNS_9AlgorithmERKNS_4CallE");
Result<Schedule> wrong_emit(const Algorithm& algorithm, const Call& call) asm(
    "__wrap__ZN8carillon4emitERKNS_9AlgorithmERKNS_4CallE");

Result<Schedule> wrong_emit(const Algorithm& algorithm, const Call& call) {
  auto emitted = real_emit(algorithm, call);
  if (emitted.ok() && algorithm.id == "allreduce.ring" && !emitted.value().ops.empty()) {
    emitted.value().ops.pop_back();
    --emitted.value().strands.back().op_count;
  }
  return emitted;
}

}  // namespace carillon
