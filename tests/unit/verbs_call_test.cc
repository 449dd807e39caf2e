// SPDX-License-Identifier: Apache-2.0
//
// A connection of verbs that is opened to a process which takes no calls, or is not there: over a
// connection manager that only counts, so that what happens, and when, is decided here.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <memory>

#include "transport/verbs/connection.h"

namespace carillon::test {
namespace {

using std::chrono::seconds;
using verbs::Outgoing;

// What has been asked of it.
struct Asked {
  int ids = 0, pairs = 0, memories = 0;  // that there are
  int calls = 0;
};
Asked asked;

rdma_event_channel channel{.fd = -1};
ibv_device device{};
ibv_context context{};
ibv_pd domain{};
ibv_cq queue{};
ibv_srq receives{};
ibv_qp trial{};

verbs::Library counting() {
  verbs::Library library;
  library.create_event_channel = [] { return &channel; };
  library.destroy_event_channel = [](rdma_event_channel*) {};
  library.create_id = [](rdma_event_channel*, rdma_cm_id** id, void* of, rdma_port_space) {
    *id = new rdma_cm_id{};
    (*id)->context = of;
    ++asked.ids;
    return 0;
  };
  library.destroy_id = [](rdma_cm_id* id) {
    delete id;
    --asked.ids;
    return 0;
  };
  library.bind_addr = [](rdma_cm_id* id, sockaddr*) {
    context.device = &device;
    id->verbs = &context;
    return 0;
  };
  library.listen = [](rdma_cm_id*, int) { return 0; };
  library.get_src_port = [](rdma_cm_id*) { return std::uint16_t{1}; };
  library.query_device = [](ibv_context*, ibv_device_attr* has) {
    *has = {};
    has->max_cqe = has->max_srq_wr = 1000;
    return 0;
  };
  library.query_port = [](ibv_context*, std::uint8_t, _compat_ibv_port_attr*) { return 0; };
  library.alloc_pd = [](ibv_context*) { return &domain; };
  library.dealloc_pd = [](ibv_pd*) { return 0; };
  library.create_cq = [](ibv_context*, int, void*, ibv_comp_channel*, int) { return &queue; };
  library.destroy_cq = [](ibv_cq*) { return 0; };
  library.create_srq = [](ibv_pd*, ibv_srq_init_attr*) { return &receives; };
  library.destroy_srq = [](ibv_srq*) { return 0; };
  library.create_raw_qp = [](ibv_pd*, ibv_qp_init_attr*) { return &trial; };
  library.destroy_raw_qp = [](ibv_qp*) { return 0; };
  library.reg_mr = [](ibv_pd*, void* memory, std::size_t, int) {
    ++asked.memories;
    auto* const made = new ibv_mr{};
    made->addr = memory;
    return made;
  };
  library.dereg_mr = [](ibv_mr* memory) {
    --asked.memories;
    delete memory;
    return 0;
  };
  library.resolve_addr = [](rdma_cm_id*, sockaddr*, sockaddr*, int) { return 0; };
  library.resolve_route = [](rdma_cm_id*, int) { return 0; };
  library.create_qp = [](rdma_cm_id* id, ibv_pd*, ibv_qp_init_attr*) {
    id->qp = &trial;
    ++asked.pairs;
    return 0;
  };
  library.destroy_qp = [](rdma_cm_id* id) {
    id->qp = nullptr;
    --asked.pairs;
  };
  library.connect = [](rdma_cm_id*, rdma_conn_param*) {
    ++asked.calls;
    return 0;
  };
  library.disconnect = [](rdma_cm_id*) { return 0; };
  library.event_str = [](rdma_cm_event_type) { return "what happened"; };
  return library;
}

class VerbsCall : public testing::Test {
 protected:
  void SetUp() override {
    if (verbs::ipv4_addresses().empty()) GTEST_SKIP() << "this machine has no address";
    asked = {};
    auto opened = verbs::Device::open(library_, {});
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    device_ = std::move(opened.value());
    outgoing_ = std::make_unique<Outgoing>(*device_, verbs::Address{}, verbs::Address{}, 0);
  }
  void TearDown() override {
    outgoing_.reset();
    device_.reset();
    EXPECT_EQ(asked.ids, 0);
    EXPECT_EQ(asked.pairs, 0);
    EXPECT_EQ(asked.memories, 0);
  }
  void happens(rdma_cm_event_type what, int status = 0) {
    rdma_cm_event event = {};
    event.event = what;
    event.status = status;
    outgoing_->on_event(event, now_);
  }
  // The peer is called.
  void call() {
    happens(RDMA_CM_EVENT_ADDR_RESOLVED);
    happens(RDMA_CM_EVENT_ROUTE_RESOLVED);
  }

  const verbs::Library library_ = counting();
  Outgoing::Clock::time_point now_;
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<Outgoing> outgoing_;
};

TEST_F(VerbsCall, WhoseSystemDoesNotAnswerIsGone) {
  EXPECT_TRUE(outgoing_->is_up().ok());
  call();
  now_ += seconds(100);
  happens(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
  EXPECT_EQ(outgoing_->is_up().status().code(), Code::kPeerDead);
  EXPECT_EQ(asked.calls, 1);
}

TEST_F(VerbsCall, WhoIsBusyForHoursIsCalledAgain) {
  EXPECT_TRUE(outgoing_->is_up().ok());
  constexpr int kTimes = 10;
  for (int i = 1; i <= kTimes; ++i) {
    call();
    EXPECT_EQ(asked.calls, i);
    now_ += seconds(16 * 60);
    happens(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    const auto up = outgoing_->is_up();
    ASSERT_TRUE(up.ok()) << up.status().to_string();
    EXPECT_FALSE(up.value());
  }
  call();
  happens(RDMA_CM_EVENT_ESTABLISHED);
  const auto up = outgoing_->is_up();
  EXPECT_TRUE(up.ok() && up.value());
}

// It has ended meanwhile: its system says that nobody takes calls there.
TEST_F(VerbsCall, WhoHasEndedBeforeItIsCalledAgainIsGone) {
  EXPECT_TRUE(outgoing_->is_up().ok());
  call();
  now_ += seconds(16 * 60);
  happens(RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
  call();
  happens(RDMA_CM_EVENT_REJECTED, 8);
  EXPECT_EQ(outgoing_->is_up().status().code(), Code::kPeerDead);
}

}  // namespace
}  // namespace carillon::test
