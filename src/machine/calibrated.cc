// SPDX-License-Identifier: Apache-2.0
#include "machine/calibrated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "machine/fields.h"

namespace carillon::machine {
namespace {

// A message's time per byte between the two longer points, and what is left of it at 8 bytes.
double slope(const PingPong& pings) {
  const auto& [small, middle, large] = pings.points;
  const auto bytes = static_cast<double>(PingPong::kBytes[2] - PingPong::kBytes[1]);
  return std::max(0.0, (large.one_way_ns - middle.one_way_ns) / bytes);
}

class File {
 public:
  explicit File(const Measured& measured) : m_(measured) {}

  std::string text() {
    memory();
    shared_memory();
    network();
    std::string text = fmt::format(
        "# SPDX-License-Identifier: Apache-2.0\n#\n# Measured by carillon calibrate: ping-pongs of "
        "two ranks, copies and reductions.\n{1}title = \"{0}\"\n\n[sources]\n"
        "measured = \"carillon calibrate: {0}\"\n",
        m_.where, ping_pongs());
    std::string_view section;
    for (const Field& field : fields()) {
      const auto found = lines_.find(field.name());
      if (found == lines_.end()) continue;
      if (field.section != section) text += fmt::format("\n[{}]\n", section = field.section);
      text += fmt::format("{} = {{{}}}\n", field.key, found->second);
    }
    return text;
  }

 private:
  // As they were measured, for a reader.
  [[nodiscard]] std::string ping_pongs() const {
    const std::pair<const char*, const PingPong&> rows[] = {
        {"one node", m_.node},
        {"one node, one core", m_.node_one_core},
        {"two nodes, put", m_.one_sided},
        {"two nodes, put, one core", m_.one_sided_one_core},
        {"two nodes, send", m_.two_sided}};
    std::string text = "#\n# One way (the root's call), ns, of 8 B, 4 KiB, 64 KiB:\n";
    for (const auto& [name, pings] : rows) {
      text += fmt::format("#   {:<25}", name);
      for (const PingPong::Point& point : pings.points) {
        text += fmt::format(" {:>7.0f} ({:.0f})", point.one_way_ns, point.root_ns);
      }
      text += '\n';
    }
    if (m_.lent_ns[0] > 0) {
      text += fmt::format("# One way, lent, ns, of 16 KiB, 64 KiB: {:.0f} {:.0f}\n", m_.lent_ns[0],
                          m_.lent_ns[1]);
    }
    return text;
  }
  void measured(const std::string& name, double value) {
    const Field* const field = find_field(name);
    lines_[name] = fmt::format("value = {:.9g}, source = \"measured\"",
                               std::clamp(value, field->least(), field->most()));
  }
  void guessed(const std::string& name, double value, double max, const char* why) {
    constexpr double kLeastRange = 1;
    lines_[name] = fmt::format("value = {:.6g}, min = 0, max = {:.6g}, estimate = \"{}\"", value,
                               std::max(max, value + kLeastRange), why);
  }
  void flag(const std::string& name, bool value, const char* why) {
    lines_[name] = fmt::format("value = {}, estimate = \"{}\"", value, why);
  }

  void memory() {
    const double run_ns = std::min(m_.copy_run_ns, m_.copy.call_ns);
    measured("memory.copy_ns", m_.copy.call_ns - run_ns);
    measured("memory.copy_run_ns", run_ns);
    measured("memory.copy_cached_ns_per_byte", m_.copy.cached_ns_per_byte);
    measured("memory.copy_ns_per_byte", m_.copy.ns_per_byte);
    measured("memory.cache_bytes", static_cast<double>(m_.cache_bytes));
    measured("memory.reduce_ns", m_.reduce.call_ns);
    measured("memory.reduce_cached_ns_per_byte", m_.reduce.cached_ns_per_byte);
    measured("memory.reduce_ns_per_byte", m_.reduce.ns_per_byte);
    measured("node.cores", m_.cores);
    measured("node.ranks", 1);
    measured("node.nodes_per_host", m_.nodes_per_host);
  }

  // A message is written (overhead, and per_byte), seen (latency), taken (overhead) and copied.
  void shared_memory() {
    const auto& [small, middle, large] = m_.node.points;
    const double overhead = std::min(small.root_ns, (small.one_way_ns - copy_ns(8)) / 2);
    const double latency = small.one_way_ns - 2 * overhead - copy_ns(8);
    const double per_byte = std::max(0.0, slope(m_.node) - m_.copy.cached_ns_per_byte);
    const double middle_rest =
        middle.one_way_ns - 2 * overhead - latency - copy_ns(4096) - 4096 * per_byte;
    measured("shared_memory.latency_ns", latency);
    measured("shared_memory.overhead_ns", overhead);
    measured("shared_memory.write_ns", std::max(0.0, middle_rest));
    measured("shared_memory.ns_per_byte", per_byte);
    lending(2 * overhead + latency);
    const double shared_core = m_.node_one_core.points[0].one_way_ns;
    switch_ns_ = std::max(0.0, shared_core - 2 * overhead - copy_ns(8));
    measured("node.switch_ns", switch_ns_);
  }

