// SPDX-License-Identifier: Apache-2.0
#include "transport/wrap/trace.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/trace_file.h"

namespace carillon::wrap {
namespace {

using wire::Operation;
using wire::Peer;
using wire::Piece;
using wire::RemoteMemory;

constexpr std::size_t kMostEvents = 1 << 18;  // later ones are only counted
constexpr int kArrivalsRow = 0;               // of peers, the process number and one

// The clock that nodes have in common, as far as they do.
std::int64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

struct Event {
  const char* name = nullptr;
  Peer peer = -1;  // -1: an arrival
  bool failed = false;
  std::uint64_t bytes = 0;
  std::uint64_t label = 0;  // the immediate or the tag
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  // 0: never seen to end
};

class TraceWire final : public Trace, private wire::Listener {
 public:
  TraceWire(std::unique_ptr<wire::Wire> inner, std::string file, int process)
      : inner_(std::move(inner)), file_(std::move(file)), process_(process) {}
  ~TraceWire() override;

  void name_peer(int process, std::span<const std::byte> address) override {
    processes_[{address.begin(), address.end()}] = process;
  }
  [[nodiscard]] const wire::Capabilities& capabilities() const override {
    return inner_->capabilities();
  }
  [[nodiscard]] std::span<const std::byte> address() const override { return inner_->address(); }
  Result<Peer> add_peer(std::span<const std::byte> address) override;
  Result<std::unique_ptr<wire::Registration>> register_memory(
      std::span<std::byte> memory) override {
    return inner_->register_memory(memory);
  }
  Result<bool> put(Peer peer, std::span<const Piece> from, RemoteMemory to,
                   std::optional<std::uint32_t> immediate, Operation& operation) override {
    return post("put", peer, from, immediate.value_or(0), operation,
                [&] { return inner_->put(peer, from, to, immediate, operation); });
  }
  Result<bool> get(Peer peer, RemoteMemory from, std::span<const Piece> to,
                   Operation& operation) override {
    return post("get", peer, to, 0, operation,
                [&] { return inner_->get(peer, from, to, operation); });
  }
  Result<bool> send(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                    Operation& operation) override {
    return post("send", peer, from, tag, operation,
                [&] { return inner_->send(peer, from, tag, operation); });
  }
  Result<bool> recv(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                    Operation& operation) override {
    return post("recv", peer, to, tag, operation,
                [&] { return inner_->recv(peer, to, tag, operation); });
  }
  Result<bool> meet(Peer peer) override { return inner_->meet(peer); }
  Result<bool> send_placed(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                           Operation& operation) override {
    return post("send placed", peer, from, tag, operation,
                [&] { return inner_->send_placed(peer, from, tag, operation); });
  }
  Result<bool> recv_placed(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                           Operation& operation) override {
    return post("recv placed", peer, to, tag, operation,
                [&] { return inner_->recv_placed(peer, to, tag, operation); });
  }
  void stop_awaiting(Operation& operation) override { inner_->stop_awaiting(operation); }
  void cut_off(Peer peer, const Status& why) override { inner_->cut_off(peer, why); }
  [[nodiscard]] int wait_descriptor() const override { return inner_->wait_descriptor(); }
  bool ready_to_wait() override { return inner_->ready_to_wait(); }
  Status progress(wire::Listener& listener) override;

 private:
  template <typename Call>
  Result<bool> post(const char* name, Peer peer, std::span<const Piece> pieces, std::uint64_t label,
                    Operation& operation, Call call);
  void on_put(std::uint32_t immediate) override;
  // The index of the event; none if there are too many already.
  std::optional<std::size_t> record(const Event& event);
  void note_ends();
  void note_end(const Operation& operation, std::size_t event);
  [[nodiscard]] int row_of(Peer peer) const;
  void write_names(std::string* text) const;
  void write_event(const Event& event, std::size_t index, std::string* text) const;

