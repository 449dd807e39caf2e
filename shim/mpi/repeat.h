// SPDX-License-Identifier: Apache-2.0
//
// A blocking call with the arguments of the last one of its collective on the communicator, as in a
// loop: what was found out about them then holds, and is not looked at again. The addresses may be
// others.
#pragma once

#include <cstdint>
#include <memory>
#include <new>

#include "communicator.h"
#include "device_runtime.h"
#include "errors.h"
#include "last_calls.h"
#include "observe.h"
#include "thread_cache.h"

namespace carillon::shim {

/// The communicator, if this thread's last call was on it and nobody observes; else null.
inline Communicator* last_communicator(MPI_Comm comm) {
  const ThreadCache::Comm& last = t_cache.last;
  if (observers() != 0 || last.handle != comm || last.generation != g_communicators.now()) {
    return nullptr;
  }
  return last.communicator;
}

/// All but the addresses. Of a reduction both sides have the input's count and type, and bcast has
/// one buffer.
template <Collective kCollective>
[[gnu::always_inline]] inline bool same_arguments(const LastCall& last, const Call& call) {
  constexpr Rule kRule = rule_of(kCollective);
  const auto same = [](const Buffer& a, const Buffer& b) {
    return a.count == b.count && a.type == b.type;
  };
  if constexpr (kRule.kind == Kind::kBarrier) return true;
  if (!same(last.in, call.in) || last.began.types != g_types.now()) return false;
  if (kRule.rooted && last.root != call.root) return false;
  if constexpr (kRule.kind == Kind::kReduction) {
    return last.op == call.op && last.began.reductions == g_reductions.now();
  }
  return kCollective == Collective::kBcast || same(last.out, call.out);
}

struct Addresses {
  const void* in = nullptr;
  void* out = nullptr;
};

/// Whether carillon gets other addresses as they are, where they count.
[[gnu::always_inline]] inline bool moves(const LastCall& last, Addresses now) {
  const auto is_usual = [](const void* address) {
    return address != nullptr && address != MPI_IN_PLACE;
  };
  if (!last.moves) return false;
  const bool has_in = last.from != nullptr, has_out = last.to != nullptr;
  if ((has_in && !is_usual(now.in)) || (has_out && !is_usual(now.out))) return false;
  const auto apart = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(now.in) -
                                               reinterpret_cast<std::uintptr_t>(now.out));
  return !has_in || !has_out || apart != last.aliased_bytes;
}

/// True: it was such a call, is done, and *code is its error code. In the caller's body, where the
/// call need not be put together.
template <Collective kCollective>
[[gnu::always_inline]] inline bool repeat(const Call& call, int* code) {
  if constexpr (can_repeat(kCollective)) {
    Communicator* const communicator = last_communicator(call.comm);
    if (communicator == nullptr) return false;
    const LastCall* const known = communicator->last_calls[place_of_last(kCollective)].get();
    if (known == nullptr) return false;
    const LastCall& last = *known;
    if (!same_arguments<kCollective>(last, call) || may_have_devices()) return false;
    const Addresses now = {call.in.address, const_cast<void*>(call.out.address)};
    Addresses got = {last.from, last.to};
    if (now.in != last.in.address || now.out != last.out.address) {
      if (!moves(last, now)) return false;
      got = {last.from != nullptr ? now.in : nullptr, last.to != nullptr ? now.out : nullptr};
    }
    // Of bcast carillon gets one buffer, whichever side it is on here.
    if constexpr (kCollective == Collective::kBcast) {
      got.in = got.out = got.out != nullptr ? got.out : const_cast<void*>(got.in);
    }
    crl_status_t status = CRL_OK;
    if (crl_repeat(communicator->team, last.repeatable, got.in, got.out, &status) == 0)
      return false;
    if (status == CRL_OK) [[likely]] {
      communicator->count(call_index(kCollective));
    } else {
      *code = raise_carillon_error(communicator->handle, status, call_index(kCollective));
    }
    return true;
  }
  return false;
}

/// To be asked for as a call begins: while it blocks, another thread may free what it uses, and get
/// the handle for something else.
inline Generations generations_now() {
  return {.types = g_types.now(), .reductions = g_reductions.now()};
}

/// A call that blocks has succeeded, with blocks of so many bytes; got: by carillon. If there is no
/// memory to remember it, calls stay as long as they are.
template <Collective kCollective>
inline void remember(Communicator& communicator, const Call& call, const Generations& began,
                     Addresses got, std::int64_t bytes) {
  constexpr Rule kRule = rule_of(kCollective);
  std::unique_ptr<LastCall>& last = communicator.last_calls[place_of_last(kCollective)];
  if (last == nullptr) [[unlikely]] {
    last.reset(new (std::nothrow) LastCall);
    if (last == nullptr) return;
  }
  // As same_address and run_reduction look at it (run.h).
  std::int64_t aliased_bytes = 0;
  if (kRule.kind == Kind::kData && kRule.in.block_per_rank != kRule.out.block_per_rank) {
    aliased_bytes = communicator.rank * (kRule.out.block_per_rank ? bytes : -bytes);
  }
  const auto as_given = [](const void* address, const void* given, At at) {
    if (address == nullptr) return at != At::kAll;  // it does not count here
    return address == given && address != CRL_IN_PLACE;
  };
  const bool moves = as_given(got.in, call.in.address, kRule.in.at) &&
                     as_given(got.out, call.out.address, kRule.out.at);
  *last = {.in = call.in,
           .out = call.out,
           .op = call.op,
           .root = call.root,
           .began = began,
           .from = got.in,
           .to = got.out,
           .moves = moves,
           .aliased_bytes = aliased_bytes,
           .repeatable = crl_team_last_call(communicator.team)};
}

}  // namespace carillon::shim
