// SPDX-License-Identifier: Apache-2.0
//
// Connections over verbs, with libraries and a device that are made up: what is asked of a device
// that has less than others, and what is said of a peer that cannot be reached.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "transport/verbs/connection.h"

namespace carillon::verbs {
namespace {

// What there is, and what was last asked of it.
struct MadeUp {
  ibv_device_attr attributes = {};
  rdma_conn_param asked = {};
  ibv_send_wr posted = {};
  ibv_device device = {};
  ibv_context context = {};
  ibv_pd domain = {};
  ibv_cq queue = {};
  ibv_srq receives = {};
  ibv_qp pair = {};
  ibv_mr memory = {};
  rdma_event_channel events = {};
} there;

int make_id(rdma_event_channel* events, rdma_cm_id** id, void* context, rdma_port_space /*space*/) {
  *id = new rdma_cm_id{};
  (*id)->verbs = &there.context;
  (*id)->channel = events;
  (*id)->context = context;
  (*id)->port_num = 1;
  return 0;
}

int ask(rdma_cm_id* /*id*/, rdma_conn_param* param) {
  there.asked = *param;
  return 0;
}

void add_verbs(Library& library) {
  library.query_device = [](ibv_context*, ibv_device_attr* attributes) {
    *attributes = there.attributes;
    return 0;
  };
  library.query_port = [](ibv_context*, std::uint8_t, _compat_ibv_port_attr*) { return 0; };
  library.alloc_pd = [](ibv_context*) { return &there.domain; };
  library.dealloc_pd = [](ibv_pd*) { return 0; };
  library.reg_mr = [](ibv_pd*, void*, std::size_t, int) { return &there.memory; };
  library.dereg_mr = [](ibv_mr*) { return 0; };
  library.create_cq = [](ibv_context*, int, void*, ibv_comp_channel*, int) { return &there.queue; };
  library.destroy_cq = [](ibv_cq*) { return 0; };
  library.create_srq = [](ibv_pd*, ibv_srq_init_attr*) { return &there.receives; };
  library.destroy_srq = [](ibv_srq*) { return 0; };
  library.create_raw_qp = [](ibv_pd*, ibv_qp_init_attr*) { return &there.pair; };
  library.destroy_raw_qp = [](ibv_qp*) { return 0; };
}

Library made_up_library() {
  Library library;
  add_verbs(library);
  library.create_event_channel = [] {
    there.events.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return &there.events;
  };
  library.destroy_event_channel = [](rdma_event_channel* events) { close(events->fd); };
  library.create_id = make_id;
  library.destroy_id = [](rdma_cm_id* id) {
    delete id;
    return 0;
  };
  library.bind_addr = [](rdma_cm_id*, sockaddr*) { return 0; };
  library.listen = [](rdma_cm_id*, int) { return 0; };
  library.get_src_port = [](rdma_cm_id*) -> std::uint16_t { return 1; };
  library.resolve_addr = [](rdma_cm_id*, sockaddr*, sockaddr*, int) { return 0; };
  library.resolve_route = [](rdma_cm_id*, int) { return 0; };
  library.create_qp = [](rdma_cm_id* id, ibv_pd*, ibv_qp_init_attr*) {
    id->qp = &there.pair;
    return 0;
  };
  library.destroy_qp = [](rdma_cm_id*) {};
  library.connect = ask;
  library.accept = ask;
  library.disconnect = [](rdma_cm_id*) { return 0; };
  return library;
}

class Verbs : public testing::Test {
 protected:
  void SetUp() override {
    if (ipv4_addresses().empty()) GTEST_SKIP() << "no IPv4 address but loopback";
    there = {};
    std::strcpy(there.device.name, "made_up");
    there.context.device = &there.device;
    there.receives.context = &there.context;
    there.context.ops.post_srq_recv = [](ibv_srq*, ibv_recv_wr*, ibv_recv_wr**) { return 0; };
    there.pair.context = &there.context;
    there.context.ops.post_send = [](ibv_qp*, ibv_send_wr* request, ibv_send_wr**) {
      there.posted = *request;
      return 0;
    };
    there.attributes.max_sge = 32;
    there.attributes.max_sge_rd = 32;
    there.attributes.max_cqe = 1000;
    there.attributes.max_srq_wr = 1000;
    there.attributes.max_qp_rd_atom = 128;
    there.attributes.max_qp_init_rd_atom = 128;
  }
  void open() {
    auto opened = Device::open(library_, {});
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    device_ = std::move(opened.value());
  }
  // As far as to where the peer is asked.
  std::unique_ptr<Outgoing> call() {
    auto outgoing = std::make_unique<Outgoing>(*device_, Address{.id = 1}, Address{.id = 2}, 0);
    EXPECT_FALSE(outgoing->is_up().value());
    for (const auto event : {RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED}) {
      rdma_cm_event happened = {};
      happened.event = event;
      outgoing->on_event(happened);
    }
    EXPECT_FALSE(outgoing->is_up().value());
    return outgoing;
  }
  // What is said of a peer that has refused, with these bytes.
  Status refused(int reason, const void* data, std::size_t bytes) {
    auto outgoing = call();
    rdma_cm_event happened = {};
    happened.event = RDMA_CM_EVENT_REJECTED;
    happened.status = reason;
    happened.param.conn.private_data = data;
    happened.param.conn.private_data_len = static_cast<std::uint8_t>(bytes);
    outgoing->on_event(happened);
    return outgoing->is_up().status();
  }

