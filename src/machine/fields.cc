// SPDX-License-Identifier: Apache-2.0
#include "machine/fields.h"

#include <array>
#include <cmath>

#include "switch/protocol/protocol.h"

namespace carillon::machine {
namespace {

template <auto Section, auto Member>
constexpr Field row(std::string_view section, std::string_view key, Unit unit, bool required,
                    std::string_view meaning) {
  return {section,
          key,
          unit,
          required,
          meaning,
          [](const Machine& m) { return static_cast<std::int64_t>(m.*Section.*Member); },
          [](Machine& m, std::int64_t value) {
            auto& at = m.*Section.*Member;
            at = static_cast<std::remove_reference_t<decltype(at)>>(value);
          }};
}

constexpr bool kMust = true;
constexpr bool kMay = false;

template <auto Member>
constexpr Field network(std::string_view key, Unit unit, bool required, std::string_view meaning) {
  return row<&Machine::network, Member>("network", key, unit, required, meaning);
}
template <auto Member>
constexpr Field bus(std::string_view key, Unit unit, bool required, std::string_view meaning) {
  return row<&Machine::bus, Member>("bus", key, unit, required, meaning);
}
template <auto Member>
constexpr Field one_sided(std::string_view key, Unit unit, bool required,
                          std::string_view meaning) {
  return row<&Machine::one_sided, Member>("one_sided", key, unit, required, meaning);
}
template <auto Member>
constexpr Field two_sided(std::string_view key, Unit unit, bool required,
                          std::string_view meaning) {
  return row<&Machine::two_sided, Member>("two_sided", key, unit, required, meaning);
}
template <auto Member>
constexpr Field memory(std::string_view key, Unit unit, bool required, std::string_view meaning) {
  return row<&Machine::memory, Member>("memory", key, unit, required, meaning);
}
template <auto Member>
constexpr Field shared(std::string_view key, Unit unit, bool required, std::string_view meaning) {
  return row<&Machine::shared_memory, Member>("shared_memory", key, unit, required, meaning);
}
template <auto Member>
constexpr Field datagram(std::string_view key, Unit unit, std::string_view meaning) {
  return row<&Machine::datagram, Member>("datagram", key, unit, kMust, meaning);
}
template <auto Member>
constexpr Field multicast(std::string_view key, Unit unit, std::string_view meaning) {
  return row<&Machine::multicast, Member>("multicast", key, unit, kMust, meaning);
}
template <auto Member>
constexpr Field in_switch(std::string_view key, Unit unit, std::string_view meaning) {
  return row<&Machine::in_switch, Member>("switch", key, unit, kMust, meaning);
}
template <auto Member>
constexpr Field node(std::string_view key, Unit unit, bool required, std::string_view meaning) {
  return row<&Machine::node, Member>("node", key, unit, required, meaning);
}

using enum Unit;

constexpr std::array kFields = {
    network<&Network::latency_ps>("latency_ns", kNs, kMust,
                                  "L: last byte out of one NIC to last byte in another"),
    network<&Network::send_overhead_ps>("send_overhead_ns", kNs, kMust,
                                        "o_s: CPU time per message, however it is sent"),
    network<&Network::send_byte_fs>("send_ns_per_byte", kNsPerByte, kMay,
                                    "and per byte, where it hands the payload to a socket"),
    network<&Network::recv_overhead_ps>("recv_overhead_ns", kNs, kMust,
                                        "o_r: CPU time per message, however it is received"),
    network<&Network::gap_ps>("gap_ns", kNs, kMust,
                              "g: from the end of a message to the start of the next one"),
    network<&Network::per_byte_fs>("ns_per_byte", kNsPerByte, kMust,
                                   "G: the NIC and its link, in each direction"),
    network<&Network::gather_ps>("gather_ns", kNs, kMay, "NIC time per list entry after the first"),
    network<&Network::max_entries>("max_entries", kCount, kMay,
                                   "longest list; longer ones are packed by a copy"),
    network<&Network::send_queue>("send_queue", kCount, kMay,
                                  "messages posted, not yet sent, before a post waits"),
    network<&Network::fragment_bytes>("fragment_bytes", kBytes, kMay,
                                      "MTU where the sender pays per fragment"),
    network<&Network::fragment_ps>("fragment_ns", kNs, kMay,
                                   "NIC time per fragment after the first"),
    bus<&Bus::per_message_ps>("per_message_ns", kNs, kMust, "bus time per message"),
    bus<&Bus::per_byte_fs>("ns_per_byte", kNsPerByte, kMust, "the bus between memory and NIC"),
    bus<&Bus::cut_through>("cut_through", kFlag, kMay, "bytes go on before the last has come"),
    bus<&Bus::half_duplex>("half_duplex", kFlag, kMay, "both directions share the bus"),
    one_sided<&OneSided::post_ps>("post_ns", kNs, kMust, "CPU time to write a request"),
    one_sided<&OneSided::doorbell_ps>("doorbell_ns", kNs, kMust, "CPU time to tell the NIC of it"),
    one_sided<&OneSided::poll_ps>("poll_ns", kNs, kMust,
                                  "CPU time to look at a slot and find the message there"),
    one_sided<&OneSided::inline_bytes>("inline_bytes", kBytes, kMay,
                                       "longest payload that is part of the request"),
    one_sided<&OneSided::inline_byte_fs>("inline_ns_per_byte", kNsPerByte, kMay,
                                         "CPU time per byte of such a payload"),
    one_sided<&OneSided::stage_puts>("stage_puts", kFlag, kMay,
                                     "longer payloads are first copied into registered memory"),
    one_sided<&OneSided::stage_input>("stage_input", kFlag, kMay,
                                      "a call begins by copying its input into registered memory"),
    one_sided<&OneSided::stage_output>(
        "stage_output", kFlag, kMay, "a call ends by copying its output out of registered memory"),
    two_sided<&TwoSided::post_ps>("post_ns", kNs, kMust, "CPU time to post a send, or a receive"),
    two_sided<&TwoSided::match_ps>("match_ns", kNs, kMust,
                                   "CPU time to find the receive of a message that has come"),
    two_sided<&TwoSided::eager_bytes>("eager_bytes", kBytes, kMust,
                                      "longest payload that goes along at once"),
    two_sided<&TwoSided::copy_in>("copy_in", kFlag, kMay,
                                  "eager payloads are copied into a buffer"),
    two_sided<&TwoSided::copy_out>("copy_out", kFlag, kMay, "and out of one"),
    two_sided<&TwoSided::rendezvous_ps>(
        "rendezvous_ns", kNs, kMust,
        "CPU time on either side per request or answer of longer ones"),
    memory<&Memory::copy_ps>("copy_ns", kNs, kMust, "per copy"),
    memory<&Memory::copy_block_ps>("copy_block_ns", kNs, kMay, "per entry of its two lists"),
    memory<&Memory::copy_run_ps>("copy_run_ns", kNs, kMay, "per contiguous run of it"),
    memory<&Memory::copy_cached_fs>("copy_cached_ns_per_byte", kNsPerByte, kMust,
                                    "per byte copied, if twice the bytes fit the cache"),
    memory<&Memory::copy_byte_fs>("copy_ns_per_byte", kNsPerByte, kMust, "per byte copied, if not"),
    memory<&Memory::cache_bytes>("cache_bytes", kBytes, kMust, "the cache of a core"),
    memory<&Memory::reduce_ps>("reduce_ns", kNs, kMust, "per reduction of two operands"),
    memory<&Memory::reduce_cached_fs>("reduce_cached_ns_per_byte", kNsPerByte, kMust,
                                      "per byte of the result, if three times the bytes fit"),
    memory<&Memory::reduce_byte_fs>("reduce_ns_per_byte", kNsPerByte, kMust,
                                    "per byte of the result, if not"),
    memory<&Memory::node_byte_fs>("node_ns_per_byte", kNsPerByte, kMay,
                                  "per byte, of the memory that the ranks of a node share"),
    memory<&Memory::compute_slowdown_permille>(
        "compute_slowdown", kRatio, kMay,
        "how much longer computing takes while the node's memory is busy"),
    shared<&SharedMemory::latency_ps>("latency_ns", kNs, kMust,
                                      "from a write to when a reader sees it"),
    shared<&SharedMemory::overhead_ps>("overhead_ns", kNs, kMust,
                                       "CPU time per message, on either side"),
    shared<&SharedMemory::line_bytes>("line_bytes", kBytes, kMay,
                                      "longest message that is one cache line"),
    shared<&SharedMemory::line_ps>("line_ns", kNs, kMay, "CPU time to write such a payload"),
    shared<&SharedMemory::write_ps>("write_ns", kNs, kMust, "CPU time per longer message"),
    shared<&SharedMemory::per_byte_fs>("ns_per_byte", kNsPerByte, kMust,
                                       "and per byte to write it"),
    shared<&SharedMemory::lent_ps>("lent_ns", kNs, kMay,
                                   "to read a message in the writer's private memory"),
    shared<&SharedMemory::lent_byte_fs>("lent_ns_per_byte", kNsPerByte, kMay,
                                        "and per byte; 0: none is read there"),
    shared<&SharedMemory::cross_latency_ps>("cross_latency_ns", kNs, kMay,
                                            "so much later from another NUMA domain"),
    shared<&SharedMemory::cross_byte_fs>(
        "cross_ns_per_byte", kNsPerByte, kMay,
        "per byte read from another domain, on a way that the ranks of a domain share"),
    datagram<&Datagram::mtu_bytes>("mtu_bytes", kBytes, "longest datagram"),
    datagram<&Datagram::fragment_ps>("fragment_ns", kNs, "CPU time per datagram, on either side"),
    datagram<&Datagram::deliver_ps>(
        "deliver_ns", kNs, "at a node, per datagram, for each process attached after the first"),
    multicast<&Multicast::replicate_ps>("replicate_ns", kNs, "in the switches, per level"),
    multicast<&Multicast::ack_ps>("ack_ns", kNs, "until the sender knows that all have it"),
    row<&Machine::multicast, &Multicast::patience_ps>(
        "multicast", "patience_ns", kNs, kMay,
        "from when a process waits to when it receives in place of its node's receiver"),
    in_switch<&InSwitch::ports>("ports", kCount, "children of a switch that reduces"),
    in_switch<&InSwitch::window>("window", kCount, "packets of a host in flight"),
    in_switch<&InSwitch::operand_bytes>("operand_bytes", kBytes, "longest operand of a packet"),
    in_switch<&InSwitch::header_bytes>("header_bytes", kBytes,
                                       "of a packet on the wire, beside its operand"),
    in_switch<&InSwitch::send_ps>("send_ns", kNs, "a host's CPU time per packet"),
    in_switch<&InSwitch::receive_ps>("receive_ns", kNs, "a host's CPU time per result"),
    in_switch<&InSwitch::nic_ps>("nic_ns", kNs,
                                 "between a host's memory and its link, in each direction"),
    in_switch<&InSwitch::link_ps>("link_ns", kNs,
                                  "delay of a wire with the MAC and PHY at its ends"),
    in_switch<&InSwitch::cycle_ps>("cycle_ns", kNs, "of the switch's clock"),
    in_switch<&InSwitch::beat_bytes>("beat_bytes", kCount, "bytes that a port moves in a cycle"),
    in_switch<&InSwitch::up_cycles>("up_cycles", kCount,
                                    "from the last contribution to what is made of it, beside "
                                    "the next two"),
    in_switch<&InSwitch::level_cycles>("level_cycles", kCount,
                                       "per level of the tree of operators over the ports"),
    in_switch<&InSwitch::beat_cycles>("beat_cycles", kCount,
                                      "per beat of the operand, for the tag in front of it"),
    in_switch<&InSwitch::down_cycles>("down_cycles", kCount, "of a result on its way down"),
    row<&Machine::topology, &Topology::hop_latency_ps>("topology", "hop_latency_ns", kNs, kMust,
                                                       "per switch after the first"),
    node<&Node::cores>("cores", kCount, kMust, "cores of a node"),
    node<&Node::ranks>("ranks", kCount, kMust, "ranks placed on a node unless asked otherwise"),
    node<&Node::switch_ps>("switch_ns", kNs, kMay,
                           "from when a rank waits to when the next one of its core goes on"),
    node<&Node::nodes_per_host>("nodes_per_host", kCount, kMay,
                                "nodes of a virtual cluster that share their host's cores"),
    node<&Node::shared_ps>("shared_ns", kNs, kMay,
                           "CPU time to take a message between nodes, where ranks share cores"),
    node<&Node::shared_byte_fs>("shared_ns_per_byte", kNsPerByte, kMay, "and per byte of it"),
    node<&Node::backlog_bytes>("backlog_bytes", kBytes, kMay,
                               "of more bytes than these that wait for a core"),
    node<&Node::backlog_byte_fs>("backlog_ns_per_byte", kNsPerByte, kMay, "so much more"),
};

struct Limits {
  double scale, least, most;
};

constexpr Limits limits_of(Unit unit) {
  switch (unit) {
    case kNs: return {1e3, 0, 1e9};         // to a second
    case kNsPerByte: return {1e6, 0, 1e6};  // down to a kilobyte per second
    case kBytes: return {1, 0, 1LL << 40};
    case kCount: return {1, 1, 1 << 20};
    case kRatio: return {1e3, 0, 1e3};
    case kFlag: return {1, 0, 1};
  }
  return {1, 0, 0};
}

}  // namespace

std::string Field::name() const { return std::string(section) + "." + std::string(key); }
double Field::scale() const { return limits_of(unit).scale; }
// Of switches as the protocol has it; and so that what a packet costs, in a tree of twenty levels
// and a byte a cycle, is less than kLastPs.
double Field::most() const {
  if (section != "switch") return limits_of(unit).most;
  if (key == "ports") return aggregate::kMaxChildren;
  if (key == "window") return aggregate::kMaxWindow;
  if (key == "operand_bytes" || key == "header_bytes") return aggregate::kMaxOperandBytes;
  if (key == "cycle_ns") return 1e5;
  if (key.ends_with("_cycles")) return 1 << 16;
  return limits_of(unit).most;
}
bool Field::is_power_of_two() const { return section == "switch" && key == "window"; }
// Nothing arrives before it was sent: the simulator's steps are as long as the latency. A tree has
// an end, and a packet, a fragment and a datagram something in it.
double Field::least() const {
  if (key == "latency_ns" || key == "link_ns") return 1e-3;
  if (key == "ports") return 2;
  if (key == "operand_bytes" || key == "fragment_bytes" || key == "mtu_bytes") return 1;
  return limits_of(unit).least;
}

double Field::value(const Machine& machine) const {
  return static_cast<double>(get(machine)) / scale();
}

void Field::set_value(Machine& machine, double value) const {
  set(machine, std::llround(value * scale()));
}

std::span<const Field> fields() { return kFields; }

const Field* find_field(std::string_view name) {
  for (const Field& field : kFields) {
    if (field.name() == name) return &field;
  }
  return nullptr;
}

bool section_is_optional(std::string_view section) {
  return section == "bus" || section == "datagram" || section == "multicast" ||
         section == "switch" || section == "topology";
}

}  // namespace carillon::machine
