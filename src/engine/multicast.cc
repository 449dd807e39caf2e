// SPDX-License-Identifier: Apache-2.0
//
// How a team's groups come to be: the group of all is set up first, then that of the leaders, then
// that of nodes, then all tell each other what became of it. Each step is the same exchanges on all
// members.
#include "engine/multicast.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/faults.h"
#include "transport/multicast/ud_carrier.h"
#include "transport/multicast/udp_carrier.h"
#include "transport/wrap/fault_carrier.h"

namespace carillon {
namespace {

using multicast::Carrier;

// As long as that may a member be asked again for an acknowledgement that was lost.
constexpr multicast::Nanoseconds kSilence = 20 * multicast::kMillisecond;
const std::int32_t kWindow = Limits().window;
// So long members wait to hear each other. Where nobody has asked for it, it must not cost much if
// the network has no multicast.
constexpr multicast::Nanoseconds kPatience = 2000 * multicast::kMillisecond;
constexpr multicast::Nanoseconds kPatienceUnasked = 500 * multicast::kMillisecond;

Result<std::unique_ptr<Carrier>> open_carrier(const MulticastWish& wish, const std::string& text,
                                              Rank rank) {
  auto carrier = wish.kind == MulticastWish::kUd ? multicast::open_ud({.device = wish.device})
                                                 : multicast::open_udp({.interface = wish.device});
  auto faults = parse_faults(text);
  if (!carrier.ok() || text.empty() || !faults.ok()) return carrier;
  faults.value().seed += static_cast<std::uint64_t>(rank);
  return wrap::with_faults(std::move(carrier.value()), faults.value());
}

// libfabric's providers that go by TCP.
bool is_tcp(std::string_view network) {
  return network.starts_with("fabric tcp") || network.starts_with("fabric net") ||
         network.starts_with("fabric sockets");
}

// The IPv4 address of this end, if it is a socket's; else "".
std::string own_address(const wire::Wire& network) {
  sockaddr_in address = {};
  // What stands before it says what talks there.
  const std::span<const std::byte> bytes = network.address();
  if (bytes.size() < sizeof address) return "";
  std::memcpy(&address, bytes.last(sizeof address).data(), sizeof address);
  std::array<char, INET_ADDRSTRLEN> text{};
  if (address.sin_family != AF_INET) return "";
  if (inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size()) == nullptr) return "";
  return text.data();
}

}  // namespace

MulticastWish multicast_wish(const Config& settings, const wire::Wire& network) {
  const std::string& text = settings.multicast;
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  MulticastWish wish{.device = colon == std::string::npos ? "" : text.substr(colon + 1)};
  const auto patience = static_cast<multicast::Nanoseconds>(settings.multicast_join_s) * 1000 *
                        multicast::kMillisecond;
  wish.patience = patience > 0 ? patience : kPatience;
  if (name == "udp") wish.kind = MulticastWish::kUdp;
  if (name == "ud") wish.kind = MulticastWish::kUd;
  wish.pays = wish.kind != MulticastWish::kOff;
  if (name != "auto") return wish;
  const std::string& by = network.capabilities().name;
  wish.pays = is_tcp(by);
  wish.later = settings.algorithm.find("multicast") == std::string::npos;
  if (!wish.later) wish.kind = by.starts_with("verbs") ? MulticastWish::kUd : MulticastWish::kUdp;
  if (!wish.later || !wish.pays) return wish;
  wish.kind = MulticastWish::kUdp;
  wish.device = own_address(network);
  wish.patience = patience > 0 ? patience : kPatienceUnasked;
  return wish;
}

// The leaders' exchanges, made by all members of the team: the others only take part. There are two
// of them, however the leaders' setup ends.
class TeamMulticast::Exchange {
 public:
  Exchange(const crl_oob_t& team, const std::vector<Rank>& leaders)
      : team_(team), leaders_(leaders), row_{}, rows_(static_cast<std::size_t>(team.size)) {}

  [[nodiscard]] crl_oob_t oob() {
    const auto own = std::lower_bound(leaders_.begin(), leaders_.end(), team_.rank);
    return {.arg = this,
            .rank = static_cast<int>(own - leaders_.begin()),
            .size = static_cast<int>(leaders_.size()),
            .allgather_post = post,
            .allgather_test = test};
  }
  /// Of who has nothing to say. True when both exchanges are over.
  Result<bool> attend() {
    while (done_ < kRounds) {
      if (!pending_) {
        const int failed = post(this, row_.data(), nullptr, 0, nullptr);
        if (failed != 0) return Status(Code::kSystem, "the team's allgather could not be started");
      }
      const int answer = test(this, nullptr);
      if (answer == 1) return false;
      if (answer != 0) return Status(Code::kSystem, "the team's allgather failed");
    }
    return true;
  }

 private:
  static constexpr int kRounds = 2;
  using Row = std::array<std::byte, multicast::Setup::kExchangeBytes>;

