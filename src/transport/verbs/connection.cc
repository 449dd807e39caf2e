// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/connection.h"

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace carillon::verbs {
namespace {

constexpr int kResolveMs = 5000;
constexpr std::uint8_t kRetries = 7;
// If no system answers a call, it has failed after some 100 s: 16 tries of 4 s and what packets may
// live. One that has passed the call on to its process says so when it is called again, and then
// tries are 66 s apart.
constexpr auto kNobodyAnswersWithin = std::chrono::seconds(300);
constexpr int kSignalEvery = kSendDepth / 4;  // of posts whose completion nobody waits for

std::string text_of(const Address& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.ipv4, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(ntohs(address.port));
}

sockaddr_in socket_address(const Address& address) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = address.ipv4;
  to.sin_port = address.port;
  return to;
}

rdma_conn_param parameters(const Device& device, const void* data, std::size_t bytes) {
  rdma_conn_param param = {};
  const Device::Reads reads = device.reads();
  param.private_data = data;
  param.private_data_len = static_cast<std::uint8_t>(bytes);
  param.responder_resources = reads.peers;
  param.initiator_depth = reads.own;
  param.retry_count = kRetries;
  param.rnr_retry_count = kRetries - 1;  // 7 would be for ever; credits see to it that none is used
  return param;
}

// A process that ends, or has ended, says nothing: its system refuses.
Status refusal(const rdma_cm_event& event, const std::string& where) {
  Refused refused;
  const rdma_conn_param& param = event.param.conn;
  if (param.private_data != nullptr && param.private_data_len >= sizeof refused) {
    std::memcpy(&refused, param.private_data, sizeof refused);
  }
  if (refused.magic != kMagic) {
    return {Code::kPeerDead, "nobody takes connections at " + where + " any more (reason " +
                                 std::to_string(event.status) +
                                 "): the process there has ended, or more call it at once than "
                                 "its system lets wait"};
  }
  if (refused.why == Refusal::kNoRoom) {
    return {Code::kUnsupported,
            "the process at " + where +
                " can take no more connections (its own message says why); choose algorithms in "
                "which a process speaks to fewer others (CARILLON_ALGORITHM), or "
                "CARILLON_NETWORK=fabric"};
  }
  return {Code::kUnsupported, "the process at " + where +
                                  " refuses to be connected: it is of another job or runs another "
                                  "version of carillon"};
}

}  // namespace

void refuse(const Library& library, rdma_cm_id* id, Refusal why) {
  const Refused refused{kMagic, why};
  library.reject(id, &refused, sizeof refused);
}

bool next_event(const Device& device, Event* event) {
  rdma_cm_event* happened = nullptr;
  if (device.library().get_cm_event(device.events(), &happened) != 0) return false;
  // Acknowledged first: an id that goes because of it waits for that.
  event->what = *happened;
  rdma_conn_param& param = event->what.param.conn;
  const bool says_more =
      happened->event == RDMA_CM_EVENT_CONNECT_REQUEST || happened->event == RDMA_CM_EVENT_REJECTED;
  if (says_more && param.private_data != nullptr) {
    std::memcpy(event->data.data(), param.private_data, param.private_data_len);
    param.private_data = event->data.data();
  }
  device.library().ack_cm_event(happened);
  return true;
}

Outgoing::~Outgoing() {
  if (id_ != nullptr && state_ == State::kUp) device_.library().disconnect(id_);
  drop_id();
}

void Outgoing::drop_id() {
  if (id_ == nullptr) return;
  if (id_->qp != nullptr) device_.library().destroy_qp(id_);
  device_.library().destroy_id(std::exchange(id_, nullptr));
}

Status Outgoing::start() {
  state_ = State::kConnecting;
  memory_.reset();
  shared_ = std::make_unique<Shared>();
  auto memory = device_.register_memory(shared_.get(), sizeof(Shared));
  if (!memory.ok()) return memory.status();
  memory_ = std::move(memory.value());
  if (device_.library().create_id(device_.events(), &id_, this, RDMA_PS_TCP) != 0) {
    return failure("rdma_create_id", errno);
  }
  sockaddr_in from = device_.address();
  from.sin_port = 0;
  sockaddr_in to = socket_address(peer_);
  if (device_.library().resolve_addr(id_, reinterpret_cast<sockaddr*>(&from),
                                     reinterpret_cast<sockaddr*>(&to), kResolveMs) != 0) {
    return failure("rdma_resolve_addr to " + text_of(peer_), errno);
  }
  return {};
}

