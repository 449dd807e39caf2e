// SPDX-License-Identifier: Apache-2.0
//
// Buffers in a device's memory, which the processor cannot touch: every collective, in each of its
// forms, on buffers of which some ranks' are there and others' not, against the MPI's own on memory
// of the host. The device is a stand-in (devices/stand_in.cc), and is loaded long after MPI_Init.
//
//   device_test STAND-IN
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "support.h"

// Open MPI 4 has the persistent collectives as an extension.
#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define MPI_Allreduce_init MPIX_Allreduce_init
#define PERSISTENT(name) MPIX_##name##_init
#else
#define PERSISTENT(name) MPI_##name##_init
#endif

namespace mpi_test {
namespace {

struct StandIn {
  void* (*allocate)(std::size_t, int) = nullptr;
  void (*free)(void*) = nullptr;
  void* (*look_at)(void*) = nullptr;
  std::uint64_t (*copied_bytes)() = nullptr;
  int (*last_error)() = nullptr;
};
StandIn g_device;

void load_stand_in(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
  };
  find("stand_in_allocate", &g_device.allocate);
  find("stand_in_free", &g_device.free);
  find("stand_in_look_at", &g_device.look_at);
  find("stand_in_copied_bytes", &g_device.copied_bytes);
  find("stand_in_last_error", &g_device.last_error);
}

// Of a device: as the stand-in numbers them.
enum class Where { kHost = -1, kDevice, kManaged, kPool };

// Ints somewhere.
class Ints {
 public:
  Ints(const std::vector<int>& values, Where where)
      : bytes_(values.size() * sizeof(int)), where_(where) {
    if (where == Where::kHost) {
      host_ = values;
    } else {
      device_ = g_device.allocate(bytes_ + sizeof(int), static_cast<int>(where));
      std::memcpy(g_device.look_at(device_), values.data(), bytes_);
    }
  }
  ~Ints() {
    if (device_ != nullptr) g_device.free(device_);
  }
  Ints(const Ints&) = delete;
  Ints& operator=(const Ints&) = delete;
  [[nodiscard]] int* address() {
    return where_ == Where::kHost ? host_.data() : static_cast<int*>(device_);
  }
  // As the processor can use it.
  [[nodiscard]] int* visible() {
    return where_ == Where::kHost ? host_.data() : static_cast<int*>(g_device.look_at(device_));
  }
  [[nodiscard]] std::vector<int> values() { return {visible(), visible() + bytes_ / sizeof(int)}; }

