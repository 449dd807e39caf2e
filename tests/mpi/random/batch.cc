// SPDX-License-Identifier: Apache-2.0
#include "batch.h"

#include <algorithm>
#include <memory>
#include <numeric>

namespace mpi_test {
namespace {

constexpr int kUnset = 77;

enum class What : std::uint8_t { kStarted, kPersistent, kInactive, kSend, kReceive, kNothing };

struct State {
  int source = kUnset, tag = kUnset, error = kUnset, count = kUnset, cancelled = kUnset;
  bool ignored = true;  // nothing was said
  bool operator==(const State& other) const {
    return source == other.source && tag == other.tag && count == other.count &&
           cancelled == other.cancelled;
  }
  [[nodiscard]] std::string text() const {
    return "source " + std::to_string(source) + ", tag " + std::to_string(tag) + ", count " +
           std::to_string(count) + ", cancelled " + std::to_string(cancelled);
  }
};

struct Item {
  What what = What::kNothing;
  std::unique_ptr<Operation> operation;
  bool persistent = false;  // a message
  std::vector<std::uint8_t> bytes[2];
  int peer = 0, tag = 0;
  State states[2];
};

class Batch {
 public:
  Batch(const std::vector<Group>& groups, MPI_Comm messages, std::uint64_t seed);
  void run(By by, Random own);
  void compare(const std::string& where);

 private:
  void add(const Group& group, What what, std::uint64_t seed);
  void add_message(What what, std::uint64_t seed);
  MPI_Request begin(By by, Item& item);
  void start_again(By by, Random& own);
  void complete(By by, Random& own);
  void complete_each(By by, Random& own);
  void complete_any(By by, Random& own);
  void complete_some(By by, Random& own);
  void complete_all(By by, Random& own, bool waits);
  void note(By by, int index, const MPI_Status& status);
  void expect(int code, const char* what);

  MPI_Comm messages_;
  std::vector<Item> items_;
  std::vector<MPI_Request> requests_;
  bool again_ = false, again_begun_ = false;  // what is persistent
  bool some_are_left_ = false;                // persistent ones, to the MPI
  std::string failed_;
};

MPI_Status unset() {
  MPI_Status status{};
  status.MPI_SOURCE = status.MPI_TAG = status.MPI_ERROR = kUnset;
  return status;
}

Batch::Batch(const std::vector<Group>& groups, MPI_Comm messages, std::uint64_t seed)
    : messages_(messages) {
  Random shared(seed);
  const int count = shared.between(1, 6);
  again_ = shared.chance(50);
  for (int i = 0; i < count; ++i) {
    const Group& group = shared.one_of(groups);
    const std::uint64_t of_item = shared.next();
    const int what = shared.below(10);
    if (what < 5) {
      add(group, What::kStarted, of_item);
    } else if (what < 8) {
      add(group, shared.chance(80) ? What::kPersistent : What::kInactive, of_item);
    } else if (what < 9 && messages != MPI_COMM_NULL) {
      add_message(What::kReceive, of_item);
      add_message(What::kSend, of_item);
    } else {
      items_.emplace_back();
    }
  }
}

void Batch::add(const Group& group, What what, std::uint64_t seed) {
  if (group.comm == MPI_COMM_NULL) return;
  Random shared(seed);
  auto kind = static_cast<Kind>(shared.below(kKinds));
  if (is_of_neighbours(kind) && (!group.has_topology || group.twice)) kind = Kind::kAllreduce;
  Item item;
  item.what = what;
  item.operation = std::make_unique<Operation>(
      group, kind, seed, mix(seed, static_cast<std::uint64_t>(world_rank()) + 1));
  if (what == What::kPersistent && !item.operation->repeats()) item.what = What::kStarted;
  items_.push_back(std::move(item));
}

void Batch::add_message(What what, std::uint64_t seed) {
  Random shared(seed);
  const int size = world_size(), shift = shared.below(size);
  Item item;
  item.what = what;
  item.persistent = shared.chance(30);
  const int bytes = shared.chance(20) ? 200000 : shared.below(100);
  const int from = (world_rank() + size - shift) % size, to = (world_rank() + shift) % size;
  item.tag = shared.below(30000);
  item.peer = what == What::kSend ? to : from;
  for (auto& copy : item.bytes) {
    copy.assign(static_cast<std::size_t>(bytes), 0);
    for (std::size_t i = 0; what == What::kSend && i < copy.size(); ++i) {
      copy[i] = pattern(world_rank(), to, i);
    }
  }
  items_.push_back(std::move(item));
}

void Batch::expect(int code, const char* what) {
  if (code != MPI_SUCCESS && failed_.empty()) failed_ = std::string(what) + " fails";
}

MPI_Request Batch::begin(By by, Item& item) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (by == By::kHost && item.operation != nullptr) {  // some MPIs' other forms are not as sure
    const int rounds = item.what == What::kInactive               ? 0
                       : item.what == What::kPersistent && again_ ? 2
                                                                  : 1;
    for (int round = 0; round < rounds; ++round) {
      expect(item.operation->call(by, CallForm::kBlocking, nullptr), "a call that blocks");
    }
    return request;
  }
  auto& bytes = item.bytes[static_cast<int>(by)];
  const int count = static_cast<int>(bytes.size());
  switch (item.what) {
    case What::kStarted:
      expect(item.operation->call(by, CallForm::kStarted, &request), "to start");
      break;
    case What::kPersistent:
    case What::kInactive: {
      const std::string name = std::string(name_of(item.operation->kind())) + "_init";
      const std::uint64_t before = left(name.c_str());
      expect(item.operation->call(by, CallForm::kPersistent, &request), "to prepare");
      some_are_left_ = some_are_left_ || left(name.c_str()) > before;
      break;
    }
    case What::kSend:
      item.persistent
          ? MPI_Send_init(bytes.data(), count, MPI_BYTE, item.peer, item.tag, messages_, &request)
          : MPI_Isend(bytes.data(), count, MPI_BYTE, item.peer, item.tag, messages_, &request);
      break;
    case What::kReceive:
      item.persistent
          ? MPI_Recv_init(bytes.data(), count, MPI_BYTE, item.peer, item.tag, messages_, &request)
          : MPI_Irecv(bytes.data(), count, MPI_BYTE, item.peer, item.tag, messages_, &request);
      break;
    default: break;
  }
  return request;
}

void Batch::start_again(By by, Random& own) {
  const Requests& with = requests_of(by);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const bool collective = items_[i].what == What::kPersistent && by == By::kCarillon;
    if (collective || items_[i].persistent) order.push_back(i);
  }
  const bool reversed = own.chance(50), all = own.chance(50);
  if (by == By::kCarillon && reversed) std::reverse(order.begin(), order.end());
  if (!all || order.empty()) {
    for (const std::size_t i : order) expect(with.start(&requests_[i]), "MPI_Start");
    return;
  }
  std::vector<MPI_Request> some;
  for (const std::size_t i : order) some.push_back(requests_[i]);
  expect(with.start_all(static_cast<int>(some.size()), some.data()), "MPI_Startall");
  for (std::size_t k = 0; k < order.size(); ++k) requests_[order[k]] = some[k];
}

