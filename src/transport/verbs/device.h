// SPDX-License-Identifier: Apache-2.0
//
// An RDMA device opened for this process: its protection domain, queues and the address on which
// others connect. One device per end.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/verbs/credits.h"
#include "transport/verbs/library.h"
#include "transport/wire.h"

namespace carillon::verbs {

/// Which device; empty: the first that has an IPv4 address.
struct Options {
  std::string device;  ///< "mlx5_0", "rxe0"
};

/// The IPv4 addresses of the machine that are up, but for loopback.
std::vector<sockaddr_in> ipv4_addresses();

inline constexpr int kMostPieces = 32;   ///< in a list, a message's head among them
inline constexpr int kSendDepth = 64;    ///< posts under way to one peer
inline constexpr int kPlacedDepth = 64;  ///< receives posted for what one peer sends to lists

/// Memory known to the device.
class Memory final : public wire::Registration {
 public:
  Memory(const Library& library, ibv_mr* mr) : library_(library), mr_(mr) {}
  ~Memory() override { library_.dereg_mr(mr_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  [[nodiscard]] wire::RemoteMemory remote() const override {
    return {reinterpret_cast<std::uint64_t>(mr_->addr), mr_->rkey};
  }
  [[nodiscard]] std::uint32_t local_key() const { return mr_->lkey; }

 private:
  const Library& library_;
  ibv_mr* mr_;
};

class Device {
 public:
  static Result<std::unique_ptr<Device>> open(const Library& library, const Options& options);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const Library& library() const { return library_; }
  [[nodiscard]] rdma_event_channel* events() const { return events_; }
  [[nodiscard]] ibv_cq* sent() const { return sent_; }
  [[nodiscard]] ibv_cq* received() const { return received_; }
  [[nodiscard]] const sockaddr_in& address() const { return address_; }
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::uint64_t max_message_bytes() const { return max_message_bytes_; }
  // Completions yet to come; half of the queue is for them, and the rest for what tells credits.
  [[nodiscard]] int sends_under_way() const { return sends_under_way_; }
  [[nodiscard]] int most_sends_under_way() const { return queue_entries_ / 2; }
  void count_send(int change) { sends_under_way_ += change; }

  Result<std::unique_ptr<Memory>> register_memory(void* memory, std::size_t bytes);
  /// Gives the connection a queue pair.
  Status create_queue_pair(rdma_cm_id* id);
  /// One that has receive entries of its own, kPlacedDepth lists.
  Status create_placed_queue_pair(rdma_cm_id* id);
  [[nodiscard]] int max_pieces() const { return max_pieces_; }
  /// In the list of an RDMA read.
  [[nodiscard]] int max_read_pieces() const { return max_read_pieces_; }
  /// So many RDMA reads may be under way on one connection: this end's, and the peer's.
  struct Reads {
    std::uint8_t own = 0, peers = 0;
  };
  [[nodiscard]] Reads reads() const;
  [[nodiscard]] std::uint32_t inline_bytes() const { return inline_bytes_; }

  /// Room for so many more receives among the completions yet to come.
  Status reserve_receives(int count);
  /// kCredits more receive entries, for one more peer that may send here.
  Status add_credits();
  /// Puts an entry (back) into the queue.
  Status post_receive(ReceiveEntry& entry);

 private:
  explicit Device(const Library& library) : library_(library) {}
  Status bind(const Options& options);
  Status create_queues();
  Status find_inline_bytes();
  [[nodiscard]] ibv_qp_init_attr queue_pair() const;

  struct Credits {
    std::vector<ReceiveEntry> entries;
    std::unique_ptr<Memory> memory;
  };

  const Library& library_;
  rdma_event_channel* events_ = nullptr;
  rdma_cm_id* listener_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_cq* sent_ = nullptr;
  ibv_cq* received_ = nullptr;
  ibv_srq* receives_ = nullptr;
  sockaddr_in address_ = {};
  ibv_device_attr attributes_ = {};
  std::uint64_t max_message_bytes_ = 0;
  int queue_entries_ = 0;
  int sends_under_way_ = 0;
  int receives_reserved_ = 0;
  int max_pieces_ = 1;
  int max_read_pieces_ = 1;
  std::uint32_t inline_bytes_ = 0;
  std::vector<Credits> credits_;
};

}  // namespace carillon::verbs