 private:
  std::size_t bytes_;
  Where where_;
  std::vector<int> host_;
  void* device_ = nullptr;
};

constexpr int kBlock = 4;   // elements of a block
constexpr int kSpread = 9;  // ints from block to block, where they are listed

// The blocks of all ranks, the last one first, with gaps between.
struct Lists {
  std::vector<int> counts, offsets, byte_offsets;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;
  Lists() {
    const int size = world_size();
    for (int i = 0; i < size; ++i) {
      counts.push_back(kBlock);
      offsets.push_back((size - 1 - i) * kSpread);
      byte_offsets.push_back(offsets.back() * static_cast<int>(sizeof(int)));
      addresses.push_back(byte_offsets.back());
      types.push_back(MPI_INT);
    }
  }
};

// Two ints with one between them, and room for two more.
MPI_Datatype make_strided() {
  MPI_Datatype two{}, spaced{};
  MPI_Type_vector(2, 1, 2, MPI_INT, &two);
  MPI_Type_create_resized(two, 0, 5 * sizeof(int), &spaced);
  MPI_Type_commit(&spaced);
  MPI_Type_free(&two);
  return spaced;
}

// A ring, for the collectives of neighbours.
MPI_Comm make_ring() {
  const int size = world_size(), periodic = 1;
  MPI_Comm ring{};
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  return ring;
}

enum class Form { kBlocking, kStarted, kPersistent, kNative };
constexpr Form kForms[] = {Form::kBlocking, Form::kStarted, Form::kPersistent};

std::string name_of(const std::string& collective, Form form) {
  return form == Form::kStarted      ? "i" + collective
         : form == Form::kPersistent ? collective + "_init"
                                     : collective;
}

// By carillon, in one of its forms, or by the MPI.
using Call = std::function<void(Form form, int* in, int* out, MPI_Request* request)>;
struct Case {
  const char* collective;
  Call call;
};

const MPI_Comm kWorld = MPI_COMM_WORLD;

// The four forms of one call. A macro, because they are four functions.
#define CALL(name, started, ...)                                                             \
  [=](Form form, [[maybe_unused]] int* in, int* out, MPI_Request* request) {                 \
    switch (form) {                                                                          \
      case Form::kBlocking: MPI_##name(__VA_ARGS__); return;                                 \
      case Form::kStarted: MPI_##started(__VA_ARGS__, request); return;                      \
      case Form::kPersistent: PERSISTENT(name)(__VA_ARGS__, MPI_INFO_NULL, request); return; \
      default: PMPI_##name(__VA_ARGS__); return;                                             \
    }                                                                                        \
  }

std::vector<Case> data_cases(MPI_Datatype strided) {
  const int root = world_size() / 2;
  const bool at_root = world_rank() == root;
  return {
      {"bcast", CALL(Bcast, Ibcast, out, 2, strided, root, kWorld)},
      {"gather", CALL(Gather, Igather, in, 2, strided, out, kBlock, MPI_INT, root, kWorld)},
      {"scatter", CALL(Scatter, Iscatter, in, kBlock, MPI_INT,
                       at_root ? MPI_IN_PLACE : static_cast<void*>(out), 2, strided, root, kWorld)},
      {"allgather", CALL(Allgather, Iallgather, in, kBlock, MPI_INT, out, 2, strided, kWorld)},
      {"allgather",
       CALL(Allgather, Iallgather, MPI_IN_PLACE, 0, MPI_INT, out, kBlock, MPI_INT, kWorld)},
      {"alltoall", CALL(Alltoall, Ialltoall, in, 2, strided, out, kBlock, MPI_INT, kWorld)},
      {"alltoall", CALL(Alltoall, Ialltoall, MPI_IN_PLACE, 0, MPI_INT, out, 2, strided, kWorld)},
  };
}

std::vector<Case> neighbour_cases(const Lists& lists, MPI_Datatype strided, MPI_Comm ring) {
  const int* const counts = lists.counts.data();
  const int* const offsets = lists.offsets.data();
  const MPI_Aint* const addresses = lists.addresses.data();
  const MPI_Datatype* const types = lists.types.data();
  std::vector<Case> cases = {
      {"neighbor_allgather",
       CALL(Neighbor_allgather, Ineighbor_allgather, in, kBlock, MPI_INT, out, 2, strided, ring)}};
  if (world_size() < 3) return cases;  // of blocks of one neighbour on both sides MPIs differ
  cases.insert(
      cases.end(),
      {{"neighbor_allgatherv", CALL(Neighbor_allgatherv, Ineighbor_allgatherv, in, 2, strided, out,
                                    counts, offsets, MPI_INT, ring)},
       {"neighbor_alltoall",
        CALL(Neighbor_alltoall, Ineighbor_alltoall, in, 2, strided, out, kBlock, MPI_INT, ring)},
       {"neighbor_alltoallv", CALL(Neighbor_alltoallv, Ineighbor_alltoallv, in, counts, offsets,
                                   MPI_INT, out, counts, offsets, MPI_INT, ring)},
       {"neighbor_alltoallw", CALL(Neighbor_alltoallw, Ineighbor_alltoallw, in, counts, addresses,
                                   types, out, counts, addresses, types, ring)}});
  return cases;
}

std::vector<Case> list_cases(const Lists& lists, MPI_Datatype strided) {
  const int root = world_size() / 2;
  const int* const counts = lists.counts.data();
  const int* const offsets = lists.offsets.data();
  const int* const bytes = lists.byte_offsets.data();
  const MPI_Datatype* const types = lists.types.data();
  return {
      {"alltoallv", CALL(Alltoallv, Ialltoallv, in, counts, offsets, MPI_INT, out, counts, offsets,
                         MPI_INT, kWorld)},
      {"alltoallv", CALL(Alltoallv, Ialltoallv, MPI_IN_PLACE, nullptr, nullptr, MPI_INT, out,
                         counts, offsets, MPI_INT, kWorld)},
      {"alltoallw",
       CALL(Alltoallw, Ialltoallw, in, counts, bytes, types, out, counts, bytes, types, kWorld)},
      {"allgatherv",
       CALL(Allgatherv, Iallgatherv, in, 2, strided, out, counts, offsets, MPI_INT, kWorld)},
      {"gatherv",
       CALL(Gatherv, Igatherv, in, kBlock, MPI_INT, out, counts, offsets, MPI_INT, root, kWorld)},
      {"scatterv",
       CALL(Scatterv, Iscatterv, in, counts, offsets, MPI_INT, out, 2, strided, root, kWorld)},
      {"reduce_scatter",
       CALL(Reduce_scatter, Ireduce_scatter, in, out, counts, MPI_INT, MPI_SUM, kWorld)},
  };
}

std::vector<Case> reduction_cases() {
  const int root = world_size() / 2;
  const int all = kBlock * world_size();
  return {
      {"reduce", CALL(Reduce, Ireduce, in, out, all, MPI_INT, MPI_MAX, root, kWorld)},
      {"allreduce", CALL(Allreduce, Iallreduce, in, out, all, MPI_INT, MPI_SUM, kWorld)},
      {"allreduce", CALL(Allreduce, Iallreduce, MPI_IN_PLACE, out, all, MPI_INT, MPI_SUM, kWorld)},
      {"reduce_scatter_block", CALL(Reduce_scatter_block, Ireduce_scatter_block, in, out, kBlock,
                                    MPI_INT, MPI_SUM, kWorld)},
      {"scan", CALL(Scan, Iscan, in, out, all, MPI_INT, MPI_SUM, kWorld)},
      {"exscan", CALL(Exscan, Iexscan, in, out, all, MPI_INT, MPI_SUM, kWorld)},
  };
}

// Where this rank's memory is, in one round after the other.
Where placed(int round, bool output) {
  constexpr Where kAll[] = {Where::kHost, Where::kPool, Where::kManaged};
  switch (round) {
    case 0: return Where::kDevice;
    case 1: return world_rank() % 2 == 0 ? Where::kDevice : Where::kHost;
    default: return kAll[(world_rank() + (output ? 1 : 0)) % 3];
  }
}
constexpr int kRounds = 3;

std::vector<int> numbers(int seed) {
  std::vector<int> values(static_cast<std::size_t>(kSpread * world_size() + kSpread));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = seed * 100000 + world_rank() * 1000 + static_cast<int>(i * i % 997);
  }
  return values;
}

