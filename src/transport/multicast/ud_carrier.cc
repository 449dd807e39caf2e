// SPDX-License-Identifier: Apache-2.0
#include "transport/multicast/ud_carrier.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "transport/multicast/group_address.h"
#include "transport/verbs/device.h"
#include "transport/verbs/library.h"

namespace carillon::multicast {
namespace {

using verbs::failure;
using verbs::Library;

constexpr std::size_t kGlobalHeaderBytes = 40;  // before each packet that is received
constexpr std::uint32_t kSends = 256;           // under way at most
constexpr int kBatch = 32;
constexpr int kMostBatches = 8;  // in one receive()

// What others need to reach a member.
struct Address {
  std::array<std::uint8_t, 16> gid{};
  std::uint32_t queue_pair = 0;
  std::uint16_t lid = 0;
  std::uint16_t zero = 0;
};

sockaddr* generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

void make_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

class UdCarrier final : public Carrier {
 public:
  explicit UdCarrier(const Library& library) : library_(library) {}
  ~UdCarrier() override;
  Status open(const UdOptions& options);

  [[nodiscard]] const CarrierLimits& limits() const override { return limits_; }
  [[nodiscard]] std::span<const std::byte> address() const override {
    return std::as_bytes(std::span(&own_, 1));
  }
  Status add_member(std::span<const std::byte> address) override;
  Status join(std::uint64_t name) override;
  Result<bool> joined() override;
  Status attach(bool on) override;
  bool send_group(std::span<const std::byte> packet) override {
    return send(group_, group_queue_pair_, group_key_, packet);
  }
  bool send_member(Member member, std::span<const std::byte> packet) override {
    return send(handles_[member], members_[member].queue_pair, RDMA_UDP_QKEY, packet);
  }
  Status receive(CarrierListener& listener) override;
  [[nodiscard]] int wait_descriptor() const override { return arrivals_->fd; }
  bool ready_to_wait() override;

 private:
  Status bind(const std::string& device);
  Status find_address();
  Status create_queues(std::uint32_t receives);
  Status create_memory();
  Status post_receive(std::uint64_t index);
  Status make_handles(ibv_ah_attr group);
  bool send(ibv_ah* to, std::uint32_t queue_pair, std::uint32_t key,
            std::span<const std::byte> packet);
  void take_sent();
  [[nodiscard]] std::byte* received(std::uint64_t index) {
    return memory_.data() + index * (kGlobalHeaderBytes + limits_.datagram_bytes);
  }
  [[nodiscard]] std::byte* sent(std::uint64_t index) {
    return received(limits_.receive_packets) + index * limits_.datagram_bytes;
  }

