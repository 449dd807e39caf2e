// SPDX-License-Identifier: Apache-2.0
//
// What every Wire must do, whichever network is under it: one body, run over each provider that
// the machine has. The ranks are processes of one node; only the network is between them.
#include "transport/wire.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "support/wire_conformance.h"
#include "transport/fabric/fabric.h"

namespace carillon::test {
namespace {

using wire::Operation;
using wire::Piece;
using wire::RemoteMemory;

constexpr std::size_t kTaggedBytes = 3000;  // every network takes so much in one message

// Every rank writes to every other, with each number of pieces that the network takes.
TEST_P(WireConformance, PutsGatherAndTellTheirArrival) {
  constexpr int kRanks = 3;
  constexpr std::size_t kPlace = 20000;
  on_ranks(kRanks, [](End& end) {
    const std::size_t most = end.wire().capabilities().max_pieces;
    const std::size_t half = kRegionBytes / 2;
    for (std::size_t bytes : {0, 1, 8, 63, 64, 4096, 9973}) {
      for (const std::size_t pieces : std::set{std::size_t{1}, std::min<std::size_t>(2, most),
                                               std::min<std::size_t>(3, most), most}) {
        std::memset(end.region() + half, 0, half);
        for (std::size_t i = 0; i < half; ++i) end.region()[i] = byte_of(end.rank(), i + pieces);
        end.barrier();
        std::vector<Operation> operations(kRanks);
        for (int to = 0; to < kRanks; ++to) {
          if (to == end.rank()) continue;
          std::vector<Piece> list;  // every third byte run of the sender's half, uneven
          std::size_t offset = static_cast<std::size_t>(to) * 5;
          for (std::size_t i = 0; i < pieces; ++i) {
            const std::size_t part = bytes * (i + 1) / pieces - bytes * i / pieces;
            list.push_back(end.piece(offset, part));
            offset += part + 3;
          }
          const auto place =
              end.memory_of(to).at(half + static_cast<std::size_t>(end.rank()) * kPlace);
          const auto tag = static_cast<std::uint32_t>(bytes * 1000 + pieces * 10 +
                                                      static_cast<std::size_t>(end.rank()));
          end.post([&] {
            return end.wire().put(end.peer(to), list, place, tag,
                                  operations[static_cast<std::size_t>(to)]);
          });
        }
        for (int from = 0; from < kRanks; ++from) {
          if (from == end.rank()) continue;
          const auto tag = static_cast<std::uint32_t>(bytes * 1000 + pieces * 10 +
                                                      static_cast<std::size_t>(from));
          ASSERT_TRUE(end.until([&] { return end.arrived(tag) > 0; }));
          EXPECT_EQ(end.arrived(tag), 1);
          const std::byte* const got =
              end.region() + half + static_cast<std::size_t>(from) * kPlace;
          std::size_t source = static_cast<std::size_t>(end.rank()) * 5, at = 0;
          for (std::size_t i = 0; i < pieces; ++i) {
            const std::size_t part = bytes * (i + 1) / pieces - bytes * i / pieces;
            for (std::size_t j = 0; j < part; ++j, ++at) {
              ASSERT_EQ(got[at], byte_of(from, source + j + pieces))
                  << bytes << " bytes in " << pieces << " pieces from " << from << ", byte " << at;
            }
            source += part + 3;
          }
          ASSERT_EQ(got[bytes], std::byte{0}) << "written beyond the end";
        }
        for (Operation& operation : operations) end.finish(operation);
        end.barrier();
      }
    }
  });
}

TEST_P(WireConformance, GetsScatter) {
  constexpr int kRanks = 3;
  on_ranks(kRanks, [](End& end) {
    const std::size_t half = kRegionBytes / 2;
    for (std::size_t i = 0; i < half; ++i) end.region()[i] = byte_of(end.rank(), i);
    end.barrier();
    const wire::Capabilities& can = end.wire().capabilities();
    const std::size_t most = std::min(can.max_pieces, can.max_get_pieces);
    const int from = (end.rank() + 1) % kRanks;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{777}, half / 2}) {
      std::vector<Piece> list;
      std::size_t offset = half;
      for (std::size_t i = 0; i < most; ++i) {
        const std::size_t part = bytes * (i + 1) / most - bytes * i / most;
        list.push_back(end.piece(offset, part));
        offset += part + 1;
      }
      Operation operation;
      end.post([&] {
        return end.wire().get(end.peer(from), end.memory_of(from).at(13), list, operation);
      });
      ASSERT_TRUE(end.finish(operation));
      std::size_t at = 0;
      for (const Piece& piece : list) {
        for (std::size_t j = 0; j < piece.bytes; ++j, ++at) {
          ASSERT_EQ(piece.data[j], byte_of(from, 13 + at)) << bytes << " bytes, byte " << at;
        }
      }
    }
  });
}