void test_form(const Case& one, Form form, const std::vector<int>& expected) {
  const std::string name = name_of(one.collective, form);
  MustTake must(name.c_str());
  const std::vector<int> in = numbers(1), out = numbers(2);
  for (int round = 0; round < kRounds; ++round) {
    Ints given(in, placed(round, false)), got(out, placed(round, true));
    MPI_Request request = MPI_REQUEST_NULL;
    one.call(form, given.address(), got.address(), &request);
    const int turns = form == Form::kPersistent ? 2 : 1;
    for (int turn = 0; turn < turns; ++turn) {
      if (form == Form::kPersistent) {
        std::copy(out.begin(), out.end(), got.visible());
        MPI_Start(&request);
      }
      if (form != Form::kBlocking) MPI_Wait(&request, MPI_STATUS_IGNORE);
      must.expect();
      const std::string where = name + ", round " + std::to_string(round);
      check(got.values() == expected, where + ": differs from the MPI's");
      check(given.values() == in, where + ": its input has changed");
    }
    if (form == Form::kPersistent) MPI_Request_free(&request);
  }
}

void test_case(const Case& one) {
  std::vector<int> their_in = numbers(1), expected = numbers(2);
  one.call(Form::kNative, their_in.data(), expected.data(), nullptr);
  for (const Form form : kForms) test_form(one, form, expected);
}

