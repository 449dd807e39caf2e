// SPDX-License-Identifier: Apache-2.0
//
// The switch protocol: names, numbers and records (docs/switch-protocol.md).
// Made by switch/protocol/generate.py from protocol.toml; edit that.
// clang-format off
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "switch/protocol/big_endian.h"

namespace carillon::aggregate {

/// of this protocol; packets of another one are dropped
inline constexpr std::uint32_t kVersion = 1;
/// where a switch listens, unless it is told otherwise
inline constexpr std::uint32_t kUdpPort = 27182;
/// child ports of a switch
inline constexpr std::uint32_t kMaxChildren = 64;
/// packets that a group has in flight; a window is a power of two
inline constexpr std::uint32_t kMaxWindow = 1024;
/// slots per packet of the window: one collects, one keeps a result that somebody may lack
inline constexpr std::uint32_t kSlotsPerWindow = 2;
/// of a packet that is not part of a burst, at most
inline constexpr std::uint32_t kBlockOperandBytes = 256;
/// of a packet of a burst, on a path of 1,500 bytes
inline constexpr std::uint32_t kBurstOperandBytes = 1408;
/// of a packet of a burst, on any path
inline constexpr std::uint32_t kMaxOperandBytes = 8192;
/// the child of a result: the same bytes go to all
inline constexpr std::uint32_t kAllChildren = 65535;
/// of a switch
inline constexpr std::uint32_t kMaxNumber = 1023;
/// lower bits of a group's id, below the number of the switch that allotted it
inline constexpr std::uint32_t kGroupCounterBits = 22;
/// Ethernet, IPv4 without options, UDP
inline constexpr std::uint32_t kFrameHeaderBytes = 42;

/// no operand follows: the port is absent from the reduction, but has arrived
inline constexpr std::uint8_t kEmptyFlag = 1U << 0;
/// one of several packets, or a long one
inline constexpr std::uint8_t kBurstFlag = 1U << 1;
/// the last packet of its message
inline constexpr std::uint8_t kLastFlag = 1U << 2;
/// sent before; counted, and otherwise without meaning
inline constexpr std::uint8_t kAgainFlag = 1U << 3;
inline constexpr std::uint8_t kAllFlags = 0xf;

/// What a packet is. The first three carry operands and results, the others control.
enum class Kind : std::uint8_t {
  kContribute = 1,  ///< an operand, from a child to its switch
  kResult = 2,  ///< the result, from a switch to its children
  kRefuse = 3,  ///< a switch does not take the contribution
  kFallBack = 4,  ///< between hosts of a group: the sender does without the switch
  kAskLimits = 16,  ///< what the switch can hold
  kLimits = 17,  ///< the answer
  kInstallJob = 18,  ///< a job may use the switch from now on
  kJobInstalled = 19,  ///< the answer
  kRemoveJob = 20,  ///< the job and its groups end
  kJobRemoved = 21,  ///< the answer
  kBuildGroup = 22,  ///< this switch's part of a tree
  kGroupBuilt = 23,  ///< the answer
  kFreeGroup = 24,  ///< the group ends
  kGroupFreed = 25,  ///< the answer
  kRefuseControl = 26,  ///< the answer to a request that cannot be met
};
constexpr bool is_known(Kind value) {
  switch (value) {
    case Kind::kContribute:
    case Kind::kResult:
    case Kind::kRefuse:
    case Kind::kFallBack:
    case Kind::kAskLimits:
    case Kind::kLimits:
    case Kind::kInstallJob:
    case Kind::kJobInstalled:
    case Kind::kRemoveJob:
    case Kind::kJobRemoved:
    case Kind::kBuildGroup:
    case Kind::kGroupBuilt:
    case Kind::kFreeGroup:
    case Kind::kGroupFreed:
    case Kind::kRefuseControl: return true;
  }
  return false;
}
constexpr std::string_view name_of(Kind value) {
  switch (value) {
    case Kind::kContribute: return "contribute";
    case Kind::kResult: return "result";
    case Kind::kRefuse: return "refuse";
    case Kind::kFallBack: return "fall_back";
    case Kind::kAskLimits: return "ask_limits";
    case Kind::kLimits: return "limits";
    case Kind::kInstallJob: return "install_job";
    case Kind::kJobInstalled: return "job_installed";
    case Kind::kRemoveJob: return "remove_job";
    case Kind::kJobRemoved: return "job_removed";
    case Kind::kBuildGroup: return "build_group";
    case Kind::kGroupBuilt: return "group_built";
    case Kind::kFreeGroup: return "free_group";
    case Kind::kGroupFreed: return "group_freed";
    case Kind::kRefuseControl: return "refuse_control";
  }
  return "unknown";
}

/// What a switch computes.
enum class Op : std::uint8_t {
  kSum = 0,  ///< integers wrap around
  kMin = 1,  ///< of floats: a NaN if there is one; -0 is less than +0
  kMax = 2,  ///< the same
  kAnd = 3,  ///< bit by bit, of integers only
  kOr = 4,  ///< bit by bit, of integers only
  kXor = 5,  ///< bit by bit, of integers only
};
constexpr bool is_known(Op value) {
  switch (value) {
    case Op::kSum:
    case Op::kMin:
    case Op::kMax:
    case Op::kAnd:
    case Op::kOr:
    case Op::kXor: return true;
  }
  return false;
}
constexpr std::string_view name_of(Op value) {
  switch (value) {
    case Op::kSum: return "sum";
    case Op::kMin: return "min";
    case Op::kMax: return "max";
    case Op::kAnd: return "and";
    case Op::kOr: return "or";
    case Op::kXor: return "xor";
  }
  return "unknown";
}

/// Of the elements, which are little-endian.
enum class Type : std::uint8_t {
  kInt32 = 0,  ///< two's complement
  kInt64 = 1,  ///< two's complement
  kFloat32 = 2,  ///< IEEE 754 binary32
  kFloat64 = 3,  ///< IEEE 754 binary64
};
constexpr bool is_known(Type value) {
  switch (value) {
    case Type::kInt32:
    case Type::kInt64:
    case Type::kFloat32:
    case Type::kFloat64: return true;
  }
  return false;
}
constexpr std::string_view name_of(Type value) {
  switch (value) {
    case Type::kInt32: return "int32";
    case Type::kInt64: return "int64";
    case Type::kFloat32: return "float32";
    case Type::kFloat64: return "float64";
  }
  return "unknown";
}

/// Why something is refused.
enum class Reason : std::uint16_t {
  kNone = 0,  ///< it is not
  kUnknownJob = 1,  ///< the switch has no such job, and no key: the refusal has the tag of what it refuses
  kUnknownGroup = 2,  ///< the job has no such group here
  kMismatch = 3,  ///< children disagree about a packet
  kTooLarge = 4,  ///< the operand is longer than the group's packets
  kNoRoom = 5,  ///< no memory or no table entry is free
  kQuota = 6,  ///< the job has as much as it may have
  kBadTree = 7,  ///< the description of the group cannot be
  kJobDiffers = 8,  ///< there is such a job, of another instance
  kGroupDiffers = 9,  ///< there is such a group, of another shape
};
constexpr bool is_known(Reason value) {
  switch (value) {
    case Reason::kNone:
    case Reason::kUnknownJob:
    case Reason::kUnknownGroup:
    case Reason::kMismatch:
    case Reason::kTooLarge:
    case Reason::kNoRoom:
    case Reason::kQuota:
    case Reason::kBadTree:
    case Reason::kJobDiffers:
    case Reason::kGroupDiffers: return true;
  }
  return false;
}
constexpr std::string_view name_of(Reason value) {
  switch (value) {
    case Reason::kNone: return "none";
    case Reason::kUnknownJob: return "unknown_job";
    case Reason::kUnknownGroup: return "unknown_group";
    case Reason::kMismatch: return "mismatch";
    case Reason::kTooLarge: return "too_large";
    case Reason::kNoRoom: return "no_room";
    case Reason::kQuota: return "quota";
    case Reason::kBadTree: return "bad_tree";
    case Reason::kJobDiffers: return "job_differs";
    case Reason::kGroupDiffers: return "group_differs";
  }
  return "unknown";
}

/// In front of every packet. The tag covers all but itself.
struct Header {
  std::uint8_t version = {};  ///< of the protocol
  Kind kind = {};  ///< what follows
  std::uint8_t flags = {};
  Op op = {};  ///< of operands and results, else 0
  Type type = {};  ///< of operands and results, else 0
  std::uint8_t zero = {};  ///< for later versions
  std::uint16_t count = {};  ///< elements of this packet, also if it is empty
  std::uint32_t job = {};  ///< that is meant; 0: none
  std::uint32_t group = {};  ///< of the job
  std::uint32_t sequence = {};  ///< of the group's packets, from 0; of control: of the request
  std::uint32_t offset = {};  ///< elements of the message before this packet
  std::uint16_t slot = {};  ///< sequence modulo the group's slots
  std::uint16_t child = {};  ///< the sender's port at the switch, or all_children
  Reason reason = {};  ///< of a refusal
  std::uint64_t tag = {};  ///< SipHash-2-4 with the job's key, or the administrator's
  bool operator==(const Header&) const = default;
};
inline constexpr std::size_t kHeaderBytes = 38;
inline constexpr std::size_t kHeaderVersionAt = 0;
inline constexpr std::size_t kHeaderKindAt = 1;
inline constexpr std::size_t kHeaderFlagsAt = 2;
inline constexpr std::size_t kHeaderOpAt = 3;
inline constexpr std::size_t kHeaderTypeAt = 4;
inline constexpr std::size_t kHeaderZeroAt = 5;
inline constexpr std::size_t kHeaderCountAt = 6;
inline constexpr std::size_t kHeaderJobAt = 8;
inline constexpr std::size_t kHeaderGroupAt = 12;
inline constexpr std::size_t kHeaderSequenceAt = 16;
inline constexpr std::size_t kHeaderOffsetAt = 20;
inline constexpr std::size_t kHeaderSlotAt = 24;
inline constexpr std::size_t kHeaderChildAt = 26;
inline constexpr std::size_t kHeaderReasonAt = 28;
inline constexpr std::size_t kHeaderTagAt = 30;
inline void store(std::byte* to, const Header& header) {
  store_big(to + kHeaderVersionAt, header.version);
  store_big(to + kHeaderKindAt, static_cast<std::uint8_t>(header.kind));
  store_big(to + kHeaderFlagsAt, header.flags);
  store_big(to + kHeaderOpAt, static_cast<std::uint8_t>(header.op));
  store_big(to + kHeaderTypeAt, static_cast<std::uint8_t>(header.type));
  store_big(to + kHeaderZeroAt, header.zero);
  store_big(to + kHeaderCountAt, header.count);
  store_big(to + kHeaderJobAt, header.job);
  store_big(to + kHeaderGroupAt, header.group);
  store_big(to + kHeaderSequenceAt, header.sequence);
  store_big(to + kHeaderOffsetAt, header.offset);
  store_big(to + kHeaderSlotAt, header.slot);
  store_big(to + kHeaderChildAt, header.child);
  store_big(to + kHeaderReasonAt, static_cast<std::uint16_t>(header.reason));
  store_big(to + kHeaderTagAt, header.tag);
}
inline Header load_header(const std::byte* from) {
  Header header;
  header.version = load_big<std::uint8_t>(from + kHeaderVersionAt);
  header.kind = static_cast<Kind>(load_big<std::uint8_t>(from + kHeaderKindAt));
  header.flags = load_big<std::uint8_t>(from + kHeaderFlagsAt);
  header.op = static_cast<Op>(load_big<std::uint8_t>(from + kHeaderOpAt));
  header.type = static_cast<Type>(load_big<std::uint8_t>(from + kHeaderTypeAt));
  header.zero = load_big<std::uint8_t>(from + kHeaderZeroAt);
  header.count = load_big<std::uint16_t>(from + kHeaderCountAt);
  header.job = load_big<std::uint32_t>(from + kHeaderJobAt);
  header.group = load_big<std::uint32_t>(from + kHeaderGroupAt);
  header.sequence = load_big<std::uint32_t>(from + kHeaderSequenceAt);
  header.offset = load_big<std::uint32_t>(from + kHeaderOffsetAt);
  header.slot = load_big<std::uint16_t>(from + kHeaderSlotAt);
  header.child = load_big<std::uint16_t>(from + kHeaderChildAt);
  header.reason = static_cast<Reason>(load_big<std::uint16_t>(from + kHeaderReasonAt));
  header.tag = load_big<std::uint64_t>(from + kHeaderTagAt);
  return header;
}

/// What a switch can hold, and has free. Payload of limits.
struct Limits {
  std::uint16_t children = {};  ///< ports of a group
  std::uint16_t window = {};  ///< packets of a group in flight
  std::uint16_t operand_bytes = {};  ///< of a packet
  std::uint16_t number = {};  ///< the switch's: the upper bits of the group ids that it allots
  std::uint32_t groups = {};  ///< table entries
  std::uint32_t free_groups = {};  ///< of these
  std::uint64_t memory_bytes = {};  ///< for slots
  std::uint64_t free_memory_bytes = {};  ///< of these
  bool operator==(const Limits&) const = default;
};
inline constexpr std::size_t kLimitsBytes = 32;
inline constexpr std::size_t kLimitsChildrenAt = 0;
inline constexpr std::size_t kLimitsWindowAt = 2;
inline constexpr std::size_t kLimitsOperandBytesAt = 4;
inline constexpr std::size_t kLimitsNumberAt = 6;
inline constexpr std::size_t kLimitsGroupsAt = 8;
inline constexpr std::size_t kLimitsFreeGroupsAt = 12;
inline constexpr std::size_t kLimitsMemoryBytesAt = 16;
inline constexpr std::size_t kLimitsFreeMemoryBytesAt = 24;
inline void store(std::byte* to, const Limits& limits) {
  store_big(to + kLimitsChildrenAt, limits.children);
  store_big(to + kLimitsWindowAt, limits.window);
  store_big(to + kLimitsOperandBytesAt, limits.operand_bytes);
  store_big(to + kLimitsNumberAt, limits.number);
  store_big(to + kLimitsGroupsAt, limits.groups);
  store_big(to + kLimitsFreeGroupsAt, limits.free_groups);
  store_big(to + kLimitsMemoryBytesAt, limits.memory_bytes);
  store_big(to + kLimitsFreeMemoryBytesAt, limits.free_memory_bytes);
}
inline Limits load_limits(const std::byte* from) {
  Limits limits;
  limits.children = load_big<std::uint16_t>(from + kLimitsChildrenAt);
  limits.window = load_big<std::uint16_t>(from + kLimitsWindowAt);
  limits.operand_bytes = load_big<std::uint16_t>(from + kLimitsOperandBytesAt);
  limits.number = load_big<std::uint16_t>(from + kLimitsNumberAt);
  limits.groups = load_big<std::uint32_t>(from + kLimitsGroupsAt);
  limits.free_groups = load_big<std::uint32_t>(from + kLimitsFreeGroupsAt);
  limits.memory_bytes = load_big<std::uint64_t>(from + kLimitsMemoryBytesAt);
  limits.free_memory_bytes = load_big<std::uint64_t>(from + kLimitsFreeMemoryBytesAt);
  return limits;
}

/// Payload of install_job and remove_job. The key is not sent, but derived.
struct Job {
  std::uint64_t nonce = {};  ///< of this instance of the job; never the same twice
  std::uint32_t groups = {};  ///< that it may have at a time
  std::uint64_t memory_bytes = {};  ///< of slots that it may have
  bool operator==(const Job&) const = default;
};
inline constexpr std::size_t kJobBytes = 20;
inline constexpr std::size_t kJobNonceAt = 0;
inline constexpr std::size_t kJobGroupsAt = 8;
inline constexpr std::size_t kJobMemoryBytesAt = 12;
inline void store(std::byte* to, const Job& job) {
  store_big(to + kJobNonceAt, job.nonce);
  store_big(to + kJobGroupsAt, job.groups);
  store_big(to + kJobMemoryBytesAt, job.memory_bytes);
}
inline Job load_job(const std::byte* from) {
  Job job;
  job.nonce = load_big<std::uint64_t>(from + kJobNonceAt);
  job.groups = load_big<std::uint32_t>(from + kJobGroupsAt);
  job.memory_bytes = load_big<std::uint64_t>(from + kJobMemoryBytesAt);
  return job;
}

/// Payload of build_group, in front of one child per port. Header's group 0: allot an id.
struct Tree {
  std::uint32_t parent_ip = {};  ///< of the next switch; 0: this is the root
  std::uint16_t parent_port = {};  ///< of UDP
  std::uint16_t parent_child = {};  ///< this switch's port there
  std::uint16_t window = {};  ///< packets in flight
  std::uint16_t operand_bytes = {};  ///< of a packet, at most; a multiple of 8
  std::uint16_t children = {};  ///< that follow
  bool operator==(const Tree&) const = default;
};
inline constexpr std::size_t kTreeBytes = 14;
inline constexpr std::size_t kTreeParentIpAt = 0;
inline constexpr std::size_t kTreeParentPortAt = 4;
inline constexpr std::size_t kTreeParentChildAt = 6;
inline constexpr std::size_t kTreeWindowAt = 8;
inline constexpr std::size_t kTreeOperandBytesAt = 10;
inline constexpr std::size_t kTreeChildrenAt = 12;
inline void store(std::byte* to, const Tree& tree) {
  store_big(to + kTreeParentIpAt, tree.parent_ip);
  store_big(to + kTreeParentPortAt, tree.parent_port);
  store_big(to + kTreeParentChildAt, tree.parent_child);
  store_big(to + kTreeWindowAt, tree.window);
  store_big(to + kTreeOperandBytesAt, tree.operand_bytes);
  store_big(to + kTreeChildrenAt, tree.children);
}
inline Tree load_tree(const std::byte* from) {
  Tree tree;
  tree.parent_ip = load_big<std::uint32_t>(from + kTreeParentIpAt);
  tree.parent_port = load_big<std::uint16_t>(from + kTreeParentPortAt);
  tree.parent_child = load_big<std::uint16_t>(from + kTreeParentChildAt);
  tree.window = load_big<std::uint16_t>(from + kTreeWindowAt);
  tree.operand_bytes = load_big<std::uint16_t>(from + kTreeOperandBytesAt);
  tree.children = load_big<std::uint16_t>(from + kTreeChildrenAt);
  return tree;
}

/// A child of a tree. Address 0 and port 0: the port is absent.
struct Child {
  std::uint32_t ip = {};  ///< of a host or a switch
  std::uint16_t port = {};  ///< of UDP
  bool operator==(const Child&) const = default;
};
inline constexpr std::size_t kChildBytes = 6;
inline constexpr std::size_t kChildIpAt = 0;
inline constexpr std::size_t kChildPortAt = 4;
inline void store(std::byte* to, const Child& child) {
  store_big(to + kChildIpAt, child.ip);
  store_big(to + kChildPortAt, child.port);
}
inline Child load_child(const std::byte* from) {
  Child child;
  child.ip = load_big<std::uint32_t>(from + kChildIpAt);
  child.port = load_big<std::uint16_t>(from + kChildPortAt);
  return child;
}

}  // namespace carillon::aggregate