// Messages of two tags, received in the other order of the tags, as many of them ahead of their
// recvs as every network allows.
TEST_P(WireConformance, TaggedMessagesKeepTheirOrder) {
  on_ranks(2, [](End& end) {
    constexpr int kAhead = static_cast<int>(wire::kEarlySends / 2);  // of each tag
    const int other = 1 - end.rank();
    const auto offset = [](int tag, int i) {
      return static_cast<std::size_t>(tag * kAhead + i) * kTaggedBytes;
    };
    const auto value = [](int rank, int tag, int round, std::size_t j) {
      return byte_of(rank * 2 + tag, j + static_cast<std::size_t>(round) * 17);
    };
    for (int round = 0; round < 20; ++round) {
      const auto bytes_of = [&](int i) {
        return kTaggedBytes - static_cast<std::size_t>(i * 70 + round);
      };
      std::vector<Operation> sent(2 * kAhead), received(2 * kAhead);
      for (int i = 0; i < kAhead; ++i) {
        for (int tag = 0; tag < 2; ++tag) {
          const Piece piece = end.piece(offset(tag, i), bytes_of(i));
          for (std::size_t j = 0; j < piece.bytes; ++j) {
            piece.data[j] = value(end.rank(), tag, round + i, j);
          }
          end.post([&] {
            return end.wire().send(end.peer(other), {&piece, 1}, static_cast<std::uint64_t>(tag),
                                   sent[static_cast<std::size_t>(tag * kAhead + i)]);
          });
        }
      }
      if (round % 2 == 0) end.barrier();  // all of them come before their recvs
      for (int tag = 1; tag >= 0; --tag) {
        for (int i = 0; i < kAhead; ++i) {
          Operation& operation = received[static_cast<std::size_t>(tag * kAhead + i)];
          const Piece piece = end.piece(kRegionBytes / 2 + offset(tag, i), kTaggedBytes);
          end.post([&] {
            return end.wire().recv(end.peer(other), {&piece, 1}, static_cast<std::uint64_t>(tag),
                                   operation);
          });
        }
      }
      for (int tag = 0; tag < 2; ++tag) {
        for (int i = 0; i < kAhead; ++i) {
          Operation& operation = received[static_cast<std::size_t>(tag * kAhead + i)];
          ASSERT_TRUE(end.finish(operation));
          ASSERT_EQ(operation.received_bytes(), bytes_of(i)) << "tag " << tag << " message " << i;
          const std::byte* const got = end.region() + kRegionBytes / 2 + offset(tag, i);
          for (std::size_t j = 0; j < bytes_of(i); ++j) {
            ASSERT_EQ(got[j], value(other, tag, round + i, j)) << "tag " << tag << " message " << i;
          }
        }
      }
      for (Operation& operation : sent) ASSERT_TRUE(end.finish(operation));
    }
  });
}

// To lists that are posted already, with each number of pieces that the network takes.
TEST_P(WireConformance, PlacedMessagesFillTheirLists) {
  on_ranks(2, [](End& end) {
    constexpr std::size_t kBytes = 3000;
    const int other = 1 - end.rank();
    ASSERT_TRUE(end.post([&] { return end.wire().meet(end.peer(other)); }));
    end.barrier();
    const std::size_t most = end.wire().capabilities().max_pieces;
    for (int round = 0; round < 10; ++round) {
      const wire::Counters before = end.wire().counters();
      std::vector<Operation> received(most), sent(most);
      std::size_t place = kRegionBytes / 2;
      const auto tag = [](std::size_t i) { return static_cast<std::uint64_t>(i + 100) << 35; };
      std::vector<std::size_t> places;
      std::uint64_t entries = 0;
      for (std::size_t i = 0; i < most; ++i) {  // of i + 1 pieces, three bytes apart
        std::vector<Piece> list;
        places.push_back(place);
        for (std::size_t k = 0; k <= i; ++k) {
          list.push_back(end.piece(place, kBytes * (k + 1) / (i + 1) - kBytes * k / (i + 1)));
          place += list.back().bytes + 3;
        }
        entries += list.size();
        end.post(
            [&] { return end.wire().recv_placed(end.peer(other), list, tag(i), received[i]); });
      }
      std::memset(end.region(), round, kBytes);
      for (std::size_t j = 0; j < kBytes; ++j) {
        end.region()[j] = byte_of(end.rank(), j + static_cast<std::size_t>(round));
      }
      end.barrier();
      for (std::size_t i = 0; i < most; ++i) {
        const std::array list{end.piece(0, 1000 + i), end.piece(1000 + i, 2000 - i)};
        end.post([&] { return end.wire().send_placed(end.peer(other), list, tag(i), sent[i]); });
      }
      for (std::size_t i = 0; i < most; ++i) {
        ASSERT_TRUE(end.finish(received[i]));
        ASSERT_TRUE(end.finish(sent[i]));
        ASSERT_EQ(received[i].received_bytes(), kBytes);
        std::size_t at = places[i], j = 0;
        for (std::size_t k = 0; k <= i; ++k, at += 3) {
          for (const std::size_t last = kBytes * (k + 1) / (i + 1); j < last; ++j, ++at) {
            ASSERT_EQ(end.region()[at], byte_of(other, j + static_cast<std::size_t>(round)))
                << "byte " << j << " of message " << i;
          }
        }
      }
      end.progress();
      EXPECT_EQ(end.wire().counters().placed - before.placed, most);
      EXPECT_EQ(end.wire().counters().placed_entries - before.placed_entries, entries);
      EXPECT_EQ(end.wire().counters().copied_bytes, before.copied_bytes);
      end.barrier();
    }
  });
}