  static int post(void* arg, const void* in, void* out, std::size_t bytes, void** request) {
    auto& self = *static_cast<Exchange*>(arg);
    if (bytes > sizeof(Row)) return 1;
    if (bytes > 0) std::memcpy(self.row_.data(), in, bytes);
    self.out_ = static_cast<std::byte*>(out);
    self.bytes_ = bytes;
    self.pending_ = true;
    if (request != nullptr) *request = arg;
    return self.team_.allgather_post(self.team_.arg, self.row_.data(), self.rows_.data(),
                                     sizeof(Row), &self.request_);
  }
  static int test(void* arg, void* /*request*/) {
    auto& self = *static_cast<Exchange*>(arg);
    const int answer = self.team_.allgather_test(self.team_.arg, self.request_);
    if (answer == 1) return 1;
    self.pending_ = false;
    ++self.done_;
    if (answer != 0) return answer;
    for (std::size_t i = 0; i < self.leaders_.size() && self.out_ != nullptr; ++i) {
      std::memcpy(self.out_ + i * self.bytes_,
                  self.rows_[static_cast<std::size_t>(self.leaders_[i])].data(), self.bytes_);
    }
    return 0;
  }

  crl_oob_t team_;
  const std::vector<Rank>& leaders_;
  Row row_;
  std::vector<Row> rows_;
  std::byte* out_ = nullptr;
  std::size_t bytes_ = 0;
  bool pending_ = false;
  int done_ = 0;
  void* request_ = nullptr;
};

// What became of it here. Plain data.
struct TeamMulticast::Verdict {
  std::int64_t longest = 0;  // 0: nothing
  std::array<char, 248> reason{};
};

TeamMulticast::TeamMulticast(const crl_oob_t& oob, const Nodes& nodes, const MulticastWish& wish,
                             const std::string& faults, const ReceptionPlace& place, bool crowded)
    : oob_(oob),
      wish_(wish),
      faults_(faults),
      place_(place),
      crowded_(crowded),
      places_(std::make_shared<multicast::Places>()),
      all_ranks_(static_cast<std::size_t>(oob.size)),
      singles_(nodes.count() == nodes.ranks()) {
  std::iota(all_ranks_.begin(), all_ranks_.end(), 0);
  for (std::int32_t node = 0; node < nodes.count(); ++node) {
    leader_ranks_.push_back(nodes.members(node).front());
  }
  places_->of.reserve(all_ranks_.size());
  for (const Rank rank : all_ranks_) {
    places_->of.push_back(static_cast<std::uint32_t>(nodes.node_of(rank)));
  }
  places_->count = static_cast<std::uint32_t>(nodes.count());
  std::sort(leader_ranks_.begin(), leader_ranks_.end());
  is_leader_ = std::binary_search(leader_ranks_.begin(), leader_ranks_.end(), oob.rank);
  setup_ = std::make_unique<multicast::Setup>(open_carrier(wish_, faults_, oob_.rank), oob_,
                                              options(nullptr));
}

TeamMulticast::~TeamMulticast() = default;

void TeamMulticast::abandon() {
  reception_.reset();
  team_.reset();
  leaders_.reset();
  nodes_.reset();
  if (setup_) setup_->abandon();
}

multicast::SetupOptions TeamMulticast::options(
    std::shared_ptr<const multicast::Places> places) const {
  return {.patience = wish_.patience, .places = std::move(places)};
}

