// SPDX-License-Identifier: Apache-2.0
//
// What a traced network says of itself, and the file that several processes add to.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/trace_file.h"
#include "support/memory_wire.h"
#include "transport/wrap/fault.h"
#include "transport/wrap/trace.h"

namespace carillon::test {
namespace {

using nlohmann::json;

struct Arrivals final : wire::Listener {
  int told = 0;
  void on_put(std::uint32_t /*immediate*/) override { ++told; }
};

class Trace : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "carillon-trace-XXXXXX";
    const int fd = mkstemp(name.data());
    ASSERT_GE(fd, 0);
    close(fd);
    file_ = name;
    ASSERT_TRUE(empty_trace_file(file_).ok());
  }
  void TearDown() override { std::remove(file_.c_str()); }
  [[nodiscard]] json events() const {
    std::ifstream file(file_);
    return json::parse(file);
  }
  // Of that name and phase.
  [[nodiscard]] std::vector<json> events(const char* name, const char* phase) const {
    std::vector<json> found;
    for (const json& event : events()) {
      if (event["name"] == name && event["ph"] == phase) found.push_back(event);
    }
    return found;
  }
  // This process's end, number 3 of the job, and that of process 5.
  void open(const std::string& faults = "") {
    traced_ = wrap::with_trace(wrap::with_faults(net_.open_end(), parse_faults(faults).value()),
                               file_, 3);
    other_ = net_.open_end();
    traced_->name_peer(5, other_->address());
    EXPECT_EQ(traced_->add_peer(other_->address()).value(), 0);
    EXPECT_EQ(other_->add_peer(traced_->address()).value(), 0);
  }

  std::string file_;
  MemoryNet net_;
  std::unique_ptr<wrap::Trace> traced_;
  std::unique_ptr<wire::Wire> other_;
  Arrivals arrivals_, others_arrivals_;
  std::array<std::byte, 16> bytes_ = {};
  const std::array<wire::Piece, 1> piece_ = {wire::Piece{bytes_.data(), 8, nullptr}};
  const wire::RemoteMemory there_{reinterpret_cast<std::uint64_t>(bytes_.data() + 8), 1};
};

TEST_F(Trace, PostsAndArrivals) {
  open();
  std::array<wire::Operation, 5> operations;
  ASSERT_TRUE(traced_->put(0, piece_, there_, 77, operations[0]).value());
  ASSERT_TRUE(traced_->get(0, there_, piece_, operations[1]).value());
  ASSERT_TRUE(traced_->send(0, piece_, 9, operations[2]).value());
  ASSERT_TRUE(traced_->recv(0, piece_, 10, operations[3]).value());  // nothing comes
  net_.refuse(1);
  EXPECT_FALSE(traced_->put(0, piece_, there_, 78, operations[4]).value());
  ASSERT_TRUE(other_->put(0, piece_, there_, 55, operations[4]).value());
  ASSERT_TRUE(traced_->progress(arrivals_).ok());
  EXPECT_EQ(arrivals_.told, 1);
  traced_.reset();
  ASSERT_EQ(events("put", "b").size(), 1U);
  const json put = events("put", "b")[0];
  EXPECT_EQ(put["pid"], 3);
  EXPECT_EQ(put["tid"], 6);
  EXPECT_EQ(put["args"], (json{{"bytes", 8}, {"label", 77}}));
  for (const char* const name : {"put", "get", "send"}) {
    ASSERT_EQ(events(name, "e").size(), 1U) << name;
    EXPECT_EQ(events(name, "e")[0]["id"], events(name, "b")[0]["id"]);
    EXPECT_GE(events(name, "e")[0]["ts"], events(name, "b")[0]["ts"]);
    EXPECT_FALSE(events(name, "e")[0].contains("args"));
  }
  EXPECT_EQ(events("recv", "b").size(), 1U);
  EXPECT_EQ(events("recv", "e").size(), 0U);
  ASSERT_EQ(events("arrived", "i").size(), 1U);
  EXPECT_EQ(events("arrived", "i")[0]["args"]["immediate"], 55);
  EXPECT_EQ(events("counts", "M")[0]["args"]["refused_posts"], 1);
  EXPECT_EQ(events("thread_name", "M")[1]["args"]["name"], "to rank 5");
}

TEST_F(Trace, OperationsThatFailAndThatAreUsedAgain) {
  open("delay=0.9,break=4");
  wire::Operation used_again;
  std::array<wire::Operation, 2> others;
  ASSERT_TRUE(traced_->put(0, piece_, there_, 1, used_again).value());
  while (!used_again.done()) ASSERT_TRUE(traced_->progress(arrivals_).ok());
  ASSERT_TRUE(traced_->put(0, piece_, there_, 2, used_again).value());
  ASSERT_TRUE(traced_->put(0, piece_, there_, 3, others[0]).value());
  ASSERT_TRUE(traced_->put(0, piece_, there_, 4, others[1]).value());  // breaks
  EXPECT_FALSE(traced_->put(0, piece_, there_, 5, used_again).ok());
  ASSERT_TRUE(traced_->progress(arrivals_).ok());
  traced_.reset();
  EXPECT_EQ(events("put", "b").size(), 4U);
  const auto ends = events("put", "e");
  EXPECT_EQ(ends.size(), 4U);
  EXPECT_EQ(
      std::count_if(ends.begin(), ends.end(), [](const json& e) { return e.contains("args"); }), 3);
}

TEST_F(Trace, NothingHappenedNothingWritten) {
  open();
  traced_.reset();
  EXPECT_EQ(events(), json::array());
}

TEST_F(Trace, SeveralAddToAFile) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(add_to_trace_file(file_, "{\"n\":" + std::to_string(i) + "}").ok());
    ASSERT_EQ(events().size(), static_cast<std::size_t>(i) + 1);
    EXPECT_EQ(events().back()["n"], i);
  }
  ASSERT_TRUE(empty_trace_file(file_).ok());
  EXPECT_EQ(events(), json::array());
  std::remove(file_.c_str());
  const Status status = add_to_trace_file(file_, "{}");
  EXPECT_EQ(status.code(), Code::kSystem);
  EXPECT_NE(status.message().find(file_), std::string::npos);
  EXPECT_FALSE(empty_trace_file("/no/such/folder/file").ok());
}

}  // namespace
}  // namespace carillon::test