void Batch::note(By by, int index, const MPI_Status& status) {
  State state{status.MPI_SOURCE, status.MPI_TAG, status.MPI_ERROR, 0, 0, false};
  MPI_Get_count(&status, MPI_BYTE, &state.count);
  MPI_Test_cancelled(&status, &state.cancelled);
  Item& item = items_[static_cast<std::size_t>(index)];
  const bool stays = item.persistent || item.what == What::kPersistent;
  if (again_begun_ && !stays) return;  // it has been null since
  item.states[static_cast<int>(by)] = state;
}

void Batch::complete_each(By by, Random& own) {
  const Requests& with = requests_of(by);
  std::vector<int> order(requests_.size());
  std::iota(order.begin(), order.end(), 0);
  if (own.chance(50)) std::reverse(order.begin(), order.end());
  const int way = own.below(3);
  for (const int i : order) {
    MPI_Request* const request = &requests_[static_cast<std::size_t>(i)];
    MPI_Status status = unset();
    int done = way == 1 ? 0 : 1;
    for (int looked = way == 2 ? 0 : 1; looked == 0;) {
      expect(with.get_status(*request, &looked, &status), "MPI_Request_get_status");
      status = unset();
    }
    if (done != 0) expect(with.wait(request, &status), "MPI_Wait");
    while (done == 0) expect(with.test(request, &done, &status), "MPI_Test");
    note(by, i, status);
  }
}

void Batch::complete_any(By by, Random& own) {
  const Requests& with = requests_of(by);
  const int count = static_cast<int>(requests_.size());
  const bool waits = own.chance(50);
  for (;;) {
    MPI_Status status = unset();
    int index = kUnset, done = 1;
    const int code = waits ? with.wait_any(count, requests_.data(), &index, &status)
                           : with.test_any(count, requests_.data(), &index, &done, &status);
    expect(code, "MPI_Waitany or MPI_Testany");
    if (code != MPI_SUCCESS) return;
    if (done == 0) continue;
    if (index == MPI_UNDEFINED) return;
    note(by, index, status);
  }
}

