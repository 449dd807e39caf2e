// SPDX-License-Identifier: Apache-2.0
//
// The catalogue of algorithms as the parameters of a test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/registry.h"

namespace carillon::test {

inline std::vector<const Algorithm*> all_algorithms() {
  std::vector<const Algorithm*> list;
  for (const Algorithm& algorithm : algorithms()) list.push_back(&algorithm);
  return list;
}

/// Those whose schedules do not depend on data.
inline std::vector<const Algorithm*> one_stage_algorithms() {
  std::vector<const Algorithm*> list = all_algorithms();
  std::erase_if(list, [](const Algorithm* algorithm) { return algorithm->traits.stages; });
  return list;
}

/// "allreduce_ring".
inline std::string name_of_algorithm(const testing::TestParamInfo<const Algorithm*>& info) {
  std::string name(info.param->id);
  name[name.find('.')] = '_';
  return name;
}

}  // namespace carillon::test
