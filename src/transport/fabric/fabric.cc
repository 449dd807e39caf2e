// SPDX-License-Identifier: Apache-2.0
#include "transport/fabric/fabric.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace carillon::fabric {
namespace {

using wire::Operation;
using wire::Peer;
using wire::Piece;
using wire::RemoteMemory;

constexpr std::size_t kMostPieces = 32;
constexpr std::size_t kCompletionsAtOnce = 16;

struct Close {
  template <typename Object>
  void operator()(Object* object) const {
    fi_close(&object->fid);
  }
};
template <typename Object>
using Handle = std::unique_ptr<Object, Close>;

// What stands before libfabric's own address: both ends must speak the same protocol.
struct AddressHead {
  std::uint32_t protocol = 0;
  std::uint32_t format = 0;
  bool operator==(const AddressHead&) const = default;
};

class FabricRegistration final : public wire::Registration {
 public:
  FabricRegistration(fid_mr* mr, std::uint64_t address) : mr_(mr), address_(address) {}
  [[nodiscard]] RemoteMemory remote() const override { return {address_, fi_mr_key(mr_.get())}; }
  [[nodiscard]] void* descriptor() const { return fi_mr_desc(mr_.get()); }

 private:
  Handle<fid_mr> mr_;
  std::uint64_t address_;
};

// A list as libfabric takes it.
struct List {
  explicit List(std::span<const Piece> pieces) {
    for (const Piece& piece : pieces) {
      iov[count] = {.iov_base = piece.data, .iov_len = piece.bytes};
      const auto* const held = static_cast<const FabricRegistration*>(piece.registration);
      descriptors[count++] = held == nullptr ? nullptr : held->descriptor();
    }
  }
  std::array<iovec, kMostPieces> iov;
  std::array<void*, kMostPieces> descriptors;
  std::size_t count = 0;
};

class FabricWire final : public wire::Wire {
 public:
  FabricWire(const Library& library, Info info) : library_(library), info_(std::move(info)) {}
  ~FabricWire() override;

  Status open();

  [[nodiscard]] const wire::Capabilities& capabilities() const override { return capabilities_; }
  [[nodiscard]] std::span<const std::byte> address() const override { return address_; }
  Result<Peer> add_peer(std::span<const std::byte> address) override;
  Result<std::unique_ptr<wire::Registration>> register_memory(std::span<std::byte> memory) override;
  Result<bool> put(Peer peer, std::span<const Piece> from, RemoteMemory to,
                   std::optional<std::uint32_t> immediate, Operation& operation) override;
  Result<bool> get(Peer peer, RemoteMemory from, std::span<const Piece> to,
                   Operation& operation) override;
  Result<bool> send(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                    Operation& operation) override;
  Result<bool> recv(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                    Operation& operation) override;
  void stop_awaiting(Operation& operation) override {
    if (cut_off_.ok()) fi_cancel(&endpoint_->fid, operation.provider_space());
  }
  void cut_off(Peer peer, const Status& why) override;
  Status progress(wire::Listener& listener) override;
  [[nodiscard]] int wait_descriptor() const override { return wait_descriptor_; }
  bool ready_to_wait() override;

 private:
  Status open_endpoint();
  void close_endpoint();
  int open_completions();
  Status read_address();
  void set_capabilities();
  std::uint64_t new_key();
  [[nodiscard]] Result<fi_addr_t> known(Peer peer) const;
  // Posts: begins the operation, calls, and turns what libfabric answers into what Wire does.
  template <typename Call>
  Result<bool> post(Operation& operation, std::uint64_t& counter, Call call);
  // Describe the operation as libfabric takes it, and post it.
  template <typename Call>
  Result<bool> one_sided(Peer peer, std::span<const Piece> here, RemoteMemory there,
                         Operation& operation, std::uint64_t& counter, Call call);
  template <typename Call>
  Result<bool> two_sided(Peer peer, std::span<const Piece> pieces, std::uint64_t tag,
                         Operation& operation, std::uint64_t& counter, Call call);
  void finish_one(const fi_cq_tagged_entry& entry, wire::Listener& listener);
  // False: there was none after all.
  Result<bool> finish_failed();