  const Library& library_;
  CarrierLimits limits_;
  rdma_event_channel* events_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* arrivals_ = nullptr;
  ibv_cq* sent_ = nullptr;
  ibv_cq* received_ = nullptr;
  ibv_mr* registration_ = nullptr;
  bool has_queue_pair_ = false;
  std::vector<std::byte> memory_;  // receives, then sends
  std::vector<std::uint32_t> free_sends_;
  Address own_;
  std::vector<Address> members_;
  std::vector<ibv_ah*> handles_;
  sockaddr_in group_address_ = {};
  bool joining_ = false;   // or it has joined
  bool attached_ = false;  // the queue pair hears what is sent to the group
  ibv_gid group_gid_ = {};
  std::uint16_t group_lid_ = 0;
  ibv_ah* group_ = nullptr;
  std::uint32_t group_queue_pair_ = 0, group_key_ = 0;
  Status broken_;       // why nothing is sent any more
  bool armed_ = false;  // the next arrival makes the descriptor readable
};

UdCarrier::~UdCarrier() {
  for (ibv_ah* const handle : handles_) library_.destroy_ah(handle);
  if (group_ != nullptr) library_.destroy_ah(group_);
  // First the group: a queue pair that is attached to one cannot go, and all that it uses stays.
  if (joining_) library_.leave_multicast(id_, generic(group_address_));
  if (has_queue_pair_) library_.destroy_qp(id_);
  if (id_ != nullptr) library_.destroy_id(id_);
  if (registration_ != nullptr) library_.dereg_mr(registration_);
  if (sent_ != nullptr) library_.destroy_cq(sent_);
  if (received_ != nullptr) library_.destroy_cq(received_);
  if (arrivals_ != nullptr) library_.destroy_comp_channel(arrivals_);
  if (domain_ != nullptr) library_.dealloc_pd(domain_);
  if (events_ != nullptr) library_.destroy_event_channel(events_);
}

Status UdCarrier::open(const UdOptions& options) {
  events_ = library_.create_event_channel();
  if (events_ == nullptr) {
    return {Code::kUnsupported,
            "multicast: no RDMA device: " + std::string(failure("rdma_cm", errno).message())};
  }
  make_nonblocking(events_->fd);
  if (Status status = bind(options.device); !status.ok() || id_ == nullptr) return status;
  if (Status status = find_address(); !status.ok()) return status;
  if (Status status = create_queues(options.receive_packets); !status.ok()) return status;
  return create_memory();
}

Status UdCarrier::bind(const std::string& device) {
  for (sockaddr_in& address : verbs::ipv4_addresses()) {
    if (library_.create_id(events_, &id_, nullptr, RDMA_PS_UDP) != 0) {
      return failure("multicast: rdma_create_id", errno);
    }
    if (library_.bind_addr(id_, generic(address)) == 0 && id_->verbs != nullptr &&
        (device.empty() || device == id_->verbs->device->name)) {
      return {};
    }
    library_.destroy_id(id_);
    id_ = nullptr;
  }
  return {Code::kUnsupported, "multicast: no RDMA device" +
                                  (device.empty() ? std::string() : " '" + device + "'") +
                                  " with an IPv4 address"};
}

// Of the device's names, the one that is its IPv4 address (RoCE), or else its first (InfiniBand).
Status UdCarrier::find_address() {
  ibv_port_attr port = {};
  const int error = library_.query_port(id_->verbs, id_->port_num,
                                        reinterpret_cast<_compat_ibv_port_attr*>(&port));
  if (error != 0) return failure("multicast: ibv_query_port", error);
  limits_.name = std::string("ud ") + id_->verbs->device->name;
  limits_.datagram_bytes = std::size_t{128} << static_cast<int>(port.active_mtu);
  if (limits_.datagram_bytes < kMinDatagramBytes) {
    return {Code::kUnsupported, "multicast: packets of " + limits_.name + " are too short: " +
                                    std::to_string(limits_.datagram_bytes) + " bytes"};
  }
  own_.lid = port.lid;
  const auto* const here = reinterpret_cast<const sockaddr_in*>(&id_->route.addr.src_addr);
  std::array<std::uint8_t, 16> wanted{};
  wanted[10] = wanted[11] = 0xff;
  std::memcpy(&wanted[12], &here->sin_addr, sizeof here->sin_addr);
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid gid = {};
    if (library_.query_gid(id_->verbs, id_->port_num, i, &gid) != 0) continue;
    const bool is_wanted = std::equal(wanted.begin(), wanted.end(), gid.raw);
    if (i == 0 || is_wanted) std::copy(gid.raw, gid.raw + wanted.size(), own_.gid.begin());
    if (is_wanted) return {};
  }
  if (port.link_layer != IBV_LINK_LAYER_ETHERNET) return {};
  return {Code::kUnsupported, "multicast: " + limits_.name + " has no name for its IPv4 address"};
}

Status UdCarrier::create_queues(std::uint32_t receives) {
  ibv_device_attr attributes = {};
  if (library_.query_device(id_->verbs, &attributes) != 0) {
    return failure("multicast: ibv_query_device", errno);
  }
  const auto most = static_cast<std::uint32_t>(std::min(attributes.max_qp_wr, attributes.max_cqe));
  limits_.receive_packets = std::min(receives, most);
  const std::uint32_t sends = std::min(kSends, most);
  domain_ = library_.alloc_pd(id_->verbs);
  arrivals_ = library_.create_comp_channel(id_->verbs);
  if (domain_ == nullptr || arrivals_ == nullptr) return failure("multicast: no domain", errno);
  make_nonblocking(arrivals_->fd);
  sent_ = library_.create_cq(id_->verbs, static_cast<int>(sends), nullptr, nullptr, 0);
  received_ = library_.create_cq(id_->verbs, static_cast<int>(limits_.receive_packets), nullptr,
                                 arrivals_, 0);
  if (sent_ == nullptr || received_ == nullptr) return failure("multicast: no queue", errno);
  ibv_qp_init_attr pair = {};
  pair.send_cq = sent_;
  pair.recv_cq = received_;
  pair.cap = {.max_send_wr = sends,
              .max_recv_wr = limits_.receive_packets,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  pair.qp_type = IBV_QPT_UD;
  if (library_.create_qp(id_, domain_, &pair) != 0) {
    return failure("multicast: " + limits_.name + ": no queue pair", errno);
  }
  has_queue_pair_ = true;
  own_.queue_pair = id_->qp->qp_num;
  for (std::uint32_t i = 0; i < sends; ++i) free_sends_.push_back(i);
  return {};
}

Status UdCarrier::create_memory() {
  memory_.resize(limits_.receive_packets * (kGlobalHeaderBytes + limits_.datagram_bytes) +
                 free_sends_.size() * limits_.datagram_bytes);
  registration_ = library_.reg_mr(domain_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  if (registration_ == nullptr) {
    return failure("multicast: " + limits_.name + " could not register " +
                       std::to_string(memory_.size()) + " bytes (is 'ulimit -l' large enough?)",
                   errno);
  }
  for (std::uint64_t i = 0; i < limits_.receive_packets; ++i) {
    if (Status status = post_receive(i); !status.ok()) return status;
  }
  return {};
}

Status UdCarrier::post_receive(std::uint64_t index) {
  ibv_sge piece = {
      .addr = reinterpret_cast<std::uint64_t>(received(index)),
      .length = static_cast<std::uint32_t>(kGlobalHeaderBytes + limits_.datagram_bytes),
      .lkey = registration_->lkey};
  ibv_recv_wr request = {};
  request.wr_id = index;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(id_->qp, &request, &bad);
  return error == 0 ? Status() : failure("multicast: " + limits_.name + ": no receive", error);
}

Status UdCarrier::add_member(std::span<const std::byte> address) {
  Address other;
  if (address.size() == sizeof other) std::memcpy(&other, address.data(), sizeof other);
  constexpr std::uint32_t kQueuePairs = 1U << 24;
  if (other.queue_pair == 0 || other.queue_pair >= kQueuePairs) {
    return {Code::kInvalidArgument, "multicast: what should be the UD address of member " +
                                        std::to_string(members_.size()) + " is none"};
  }
  members_.push_back(other);
  return {};
}

Status UdCarrier::join(std::uint64_t name) {
  group_address_ = group_address(name);
  group_address_.sin_port = 0;
  joining_ = library_.join_multicast(id_, generic(group_address_), nullptr) == 0;
  if (joining_) return {};
  return failure("multicast: " + limits_.name + " cannot join a group", errno);
}

Result<bool> UdCarrier::joined() {
  if (group_ != nullptr) return true;
  rdma_cm_event* event = nullptr;
  if (library_.get_cm_event(events_, &event) != 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    return failure("multicast: rdma_get_cm_event", errno);
  }
  const rdma_cm_event_type kind = event->event;
  const rdma_ud_param found = event->param.ud;
  const int error = event->status;
  library_.ack_cm_event(event);
  if (kind == RDMA_CM_EVENT_MULTICAST_ERROR) {
    return failure("multicast: " + limits_.name + " cannot join a group", -error);
  }
  if (kind != RDMA_CM_EVENT_MULTICAST_JOIN) return false;
  group_queue_pair_ = found.qp_num;
  group_key_ = found.qkey;
  // The connection manager has attached the queue pair.
  group_gid_ = found.ah_attr.grh.dgid;
  group_lid_ = found.ah_attr.dlid;
  attached_ = true;
  if (Status status = make_handles(found.ah_attr); !status.ok()) return status;
  return true;
}

// The port stays a member of the group: only the queue pair's copies begin and end.
Status UdCarrier::attach(bool on) {
  if (on == attached_ || group_ == nullptr) return {};
  auto* const change = on ? library_.attach_mcast : library_.detach_mcast;
  if (const int error = change(id_->qp, &group_gid_, group_lid_); error != 0) {
    return failure(
        "multicast: " + limits_.name + (on ? " cannot join" : " cannot leave") + " its group",
        error);
  }
  attached_ = on;
  return {};
}

// Members are reached the way the group is: by the same name of this device, at the same rate.
Status UdCarrier::make_handles(ibv_ah_attr group) {
  for (const Address& member : members_) {
    ibv_ah_attr one = group;
    one.is_global = 1;
    std::copy(member.gid.begin(), member.gid.end(), one.grh.dgid.raw);
    one.dlid = member.lid;
    ibv_ah* const handle = library_.create_ah(domain_, &one);
    if (handle == nullptr) {
      return failure("multicast: " + limits_.name + " finds no way to member " +
                         std::to_string(handles_.size()),
                     errno);
    }
    handles_.push_back(handle);
  }
  group_ = library_.create_ah(domain_, &group);
  if (group_ == nullptr) return failure("multicast: ibv_create_ah", errno);
  return {};
}

void UdCarrier::take_sent() {
  std::array<ibv_wc, kBatch> done;
  int count = 0;
  while ((count = ibv_poll_cq(sent_, kBatch, done.data())) > 0) {
    for (int i = 0; i < count; ++i) {
      const ibv_wc& one = done[static_cast<std::size_t>(i)];
      free_sends_.push_back(static_cast<std::uint32_t>(one.wr_id));
      // A datagram that is lost is sent all the same: this is the queue pair, which sends no more.
      if (one.status != IBV_WC_SUCCESS && broken_.ok()) {
        broken_ = {Code::kSystem, "multicast: " + limits_.name + " sends no more (" +
                                      library_.wc_status_str(one.status) + ")"};
      }
    }
  }
}

bool UdCarrier::send(ibv_ah* to, std::uint32_t queue_pair, std::uint32_t key,
                     std::span<const std::byte> packet) {
  if (free_sends_.empty()) take_sent();
  if (free_sends_.empty()) return false;
  const std::uint32_t index = free_sends_.back();
  std::memcpy(sent(index), packet.data(), packet.size());
  ibv_sge piece = {.addr = reinterpret_cast<std::uint64_t>(sent(index)),
                   .length = static_cast<std::uint32_t>(packet.size()),
                   .lkey = registration_->lkey};
  ibv_send_wr request = {};
  request.wr_id = index;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.ud = {.ah = to, .remote_qpn = queue_pair, .remote_qkey = key};
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(id_->qp, &request, &bad);
  if (error == 0) free_sends_.pop_back();
  if (error == ENOMEM || error == EAGAIN) return false;
  if (error != 0 && broken_.ok()) {
    broken_ = failure("multicast: " + limits_.name + ": ibv_post_send", error);
  }
  return true;
}

Status UdCarrier::receive(CarrierListener& listener) {
  if (armed_) {
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    if (library_.get_cq_event(arrivals_, &queue, &context) == 0) {
      library_.ack_cq_events(queue, 1);
      armed_ = false;
    }
  }
  std::array<ibv_wc, kBatch> done;
  for (int round = 0; round < kMostBatches; ++round) {
    const int count = ibv_poll_cq(received_, kBatch, done.data());
    if (count < 0) return failure("multicast: " + limits_.name + ": ibv_poll_cq", errno);
    for (int i = 0; i < count; ++i) {
      const ibv_wc& one = done[static_cast<std::size_t>(i)];
      if (one.status != IBV_WC_SUCCESS) {
        return {Code::kSystem, "multicast: " + limits_.name + " has failed (" +
                                   library_.wc_status_str(one.status) + ")"};
      }
      if (one.byte_len >= kGlobalHeaderBytes) {
        listener.on_packet(
            {received(one.wr_id) + kGlobalHeaderBytes, one.byte_len - kGlobalHeaderBytes});
      }
      if (Status status = post_receive(one.wr_id); !status.ok()) return status;
    }
    if (count < kBatch) break;
  }
  take_sent();
  return broken_;  // receive() is where a carrier says so
}

// What arrived before the queue was armed is taken by the receive() between two calls.
bool UdCarrier::ready_to_wait() {
  if (armed_) return true;
  armed_ = ibv_req_notify_cq(received_, 0) == 0;
  return false;
}

}  // namespace

Result<std::unique_ptr<Carrier>> open_ud(const UdOptions& options) {
  const auto library = Library::load();
  if (!library.ok()) return library.status();
  auto carrier = std::make_unique<UdCarrier>(*library.value());
  if (Status status = carrier->open(options); !status.ok()) return status;
  return std::unique_ptr<Carrier>(std::move(carrier));
}

}  // namespace carillon::multicast