// More than any queue holds: posts are refused, progress makes room, nothing is lost.
TEST_P(WireConformance, FullQueuesLoseNothing) {
  constexpr std::uint32_t kPuts = 4000;
  on_ranks(2, [](End& end) {
    const int other = 1 - end.rank();
    std::vector<Operation> operations(kPuts);
    for (std::uint32_t i = 0; i < kPuts; ++i) {
      const Piece piece = end.piece(i % 1000, 32);
      end.post([&] {
        return end.wire().put(end.peer(other), {&piece, 1}, end.memory_of(other).at(2000 + i * 32),
                              i, operations[i]);
      });
    }
    for (Operation& operation : operations) ASSERT_TRUE(end.finish(operation));
    for (std::uint32_t i = 0; i < kPuts; ++i) {
      ASSERT_TRUE(end.until([&] { return end.arrived(i) > 0; })) << i;
    }
    end.barrier();
    for (std::uint32_t i = 0; i < kPuts; ++i) ASSERT_EQ(end.arrived(i), 1) << i;
  });
}

// The poster goes away to something else, without progress, while more is under way than the
// network holds: what it was told is done comes all the same.
TEST_P(WireConformance, WhatIsDoneNeedsNoProgress) {
  constexpr std::uint32_t kPuts = 30000;
  constexpr std::uint32_t kAtOnce = 500;
  constexpr int kEnoughPolls = 20000;  // without any change: nothing more will be done
  Meeting meeting(2), silent(2);
  const auto run = [&](int rank) {
    End end(meeting, rank, GetParam());
    const int other = 1 - rank;
    std::vector<Operation> operations(kPuts);
    std::uint32_t posted = 0;
    const auto put = [&] {
      // Long ones fill what the network holds, short ones find it full.
      const Piece piece = end.piece(0, posted % 2 == 0 ? 3000 : 40);
      const auto answer = end.wire().put(end.peer(other), {&piece, 1}, end.memory_of(other), posted,
                                         operations[posted]);
      EXPECT_TRUE(answer.ok()) << answer.status().to_string();
      return answer.ok() && answer.value();
    };
    Operation first;  // connects
    const Piece any = end.piece(0, 1);
    end.post([&] {
      return end.wire().put(end.peer(other), {&any, 1}, end.memory_of(other), kPuts, first);
    });
    EXPECT_TRUE(end.until([&] { return first.done() && end.arrived(kPuts) == 1; }));
    end.barrier();
    if (rank == 0) {
      for (int polls = 0; polls < kEnoughPolls && posted < kPuts; ++polls) {
        if (put()) {
          ++posted;
          polls = 0;
        }
        end.progress();
      }
    }
    for (std::uint32_t i = 0; i < kPuts; i += kAtOnce) {
      std::array<bool, kAtOnce> done{};
      for (std::uint32_t j = i; j < std::min(i + kAtOnce, posted); ++j) {
        done[j - i] = operations[j].done();
      }
      const auto told = exchange(silent, rank, done)[0];
      for (std::uint32_t j = 0; rank == 1 && j < kAtOnce; ++j) {
        if (told[j]) {
          EXPECT_TRUE(end.until([&] { return end.arrived(i + j) > 0; })) << i + j;
        }
      }
    }
    silent.barrier(rank);
    for (std::uint32_t i = 0; i < posted; ++i) end.finish(operations[i]);
    end.barrier();
  };
  expect_processes_ok(2, run, 3 * patience_s());
}