  const Library& library_;
  Info info_;
  // In the order in which they are opened; closed the other way round.
  Handle<fid_fabric> fabric_;
  Handle<fid_domain> domain_;
  Handle<fid_cq> completions_;
  Handle<fid_av> addresses_;
  Handle<fid_ep> endpoint_;
  wire::Capabilities capabilities_;
  std::vector<std::byte> address_;
  std::vector<fi_addr_t> peers_;
  std::uint64_t next_key_ = 0;
  int wait_descriptor_ = -1;
  Status cut_off_;  // not ok: there is no endpoint any more
};

// Whether closing an endpoint can end the process. To close a connection, ofi_rxm closes the
// connection's endpoint, then handles what still lies in the completion queue; a completion found
// there is of the connection whose memory is gone: over tcp while the peer goes on sending, over
// verbs with the credits, too, that ofi_rxm sends on its own account. So it is in libfabric 1.17
// (rxm_close_conn, rxm_handle_credit, rxm_handle_comp).
bool crashes_when_closed(const fi_info& info) {
  return std::string_view(info.fabric_attr->prov_name).find(";ofi_rxm") != std::string_view::npos;
}

// What cannot be closed stays until the process ends. Memory is registered by others, and ends
// with them.
void FabricWire::close_endpoint() {
  if (endpoint_ == nullptr) return;
  if (!crashes_when_closed(*info_)) {
    endpoint_.reset();
    return;
  }
  static_cast<void>(endpoint_.release());
  static_cast<void>(addresses_.release());
  static_cast<void>(completions_.release());
  static_cast<void>(domain_.release());
  static_cast<void>(fabric_.release());
}

FabricWire::~FabricWire() { close_endpoint(); }

// An endpoint has all connections, and none of them can be closed alone. One that cannot be closed
// either still writes until the memory's registration is gone, which the caller takes back next.
void FabricWire::cut_off(Peer /*peer*/, const Status& why) {
  if (!cut_off_.ok()) return;
  close_endpoint();
  wait_descriptor_ = -1;
  cut_off_ = Status(why.code(), capabilities_.name + ": all connections are closed, since " +
                                    std::string(why.message()));
}

template <typename Object, typename Open>
int open_into(Handle<Object>& handle, Open open) {
  Object* object = nullptr;
  const int error = open(&object);
  if (error == 0) handle.reset(object);
  return error;
}

Status FabricWire::open() {
  int error = open_into(fabric_, [&](fid_fabric** object) {
    return library_.fabric(info_->fabric_attr, object, nullptr);
  });
  if (error != 0) return library_.failure("libfabric could not open the fabric", error);
  error = open_into(domain_, [&](fid_domain** object) {
    return fi_domain(fabric_.get(), info_.get(), object, nullptr);
  });
  if (error != 0) {
    return library_.failure(std::string("libfabric could not open ") + info_->domain_attr->name,
                            error);
  }
  if (Status status = open_endpoint(); !status.ok()) return status;
  // Keys that are no other process's: the system gives a dead process's port to the next one, and
  // who has not heard of the death writes there.
  if (getrandom(&next_key_, sizeof next_key_, 0) != sizeof next_key_) {
    return {Code::kSystem, "the system gives no random numbers for the keys of libfabric's memory"};
  }
  set_capabilities();
  return read_address();
}

// Which a provider that chooses keys itself passes over.
std::uint64_t FabricWire::new_key() {
  const std::size_t bits = 8 * info_->domain_attr->mr_key_size;
  ++next_key_;
  return bits < 64 ? next_key_ & ((UINT64_C(1) << bits) - 1) : next_key_;
}

// With a descriptor to sleep on, if the provider has one.
int FabricWire::open_completions() {
  fi_cq_attr completions = {};
  completions.format = FI_CQ_FORMAT_TAGGED;
  completions.wait_obj = FI_WAIT_FD;
  const auto open = [&](fid_cq** object) {
    return fi_cq_open(domain_.get(), &completions, object, nullptr);
  };
  if (open_into(completions_, open) == 0) {
    if (fi_control(&completions_->fid, FI_GETWAIT, &wait_descriptor_) == 0) return 0;
    wait_descriptor_ = -1;
    completions_.reset();
  }
  completions.wait_obj = FI_WAIT_NONE;
  return open_into(completions_, open);
}

bool FabricWire::ready_to_wait() {
  if (!cut_off_.ok()) return false;
  std::array<fid*, 1> fids = {&completions_->fid};
  return wait_descriptor_ >= 0 && fi_trywait(fabric_.get(), fids.data(), 1) == FI_SUCCESS;
}

Status FabricWire::open_endpoint() {
  fi_av_attr addresses = {};
  addresses.type = FI_AV_TABLE;
  int error = open_completions();
  if (error == 0) {
    error = open_into(addresses_, [&](fid_av** object) {
      return fi_av_open(domain_.get(), &addresses, object, nullptr);
    });
  }
  if (error == 0) {
    error = open_into(endpoint_, [&](fid_ep** object) {
      return fi_endpoint(domain_.get(), info_.get(), object, nullptr);
    });
  }
  if (error == 0) {
    error = fi_ep_bind(endpoint_.get(), &completions_->fid, FI_TRANSMIT | FI_RECV);
  }
  if (error == 0) error = fi_ep_bind(endpoint_.get(), &addresses_->fid, 0);
  if (error == 0) error = fi_enable(endpoint_.get());
  if (error == 0) return {};
  return library_.failure(
      std::string("libfabric could not open an endpoint of ") + info_->fabric_attr->prov_name,
      error);
}

// Two processes that connect to each other at once are to keep one connection of the two. So that a
// process does not take the other request for that of a new process at the peer's address,
// libfabric's provider for TCP (1.17, and newer ones) compares process numbers. But the structure
// of a connection that has ended is used again with the old number in it: if the answer and the
// other request are there at one look, in the wrong order, the connection that both are to keep is
// closed, with what has been sent by it (xnet_alloc_conn, xnet_process_connreq).
bool loses_when_crossing(const fi_info& info) { return is_of_sockets(info); }

void FabricWire::set_capabilities() {
  const std::size_t lists = std::min(info_->tx_attr->iov_limit, info_->rx_attr->iov_limit);
  capabilities_ = {
      .name = std::string("fabric ") + info_->fabric_attr->prov_name,
      .max_pieces = std::clamp<std::size_t>(lists, 1, kMostPieces),
      .inline_bytes = info_->tx_attr->inject_size,
      .max_bytes = info_->ep_attr->max_msg_size,
      .max_send_bytes = info_->ep_attr->max_msg_size,
      .registers_local = (info_->domain_attr->mr_mode & FI_MR_LOCAL) != 0,
      .manual_progress = info_->domain_attr->data_progress == FI_PROGRESS_MANUAL,
      .ordered = writes_in_order(*info_),
      .sockets = is_of_sockets(*info_),
      .crossing_loses = loses_when_crossing(*info_),
  };
}

Status FabricWire::read_address() {
  std::array<std::byte, kMaxAddressBytes> room;
  const AddressHead head{info_->ep_attr->protocol, info_->addr_format};
  std::memcpy(room.data(), &head, sizeof head);
  std::size_t bytes = room.size() - sizeof head;
  const int error = fi_getname(&endpoint_->fid, room.data() + sizeof head, &bytes);
  if (error != 0) return library_.failure("libfabric gave no address", error);
  address_.assign(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(sizeof head + bytes));
  return {};
}

Result<Peer> FabricWire::add_peer(std::span<const std::byte> address) {
  if (address.size() != address_.size() ||
      std::memcmp(address.data(), address_.data(), sizeof(AddressHead)) != 0) {
    return Status(Code::kUnsupported,
                  "a member has an address that is none of " + capabilities_.name +
                      "; do all nodes choose the same provider (CARILLON_NETWORK)?");
  }
  fi_addr_t peer = FI_ADDR_UNSPEC;
  if (!cut_off_.ok()) return cut_off_;
  const int added =
      fi_av_insert(addresses_.get(), address.data() + sizeof(AddressHead), 1, &peer, 0, nullptr);
  if (added != 1) {  // it says how many, or what is wrong
    return library_.failure("libfabric does not take a member's address",
                            added < 0 ? added : -FI_EINVAL);
  }
  peers_.push_back(peer);
  return static_cast<Peer>(peers_.size() - 1);
}

Result<std::unique_ptr<wire::Registration>> FabricWire::register_memory(
    std::span<std::byte> memory) {
  const std::uint64_t access =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  const auto mode = static_cast<std::uint64_t>(info_->domain_attr->mr_mode);
  if (!cut_off_.ok()) return cut_off_;
  fid_mr* region = nullptr;
  int error = fi_mr_reg(domain_.get(), memory.data(), memory.size(), access, 0, new_key(), 0,
                        &region, nullptr);
  if (error != 0) {
    return library_.failure(
        "libfabric could not register " + std::to_string(memory.size()) + " bytes", error);
  }
  const auto start = reinterpret_cast<std::uint64_t>(memory.data());
  auto registration =
      std::make_unique<FabricRegistration>(region, (mode & FI_MR_VIRT_ADDR) != 0 ? start : 0);
  ++counters_.registrations;
  if ((mode & FI_MR_ENDPOINT) != 0) {
    error = fi_mr_bind(region, &endpoint_->fid, 0);
    if (error == 0) error = fi_mr_enable(region);
    if (error != 0) return library_.failure("libfabric could not enable registered memory", error);
  }
  return std::unique_ptr<wire::Registration>(std::move(registration));
}

Result<fi_addr_t> FabricWire::known(Peer peer) const {
  if (!cut_off_.ok()) return cut_off_;
  if (peer < 0 || static_cast<std::size_t>(peer) >= peers_.size()) {
    return Status(Code::kInvalidArgument, "no peer " + std::to_string(peer));
  }
  return peers_[static_cast<std::size_t>(peer)];
}

template <typename Call>
Result<bool> FabricWire::post(Operation& operation, std::uint64_t& counter, Call call) {
  operation.begin();
  const ssize_t answer = call();
  if (answer == 0) {
    ++counter;
    return true;
  }
  operation.finish({});
  if (answer == -FI_EAGAIN) return false;
  return library_.failure(capabilities_.name + ": post", answer);
}

template <typename Call>
Result<bool> FabricWire::one_sided(Peer peer, std::span<const Piece> here, RemoteMemory there,
                                   Operation& operation, std::uint64_t& counter, Call call) {
  const auto address = known(peer);
  if (!address.ok()) return address.status();
  if (Status s = check_list(capabilities_, here, capabilities_.max_bytes); !s.ok()) return s;
  List list(here);
  const fi_rma_iov remote = {
      .addr = there.address, .len = wire::total_bytes(here), .key = there.key};
  fi_msg_rma message = {.msg_iov = list.iov.data(),
                        .desc = list.descriptors.data(),
                        .iov_count = list.count,
                        .addr = address.value(),
                        .rma_iov = &remote,
                        .rma_iov_count = 1,
                        .context = operation.provider_space(),
                        .data = 0};
  return post(operation, counter, [&] { return call(message); });
}

template <typename Call>
Result<bool> FabricWire::two_sided(Peer peer, std::span<const Piece> pieces, std::uint64_t tag,
                                   Operation& operation, std::uint64_t& counter, Call call) {
  const auto address = known(peer);
  if (!address.ok()) return address.status();
  if (Status s = check_list(capabilities_, pieces, capabilities_.max_send_bytes); !s.ok()) return s;
  List list(pieces);
  const fi_msg_tagged message = {.msg_iov = list.iov.data(),
                                 .desc = list.descriptors.data(),
                                 .iov_count = list.count,
                                 .addr = address.value(),
                                 .tag = tag,
                                 .ignore = 0,
                                 .context = operation.provider_space(),
                                 .data = 0};
  return post(operation, counter, [&] { return call(endpoint_.get(), &message, FI_COMPLETION); });
}

Result<bool> FabricWire::put(Peer peer, std::span<const Piece> from, RemoteMemory to,
                             std::optional<std::uint32_t> immediate, Operation& operation) {
  const bool free_at_once = wire::total_bytes(from) <= capabilities_.inline_bytes;
  // Done must mean landed, if nothing else says which of two puts came last.
  const std::uint64_t flags = FI_COMPLETION | (immediate ? FI_REMOTE_CQ_DATA : 0) |
                              (free_at_once ? FI_INJECT : 0) |
                              (capabilities_.ordered ? 0 : FI_DELIVERY_COMPLETE);
  return one_sided(peer, from, to, operation, counters_.puts, [&](fi_msg_rma& message) {
    message.data = immediate.value_or(0);
    return fi_writemsg(endpoint_.get(), &message, flags);
  });
}

Result<bool> FabricWire::get(Peer peer, RemoteMemory from, std::span<const Piece> to,
                             Operation& operation) {
  return one_sided(peer, to, from, operation, counters_.gets, [&](const fi_msg_rma& message) {
    return fi_readmsg(endpoint_.get(), &message, FI_COMPLETION);
  });
}

Result<bool> FabricWire::send(Peer peer, std::span<const Piece> from, std::uint64_t tag,
                              Operation& operation) {
  return two_sided(peer, from, tag, operation, counters_.sends, fi_tsendmsg);
}

Result<bool> FabricWire::recv(Peer peer, std::span<const Piece> to, std::uint64_t tag,
                              Operation& operation) {
  return two_sided(peer, to, tag, operation, counters_.receives, fi_trecvmsg);
}

void FabricWire::finish_one(const fi_cq_tagged_entry& entry, wire::Listener& listener) {
  if (entry.op_context != nullptr) {
    Operation::of_provider_space(entry.op_context)->finish({}, entry.len);
  } else if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) {
    ++counters_.immediates;
    listener.on_put(static_cast<std::uint32_t>(entry.data));
  }
}

