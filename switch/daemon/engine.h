// SPDX-License-Identifier: Apache-2.0
//
// What does the work of a switch behind its socket.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "switch/model/switch.h"

namespace carillon::aggregate {

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  virtual ~Engine() = default;
  /// As Switch::receive(). After an error it is of no more use.
  virtual Status receive(const Endpoint& from, std::span<const std::byte> datagram,
                         Output& output) = 0;
  /// As Switch::pass_time().
  virtual Status pass_time(std::uint64_t most) = 0;
  /// What it holds and has counted.
  [[nodiscard]] virtual const Switch& reference() const = 0;
  /// Whether a datagram takes so long that what comes of it is not kept back for what the next ones
  /// give.
  [[nodiscard]] virtual bool is_slow() const { return false; }
  /// Of its clock; 0: it has none.
  [[nodiscard]] virtual std::uint64_t cycles() const { return 0; }
};

/// The reference itself.
class ReferenceEngine final : public Engine {
 public:
  explicit ReferenceEngine(const SwitchConfig& config) : switch_(config) {}
  Status receive(const Endpoint& from, std::span<const std::byte> datagram,
                 Output& output) override {
    switch_.receive(from, datagram, output);
    return {};
  }
  Status pass_time(std::uint64_t most) override {
    switch_.pass_time(most);
    return {};
  }
  [[nodiscard]] const Switch& reference() const override { return switch_; }

 private:
  Switch switch_;
};

}  // namespace carillon::aggregate