TEST_P(WireConformance, WhatCannotBeIsRefused) {
  on_ranks(2, [](End& end) {
    const wire::Capabilities& can = end.wire().capabilities();
    const int other = 1 - end.rank();
    Operation operation;
    const std::vector<Piece> many(can.max_pieces + 1, end.piece(0, 1));
    EXPECT_FALSE(end.wire().put(end.peer(other), many, end.memory_of(other), 1, operation).ok());
    EXPECT_FALSE(end.wire().get(end.peer(other), end.memory_of(other), many, operation).ok());
    EXPECT_FALSE(end.wire().send(end.peer(other), many, 1, operation).ok());
    EXPECT_FALSE(end.wire().recv(end.peer(other), many, 1, operation).ok());
    const Piece one = end.piece(0, 1);
    EXPECT_FALSE(end.wire().put(99, {&one, 1}, end.memory_of(other), 1, operation).ok());
    EXPECT_FALSE(end.wire().put(-1, {&one, 1}, end.memory_of(other), 1, operation).ok());
    EXPECT_TRUE(operation.done());
    std::vector<std::byte> address(end.wire().address().begin(), end.wire().address().end());
    EXPECT_FALSE(end.wire().add_peer({}).ok());
    EXPECT_FALSE(end.wire().add_peer(std::span(address).first(address.size() - 1)).ok());
    for (const std::size_t changed : {0, 8}) {  // verbs have a name there: any may be an end's
      address[changed] ^= std::byte{0xff};
      const auto peer = end.wire().add_peer(address);
      address[changed] ^= std::byte{0xff};
      EXPECT_TRUE(!peer.ok() || changed == 8);
      EXPECT_EQ(peer.status().message().find("Success"), std::string::npos);
    }
  });
}

// A put to memory that is not there fails at its sender, or is dropped, and harms nobody.
TEST_P(WireConformance, WrongKeysHarmNobody) {
  on_ranks(3, [](End& end) {
    if (end.rank() == 0) {
      const Piece piece = end.piece(0, 64);
      Operation operation;
      RemoteMemory wrong = end.memory_of(1);
      wrong.key += 12345;
      end.post([&] { return end.wire().put(end.peer(1), {&piece, 1}, wrong, {}, operation); });
      end.until([&] { return operation.done(); });
    }
    end.barrier();
    if (end.rank() == 2) {  // the one that was wronged still serves others
      const Piece piece = end.piece(0, 64);
      Operation operation;
      end.post([&] {
        return end.wire().put(end.peer(1), {&piece, 1}, end.memory_of(1).at(100), 77, operation);
      });
      EXPECT_TRUE(end.finish(operation));
    }
    if (end.rank() == 1) {
      EXPECT_TRUE(end.until([&] { return end.arrived(77) == 1; }));
    }
  });
}

// A process may come to the address of one that died, before all others know of the death: what
// they write by its key goes nowhere, though all processes lay out their memory alike.
TEST_P(WireConformance, TheKeyOfAnotherProcessOpensNothing) {
  on_ranks(3, [](End& end) {
    std::fill_n(end.region(), 64, byte_of(end.rank(), 0));
    end.barrier();
    if (end.rank() == 2) {
      ASSERT_EQ(end.memory_of(0).address, end.memory_of(1).address);
      for (const std::size_t bytes : {64, 0}) {
        const Piece piece = end.piece(0, bytes);
        Operation operation;
        Result<bool> posted = false;
        end.until([&] {  // it is connected, or has been refused
          posted = end.wire().put(end.peer(0), {&piece, 1}, end.memory_of(1), 99, operation);
          return !posted.ok() || posted.value();
        });
        // The first may have cost the connection.
        EXPECT_TRUE(posted.ok() || bytes == 0);
        if (!posted.ok()) break;
        end.until([&] { return operation.done(); });
      }
    }
    end.barrier();
    for (int i = 0; i < 1000; ++i) end.progress();
    end.barrier();
    EXPECT_EQ(end.arrived(99), 0);
    EXPECT_EQ(std::count(end.region(), end.region() + 64, byte_of(end.rank(), 0)), 64);
  });
}

