// SPDX-License-Identifier: Apache-2.0
#include "check_compare.h"

#include <array>
#include <cstring>
#include <utility>

#include "call_site.h"
#include "datatype.h"
#include "neighbours.h"
#include "predefined.h"
#include "stats.h"

namespace carillon::shim {
namespace {

struct Head {
  static constexpr std::uint32_t kMagic = 0x63686b31;
  std::uint32_t magic = kMagic;
  std::uint32_t called = 0;
  std::int32_t root = 0;
  std::uint32_t zero = 0;
  std::uint64_t op = 0, ins = 0, outs = 0, text_bytes = 0;
};

std::uint64_t number_of(MPI_Op op) {
  constexpr std::uint64_t kProgramsOwn = 1000, kUnknown = 2000;
  if (const PredefinedOp* const known = find_predefined_op(op)) {
    return static_cast<std::uint64_t>(known->op) + 1;
  }
  int commutes = 0;
  if (op == g_host.op_null || host().Op_commutative(op, &commutes) != MPI_SUCCESS) return kUnknown;
  return kProgramsOwn + (commutes != 0 ? 1 : 0);
}

std::string name_of(std::uint64_t op) {
  static constexpr std::array kNames = {"MPI_SUM",  "MPI_PROD", "MPI_MIN",    "MPI_MAX",
                                        "MPI_BAND", "MPI_BOR",  "MPI_BXOR",   "MPI_LAND",
                                        "MPI_LOR",  "MPI_LXOR", "MPI_MINLOC", "MPI_MAXLOC"};
  static constexpr std::array kKinds = {CRL_SUM,  CRL_PROD, CRL_MIN,    CRL_MAX,
                                        CRL_BAND, CRL_BOR,  CRL_BXOR,   CRL_LAND,
                                        CRL_LOR,  CRL_LXOR, CRL_MINLOC, CRL_MAXLOC};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (op == static_cast<std::uint64_t>(kKinds[i]) + 1) return kNames[i];
  }
  return "an operator of its own";
}

std::string name_of(MPI_Datatype type) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (find_type(type) == nullptr || host().Type_get_name(type, name, &length) != MPI_SUCCESS) {
    return "no datatype";
  }
  return length > 0 ? name : "a derived datatype";
}

Signature block_signature(const Buffer& buffer, std::int64_t count) {
  return find_type(buffer.type) == nullptr ? Signature{.any = 1}
                                           : repeat(signature_of(buffer.type), count);
}

std::vector<Signature> signatures_of(const Buffer& buffer, const Blocks& blocks, int size) {
  if (blocks.counts == nullptr) return {block_signature(buffer, buffer.count)};
  std::vector<Signature> all(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    Buffer block = buffer;
    if (blocks.types != nullptr) block.type = blocks.types[rank];
    all[static_cast<std::size_t>(rank)] = block_signature(block, blocks.count(rank));
  }
  return all;
}

// By rank, of what goes to it in order. Nothing: whoever is no neighbour.
std::vector<Signature> signatures_of(const Buffer& buffer, const Blocks& blocks,
                                     const Neighbours::End& end, int size) {
  std::vector<Signature> all(static_cast<std::size_t>(size));
  for_each_block(end, [&](int rank, int i) {
    Buffer block = buffer;
    if (blocks.types != nullptr) block.type = blocks.types[i];
    const std::int64_t count = blocks.counts != nullptr ? blocks.count(i) : buffer.count;
    Signature& signature = all[static_cast<std::size_t>(rank)];
    signature = join(signature, block_signature(block, count));
  });
  return all;
}

std::string text_of(const Buffer& buffer, const Blocks& blocks) {
  if (blocks.types != nullptr) return "blocks of several types";
  if (blocks.counts != nullptr) return "blocks of " + name_of(buffer.type);
  return std::to_string(buffer.count) + " of " + name_of(buffer.type);
}

std::string text_of(const Rule& rule, const Description& description, const Call& call, bool has_in,
                    bool has_out) {
  std::string text = "MPI_" + call_name(description.called) + " (";
  const char* separator = "";
  const auto add = [&](const std::string& part) {
    text += separator + part;
    separator = ", ";
  };
  if (has_in) add(text_of(call.in, call.in_blocks));
  if (has_out && rule.kind != Kind::kReduction && rule.kind != Kind::kReduceScatter) {
    add((has_in ? "into " : "") + text_of(call.out, call.out_blocks));
  }
  if (description.op != 0) add(name_of(description.op));
  if (rule.rooted) add("root " + std::to_string(description.root));
  return text + ") at " + call_site();
}

std::string at(int rank) { return "rank " + std::to_string(rank); }

bool reduces(const Rule& rule) {
  return rule.kind == Kind::kReduction || rule.kind == Kind::kReduceScatter;
}

// What `from` has for `to`, or expects of it; null: nothing.
const Signature* block_of(const std::vector<Signature>& blocks, std::size_t peer) {
  if (blocks.empty()) return nullptr;
  return blocks.size() == 1 ? &blocks[0] : &blocks[peer];
}

