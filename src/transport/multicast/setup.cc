// SPDX-License-Identifier: Apache-2.0
#include "transport/multicast/setup.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/copy.h"

namespace carillon::multicast {

struct Setup::Hello {
  std::uint32_t version = 0;
  std::uint32_t usable = 0;
  std::uint64_t datagram_bytes = 0;
  std::uint32_t receive_packets = 0;
  std::uint32_t window = 0;
  std::uint32_t radix = 0;
  std::uint32_t address_bytes = 0;
  std::array<std::uint64_t, 2> random{};
  std::array<std::byte, Carrier::kMaxAddressBytes> address{};
  std::array<char, 32> name{};     // the carrier's
  std::array<char, 160> reason{};  // why not
};

struct Setup::Verdict {
  std::uint32_t sizes = 0;         // bit i: probes of size i were heard from everybody
  std::uint32_t unheard = 0;       // else: a member that was not
  std::uint32_t alone = 0;         // it was heard by multicast, but not alone
  std::array<char, 160> reason{};  // else: what failed here
};

namespace {

constexpr std::uint32_t kSetupVersion = 1;
// Everybody's probes come to everybody, over wires that may be slow, and what ends the probing
// comes over the same: so a member's come twice as far apart each time, and the further the more
// there are.
constexpr Nanoseconds kProbeInterval = 2 * kMillisecond;
constexpr Nanoseconds kProbeIntervalEach = 250 * kMicrosecond;
constexpr Nanoseconds kProbeIntervalMost = 64 * kMillisecond;
// While somebody has not been heard: each length more than once.
constexpr int kLeastRounds = 18;
constexpr std::uint32_t kLeastWindow = 4;
// Where the largest does not come through: Ethernet's jumbo frames, InfiniBand's, Ethernet's,
// IPv6's least.
constexpr std::array<std::size_t, 6> kLesserSizes = {8972, 4096, 2048, 1472, 1024, 552};
static_assert(kLesserSizes.back() >= kMinDatagramBytes);

template <std::size_t kSize>
void put_text(std::array<char, kSize>& to, std::string_view text) {
  const std::size_t bytes = std::min(text.size(), kSize - 1);
  copy_memory(to.data(), text.data(), bytes);
  to[bytes] = '\0';
}

// What came from another process may lack its end.
template <std::size_t kSize>
std::string get_text(const std::array<char, kSize>& from) {
  return {from.data(), strnlen(from.data(), kSize)};
}

std::string first_word(const std::string& text) { return text.substr(0, text.find(' ')); }

std::string member_text(std::size_t member) { return "member " + std::to_string(member); }

}  // namespace

Setup::Setup(Result<std::unique_ptr<Carrier>> carrier, const crl_oob_t& oob,
             const SetupOptions& options)
    : why_not_(carrier.ok() ? Status() : carrier.status()),
      oob_(oob),
      options_(options),
      result_(Status(Code::kInProgress, "multicast: the group is being set up")) {
  static_assert(sizeof(Hello) <= kExchangeBytes && sizeof(Verdict) <= kExchangeBytes);
  if (carrier.ok()) carrier_ = std::move(carrier.value());
}

Setup::~Setup() = default;

Status Setup::post(const void* mine, void* all, std::size_t bytes) {
  if (oob_.allgather_post(oob_.arg, mine, all, bytes, &request_) == 0) return {};
  return {Code::kSystem, "multicast: the caller's allgather could not be started"};
}

Result<bool> Setup::test() {
  const int answer = oob_.allgather_test(oob_.arg, request_);
  if (answer == 0 || answer == 1) return answer == 0;
  return Status(Code::kSystem, "multicast: the caller's allgather failed");
}

Result<bool> Setup::progress(Nanoseconds now) {
  Status status;
  if (step_ == Step::kBegin) status = begin();
  if (step_ == Step::kHello) {
    auto there = test();
    if (!there.ok() || !there.value()) return there;
    meet(now);
  }
  if (step_ == Step::kProbe) {
    probe(now);
    if (heard_all() || now >= deadline_ || !why_not_.ok()) {
      judge();
      verdicts_.resize(static_cast<std::size_t>(oob_.size) + 1, verdicts_.back());
      status = post(&verdicts_.back(), verdicts_.data(), sizeof(Verdict));
      step_ = Step::kVerdict;
    }
  } else if (step_ == Step::kVerdict) {
    // Others may still have to hear.
    probe(now);
    auto there = test();
    if (!there.ok() || !there.value()) return there;
    conclude();
  }
  if (!status.ok()) return status;
  return step_ == Step::kOver;
}

Status Setup::begin() {
  Hello mine = {.version = kSetupVersion, .window = options_.window, .radix = options_.radix};
  if (getrandom(mine.random.data(), sizeof mine.random, 0) != sizeof mine.random) {
    why_not_ = {Code::kSystem, "multicast: the system gives no random numbers"};
  }
  if (carrier_ != nullptr) {
    const CarrierLimits& limits = carrier_->limits();
    const std::span<const std::byte> address = carrier_->address();
    mine.datagram_bytes = limits.datagram_bytes;
    mine.receive_packets = limits.receive_packets;
    mine.address_bytes = static_cast<std::uint32_t>(address.size());
    std::copy(address.begin(), address.end(), mine.address.begin());
    put_text(mine.name, limits.name);
  }
  mine.usable = why_not_.ok() ? 1 : 0;
  put_text(mine.reason, why_not_.message());
  hellos_.assign(static_cast<std::size_t>(oob_.size) + 1, mine);
  step_ = Step::kHello;
  return post(&hellos_.back(), hellos_.data(), sizeof(Hello));
}

// All members see the same hellos, and so refuse alike.
Status Setup::agree() {
  const Hello& mine = hellos_.back();
  hellos_.pop_back();
  std::size_t datagram_bytes = SIZE_MAX;
  std::uint32_t window = UINT32_MAX;
  for (std::size_t i = 0; i < hellos_.size(); ++i) {
    const Hello& one = hellos_[i];
    if (one.version != kSetupVersion) {
      return {Code::kUnsupported,
              "multicast: " + member_text(i) + " has another version of carillon"};
    }
    if (one.usable != 1) {
      return {Code::kUnsupported, get_text(one.reason) + " (" + member_text(i) + ")"};
    }
    if (first_word(get_text(one.name)) != first_word(get_text(hellos_[0].name)) ||
        one.radix != hellos_[0].radix || one.radix == 0 ||
        one.address_bytes > Carrier::kMaxAddressBytes || one.datagram_bytes < kMinDatagramBytes) {
      return {Code::kUnsupported, "multicast: " + member_text(i) + " (" + get_text(one.name) +
                                      ") does not fit to member 0 (" + get_text(hellos_[0].name) +
                                      "); are their settings equal?"};
    }
    datagram_bytes = std::min<std::size_t>(datagram_bytes, one.datagram_bytes);
    // Half of what a member can take at once is for what others send.
    window = std::min({window, one.window, one.receive_packets / 2});
  }
  sizes_ = {datagram_bytes};
  for (const std::size_t size : kLesserSizes) {
    if (size < datagram_bytes) sizes_.push_back(size);
  }
  config_ = {.member = static_cast<Member>(oob_.rank),
             .members = static_cast<std::uint32_t>(oob_.size),
             .window = std::max(window, kLeastWindow),
             .radix = options_.radix,
             .early_packets = std::max<std::uint32_t>(options_.early_packets, 1),
             .seed = mine.random[0],
             .timing = options_.timing,
             .places = options_.places};
  return {};
}

void Setup::meet(Nanoseconds now) {
  if (Status status = agree(); !status.ok()) return refuse(status);
  std::vector<std::uint64_t> randoms;
  for (const Hello& one : hellos_) {
    randoms.insert(randoms.end(), one.random.begin(), one.random.end());
  }
  const auto bytes = std::as_bytes(std::span(randoms));
  config_.key = {siphash({1, 0}, bytes), siphash({2, 0}, bytes)};
  name_ = siphash({3, 0}, bytes);
  heard_.assign(config_.members, 0);
  heard_[config_.member] = UINT32_MAX;
  heard_neighbour_ = config_.members == 1;
  memory_.resize(sizes_.front());
  deadline_ = now + options_.patience;
  probe_due_ = now;
  probe_interval_ = std::clamp(config_.members * kProbeIntervalEach, kProbeInterval,
                               std::max(kProbeInterval, options_.patience / kLeastRounds));
  step_ = Step::kProbe;
  for (const Hello& one : hellos_) {
    if (why_not_.ok())
      why_not_ = carrier_->add_member(std::span(one.address).first(one.address_bytes));
  }
  if (why_not_.ok()) why_not_ = carrier_->join(name_);
}

// Sends what is due, and hears what has come.
void Setup::probe(Nanoseconds now) {
  if (!why_not_.ok()) return;
  if (!joined_) {
    const auto joined = carrier_->joined();
    if (!joined.ok()) why_not_ = joined.status();
    joined_ = joined.ok() && joined.value();
    if (!joined_) return;
  }
  if (Status status = carrier_->receive(*this); !status.ok()) why_not_ = std::move(status);
  if (now < probe_due_ || config_.members == 1) return;
  // The largest each time, the others in turn.
  send_probe(0, true);
  const std::size_t other = round_++ % sizes_.size();
  if (other != 0) send_probe(other, true);
  send_probe(other, false);
  probe_due_ = now + probe_interval_;
  const Nanoseconds most = step_ == Step::kProbe
                               ? std::min(kProbeIntervalMost, options_.patience / kLeastRounds)
                               : kProbeIntervalMost;
  probe_interval_ = std::max(probe_interval_, std::min(2 * probe_interval_, most));
}

void Setup::send_probe(std::size_t size, bool to_group) {
  const std::size_t padding = sizes_[size] - kHeadBytes;
  const Packet packet = {.kind = Kind::kProbe,
                         .from = config_.member,
                         .source = config_.member,
                         .sequence = size,
                         .message = to_group ? 1U : 0U,
                         .payload = std::span(memory_).subspan(kHeadBytes, padding)};
  const auto bytes = build(config_.key, packet, memory_);
  // A probe that is not taken is sent again soon.
  if (to_group) {
    (void)carrier_->send_group(bytes);
  } else {
    (void)carrier_->send_member((config_.member + 1) % config_.members, bytes);
  }
}

void Setup::on_packet(std::span<const std::byte> bytes) {
  const auto packet = parse(config_.key, config_.members, bytes);
  if (!packet || packet->kind != Kind::kProbe || packet->sequence >= sizes_.size()) return;
  if (packet->from == config_.member) return;
  if (packet->message == 1) {
    // Where it came through, shorter ones do.
    heard_[packet->from] |= UINT32_MAX << packet->sequence;
  } else if ((packet->from + 1) % config_.members == config_.member) {
    heard_neighbour_ = true;
  }
}

bool Setup::heard_all() const {
  return joined_ && heard_neighbour_ &&
         std::all_of(heard_.begin(), heard_.end(), [](std::uint32_t one) { return one & 1U; });
}

void Setup::judge() {
  Verdict mine = {.sizes = UINT32_MAX};
  for (const std::uint32_t one : heard_) mine.sizes &= one;
  if (!heard_neighbour_ || !why_not_.ok()) mine.sizes = 0;
  put_text(mine.reason, why_not_.message());
  const auto silent = std::find(heard_.begin(), heard_.end(), 0U);
  mine.alone = silent == heard_.end() ? 1 : 0;
  mine.unheard = silent != heard_.end() ? static_cast<std::uint32_t>(silent - heard_.begin())
                                        : (config_.member + config_.members - 1) % config_.members;
  verdicts_ = {mine};
}

// Of all members' verdicts. Who failed is not heard by others: what it says comes first.
Status Setup::objection() const {
  for (std::size_t i = 0; i < verdicts_.size(); ++i) {
    const std::string reason = get_text(verdicts_[i].reason);
    if (!reason.empty()) return {Code::kUnsupported, reason + " (" + member_text(i) + ")"};
  }
  for (std::size_t i = 0; i < verdicts_.size(); ++i) {
    if (verdicts_[i].sizes != 0) continue;
    return {Code::kUnsupported,
            "multicast: " + member_text(i) + " does not hear " + member_text(verdicts_[i].unheard) +
                (verdicts_[i].alone != 0 ? " when it sends to one only" : "") + " (" +
                get_text(hellos_[i].name) + ", " +
                std::to_string(options_.patience / kMillisecond) +
                " ms); does the network pass multicasts on, and no firewall drop UDP?"};
  }
  return {};
}

void Setup::conclude() {
  verdicts_.pop_back();
  if (const Status status = objection(); !status.ok()) return refuse(status);
  std::uint32_t sizes = UINT32_MAX;
  for (const Verdict& one : verdicts_) sizes &= one.sizes;
  std::size_t size = 0;
  while (size < sizes_.size() && (sizes >> size & 1U) == 0) ++size;
  if (size == sizes_.size()) {
    return refuse({Code::kUnsupported, "multicast: no size of packets reaches all members"});
  }
  config_.payload_bytes = static_cast<std::uint32_t>(sizes_[size] - kHeadBytes);
  result_ = std::make_unique<Group>(config_, std::move(carrier_));
  step_ = Step::kOver;
}

void Setup::refuse(const Status& status) {
  carrier_.reset();
  result_ = status;
  step_ = Step::kOver;
}

Result<std::unique_ptr<Group>> Setup::result() {
  if (!result_.ok()) return result_.status();
  return std::move(result_.value());
}

}  // namespace carillon::multicast