Result<bool> FabricWire::finish_failed() {
  fi_cq_err_entry failed = {};
  const ssize_t count = fi_cq_readerr(completions_.get(), &failed, 0);
  if (count == -FI_EAGAIN) return false;
  if (count < 0) return library_.failure(capabilities_.name + ": error queue", count);
  // Without a context it is not of an operation of ours: a peer's that went wrong here.
  if (failed.op_context == nullptr) return true;
  Operation::of_provider_space(failed.op_context)
      ->finish(library_.failure(capabilities_.name, failed.err));
  return true;
}

Status FabricWire::progress(wire::Listener& listener) {
  if (!cut_off_.ok()) return cut_off_;
  std::array<fi_cq_tagged_entry, kCompletionsAtOnce> entries;
  for (;;) {
    const ssize_t count = fi_cq_read(completions_.get(), entries.data(), entries.size());
    if (count == -FI_EAGAIN) return {};
    if (count == -FI_EAVAIL) {
      const auto finished = finish_failed();
      if (!finished.ok()) return finished.status();
      if (!finished.value()) return {};
      continue;
    }
    if (count < 0) return library_.failure(capabilities_.name + ": completion queue", count);
    counters_.completions += static_cast<std::uint64_t>(count);
    for (ssize_t i = 0; i < count; ++i) {
      finish_one(entries[static_cast<std::size_t>(i)], listener);
    }
    if (static_cast<std::size_t>(count) < entries.size()) return {};
  }
}

}  // namespace

Result<std::unique_ptr<wire::Wire>> open_wire(const Options& options) {
  const auto library = Library::load();
  if (!library.ok()) return library.status();
  auto info = choose_provider(*library.value(), options);
  if (!info.ok()) return info.status();
  auto end = std::make_unique<FabricWire>(*library.value(), std::move(info.value()));
  if (Status status = end->open(); !status.ok()) return status;
  return std::unique_ptr<wire::Wire>(std::move(end));
}

}  // namespace carillon::fabric
