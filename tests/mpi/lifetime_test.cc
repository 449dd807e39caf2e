// SPDX-License-Identifier: Apache-2.0
//
// Types and operators that one thread frees while another is in a collective with them: MPI lets
// the collective end normally. And what an operator's calls in one thread answer is not another's.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "support.h"

namespace {

constexpr int kPoison = -4711;
std::atomic<int> g_poisoned = 0;
std::atomic<bool> g_waits = false;
thread_local bool t_watched = false;

template <typename Function>
Function original(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// In place of the MPI's own function, which fails for hardly any arguments.
extern "C" int PMPI_Reduce_local(const void* left, void* right, int count, MPI_Datatype type,
                                 MPI_Op op) {
  static const auto reduce =
      original<int (*)(const void*, void*, int, MPI_Datatype, MPI_Op)>("PMPI_Reduce_local");
  if (*static_cast<const int*>(left) == kPoison) {
    g_poisoned.fetch_add(1);
    return MPI_ERR_OP;
  }
  return reduce(left, right, count, type, op);
}

// What carillon calls while it waits: tells that a thread is inside a collective.
extern "C" int PMPI_Request_get_status(MPI_Request request, int* done, MPI_Status* status) {
  static const auto ask =
      original<int (*)(MPI_Request, int*, MPI_Status*)>("PMPI_Request_get_status");
  if (t_watched) g_waits.store(true);
  return ask(request, done, status);
}

namespace mpi_test {
namespace {

void add(void* left, void* right, int* count, MPI_Datatype* type) {
  MPI_Count bytes = 0;
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_size_x(*type, &bytes);
  MPI_Type_get_extent(*type, &lower_bound, &extent);
  const auto numbers = static_cast<int>(bytes / static_cast<MPI_Count>(sizeof(int)));
  const auto stride = extent / static_cast<MPI_Aint>(sizeof(int)) / numbers;
  const auto* const in = static_cast<const int*>(left);
  auto* const inout = static_cast<int*>(right);
  for (MPI_Aint i = 0; i < *count * numbers; ++i) inout[i * stride] += in[i * stride];
}

void spoil(void* /*left*/, void* right, int* /*count*/, MPI_Datatype* /*type*/) {
  *static_cast<int*>(right) = kPoison / 2;
}

MPI_Datatype committed(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

// `count` ints, `stride` apart.
MPI_Datatype strided(int count, int stride) {
  MPI_Datatype type = MPI_DATATYPE_NULL, resized = MPI_DATATYPE_NULL;
  MPI_Type_vector(count, 1, stride, MPI_INT, &type);
  MPI_Type_create_resized(type, 0, static_cast<MPI_Aint>(sizeof(int)) * count * stride, &resized);
  MPI_Type_free(&type);
  return committed(resized);
}

// Ints in places so irregular that only the MPI itself copies them.
MPI_Datatype irregular(int count) {
  std::vector<int> places;
  for (int i = 0, at = 0; i < count; at += 2 + i++ % 3) places.push_back(at);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_indexed_block(count, 1, places.data(), MPI_INT, &type);
  return committed(type);
}

// New objects, used once: they get the handles and the memory of what was freed.
void use_others() {
  std::vector<MPI_Datatype> types;
  std::vector<MPI_Op> ops;
  for (int i = 0; i < 20; ++i) {
    types.push_back(strided(3, 5 + i));
    ops.emplace_back();
    MPI_Op_create(spoil, 1, &ops.back());
    std::vector<int> in(200, 1), out(200, 0);
    MPI_Allreduce(in.data(), out.data(), 1, types.back(), ops.back(), MPI_COMM_SELF);
    MPI_Bcast(in.data(), 1, types.back(), 0, MPI_COMM_SELF);
  }
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
  for (MPI_Op& op : ops) MPI_Op_free(&op);
}

// Rank 0 is inside, its other thread frees what it uses; then the others come.
template <typename Collective>
void free_meanwhile(MPI_Datatype* type, MPI_Op* op, Collective collective) {
  std::thread inside;
  if (world_rank() == 0) {
    const MPI_Datatype used_type = *type;
    const MPI_Op used_op = *op;
    g_waits.store(false);
    inside = std::thread([=] {
      t_watched = true;
      collective(used_type, used_op);
    });
    while (!g_waits.load()) usleep(100);
  }
  if (world_rank() == 0) {
    check(MPI_Type_free(type) == MPI_SUCCESS && *type == MPI_DATATYPE_NULL, "MPI_Type_free");
    check(MPI_Op_free(op) == MPI_SUCCESS && *op == MPI_OP_NULL, "MPI_Op_free");
    use_others();
    PMPI_Barrier(MPI_COMM_WORLD);
    inside.join();
  } else {
    PMPI_Barrier(MPI_COMM_WORLD);
    collective(*type, *op);
    MPI_Type_free(type);
    MPI_Op_free(op);
  }
}

MPI_Op adding() {
  MPI_Op op{};
  MPI_Op_create(add, 1, &op);
  return op;
}

void free_in_allreduce(MPI_Comm comm) {
  MPI_Datatype type = strided(2, 2);
  MPI_Op op = adding();
  free_meanwhile(&type, &op, [comm](MPI_Datatype used_type, MPI_Op used_op) {
    const std::vector<int> in(40, world_rank() + 1);
    std::vector<int> out(40, 0);
    MPI_Allreduce(in.data(), out.data(), 10, used_type, used_op, comm);
    const int sum = world_size() * (world_size() + 1) / 2;
    bool good = true;
    for (std::size_t i = 0; i < out.size(); ++i) good = good && out[i] == (i % 2 == 0 ? sum : 0);
    check(good, "an allreduce whose type and operator were freed meanwhile");
  });
}

void free_in_bcast(MPI_Comm comm, MPI_Datatype type, int count) {
  MPI_Op op = adding();
  free_meanwhile(&type, &op, [=](MPI_Datatype used_type, MPI_Op /*op*/) {
    std::vector<int> numbers(static_cast<std::size_t>(count) * 4, -1), packed(numbers);
    const int size = count * static_cast<int>(sizeof(int));
    if (world_rank() == 0) {
      MPI_Bcast(numbers.data(), 1, used_type, 1, comm);
      check(numbers[0] == 0 && numbers[1] == -1, "a bcast whose type was freed meanwhile");
      int sum = 0;
      for (const int number : numbers) sum += number >= 0 ? 1 : 0;
      check(sum == count, "a bcast whose type was freed meanwhile: numbers");
    } else {
      for (int i = 0; i < count; ++i) packed[static_cast<std::size_t>(i)] = i;
      MPI_Bcast(packed.data(), size, MPI_BYTE, 1, comm);
    }
  });
}

// Nor is what gets the handle of a type freed meanwhile taken for it in the next call.
void handle_comes_back(MPI_Comm comm) {
  constexpr int kTries = 64;
  const auto ints = [](int count) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(count, MPI_INT, &type);
    return committed(type);
  };
  const auto bcast = [comm](MPI_Datatype type, int count) {
    int numbers[3] = {-1, -1, -1};
    for (int i = 0; world_rank() == 1 && i < count; ++i) numbers[i] = i;
    const bool counts = world_rank() == 1;
    MPI_Bcast(numbers, counts ? count : 1, counts ? MPI_INT : type, 1, comm);
    check(numbers[count - 1] == count - 1 && (count == 3 || numbers[count] == -1),
          "a bcast of " + std::to_string(count) + " ints beside a handle that comes back");
  };
  MPI_Datatype type = ints(2);
  std::vector<MPI_Datatype> others;
  if (world_rank() == 0) {
    g_waits.store(false);
    std::thread inside([&, used_type = type] {
      t_watched = true;
      bcast(used_type, 2);
    });
    while (!g_waits.load()) usleep(100);
    const MPI_Datatype freed = type;
    MPI_Type_free(&type);
    do {
      others.push_back(ints(3));
    } while (others.back() != freed && others.size() < kTries);
    PMPI_Barrier(MPI_COMM_WORLD);
    inside.join();
  } else {
    others.push_back(ints(3));
    PMPI_Barrier(MPI_COMM_WORLD);
    bcast(type, 2);
    MPI_Type_free(&type);
  }
  MPI_Barrier(comm);  // so that this thread knows the communicator
  bcast(others.back(), 3);
  for (MPI_Datatype& other : others) MPI_Type_free(&other);
}

// Deferred is not forgotten: the MPI's type goes with the last call.
void freed_in_the_end(MPI_Comm comm) {
  static int deleted = 0;
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Type_create_keyval(
      MPI_TYPE_NULL_COPY_FN,
      [](MPI_Datatype, int, void*, void*) -> int {
        ++deleted;
        return MPI_SUCCESS;
      },
      &keyval, nullptr);
  MPI_Datatype type = strided(2, 2);
  MPI_Type_set_attr(type, keyval, nullptr);
  free_in_bcast(comm, type, 2);
  check(deleted == 1, "a type freed meanwhile is deleted " + std::to_string(deleted) + " times");
  MPI_Type_free_keyval(&keyval);
}

// What a type is made of is still there when the program has freed it, and gets its handle again.
void freed_and_found_again(MPI_Comm comm) {
  MPI_Datatype part = strided(3, 2), whole = MPI_DATATYPE_NULL, found = MPI_DATATYPE_NULL;
  const auto bcast = [comm](MPI_Datatype type, int elements) {
    std::vector<int> numbers(64, -1);
    for (int i = 0; world_rank() == 0 && i < 64; ++i) numbers[static_cast<std::size_t>(i)] = i;
    MPI_Bcast(numbers.data(), 1, type, 0, comm);
    bool good = true;
    for (int i = 0; i < elements; ++i) {
      good = good && numbers[static_cast<std::size_t>(2 * i)] == 2 * i;
    }
    check(good, "a bcast of " + std::to_string(elements) + " ints of a type found again");
  };
  bcast(part, 3);
  MPI_Type_contiguous(2, part, &whole);
  MPI_Type_commit(&whole);
  MPI_Type_free(&part);
  const auto find_part = [&] {
    int numbers[1] = {};
    MPI_Aint addresses[1] = {};
    MPI_Type_get_contents(whole, 1, 0, 1, numbers, addresses, &found);
  };
  for (int round = 0; round < 3; ++round) {
    find_part();
    for (int i = 0; i < 3; ++i) bcast(found, 3);
    MPI_Type_free(&found);
  }
  use_others();
  find_part();
  MPI_Aint lower_bound = 0, extent = 0;
  MPI_Type_get_extent(found, &lower_bound, &extent);
  check(extent == 6 * static_cast<MPI_Aint>(sizeof(int)), "the extent of a type found again");
  MPI_Type_free(&found);
  bcast(whole, 6);
  MPI_Type_free(&whole);
}

// The same operator and type in two threads; in one of them, the MPI fails.
void one_thread_fails(const std::vector<MPI_Comm>& comms) {
  constexpr int kRounds = 3000;
  MPI_Op op = adding();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < comms.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < kRounds; ++round) {
        const int in = thread == 0 ? kPoison : round;
        int out = 0;
        const int code = MPI_Allreduce(&in, &out, 1, MPI_INT, op, comms[thread]);
        if (thread != 0 && code != MPI_SUCCESS) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  check(wrong.load() == 0, std::to_string(wrong.load()) + " calls got another thread's error");
  // Somewhere: not every rank combines something.
  int poisoned = g_poisoned.load();
  PMPI_Allreduce(MPI_IN_PLACE, &poisoned, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(poisoned > 0, "the MPI's function was not replaced");
  MPI_Op_free(&op);
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv, MPI_THREAD_MULTIPLE);
  std::vector<MPI_Comm> comms(2, MPI_COMM_NULL);
  for (MPI_Comm& comm : comms) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
  }
  for (int round = 0; round < 5; ++round) {
    free_in_allreduce(comms[0]);
    free_in_bcast(comms[0], strided(1000, 3), 1000);
    free_in_bcast(comms[0], irregular(80000), 80000);
    handle_comes_back(comms[0]);
  }
  check(left("allreduce") == 0 && left("bcast") == 0, "carillon must take all calls");
  freed_in_the_end(comms[0]);
  freed_and_found_again(comms[0]);
  one_thread_fails(comms);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  return end();
}