multicast::Nanoseconds TeamMulticast::now() {
  return static_cast<multicast::Nanoseconds>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// True when its setup is over: then there are streams, or status_ says why not.
Result<bool> TeamMulticast::set_up_group(std::unique_ptr<GroupStreams>* streams,
                                         std::vector<Rank> ranks) {
  auto over = setup_->progress(now());
  if (!over.ok() || !over.value()) return over;
  auto group = setup_->result();
  setup_.reset();
  if (group.ok()) {
    *streams = std::make_unique<GroupStreams>(std::move(group.value()), std::move(ranks));
  } else {
    status_ = group.status();
  }
  return true;
}

// After the team's group and that of nodes, all members know the same.
Result<bool> TeamMulticast::set_up() {
  if (step_ == Step::kTeam) {
    auto over = set_up_group(&team_, all_ranks_);
    if (!over.ok() || !over.value()) return over;
    if (!status_.ok()) {
      if (Status status = begin_verdict(); !status.ok()) return status;
    } else if (singles_) {
      begin_nodes();
    } else {
      begin_leaders();
    }
  }
  if (step_ == Step::kLeaders) {
    if (setup_) {
      auto over = set_up_group(&leaders_, leader_ranks_);
      if (!over.ok() || !over.value()) return over;
    }
    auto attended = exchange_->attend();
    if (!attended.ok() || !attended.value()) return attended;
    begin_nodes();
  }
  if (step_ == Step::kNodes) {
    auto over = set_up_group(&nodes_, all_ranks_);
    if (!over.ok() || !over.value()) return over;
    if (Status status = begin_verdict(); !status.ok()) return status;
  }
  if (step_ == Step::kVerdict) {
    const int answer = oob_.allgather_test(oob_.arg, request_);
    if (answer == 1) return false;
    if (answer != 0) return Status(Code::kSystem, "multicast: the team's allgather failed");
    conclude();
  }
  return true;
}

void TeamMulticast::begin_leaders() {
  step_ = Step::kLeaders;
  exchange_ = std::make_unique<Exchange>(oob_, leader_ranks_);
  if (is_leader_) {
    setup_ = std::make_unique<multicast::Setup>(open_carrier(wish_, faults_, oob_.rank),
                                                exchange_->oob(), options(nullptr));
  }
}

void TeamMulticast::begin_nodes() {
  step_ = Step::kNodes;
  setup_ = std::make_unique<multicast::Setup>(open_carrier(wish_, faults_, oob_.rank), oob_,
                                              options(places_));
}

Status TeamMulticast::begin_verdict() {
  step_ = Step::kVerdict;
  Verdict mine;
  if (status_.ok()) {
    mine.longest =
        std::min<std::int64_t>(nodes_->longest_message(kWindow), Reception::kMessageBytes);
    mine.longest = std::min(mine.longest, team_->longest_message(kWindow));
    if (leaders_) mine.longest = std::min(mine.longest, leaders_->longest_message(kWindow));
  }
  const std::string_view reason = status_.message();
  std::copy_n(reason.begin(), std::min(reason.size(), mine.reason.size() - 1), mine.reason.begin());
  verdicts_.assign(static_cast<std::size_t>(oob_.size) + 1, mine);
  if (oob_.allgather_post(oob_.arg, &verdicts_.back(), verdicts_.data(), sizeof mine, &request_) ==
      0) {
    return {};
  }
  return {Code::kSystem, "multicast: the team's allgather could not be started"};
}

void TeamMulticast::conclude() {
  step_ = Step::kOver;
  verdicts_.pop_back();
  longest_ = INT64_MAX;
  for (const Verdict& one : verdicts_) {
    longest_ = std::min(longest_, one.longest);
    if (one.longest > 0) continue;
    status_ = Status(Code::kUnsupported,
                     std::string(one.reason.data(), strnlen(one.reason.data(), one.reason.size())));
    team_.reset();
    leaders_.reset();
    nodes_.reset();
    return;
  }
  reception_ = std::make_unique<Reception>(
      place_, *nodes_, crowded_ ? Reception::kPatienceCrowded : Reception::kPatience, now);
}

// That of nodes makes progress with its reception.
template <typename Body>
void TeamMulticast::each_but_nodes(Body body) const {
  for (GroupStreams* const one : {team_.get(), leaders_.get()}) {
    if (one != nullptr) body(one->group());
  }
}

template <typename Body>
void TeamMulticast::each_group(Body body) const {
  each_but_nodes(body);
  body(nodes_->group());
}

Status TeamMulticast::progress(bool arrived) {
  Status status;
  const multicast::Nanoseconds time = now();
  each_but_nodes([&](multicast::Group& group) {
    if (status.ok()) status = group.progress(time, arrived);
  });
  return status.ok() ? reception_->progress(time, arrived) : status;
}

std::vector<int> TeamMulticast::wait_descriptors() const {
  std::vector<int> all;
  each_group([&](multicast::Group& group) { all.push_back(group.wait_descriptor()); });
  return all;
}

bool TeamMulticast::ready_to_wait() {
  bool ready = true;
  each_group([&](multicast::Group& group) { ready = group.ready_to_wait() && ready; });
  return ready;
}

multicast::Nanoseconds TeamMulticast::due() const {
  multicast::Nanoseconds due = multicast::kNever;
  each_group([&](multicast::Group& group) { due = std::min(due, group.due()); });
  return due;
}

bool TeamMulticast::quiet() {
  if (!progress().ok()) return true;
  reception_->look();
  std::uint64_t heard = 0;
  each_group([&](multicast::Group& group) { heard += group.packets_heard(); });
  const bool all_told = settled();
  const multicast::Nanoseconds time = now();
  if (!all_told || heard != heard_ || silent_since_ == 0) {
    heard_ = heard;
    silent_since_ = time;
  }
  return all_told && time - silent_since_ >= kSilence;
}

bool TeamMulticast::settled() const {
  bool settled = true;
  each_group([&](multicast::Group& group) { settled = settled && group.settled(); });
  return settled;
}

bool TeamMulticast::awaits(Rank rank) const {
  const auto all = {team_.get(), leaders_.get(), nodes_.get()};
  return std::any_of(all.begin(), all.end(), [&](GroupStreams* streams) {
    return streams != nullptr && streams->has(rank) &&
           streams->group().awaits(streams->member(rank));
  });
}

void TeamMulticast::member_left(Rank rank) {
  for (GroupStreams* const streams : {team_.get(), leaders_.get(), nodes_.get()}) {
    if (streams == nullptr || !streams->has(rank)) continue;
    streams->group().member_left(streams->member(rank));
  }
}

}  // namespace carillon