  // A lent message is told of, which takes `told`, and read.
  void lending(double told) {
    const auto [small, large] = m_.lent_ns;
    if (small <= 0 || large <= small) return;
    const double small_bytes = Measured::kLentBytes[0], large_bytes = Measured::kLentBytes[1];
    const double per_byte = (large - small) / (large_bytes - small_bytes);
    measured("shared_memory.lent_ns", small - told - small_bytes * per_byte);
    measured("shared_memory.lent_ns_per_byte", per_byte);
  }

  // A put is copied, posted (the root's call is over), carried, found and copied; a send the same,
  // with one copy more. What cannot be told apart is counted where it is first met.
  void network() {
    const double post = std::max(0.0, m_.one_sided.points[0].root_ns - copy_ns(8));
    const double rest = m_.one_sided.points[0].one_way_ns - post - 2 * copy_ns(8);
    // On one core nothing is on the wire: what is neither post nor switch is the reader's.
    const double shared_core = m_.one_sided_one_core.points[0].one_way_ns;
    const double reader = shared_core > 0 ? shared_core - switch_ns_ - post - 2 * copy_ns(8)
                                          : std::min(rest / 10, m_.node.points[0].root_ns);
    const double poll = std::clamp(reader, 0.0, std::max(0.0, rest));
    const double copied = 2 * m_.copy.cached_ns_per_byte;
    const double all_bytes = std::max(0.0, slope(m_.one_sided) - copied);
    const auto& [small, middle, large] = m_.one_sided.points;
    const double posted = (large.root_ns - middle.root_ns) /
                          static_cast<double>(PingPong::kBytes[2] - PingPong::kBytes[1]);
    const double send_byte = std::clamp(posted - m_.copy.cached_ns_per_byte, 0.0, all_bytes);
    const double per_byte = all_bytes - send_byte;
    measured("network.latency_ns", rest - poll - 8 * all_bytes);
    measured("network.send_ns_per_byte", send_byte);
    measured("network.send_overhead_ns", 0);
    measured("network.recv_overhead_ns", 0);
    guessed("network.gap_ns", 0, post, "not told from the time of a post");
    measured("network.ns_per_byte", per_byte);
    measured("one_sided.post_ns", post);
    measured("one_sided.doorbell_ns", 0);
    if (shared_core > 0) {
      measured("one_sided.poll_ns", poll);
    } else {
      guessed("one_sided.poll_ns", poll, rest, "not told from the latency");
    }
    flag("one_sided.stage_puts", true, "messages are copied into registered buffers");
    const double send = std::max(0.0, m_.two_sided.points[0].root_ns - copy_ns(8));
    const double more = m_.two_sided.points[0].one_way_ns - send - 3 * copy_ns(8) - (rest - poll);
    measured("two_sided.post_ns", send);
    measured("two_sided.match_ns", std::max(0.0, more));
    measured("two_sided.eager_bytes", static_cast<double>(PingPong::kBytes[2]));
    guessed("two_sided.rendezvous_ns", send, 10 * send, "messages are never that long");
    shared_cores(copied + send_byte);
  }

  // On one core all that a message takes is CPU time: per byte of shorter ones and of longer ones,
  // two lines, which meet where messages become long. `known`: what of it is counted elsewhere.
  void shared_cores(double known) {
    const double bytes = PingPong::kBytes[2], long_bytes = Measured::kLongBytes[0];
    const double ns = m_.one_sided_one_core.points[2].one_way_ns;
    const auto [long_ns, longest_ns] = m_.long_one_core_ns;
    if (ns <= 0) return;
    // A ping-pong has a switch per message; bursts have one per burst, but nobody waits in vain.
    const double in_burst =
        m_.one_sided_one_core.points[0].one_way_ns - switch_ns_ * (1 - 1.0 / Measured::kBurst);
    measured("node.shared_ns", std::max(0.0, m_.burst_one_core_ns - in_burst));
    const double per_byte = slope(m_.one_sided_one_core);
    measured("node.shared_ns_per_byte", std::max(0.0, per_byte - known));
    const double long_per_byte =
        (longest_ns - long_ns) / static_cast<double>(Measured::kLongBytes[1] - long_bytes);
    if (long_ns <= 0 || long_per_byte <= per_byte) return;
    const double meet =
        (long_ns - ns + bytes * per_byte - long_bytes * long_per_byte) / (per_byte - long_per_byte);
    measured("node.backlog_bytes",
             std::clamp<double>(std::round(meet), bytes, Measured::kLongBytes[1]));
    measured("node.backlog_ns_per_byte", long_per_byte - per_byte);
  }

  [[nodiscard]] double copy_ns(double bytes) const {
    return m_.copy.call_ns + bytes * m_.copy.cached_ns_per_byte;
  }

  const Measured& m_;
  double switch_ns_ = 0;
  std::map<std::string, std::string> lines_;
};

}  // namespace

std::string calibrated_file(const Measured& measured) { return File(measured).text(); }

}  // namespace carillon::machine
