// SPDX-License-Identifier: Apache-2.0
//
// What an algorithm of the registry costs on a machine, one rank per node: by its closed form, or
// by simulation.
#pragma once

#include <string>

#include "algorithms/registry.h"
#include "machine/model.h"

namespace carillon::predict {

/// "degree_k:k=4" of allreduce, or "allreduce.degree_k:k=4".
Result<AlgorithmChoice> algorithm_of(const std::string& collective, const std::string& text);

struct Question {
  AlgorithmChoice choice;
  Rank ranks = 2;
  std::int64_t bytes = 8;  ///< of a block; reductions are of 8-byte elements where that can be
};

/// The question as closed forms are asked.
machine::ModelCall model_call(const Question& question);

/// By the closed form, or why there is none.
Result<std::int64_t> modelled_ps(const machine::Machine& machine, const Question& question);
Result<std::int64_t> simulated_ps(const machine::Machine& machine, const Question& question);

}  // namespace carillon::predict