  std::unique_ptr<wire::Wire> inner_;
  std::string file_;
  int process_;
  wire::Listener* listener_ = nullptr;  // during progress()
  std::vector<Event> events_;
  std::uint64_t left_out_ = 0;
  std::uint64_t refused_ = 0;
  std::unordered_map<const Operation*, std::size_t> open_;  // to their events
  std::map<std::vector<std::byte>, int> processes_;         // by address
  std::vector<int> peers_;                                  // their processes; -1: not named
};

Result<Peer> TraceWire::add_peer(std::span<const std::byte> address) {
  auto peer = inner_->add_peer(address);
  if (!peer.ok()) return peer;
  const auto found = processes_.find({address.begin(), address.end()});
  peers_.resize(static_cast<std::size_t>(peer.value()) + 1, -1);
  if (found != processes_.end()) peers_.back() = found->second;
  return peer;
}

std::optional<std::size_t> TraceWire::record(const Event& event) {
  if (events_.size() == kMostEvents) {
    ++left_out_;
    return {};
  }
  events_.push_back(event);
  return events_.size() - 1;
}

void TraceWire::note_end(const Operation& operation, std::size_t event) {
  events_[event].end_ns = now_ns();
  events_[event].failed = !operation.status().ok();
}

template <typename Call>
Result<bool> TraceWire::post(const char* name, Peer peer, std::span<const Piece> pieces,
                             std::uint64_t label, Operation& operation, Call call) {
  // An operation that is used again has ended, though nobody has said so here.
  if (const auto last = open_.find(&operation); last != open_.end()) {
    note_end(operation, last->second);
    open_.erase(last);
  }
  const std::int64_t begin_ns = now_ns();
  Result<bool> posted = call();
  if (!posted.ok()) return posted;
  if (!posted.value()) {
    ++refused_;
    return posted;
  }
  const auto event = record({.name = name,
                             .peer = peer,
                             .bytes = wire::total_bytes(pieces),
                             .label = label,
                             .begin_ns = begin_ns});
  if (!event) return posted;
  if (operation.done()) {
    note_end(operation, *event);
  } else {
    open_[&operation] = *event;
  }
  return posted;
}

// Before anybody else can use the operations again.
void TraceWire::note_ends() {
  std::erase_if(open_, [&](const auto& open) {
    if (!open.first->done()) return false;
    note_end(*open.first, open.second);
    return true;
  });
}

void TraceWire::on_put(std::uint32_t immediate) {
  record({.name = "arrived", .label = immediate, .begin_ns = now_ns()});
  listener_->on_put(immediate);
}

Status TraceWire::progress(wire::Listener& listener) {
  listener_ = &listener;
  Status status = inner_->progress(*this);
  counters_ = inner_->counters();
  note_ends();
  return status;
}

int TraceWire::row_of(Peer peer) const {
  return peer < 0 ? kArrivalsRow : peers_[static_cast<std::size_t>(peer)] + 1;
}

// Names of the process and its rows, and what is not among the events.
void TraceWire::write_names(std::string* text) const {
  const auto name = [&](const char* what, int row, const std::string& value) {
    *text += std::string("{\"name\":\"") + what +
             "\",\"ph\":\"M\",\"pid\":" + std::to_string(process_) +
             ",\"tid\":" + std::to_string(row) + ",\"args\":{\"name\":\"" + value + "\"}},\n";
  };
  name("process_name", 0, "rank " + std::to_string(process_));
  name("thread_name", kArrivalsRow, "arrivals");
  for (const int process : peers_) {
    if (process < 0) continue;
    name("thread_name", process + 1, "to rank " + std::to_string(process));
  }
  *text += "{\"name\":\"counts\",\"ph\":\"M\",\"pid\":" + std::to_string(process_) +
           ",\"args\":{\"events\":" + std::to_string(events_.size()) +
           ",\"left_out\":" + std::to_string(left_out_) +
           ",\"refused_posts\":" + std::to_string(refused_) + "}}";
}

// Operations overlap, so each has an id that joins its begin and end.
void TraceWire::write_event(const Event& event, std::size_t index, std::string* text) const {
  const auto print = [&](const char* phase, std::int64_t ns, const std::string& args) {
    std::array<char, 128> head;
    std::snprintf(head.data(), head.size(),
                  ",\n{\"name\":\"%s\",\"cat\":\"wire\",\"ph\":\"%s\",\"pid\":%d,\"tid\":%d,"
                  "\"ts\":%lld.%03d",
                  event.name, phase, process_, row_of(event.peer),
                  static_cast<long long>(ns / 1000), static_cast<int>(ns % 1000));
    *text += head.data() + args + "}";
  };
  const std::string label = std::to_string(event.label);
  if (event.peer < 0) {
    print("i", event.begin_ns, R"(,"s":"t","args":{"immediate":)" + label + "}");
    return;
  }
  const std::string id =
      ",\"id\":\"" + std::to_string(process_) + "." + std::to_string(index) + "\"";
  print("b", event.begin_ns,
        id + ",\"args\":{\"bytes\":" + std::to_string(event.bytes) + ",\"label\":" + label + "}");
  if (event.end_ns == 0) return;
  print("e", event.end_ns, id + (event.failed ? R"(,"args":{"failed":true})" : ""));
}

TraceWire::~TraceWire() {
  if (events_.empty()) return;
  std::string text;
  write_names(&text);
  for (std::size_t i = 0; i < events_.size(); ++i) write_event(events_[i], i, &text);
  if (Status status = add_to_trace_file(file_, text); !status.ok()) {
    log(LogLevel::kWarning, status.to_string());
  }
}

}  // namespace

std::unique_ptr<Trace> with_trace(std::unique_ptr<wire::Wire> wire, const std::string& file,
                                  int process) {
  return std::make_unique<TraceWire>(std::move(wire), file, process);
}

}  // namespace carillon::wrap