Status Outgoing::connect(Clock::time_point now) {
  if (Status status = device_.create_queue_pair(id_); !status.ok()) return status;
  const Request request{.magic = kMagic,
                        .to = peer_.id,
                        .from = self_.id,
                        .credit_address = reinterpret_cast<std::uint64_t>(&shared_->taken_up),
                        .credit_key = memory_->remote().key,
                        .purpose = purpose_};
  rdma_conn_param param = parameters(device_, &request, sizeof request);
  called_at_ = now;
  if (device_.library().connect(id_, &param) != 0) return failure("rdma_connect", errno);
  return {};
}

void Outgoing::on_event(const rdma_cm_event& event, Clock::time_point now) {
  if (state_ == State::kBroken) return;
  Status status;
  // Its system has answered, and its process has not, which takes no calls while it computes.
  if (event.event == RDMA_CM_EVENT_UNREACHABLE && state_ == State::kConnecting &&
      now - called_at_ > kNobodyAnswersWithin) {
    drop_id();
    if (status = start(); !status.ok()) break_off(std::move(status));
    return;
  }
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (device_.library().resolve_route(id_, kResolveMs) != 0) {
        status = failure("rdma_resolve_route", errno);
      }
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: status = connect(now); break;
    case RDMA_CM_EVENT_ESTABLISHED: state_ = State::kUp; break;
    case RDMA_CM_EVENT_REJECTED:
      status = refusal(event, text_of(peer_));
      status = Status(status.code(), device_.name() + ": " + std::string(status.message()));
      break;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT: break;
    default:
      status = Status(Code::kPeerDead, device_.name() + ": connection to " + text_of(peer_) + ": " +
                                           device_.library().event_str(event.event) + " (" +
                                           std::to_string(event.status) + ")");
  }
  if (!status.ok()) break_off(std::move(status));
}

Result<bool> Outgoing::is_up() {
  if (state_ == State::kIdle) {
    if (Status status = start(); !status.ok()) break_off(std::move(status));
  }
  if (state_ == State::kBroken) return why_;
  return state_ == State::kUp;
}

Result<bool> Outgoing::ready(bool needs_credit) {
  auto up = is_up();
  if (!up.ok() || !up.value()) return up;
  if (posted_ - completed_ == kSendDepth) return false;
  if (device_.sends_under_way() >= device_.most_sends_under_way()) return false;
  if (!needs_credit) return true;
  // partner: the peer's RDMA write of how much it has taken up
  const std::uint64_t taken_up =
      std::atomic_ref<std::uint64_t>(shared_->taken_up).load(std::memory_order_acquire);
  return credits_used_ - taken_up < kCredits;
}

Status Outgoing::post(ibv_send_wr& request, std::span<ibv_sge> pieces, const MessageHead* head,
                      bool inline_data, bool uses_credit, wire::Operation& operation) {
  if (head != nullptr) {  // pieces[0] is left free for it
    MessageHead& place = shared_->heads[posted_ % kSendDepth];
    place = *head;
    pieces[0] = {.addr = reinterpret_cast<std::uint64_t>(&place),
                 .length = sizeof place,
                 .lkey = memory_->local_key()};
  }
  request.sg_list = pieces.data();
  request.num_sge = static_cast<int>(pieces.size());
  request.wr_id = std::uint64_t{index_} << 16 | (posted_ & 0xFFFF);
  if (inline_data) request.send_flags |= IBV_SEND_INLINE;
  const bool signaled = !inline_data || ++unsignaled_ >= kSignalEvery;
  if (signaled) {
    request.send_flags |= IBV_SEND_SIGNALED;
    unsignaled_ = 0;
  }
  operation.begin();
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(id_->qp, &request, &bad);
  if (error != 0) {
    operation.finish({});
    return failure(device_.name() + ": post to " + text_of(peer_), error);
  }
  device_.count_send(1);
  under_way_[posted_++ % kSendDepth] = inline_data ? nullptr : &operation;
  if (uses_credit) ++credits_used_;
  if (inline_data) operation.finish({});
  return {};
}

// One more post, of nothing, has a completion, which tells of all before it.
bool Outgoing::leave() {
  if (state_ != State::kUp || posted_ == completed_) return true;
  if (!last_posted_ && posted_ - completed_ < kSendDepth) {
    ibv_send_wr request = {};
    request.opcode = IBV_WR_RDMA_WRITE;
    wire::Operation nobodys;
    last_posted_ = post(request, {}, nullptr, false, false, nobodys).ok();
  }
  under_way_.fill(nullptr);
  return false;
}