// What is under way to a process that was killed ends; what is posted then fails or is refused;
// other peers are unharmed.
TEST_P(WireConformance, ADeadPeerEndsOperations) {
  constexpr int kRanks = 3;
  Meeting meeting(kRanks), survivors(2);
  const auto run = [&](int rank) {
    End end(meeting, rank, GetParam());
    const Piece piece = end.piece(0, 64);
    Operation first;
    if (rank != 1) {  // connects
      end.post([&] {
        return end.wire().put(end.peer(1), {&piece, 1}, end.memory_of(1), 5, first);
      });
      end.finish(first);
    } else {
      end.until([&] { return end.arrived(5) == 2; });
      raise(SIGKILL);
    }
    Operation last;
    for (;;) {  // puts go well until the loss is noticed
      const auto posted = end.wire().put(end.peer(1), {&piece, 1}, end.memory_of(1), {}, last);
      if (!posted.ok() || !posted.value()) break;
      ASSERT_TRUE(end.until([&] { return last.done(); }));
      if (!last.status().ok()) break;
    }
    const int me = rank == 0 ? 0 : 1;
    exchange(survivors, me, 1);
    const int other = 2 - rank;
    Operation still;
    end.post([&] {
      return end.wire().put(end.peer(other), {&piece, 1}, end.memory_of(other).at(64), 6, still);
    });
    EXPECT_TRUE(end.finish(still));
    EXPECT_TRUE(end.until([&] { return end.arrived(6) == 1; }));
    const crl_oob_t oob = survivors.oob(me);
    std::array<char, 2> all{};
    const char mine = 1;
    void* request = nullptr;
    EXPECT_EQ(oob.allgather_post(oob.arg, &mine, all.data(), 1, &request), 0);
    end.until([&] { return oob.allgather_test(oob.arg, request) != 1; });
  };
  EXPECT_EQ(run_processes(kRanks, run, 3 * patience_s()), (std::vector<int>{0, -9, 0}));
}

// The peer answers a get only when it has been given up here: what stands there by then stays.
TEST_P(WireConformance, WhatIsCutOffTouchesNoMemory) {
  constexpr std::size_t kBytes = 50000;
  Meeting meeting(2), silent(2);
  const auto run = [&](int rank) {
    End end(meeting, rank, GetParam());
    const int other = 1 - rank;
    const Piece small = end.piece(kBytes, 64);
    std::fill_n(end.region(), kBytes, byte_of(rank, 1));
    Operation first;
    end.post([&] {
      return end.wire().put(end.peer(other), {&small, 1}, end.memory_of(other).at(kBytes), 5,
                            first);
    });
    EXPECT_TRUE(end.until([&] { return first.done() && end.arrived(5) == 1; }));
    end.barrier();
    if (rank == 1) {
      silent.barrier(rank);  // without progress
      for (int i = 0; i < 1000; ++i) end.progress();
      silent.barrier(rank);
      return;
    }
    const Piece piece = end.piece(0, kBytes);
    Operation get;
    end.post([&] { return end.wire().get(end.peer(1), end.memory_of(1), {&piece, 1}, get); });
    const Status why(Code::kPeerDead, "it has been given up");
    end.wire().cut_off(end.peer(1), why);
    std::fill_n(end.region(), kBytes, byte_of(0, 2));
    silent.barrier(rank);
    silent.barrier(rank);
    for (int i = 0; i < 1000; ++i) static_cast<void>(end.wire().progress(end));
    EXPECT_EQ(std::count(end.region(), end.region() + kBytes, byte_of(0, 2)), kBytes);
    Operation late;
    const auto posted = end.wire().put(end.peer(1), {&small, 1}, end.memory_of(1), {}, late);
    ASSERT_FALSE(posted.ok());
    EXPECT_EQ(posted.status().code(), why.code());
    EXPECT_NE(posted.status().message().find(why.message()), std::string::npos);
  };
  expect_processes_ok(2, run, 3 * patience_s());
}

INSTANTIATE_TEST_SUITE_P(Networks, WireConformance,
                         testing::Values("verbs", "net", "tcp;ofi_rxm", "verbs;ofi_rxm",
                                         "faulty_net"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return c == ';'; }, '_');
                           return name;
                         });

TEST(FabricProvider, UnknownOnesAreRefusedWithWhatThereIs) {
  expect_processes_ok(1, [](int) {
    const auto opened = fabric::open_wire({.provider = "carrier_pigeon", .domain = ""});
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.status().code(), Code::kUnsupported);
    const std::string text = opened.status().to_string();
    EXPECT_NE(text.find("carrier_pigeon"), std::string::npos) << text;
    EXPECT_NE(text.find("tcp"), std::string::npos) << text;
  });
}

}  // namespace
}  // namespace carillon::test
