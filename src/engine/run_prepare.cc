// SPDX-License-Identifier: Apache-2.0
//
// What a run is given before it moves: its plan, its buffers, the plan of its next stage.
#include "engine/run.h"
#include "engine/team.h"

namespace carillon {

void Run::prepare(Team& team, const Binding& binding) {
  team_ = &team;
  binding_ = binding;
  status_ = Status();
  set_state(State::kIdle);
  references_.clear();
  sent_.clear();
  seen_.collective = 0;
  if (!binding.tables.send_bytes.empty()) {  // the caller's arrays may change from now on
    const Tables& t = binding.tables;
    table_storage_.clear();
    for (const auto part : {t.send_offsets, t.recv_bytes, t.recv_offsets, t.send_bytes})
      table_storage_.insert(table_storage_.end(), part.begin(), part.end());
    const TableFacts facts = table_facts(t.send_bytes);
    table_storage_.insert(table_storage_.end(), facts.begin(), facts.end());
    const auto part = [&, n = t.send_bytes.size()](std::size_t i) {  // 3 begins the count_row
      return std::span<const std::int64_t>(table_storage_).subspan(i * n, n);
    };
    binding_.tables = {part(3), part(0), part(1), part(2)};
  }
}

void Run::set_plan(const std::shared_ptr<const Plan>& whole) {
  const bool by_tables = whole->by_tables && !binding_.tables.send_bytes.empty();
  const std::shared_ptr<const Plan>& plan = by_tables ? sparse_.of(whole, binding_.tables) : whole;
  planned_ = true;
  if (plan_ != plan) {
    plan_ = plan;
    if (gathers_) gathers_->use_other_buffers();
  }
  bases_.resize(kBaseSlots + plan_->slot_bases);
  uses_.resize(plan_->uses.size());
  arrivals_.resize(plan_->slot_bases);
  readers_.assign(plan_->posts_long ? plan_->uses.size() : 0, {});
  strands_.resize(plan_->strand_starts.size());
  bases_[kBaseScratch] = reserve_scratch(static_cast<std::size_t>(plan_->scratch_bytes));
  find_brief_uses();
  set_buffers();
}

void Run::bind_again(const void* input, void* output) {
  binding_.input = input;
  binding_.output = output;
  set_buffers();
}

void Run::set_buffers() {
  // The input is never written through: reads and writes share one table of bases.
  bases_[kBaseInput] = static_cast<std::byte*>(const_cast<void*>(binding_.input));
  bases_[kBaseOutput] = static_cast<std::byte*>(binding_.output);
  std::int64_t* const counts = table_storage_.data() + 3 * binding_.tables.send_bytes.size();
  bases_[kBaseCounts] = reinterpret_cast<std::byte*>(counts);
}

void Run::begin_strands() {
  const std::uint32_t* start = plan_->strand_starts.data();
  for (Strand& strand : strands_) strand.begin_at(*start++);
  for (Lent& lent : lent_) lent.ahead = 0;  // a call that failed did not come to them
}

bool Run::has_buffer_in(std::span<const std::byte> memory) const {
  const auto* const input = static_cast<const std::byte*>(binding_.input);
  const auto* const output = static_cast<const std::byte*>(binding_.output);
  const auto inside = [&](const std::byte* first) {
    return first >= memory.data() && first < memory.data() + memory.size();
  };
  const auto any = [&](const std::byte* base, auto bytes, auto offsets) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] > 0 && inside(base + offsets[i])) return true;
    }
    return false;
  };
  const Tables& t = binding_.tables;
  if (!t.send_bytes.empty()) {
    return any(input, t.send_bytes, t.send_offsets) || any(output, t.recv_bytes, t.recv_offsets);
  }
  return ((!planned_ || plan_->input_bytes > 0) && inside(input)) ||
         ((!planned_ || plan_->output_bytes > 0) && inside(output));
}

void Run::next_stage(const std::shared_ptr<const Plan>& plan) {
  tell_all();
  team_->note_received(*this);
  set_plan(plan);
  told_all_ = false;
  begin_strands();
  take_numbers();
}

std::span<const std::int64_t> Run::learned() const {
  const Range range = plan_->learned;
  return {reinterpret_cast<const std::int64_t*>(bases_[kBaseScratch] + range.offset),
          static_cast<std::size_t>(range.length / 8)};
}

}  // namespace carillon