void Batch::complete_some(By by, Random& own) {
  const Requests& with = requests_of(by);
  const int count = static_cast<int>(requests_.size());
  const auto wait_or_test = own.chance(50) ? with.wait_some : with.test_some;
  for (;;) {
    std::vector<MPI_Status> statuses(requests_.size(), unset());
    std::vector<int> indices(requests_.size(), kUnset);
    int done = 0;
    const int code = wait_or_test(count, requests_.data(), &done, indices.data(), statuses.data());
    expect(code, "MPI_Waitsome or MPI_Testsome");
    if (code != MPI_SUCCESS || done == MPI_UNDEFINED) return;
    for (int k = 0; k < done; ++k) {
      note(by, indices[static_cast<std::size_t>(k)], statuses[static_cast<std::size_t>(k)]);
    }
  }
}

void Batch::complete_all(By by, Random& own, bool waits) {
  const Requests& with = requests_of(by);
  const int count = static_cast<int>(requests_.size());
  const bool ignores = own.chance(20) && by == By::kCarillon;
  std::vector<MPI_Status> statuses(requests_.size(), unset());
  MPI_Status* const places = ignores ? MPI_STATUSES_IGNORE : statuses.data();
  int done = 0;
  while (!waits && done == 0) {
    expect(with.test_all(count, requests_.data(), &done, places), "MPI_Testall");
  }
  if (waits) expect(with.wait_all(count, requests_.data(), places), "MPI_Waitall");
  for (int i = 0; i < count; ++i) {
    if (ignores) {
      items_[static_cast<std::size_t>(i)].states[static_cast<int>(by)] = {};
    } else {
      note(by, i, statuses[static_cast<std::size_t>(i)]);
    }
  }
}

void Batch::complete(By by, Random& own) {
  const int way = own.below(4);
  // MPICH 4.0.2's MPI_Waitany tells of its own persistent collectives again and again, and its
  // MPI_Testall ends the process on them.
  if (some_are_left_) return way < 2 ? complete_each(by, own) : complete_all(by, own, true);
  switch (by == By::kHost ? 3 : way) {
    case 0: return complete_each(by, own);
    case 1: return complete_any(by, own);
    case 2: return complete_some(by, own);
    default: return complete_all(by, own, by == By::kHost || own.chance(50));
  }
}

void Batch::run(By by, Random own) {
  again_begun_ = false;
  requests_.clear();
  for (Item& item : items_) requests_.push_back(begin(by, item));
  start_again(by, own);
  const bool frees = own.chance(50);
  if (by == By::kCarillon && frees) {  // the second to run
    for (Item& item : items_) {
      if (item.operation != nullptr) item.operation->free_types();
    }
  }
  complete(by, own);
  again_begun_ = again_;
  if (again_) {
    const std::vector<MPI_Request> kept = requests_;
    start_again(by, own);
    complete(by, own);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] != requests_[i]) expect(MPI_ERR_REQUEST, "to keep a persistent request");
    }
  }
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const bool persistent = items_[i].what == What::kPersistent ||
                            items_[i].what == What::kInactive || items_[i].persistent;
    if (!persistent && requests_[i] != MPI_REQUEST_NULL) expect(MPI_ERR_REQUEST, "null afterwards");
    if (requests_[i] != MPI_REQUEST_NULL)
      expect(requests_of(by).free(&requests_[i]), "MPI_Request_free");
  }
}

void Batch::compare(const std::string& where) {
  check(failed_.empty(), where + ": " + failed_);
  for (const Item& item : items_) {
    if (item.operation != nullptr) {
      check(item.operation->same(), where + ": another result: " + item.operation->text());
    }
    check(item.bytes[0] == item.bytes[1], where + ": another message");
    const bool started = item.what == What::kStarted || item.what == What::kPersistent;
    const State &one = item.states[0], &other = item.states[1];
    check(one.ignored || (started ? one.cancelled == 0 : one == other),
          where + ": another status of item " + std::to_string(static_cast<int>(item.what)) + ": " +
              one.text() + ", the MPI's is " + other.text());
    check(one.error == kUnset || one.error == MPI_SUCCESS, where + ": an error in a status");
  }
}

}  // namespace

void try_batch(const std::vector<Group>& groups, MPI_Comm messages, std::uint64_t seed) {
  Batch batch(groups, messages, seed);
  const Random own(mix(seed, static_cast<std::uint64_t>(world_rank()) + 100));
  batch.run(By::kHost, own);
  if (messages != MPI_COMM_NULL) PMPI_Barrier(messages);
  batch.run(By::kCarillon, own);
  batch.compare("batch of seed " + std::to_string(seed));
}

}  // namespace mpi_test
