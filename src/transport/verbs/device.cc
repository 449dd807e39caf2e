// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/device.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>

namespace carillon::verbs {
namespace {

constexpr int kBacklog = 1024;
constexpr int kMostQueueEntries = 16384;
constexpr int kReadsUnderWay = 16;

}  // namespace

std::vector<sockaddr_in> ipv4_addresses() {
  std::vector<sockaddr_in> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    const bool usable = i->ifa_addr != nullptr && i->ifa_addr->sa_family == AF_INET &&
                        (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_LOOPBACK) == 0;
    if (!usable) continue;
    addresses.push_back(*reinterpret_cast<const sockaddr_in*>(i->ifa_addr));
    addresses.back().sin_port = 0;
  }
  freeifaddrs(list);
  return addresses;
}

Result<std::unique_ptr<Device>> Device::open(const Library& library, const Options& options) {
  std::unique_ptr<Device> device(new Device(library));
  device->events_ = library.create_event_channel();
  if (device->events_ == nullptr) {
    return Status(Code::kUnsupported, "no RDMA device: the connection manager cannot be reached (" +
                                          std::string(failure("rdma_cm", errno).message()) + ")");
  }
  const int flags = fcntl(device->events_->fd, F_GETFL);
  fcntl(device->events_->fd, F_SETFL, flags | O_NONBLOCK);
  if (Status status = device->bind(options); !status.ok()) return status;
  if (Status status = device->create_queues(); !status.ok()) return status;
  return device;
}

Device::~Device() {
  if (receives_ != nullptr) library_.destroy_srq(receives_);
  if (received_ != nullptr) library_.destroy_cq(received_);
  if (sent_ != nullptr) library_.destroy_cq(sent_);
  credits_.clear();
  if (domain_ != nullptr) library_.dealloc_pd(domain_);
  if (listener_ != nullptr) library_.destroy_id(listener_);
  if (events_ != nullptr) library_.destroy_event_channel(events_);
}

// An address belongs to an RDMA device if the connection manager can bind to it there.
Status Device::bind(const Options& options) {
  std::string seen;
  for (sockaddr_in& address : ipv4_addresses()) {
    if (library_.create_id(events_, &listener_, nullptr, RDMA_PS_TCP) != 0) {
      return failure("rdma_create_id", errno);
    }
    if (library_.bind_addr(listener_, reinterpret_cast<sockaddr*>(&address)) == 0 &&
        listener_->verbs != nullptr) {
      if (options.device.empty() || name() == options.device) {
        if (library_.listen(listener_, kBacklog) != 0) return failure("rdma_listen", errno);
        address_ = address;
        address_.sin_port = library_.get_src_port(listener_);
        return {};
      }
      seen += (seen.empty() ? "" : ", ") + name();
    }
    library_.destroy_id(listener_);
    listener_ = nullptr;
  }
  return {Code::kUnsupported,
          "no RDMA device" +
              (options.device.empty() ? std::string() : " '" + options.device + "'") +
              " with an IPv4 address; there are: " + (seen.empty() ? "none" : seen)};
}

std::string Device::name() const { return listener_->verbs->device->name; }

Status Device::create_queues() {
  ibv_context* const context = listener_->verbs;
  if (library_.query_device(context, &attributes_) != 0) return failure("ibv_query_device", errno);
  ibv_port_attr port = {};
  const int error = library_.query_port(context, listener_->port_num,
                                        reinterpret_cast<_compat_ibv_port_attr*>(&port));
  if (error != 0) return failure("ibv_query_port", error);
  max_message_bytes_ = port.max_msg_sz;
  queue_entries_ = std::min(attributes_.max_cqe, kMostQueueEntries);
  // One piece is the head of a tagged message.
  max_pieces_ = std::clamp(std::min(attributes_.max_sge, kMostPieces) - 1, 1, kMostPieces - 1);
  max_read_pieces_ = std::clamp(attributes_.max_sge_rd, 1, max_pieces_);
  domain_ = library_.alloc_pd(context);
  if (domain_ == nullptr) return failure("ibv_alloc_pd", errno);
  sent_ = library_.create_cq(context, queue_entries_, nullptr, nullptr, 0);
  received_ = library_.create_cq(context, queue_entries_, nullptr, nullptr, 0);
  if (sent_ == nullptr || received_ == nullptr) return failure("ibv_create_cq", errno);
  ibv_srq_init_attr receives = {};
  receives.attr.max_wr =
      static_cast<std::uint32_t>(std::min(attributes_.max_srq_wr, queue_entries_));
  receives.attr.max_sge = 1;
  receives_ = library_.create_srq(domain_, &receives);
  if (receives_ == nullptr) return failure("ibv_create_srq", errno);
  return find_inline_bytes();
}

