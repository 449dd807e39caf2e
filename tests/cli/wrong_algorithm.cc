// SPDX-License-Identifier: Apache-2.0
//
// An algorithm that is wrong, for the tests of `carillon verify`: allreduce.ring with a message
// that nobody waits for. The linker leads calls of emit_prepared to wrong_emit, and real_emit to
// the function itself (--wrap, in CMakeLists.txt).
#include "algorithms/registry.h"
#include "schedule/builder.h"

namespace carillon {

void real_emit(const Algorithm& algorithm, const Call& call, Builder& builder) asm(
    "__real__ZN8carillon13emit_preparedERKNS_9AlgorithmERKNS_4CallERNS_7BuilderE");
void wrong_emit(const Algorithm& algorithm, const Call& call, Builder& builder) asm(
    "__wrap__ZN8carillon13emit_preparedERKNS_9AlgorithmERKNS_4CallERNS_7BuilderE");

void wrong_emit(const Algorithm& algorithm, const Call& call, Builder& builder) {
  real_emit(algorithm, call, builder);
  if (algorithm.id != "allreduce.ring" || call.shared.ranks == 1) return;
  builder.signal((call.rank + 1) % call.shared.ranks);
}

}  // namespace carillon