void Outgoing::on_completion(std::uint16_t number, ibv_wc_status status) {
  if (state_ == State::kBroken) return;
  if (status != IBV_WC_SUCCESS) {
    // A process that ends takes its memory back before its device no longer answers.
    const bool answered = status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR;
    break_off({Code::kPeerDead, device_.name() + ": an operation at " + text_of(peer_) +
                                    " failed: " + device_.library().wc_status_str(status) +
                                    (answered ? " (the memory there is no more)" : "")});
    return;
  }
  // Those before it have been completed, too: the connection keeps their order.
  const auto count = static_cast<std::uint16_t>(number - static_cast<std::uint16_t>(completed_));
  for (int i = 0; i <= count && completed_ < posted_; ++i) retire({});
}

void Outgoing::break_off(Status why) {
  if (state_ == State::kBroken) return;
  // The device must let go of the memory of what is under way. A queue pair in its error state may
  // not have: only one that is gone has.
  if (state_ == State::kUp) {
    device_.library().disconnect(id_);
    device_.library().destroy_qp(id_);
  }
  state_ = State::kBroken;
  why_ = std::move(why);
  while (completed_ < posted_) retire(why_);
}

void Outgoing::retire(const Status& status) {
  wire::Operation* const operation = std::exchange(under_way_[completed_++ % kSendDepth], nullptr);
  if (operation != nullptr) operation->finish(status);
  device_.count_send(-1);
}

Incoming::~Incoming() {
  if (!closed_) device_.library().disconnect(id_);
  if (id_->qp != nullptr) device_.library().destroy_qp(id_);
  device_.library().destroy_id(id_);
}

Status Incoming::accept() {
  Status status = places() ? device_.reserve_receives(kPlacedDepth) : device_.add_credits();
  if (!status.ok()) return status;
  status = places() ? device_.create_placed_queue_pair(id_) : device_.create_queue_pair(id_);
  if (!status.ok()) return status;
  word_ = std::make_unique<std::uint64_t>(0);
  auto memory = device_.register_memory(word_.get(), sizeof *word_);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(memory.value());
  rdma_conn_param param = parameters(device_, nullptr, 0);
  return device_.library().accept(id_, &param) == 0 ? Status() : failure("rdma_accept", errno);
}

void Incoming::take_up() {
  ++taken_up_;
  tell_rest();
}

void Incoming::tell_rest() {
  if (taken_up_ - told_ >= kTellEvery && !under_way_ && !closed_) tell();
}

void Incoming::tell() {
  *word_ = taken_up_;
  ibv_sge piece = {.addr = reinterpret_cast<std::uint64_t>(word_.get()),
                   .length = sizeof *word_,
                   .lkey = memory_->local_key()};
  ibv_send_wr request = {};
  request.wr_id = kCreditsTold;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = request_.credit_address;
  request.wr.rdma.rkey = static_cast<std::uint32_t>(request_.credit_key);
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(id_->qp, &request, &bad) != 0) return;
  told_ = taken_up_;
  under_way_ = true;
}

Result<bool> Incoming::post_placed(std::span<ibv_sge> list, std::uint32_t label,
                                   wire::Operation& operation) {
  if (broken_ || closed_) {
    return Status(Code::kPeerDead, device_.name() + ": the connection for placed messages is gone");
  }
  if (posted_ - ended_ == kPlacedDepth) return false;
  ibv_recv_wr request = {};
  request.wr_id = kPlacedReceive;
  request.sg_list = list.data();
  request.num_sge = static_cast<int>(list.size());
  operation.begin();
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(id_->qp, &request, &bad);
  if (error != 0) {
    operation.finish({});
    return failure(device_.name() + ": a receive of " + std::to_string(list.size()) + " entries",
                   error);
  }
  placed_[posted_++ % kPlacedDepth] = {&operation, label};
  return true;
}

void Incoming::on_placed(const ibv_wc& completion) {
  if (posted_ == ended_) return;  // they have been ended
  const Placed one = placed_[ended_++ % kPlacedDepth];
  if (completion.status != IBV_WC_SUCCESS) {
    one.operation->finish(
        {Code::kPeerDead, device_.name() + ": a placed message: " +
                              device_.library().wc_status_str(completion.status)});
  } else if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0 ||
             ntohl(completion.imm_data) != one.label) {
    one.operation->finish(
        {Code::kMismatch, device_.name() + ": another message than was awaited was placed"});
  } else {
    one.operation->finish({}, completion.byte_len);
  }
}

void Incoming::end_placed(const Status& why) {
  if (!places() || std::exchange(broken_, true)) return;
  device_.library().disconnect(id_);
  device_.library().destroy_qp(id_);
  while (ended_ < posted_) placed_[ended_++ % kPlacedDepth].operation->finish(why);
}

}  // namespace carillon::verbs