ibv_qp_init_attr Device::queue_pair() const {
  ibv_qp_init_attr pair = {};
  pair.send_cq = sent_;
  pair.recv_cq = received_;
  pair.srq = receives_;
  pair.cap.max_send_wr = kSendDepth;
  pair.cap.max_send_sge = static_cast<std::uint32_t>(max_pieces_ + 1);
  pair.cap.max_inline_data = inline_bytes_;
  pair.qp_type = IBV_QPT_RC;
  return pair;
}

// Devices do not say how much they take inline: it is tried.
Status Device::find_inline_bytes() {
  for (const std::uint32_t bytes : {128, 64, 0}) {
    inline_bytes_ = bytes;
    ibv_qp_init_attr pair = queue_pair();
    ibv_qp* const trial = library_.create_raw_qp(domain_, &pair);
    if (trial == nullptr) continue;
    library_.destroy_raw_qp(trial);
    return {};
  }
  return failure(name() + ": no queue pair", errno);
}

Result<std::unique_ptr<Memory>> Device::register_memory(void* memory, std::size_t bytes) {
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  ibv_mr* mr = library_.reg_mr(domain_, memory, bytes, kAccess);
  // Memory that may only be read, as the input of a collective may be.
  if (mr == nullptr && errno == EFAULT) {
    mr = library_.reg_mr(domain_, memory, bytes, IBV_ACCESS_REMOTE_READ);
  }
  if (mr == nullptr) {
    return Status(Code::kNoMemory,
                  std::string(failure(name() + " could not register " + std::to_string(bytes) +
                                          " bytes (is 'ulimit -l' large enough?)",
                                      errno)
                                  .message()));
  }
  return std::make_unique<Memory>(library_, mr);
}

Status Device::create_queue_pair(rdma_cm_id* id) {
  ibv_qp_init_attr pair = queue_pair();
  if (library_.create_qp(id, domain_, &pair) == 0) return {};
  return failure(name() + ": no queue pair", errno);
}

Status Device::create_placed_queue_pair(rdma_cm_id* id) {
  ibv_qp_init_attr pair = queue_pair();
  pair.srq = nullptr;
  pair.cap.max_recv_wr = kPlacedDepth;
  pair.cap.max_recv_sge = static_cast<std::uint32_t>(max_pieces_);
  if (library_.create_qp(id, domain_, &pair) == 0) return {};
  return failure(name() + ": no queue pair for placed messages", errno);
}

// The connection manager refuses more than the device has.
Device::Reads Device::reads() const {
  const auto most = [](int has) {
    return static_cast<std::uint8_t>(std::clamp(has, 0, kReadsUnderWay));
  };
  return {.own = most(attributes_.max_qp_init_rd_atom), .peers = most(attributes_.max_qp_rd_atom)};
}

Status Device::reserve_receives(int count) {
  if (receives_reserved_ + count > queue_entries_) {
    return {Code::kUnsupported, name() + " has no receive entries for more peers: " +
                                    std::to_string(receives_reserved_) + " of its " +
                                    std::to_string(queue_entries_) + " are others' already"};
  }
  receives_reserved_ += count;
  return {};
}

Status Device::add_credits() {
  if (Status status = reserve_receives(kCredits); !status.ok()) return status;
  Credits& more = credits_.emplace_back();
  more.entries.resize(kCredits);
  auto memory = register_memory(more.entries.data(), sizeof(ReceiveEntry) * kCredits);
  if (!memory.ok()) {
    credits_.pop_back();
    return memory.status();
  }
  more.memory = std::move(memory.value());
  Status status;
  for (ReceiveEntry& entry : more.entries) {
    entry.local_key = more.memory->local_key();
    if (status.ok()) status = post_receive(entry);
  }
  return status;
}

Status Device::post_receive(ReceiveEntry& entry) {
  ibv_sge piece = {.addr = reinterpret_cast<std::uint64_t>(&entry),
                   .length = kReceivedBytes,
                   .lkey = entry.local_key};
  ibv_recv_wr request = {};
  request.wr_id = piece.addr;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_srq_recv(receives_, &request, &bad);
  return error == 0 ? Status() : failure(name() + ": no receive entry", error);
}

}  // namespace carillon::verbs