// Two collectives are on their way at once and have parts of one array in turn; what lies between
// belongs to the program meanwhile.
void test_started() {
  MustTake reductions("iallreduce"), exchanges("ialltoallv");
  const Lists lists;
  std::vector<int> shifted = lists.offsets;
  for (int& offset : shifted) offset += kBlock;
  const std::vector<int> in = numbers(1), before = numbers(2);
  std::vector<int> expected = before;
  const std::vector<int>* const both[] = {&lists.offsets, &shifted};
  for (const std::vector<int>* const offsets : both) {
    PMPI_Alltoallv(in.data(), lists.counts.data(), lists.offsets.data(), MPI_INT, expected.data(),
                   lists.counts.data(), offsets->data(), MPI_INT, kWorld);
  }
  for (int i = 0; i < world_size(); ++i) expected[static_cast<std::size_t>(i * kSpread + 8)] = -i;
  std::vector<int> expected_sum(kBlock);
  PMPI_Allreduce(in.data(), expected_sum.data(), kBlock, MPI_INT, MPI_SUM, kWorld);

  Ints given(in, Where::kDevice), got(before, Where::kDevice);
  Ints sum(std::vector<int>(kBlock), Where::kDevice);
  MPI_Request requests[3];
  MPI_Ialltoallv(given.address(), lists.counts.data(), lists.offsets.data(), MPI_INT, got.address(),
                 lists.counts.data(), lists.offsets.data(), MPI_INT, kWorld, &requests[0]);
  MPI_Ialltoallv(given.address(), lists.counts.data(), lists.offsets.data(), MPI_INT, got.address(),
                 lists.counts.data(), shifted.data(), MPI_INT, kWorld, &requests[1]);
  MPI_Iallreduce(given.address(), sum.address(), kBlock, MPI_INT, MPI_SUM, kWorld, &requests[2]);
  for (int i = 0; i < world_size(); ++i) got.visible()[i * kSpread + 8] = -i;
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  exchanges.expect();
  exchanges.expect();
  reductions.expect();
  check(got.values() == expected, "started: not what the MPI's gives");
  check(sum.values() == expected_sum, "started: another sum");
}

// Each start takes what the device's memory has then.
void test_persistent() {
  MustTake must("allreduce_init");
  Ints given(std::vector<int>(kBlock), Where::kDevice),
      sum(std::vector<int>(kBlock), Where::kDevice);
  MPI_Request request{};
  MPI_Allreduce_init(given.address(), sum.address(), kBlock, MPI_INT, MPI_SUM, kWorld,
                     MPI_INFO_NULL, &request);
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<int> in(kBlock), expected(kBlock);
    for (int i = 0; i < kBlock; ++i) {
      in[static_cast<std::size_t>(i)] = given.visible()[i] = turn * 100 + world_rank() * 10 + i;
    }
    PMPI_Allreduce(in.data(), expected.data(), kBlock, MPI_INT, MPI_SUM, kWorld);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(sum.values() == expected, "persistent, turn " + std::to_string(turn));
    must.expect();
  }
  MPI_Request_free(&request);
}