// Among the first `last` + 1 ranks, with that last one.
std::optional<Difference> find_misfit(const std::vector<Description>& calls, std::size_t last) {
  for (std::size_t other = 0; other <= last; ++other) {
    for (const auto& [from, to] : {std::pair{other, last}, std::pair{last, other}}) {
      const Signature* const sent = block_of(calls[from].in, to);
      const Signature* const expected = block_of(calls[to].out, from);
      if (sent == nullptr || expected == nullptr || sent->fits(*expected)) continue;
      return Difference{
          static_cast<int>(last), static_cast<int>(other),
          at(static_cast<int>(from)) + " sends " + std::to_string(sent->elements) +
              " elements to " + at(static_cast<int>(to)) + ", which expects " +
              (sent->elements == expected->elements ? "elements of other types"
                                                    : std::to_string(expected->elements))};
    }
  }
  return std::nullopt;
}

std::string compare_alike(const Rule& rule, const Description& first, const Description& call) {
  if (call.called != first.called) return "another function";
  if (call.root != first.root) return "another root";
  if (call.op != first.op) return "another operator";
  if (!reduces(rule)) return {};
  if (call.in.size() != first.in.size()) return "other counts";
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    if (!call.in[i].fits(first.in[i])) return "another count or type of the operands";
  }
  return {};
}

}  // namespace

Description describe_call(std::size_t called, const Call& call, int rank, int size) {
  const Rule& rule = kRules[called % kCollectives];
  Description made{.called = static_cast<std::uint32_t>(called),
                   .root = rule.rooted ? call.root : 0,
                   .op = reduces(rule) ? number_of(call.op) : 0};
  const bool is_root = rule.rooted && call.root == rank;
  const bool place_in = rule.in_place == InPlace::kInput && call.in.address == MPI_IN_PLACE;
  const bool place_out = rule.in_place == InPlace::kOutput && call.out.address == MPI_IN_PLACE;
  const bool has_in = counts_at(rule.in.at, is_root) && (!place_in || reduces(rule));
  const bool has_out = counts_at(rule.out.at, is_root) && !place_out;
  if (rule.kind == Kind::kNeighbours) {
    const Neighbours found = find_neighbours(call.comm, rank);
    const auto collective = static_cast<Collective>(called % kCollectives);
    if (found.left_of(collective, grid_orders()) ==
        Reason::kNone) {  // else the host alone knows which block is whose
      made.in = signatures_of(call.in, call.in_blocks, found.destinations, size);
      made.out = signatures_of(call.out, call.out_blocks, found.sources_of(collective), size);
    }
  } else {
    if (has_in) made.in = signatures_of(call.in, call.in_blocks, size);
    if (has_out && !reduces(rule)) made.out = signatures_of(call.out, call.out_blocks, size);
  }
  made.text = text_of(rule, made, call, has_in, has_out);
  return made;
}

std::vector<std::byte> encode(const Description& description) {
  const Head head{.called = description.called,
                  .root = description.root,
                  .op = description.op,
                  .ins = description.in.size(),
                  .outs = description.out.size(),
                  .text_bytes = description.text.size()};
  std::vector<std::byte> bytes;
  const auto add = [&](const void* from, std::size_t count) {
    const auto* const begin = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), begin, begin + count);
  };
  add(&head, sizeof head);
  add(description.in.data(), description.in.size() * sizeof(Signature));
  add(description.out.data(), description.out.size() * sizeof(Signature));
  add(description.text.data(), description.text.size());
  return bytes;
}

std::optional<Description> decode_description(std::span<const std::byte> bytes) {
  Head head;
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  const std::size_t most = bytes.size() / sizeof(Signature);
  if (head.magic != Head::kMagic || head.called >= kCalls || head.ins > most || head.outs > most ||
      head.text_bytes > bytes.size() ||
      (head.ins + head.outs) * sizeof(Signature) + head.text_bytes != bytes.size()) {
    return std::nullopt;
  }
  Description made{.called = head.called, .root = head.root, .op = head.op};
  for (auto [list, count] : {std::pair{&made.in, head.ins}, std::pair{&made.out, head.outs}}) {
    list->resize(count);
    if (count > 0) std::memcpy(list->data(), bytes.data(), count * sizeof(Signature));
    bytes = bytes.subspan(count * sizeof(Signature));
  }
  made.text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return made;
}

std::optional<Difference> find_difference(const std::vector<Description>& calls) {
  const Rule& rule = kRules[calls[0].called % kCollectives];
  for (std::size_t rank = 0; rank < calls.size(); ++rank) {
    const std::string why = compare_alike(rule, calls[0], calls[rank]);
    if (!why.empty()) return Difference{static_cast<int>(rank), 0, why};
    const bool whole = (calls[rank].in.size() <= 1 || calls[rank].in.size() == calls.size()) &&
                       (calls[rank].out.size() <= 1 || calls[rank].out.size() == calls.size());
    if (!whole) return Difference{static_cast<int>(rank), 0, "other counts"};
    if (reduces(rule)) continue;
    if (auto misfit = find_misfit(calls, rank)) return misfit;
  }
  return std::nullopt;
}

}  // namespace carillon::shim
