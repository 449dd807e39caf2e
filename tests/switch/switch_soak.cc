// SPDX-License-Identifier: Apache-2.0
//
// switch_soak build|host --NAME VALUE...: builds a group on one switch and prints its number; is a
// host of it, makes calls, checks each element and prints how long they took. For networks of
// namespaces: carillon switchd is the switch.
//
//   both   --key FILE --switch IP:PORT --window N --operand-bytes N
//   build  --children IP:PORT,IP:PORT,...
//   host   --at IP:PORT --child N --hosts N --group N --count N --calls N
#include <arpa/inet.h>
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/aggregate/control.h"
#include "transport/aggregate/stream.h"
#include "transport/aggregate/udp_port.h"

namespace carillon::aggregate {
namespace {

constexpr std::uint32_t kJob = 1;
constexpr std::uint64_t kNonce = 12;

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "switch_soak: %s\n", what.c_str());
  std::exit(1);
}

class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 2; i + 1 < argc; i += 2) values_[argv[i]] = argv[i + 1];
  }
  const std::string& text(const char* name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) fail(std::string("what is ") + name + "?");
    return found->second;
  }
  std::uint64_t number(const char* name) const { return std::stoull(text(name)); }
  Endpoint endpoint(const char* name) const { return parse(text(name)); }
  std::vector<Endpoint> endpoints(const char* name) const {
    std::vector<Endpoint> all;
    const std::string& list = text(name);
    for (std::size_t at = 0; at < list.size();) {
      const std::size_t end = std::min(list.find(',', at), list.size());
      all.push_back(parse(list.substr(at, end - at)));
      at = end + 1;
    }
    return all;
  }
  SipKey key() const {
    std::ifstream file(text("--key"));
    std::string digits;
    if (!(file >> digits) || digits.size() != 32) fail("no key in " + text("--key"));
    return {.low = std::stoull(digits.substr(16), nullptr, 16),
            .high = std::stoull(digits.substr(0, 16), nullptr, 16)};
  }

 private:
  static Endpoint parse(const std::string& text) {
    const std::size_t colon = text.find(':');
    in_addr ip = {};
    if (colon == std::string::npos || inet_pton(AF_INET, text.substr(0, colon).c_str(), &ip) != 1) {
      fail(text + " is no IP:PORT");
    }
    return {ntohl(ip.s_addr), static_cast<std::uint16_t>(std::stoul(text.substr(colon + 1)))};
  }
  std::map<std::string, std::string> values_;
};

std::unique_ptr<UdpPort> open_port(const Endpoint& at) {
  auto port = UdpPort::open(at);
  if (!port.ok()) fail(port.status().to_string());
  return std::move(port.value());
}

template <typename Take>
class Listener final : public DatagramListener {
 public:
  explicit Listener(const Take& take) : take_(take) {}
  void on_datagram(const Endpoint& from, std::span<const std::byte> datagram) override {
    take_(from, datagram);
  }

 private:
  const Take& take_;
};

void wait(const UdpPort& port, std::int64_t until_ns) {
  const std::int64_t ms = (until_ns - now_ns()) / 1'000'000 + 1;
  pollfd one = {.fd = port.descriptor(), .events = POLLIN, .revents = 0};
  (void)poll(&one, 1, static_cast<int>(std::max<std::int64_t>(ms, 0)));
}

template <typename Control>
void settle(Control& control, UdpPort& port) {
  const auto take = [&](const Endpoint& from, std::span<const std::byte> datagram) {
    (void)control.take(from, datagram);
  };
  Listener listener(take);
  while (!control.done()) {
    control.progress(now_ns(), port);
    port.flush();
    if (!control.done()) wait(port, now_ns() + 10'000'000);
    if (!port.receive(listener).ok()) fail("cannot receive");
  }
  if (!control.status().ok()) fail(control.status().to_string());
}

