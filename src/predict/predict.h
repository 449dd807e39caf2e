// SPDX-License-Identifier: Apache-2.0
//
// What an algorithm of the registry costs on a machine: by its closed form, or by simulation.
#pragma once

#include <memory>
#include <string>

#include "algorithms/registry.h"
#include "machine/model.h"
#include "sim/sim.h"

namespace carillon::predict {

/// "degree_k:k=4" of allreduce, or "allreduce.degree_k:k=4".
Result<AlgorithmChoice> algorithm_of(const std::string& collective, const std::string& text);

/// The problem that algorithms are tried on: elements of 8 bytes where that can be.
Shared example_problem(Collective collective, Rank ranks, std::int64_t bytes);

/// `ppn` ranks on each node, one after another; fewer on the last one.
std::shared_ptr<const Nodes> even_nodes(Rank ranks, Rank ppn);

/// The largest put of carillon's teams whose members are on these nodes (base/message_room.h), with
/// the default settings.
std::int64_t slot_bytes(const Nodes& nodes);

/// Each of these nodes has its ranks in so many NUMA domains, one after another and as many in
/// each as can be; null of one.
std::shared_ptr<const Nodes> even_domains(const Nodes& nodes, std::int32_t domains);

/// What reading from another NUMA domain costs there, and being told by a head.
DomainCosts domain_costs(const machine::Machine& machine);

/// What lists and copies cost there, for algorithms that choose between the two.
ListCosts list_costs(const machine::Machine& machine);

/// The call of `shared` by this algorithm, to be simulated there; `local` is that of every rank. Or
/// why it cannot be, by what the machine's file lacks or the team, the problem and the parameters
/// do not allow, and what would do.
Result<sim::Job> job_of(const AlgorithmChoice& choice, const Shared& shared, const Limits& limits,
                        const machine::Machine& machine, const Local& local = {});

/// What that costs.
Result<sim::Report> simulate(const AlgorithmChoice& choice, const Shared& shared,
                             const Limits& limits, const machine::Machine& machine,
                             const sim::Options& options = {}, const Local& local = {});

/// How long so many such calls take, one after another; of those with a root each rank is it in
/// turn. No rank waits for the others in between unless the call makes it. Without tables.
Result<std::int64_t> simulate_repeated(std::int32_t times, const AlgorithmChoice& choice,
                                       const Shared& shared, const Limits& limits,
                                       const machine::Machine& machine);

/// An example problem, of tables of equal blocks where there are tables; closed forms are of nodes
/// of one rank each.
struct Question {
  AlgorithmChoice choice;
  Rank ranks = 2;
  std::int64_t bytes = 8;                         ///< of a block
  Rank ppn = 1;                                   ///< ranks on a node
  std::int32_t gather_entries = 1;                ///< Limits::gather_entries
  bool whole_lists = false;                       ///< lists of several requests are packed
  std::int32_t domains = 1;                       ///< NUMA domains of a node
  std::int64_t slot_bytes = Limits{}.slot_bytes;  ///< Limits::slot_bytes
  /// The first rank of the second node begins so much later than the others, and the time is the
  /// mean of theirs; 0: all begin at once.
  std::int64_t late_ps = 0;
};

/// The question as closed forms are asked.
machine::ModelCall model_call(const Question& question);

/// By the closed form, or why there is none.
Result<std::int64_t> modelled_ps(const machine::Machine& machine, const Question& question);
Result<sim::Report> simulated(const machine::Machine& machine, const Question& question);
Result<std::int64_t> simulated_ps(const machine::Machine& machine, const Question& question);

}  // namespace carillon::predict