  Library library_ = made_up_library();
  std::unique_ptr<Device> device_;
};

bool says(const Status& status, const char* words) {
  return status.message().find(words) != std::string_view::npos;
}

TEST_F(Verbs, NoMoreReadsAreUnderWayThanTheDeviceHas) {
  for (const auto& [own, peers] : {std::pair{128, 128}, {4, 128}, {128, 5}, {0, 1}}) {
    there.attributes.max_qp_init_rd_atom = own;
    there.attributes.max_qp_rd_atom = peers;
    open();
    const auto outgoing = call();
    EXPECT_EQ(there.asked.initiator_depth, std::min(own, 16));
    EXPECT_EQ(there.asked.responder_resources, std::min(peers, 16));
    there.asked = {};
    rdma_cm_id* id = nullptr;
    make_id(&there.events, &id, nullptr, RDMA_PS_TCP);
    Incoming incoming(*device_, id, {});
    ASSERT_TRUE(incoming.accept().ok());
    EXPECT_EQ(there.asked.initiator_depth, std::min(own, 16));
    EXPECT_EQ(there.asked.responder_resources, std::min(peers, 16));
  }
}

TEST_F(Verbs, ListsOfReadsAreAsLongAsTheDeviceSays) {
  for (const auto& [reads, most] : {std::pair{32, 31}, {30, 30}, {1, 1}, {0, 1}}) {
    there.attributes.max_sge_rd = reads;
    open();
    EXPECT_EQ(device_->max_read_pieces(), most);
    EXPECT_EQ(device_->max_pieces(), 31);
  }
}

// What is copied when it is posted has no completion of its own; one that follows tells when it has
// got there. Nobody who leaves before that may end the connection.
TEST_F(Verbs, WhoLeavesLearnsThatWhatItPostedHasGotThere) {
  open();
  const auto outgoing = call();
  rdma_cm_event up = {};
  up.event = RDMA_CM_EVENT_ESTABLISHED;
  outgoing->on_event(up);
  EXPECT_TRUE(outgoing->leave());  // nothing was posted
  for (int i = 0; i < 3; ++i) {
    ibv_send_wr request = {};
    wire::Operation operation;
    ASSERT_TRUE(outgoing->post(request, {}, nullptr, true, false, operation).ok());
    EXPECT_TRUE(operation.done());
    EXPECT_EQ(there.posted.send_flags & IBV_SEND_SIGNALED, 0U);
  }
  EXPECT_FALSE(outgoing->leave());
  EXPECT_NE(there.posted.send_flags & IBV_SEND_SIGNALED, 0U);
  EXPECT_EQ(there.posted.num_sge, 0);
  const std::uint64_t last = there.posted.wr_id;
  EXPECT_FALSE(outgoing->leave());
  EXPECT_EQ(there.posted.wr_id, last);  // once
  outgoing->on_completion(static_cast<std::uint16_t>(last), IBV_WC_SUCCESS);
  EXPECT_TRUE(outgoing->leave());
}

TEST_F(Verbs, ARefusalSaysWhy) {
  open();
  constexpr int kNoListener = 8, kByProcess = 28;
  const Refused full{kMagic, Refusal::kNoRoom}, stranger{kMagic, Refusal::kStranger};
  Status status = refused(kByProcess, &full, sizeof full);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_TRUE(says(status, "no more connections")) << status.to_string();
  status = refused(kByProcess, &stranger, sizeof stranger);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_TRUE(says(status, "another job")) << status.to_string();
  // No process has said it: none is there, or it ended before it looked.
  std::array<std::byte, 64> noise;
  noise.fill(std::byte{0x5a});
  for (const int reason : {kNoListener, kByProcess, -ECONNREFUSED}) {
    for (const auto& [data, bytes] : {std::pair<const void*, std::size_t>{nullptr, 0},
                                      {&full, sizeof full - 1},
                                      {noise.data(), noise.size()}}) {
      status = refused(reason, data, bytes);
      EXPECT_EQ(status.code(), Code::kPeerDead) << status.to_string();
      EXPECT_TRUE(says(status, "has ended")) << status.to_string();
    }
  }
}

}  // namespace
}  // namespace carillon::verbs