int build(const Arguments& arguments) {
  const SipKey administrator = arguments.key();
  const Endpoint at = arguments.endpoint("--switch");
  const auto port = open_port({});
  const ControlTimes patient = {.give_up_ns = 60'000'000'000};
  Requests install(administrator, 1, patient);
  install.start({install_job(at, kJob, {.nonce = kNonce, .groups = 4, .memory_bytes = 64 << 20})},
                now_ns());
  settle(install, *port);
  TreePlan plan = {
      .switches = {{.at = at, .parent = {}, .children = arguments.endpoints("--children")}},
      .window = static_cast<std::uint16_t>(arguments.number("--window")),
      .operand_bytes = static_cast<std::uint16_t>(arguments.number("--operand-bytes"))};
  if (const Status status = check_plan(plan); !status.ok()) fail(status.to_string());
  TreeControl control(kJob, job_key(administrator, kJob, kNonce), 1, patient);
  control.build(plan, now_ns());
  settle(control, *port);
  std::printf("%u\n", control.group());
  return 0;
}

class Host {
 public:
  explicit Host(const Arguments& arguments)
      : port_(open_port(arguments.endpoint("--at"))),
        stream_({.job = kJob,
                 .group = static_cast<std::uint32_t>(arguments.number("--group")),
                 .key = job_key(arguments.key(), kJob, kNonce),
                 .child = static_cast<std::uint16_t>(arguments.number("--child")),
                 .window = static_cast<std::uint16_t>(arguments.number("--window")),
                 .operand_bytes = static_cast<std::uint16_t>(arguments.number("--operand-bytes")),
                 .path = {arguments.endpoint("--switch")},
                 .times = {.give_up_ns = 60'000'000'000}}) {}

  void call(const Operation& operation) {
    const auto ticket = stream_.post(operation);
    if (!ticket) fail("no room for one call");
    const auto take = [this](const Endpoint& from, std::span<const std::byte> datagram) {
      (void)stream_.take(from, datagram, now_ns());
    };
    Listener listener(take);
    for (;;) {
      stream_.progress(now_ns(), *port_);
      port_->flush();
      if (!stream_.status().ok()) fail(stream_.status().to_string());
      if (stream_.done(*ticket)) return;
      wait(*port_, stream_.due_ns().value_or(now_ns()));
      if (!port_->receive(listener).ok()) fail("cannot receive");
    }
  }
  const Stream& stream() const { return stream_; }

 private:
  std::unique_ptr<UdpPort> port_;
  Stream stream_;
};

int be_host(const Arguments& arguments) {
  Host host(arguments);
  const std::uint64_t count = arguments.number("--count"), calls = arguments.number("--calls");
  const auto hosts = static_cast<double>(arguments.number("--hosts"));
  const auto own = static_cast<double>(arguments.number("--child"));
  std::vector<double> input(count), output(count);
  host.call({.count = 0});  // all are there
  const std::int64_t begin = now_ns();
  for (std::uint64_t call = 0; call < calls; ++call) {
    for (std::size_t i = 0; i < count; ++i) {
      input[i] = own * 3 + static_cast<double>(i) + static_cast<double>(call);
    }
    host.call({.op = Op::kSum,
               .type = Type::kFloat64,
               .input = reinterpret_cast<const std::byte*>(input.data()),
               .output = reinterpret_cast<std::byte*>(output.data()),
               .count = count});
    for (std::size_t i = 0; i < count; ++i) {
      const double right = hosts * (hosts - 1) / 2 * 3 +
                           hosts * (static_cast<double>(i) + static_cast<double>(call));
      if (output[i] != right) fail("element " + std::to_string(i) + " is wrong");
    }
  }
  const double seconds = static_cast<double>(now_ns() - begin) / 1e9;
  // Who ends here may have a result that others lack: the switch has it, too.
  const Stream::Counts& counts = host.stream().counts();
  std::printf("{\"seconds\": %.6f, \"packets\": %llu, \"again\": %llu}\n", seconds,
              static_cast<unsigned long long>(counts.packets),
              static_cast<unsigned long long>(counts.again));
  return 0;
}

}  // namespace
}  // namespace carillon::aggregate

int main(int argc, char** argv) {
  using carillon::aggregate::Arguments;
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "build") return carillon::aggregate::build(Arguments(argc, argv));
  if (what == "host") return carillon::aggregate::be_host(Arguments(argc, argv));
  carillon::aggregate::fail("build or host?");
}