// One block is the host's and the next one the device's, wherever they are: only absolute addresses
// say. Long ones in many pieces, of which another call's bytes lie between.
void test_blocks_of_both() {
  const int size = world_size();
  constexpr int kPieces = 70000;
  MPI_Datatype spread{};
  MPI_Type_vector(kPieces, 1, 2, MPI_INT, &spread);
  MPI_Type_commit(&spread);
  std::vector<int> rows(2 * kPieces), counts(static_cast<std::size_t>(size), 1);
  std::iota(rows.begin(), rows.end(), world_rank());
  Ints in(rows, Where::kDevice);
  std::vector<std::unique_ptr<Ints>> out;
  std::vector<MPI_Datatype> in_types, out_types;
  std::vector<int> zeros(static_cast<std::size_t>(size), 0);
  for (int i = 0; i < size; ++i) {
    out.push_back(std::make_unique<Ints>(std::vector<int>(2 * kPieces, -7),
                                         i % 2 == 0 ? Where::kDevice : Where::kHost));
    MPI_Datatype placed{};
    const int one = 1;
    const auto address = reinterpret_cast<MPI_Aint>(out.back()->address());
    MPI_Type_create_hindexed(1, &one, &address, spread, &placed);
    MPI_Type_commit(&placed);
    out_types.push_back(placed);
    in_types.push_back(spread);
  }
  {
    MustTake must("ialltoallw");
    MPI_Request request{};
    MPI_Ialltoallw(in.address(), counts.data(), zeros.data(), in_types.data(), MPI_BOTTOM,
                   counts.data(), zeros.data(), out_types.data(), kWorld, &request);
    for (auto& each : out) each->visible()[1] = -8;  // between the pieces
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    must.expect();
  }
  for (int i = 0; i < size; ++i) {
    const std::vector<int> got = out[static_cast<std::size_t>(i)]->values();
    bool good = got[1] == -8 && got[3] == -7;
    for (int j = 0; j < 2 * kPieces; j += 2)
      good = good && got[static_cast<std::size_t>(j)] == i + j;
    check(good, "blocks of both: that of rank " + std::to_string(i));
  }
  for (MPI_Datatype& type : out_types) MPI_Type_free(&type);
  MPI_Type_free(&spread);
}

// A first rank's output of an exscan does not count: it may be anything.
void test_no_output() {
  MustTake must("exscan");
  Ints none({1}, Where::kDevice);
  std::vector<int> in(4096, 1), enough(4096);
  const bool first = world_rank() == 0;
  MPI_Exscan(in.data(), first ? none.address() : enough.data(), 4096, MPI_INT, MPI_SUM, kWorld);
  must.expect();
  check(none.values() == std::vector<int>{1}, "exscan: what does not count has changed");
}

// Rank 0's output is memory of its own that ends before the count says.
void test_what_the_runtime_refuses() {
  MPI_Comm other{};
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
  std::vector<int> in = numbers(1);
  const std::size_t page = 4096;
  Ints out(std::vector<int>(page / sizeof(int) - 1), Where::kDevice);
  std::vector<int> enough(2 * page), given(2 * page, 1);
  const bool mine = world_rank() == 0;
  const int status = MPI_Allreduce(given.data(), mine ? out.address() : enough.data(),
                                   static_cast<int>(page), MPI_INT, MPI_SUM, other);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(status, &error_class);
  check(error_class == (mine ? MPI_ERR_BUFFER : MPI_SUCCESS),
        "a device refuses: class " + std::to_string(error_class));
  MPI_Comm_free(&other);
}

void run(const char* stand_in) {
  // Without any device: nothing is looked for.
  std::vector<int> in = numbers(1), out = numbers(2);
  MPI_Allreduce(in.data(), out.data(), kBlock, MPI_INT, MPI_SUM, kWorld);
  load_stand_in(stand_in);
  const Lists lists;
  MPI_Datatype strided = make_strided();
  MPI_Comm ring = make_ring();
  for (const Case& one : data_cases(strided)) test_case(one);
  for (const Case& one : neighbour_cases(lists, strided, ring)) test_case(one);
  for (const Case& one : list_cases(lists, strided)) test_case(one);
  for (const Case& one : reduction_cases()) test_case(one);
  test_started();
  test_persistent();
  test_blocks_of_both();
  test_no_output();
  test_what_the_runtime_refuses();
  check(g_device.last_error() == 0, "an error is left behind for the program to find");
  check(g_device.copied_bytes() > 0, "nothing was copied to or from the device");
  MPI_Comm_free(&ring);
  MPI_Type_free(&strided);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  mpi_test::begin(argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "device_test: the stand-in's path is missing\n");
    return 1;
  }
  mpi_test::run(argv[1]);
  return mpi_test::end();
}
