// SPDX-License-Identifier: Apache-2.0
//
// Windows of MPI_Win_allocate_shared: collectives read their memory where it stands, whichever
// rank's part it is; they stay the MPI's, with all that can be asked of them; and what was one, or
// is one of some ranks only, is as any other memory.
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "support.h"

namespace mpi_test {
namespace {

constexpr std::size_t kBlock = 128 << 10;

MPI_Comm g_node = MPI_COMM_NULL;
int g_rank = 0, g_size = 1;

// What this rank gave to others of the node.
struct Given {
  unsigned long long in_place = 0, lent = 0, copied = 0;
};
Given given() {
  using Counter = void (*)(unsigned long long*, unsigned long long*);
  using Lent = unsigned long long (*)();
  Given now;
  const auto count = reinterpret_cast<Counter>(dlsym(RTLD_DEFAULT, "carillon_shim_node_bytes"));
  const auto lent = reinterpret_cast<Lent>(dlsym(RTLD_DEFAULT, "carillon_shim_lent_bytes"));
  count(&now.in_place, &now.copied);
  now.lent = lent();
  return now;
}

// Since its making: so many bytes in place, and none in another way.
class InPlace {
 public:
  explicit InPlace(std::string what) : what_(std::move(what)) {}
  void expect(std::size_t bytes) const {
    const Given now = given();
    check(now.in_place - before_.in_place == bytes, what_ + ": bytes read in place");
    check(now.lent == before_.lent && now.copied == before_.copied, what_ + ": bytes copied");
  }

 private:
  std::string what_;
  Given before_ = given();
};

// Each rank's part has a block for each rank, and other lengths beside.
class Window {
 public:
  Window(MPI_Comm comm, bool in_a_row) : comm_(comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size_);
    MPI_Info info = MPI_INFO_NULL;
    if (!in_a_row) {
      MPI_Info_create(&info);
      MPI_Info_set(info, "alloc_shared_noncontig", "true");
    }
    MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes_of(rank)), 1, info, comm, &mine_, &handle);
    if (!in_a_row) MPI_Info_free(&info);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, handle);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  [[nodiscard]] std::uint8_t* mine() const { return mine_; }
  // Where this rank has another's part.
  [[nodiscard]] std::uint8_t* part(int rank) const {
    MPI_Aint bytes = 0;
    int unit = 0;
    std::uint8_t* base = nullptr;
    MPI_Win_shared_query(handle, rank, &bytes, &unit, &base);
    // Some MPIs round parts that are not in a row.
    check(unit == 1 && bytes >= static_cast<MPI_Aint>(bytes_of(rank)),
          "what MPI_Win_shared_query says");
    return base;
  }
  // What ranks have written is there for all.
  void meet() const {
    MPI_Win_sync(handle);
    PMPI_Barrier(comm_);
    MPI_Win_sync(handle);
  }
  void unlock() const { MPI_Win_unlock_all(handle); }
  void free() {
    unlock();
    MPI_Win_free(&handle);
    check(handle == MPI_WIN_NULL, "the handle of a window that is freed");
  }

  MPI_Win handle = MPI_WIN_NULL;

 private:
  [[nodiscard]] std::size_t bytes_of(int rank) const {
    return static_cast<std::size_t>(size_) * kBlock + 24 * static_cast<std::size_t>(rank);
  }

  MPI_Comm comm_;
  int size_ = 0;
  std::uint8_t* mine_ = nullptr;
};

void put_block(std::uint8_t* to, int source, int peer) {
  const Bytes block = pattern_block(source, peer, kBlock);
  std::memcpy(to, block.data(), block.size());
}
void check_block(const std::uint8_t* at, int source, int peer, const std::string& what) {
  const Bytes block = pattern_block(source, peer, kBlock);
  check(std::memcmp(at, block.data(), block.size()) == 0, what);
}

struct Tables {
  std::vector<int> counts, places;
  explicit Tables(int size) : counts(static_cast<std::size_t>(size), static_cast<int>(kBlock)) {
    for (int i = 0; i < size; ++i) places.push_back(i * static_cast<int>(kBlock));
  }
};

// Another rank writes what this one sends, and reads what it has received.
void test_alltoallv(bool in_a_row, bool starts) {
  const std::string what =
      std::string(starts ? "ialltoallv" : "alltoallv") + (in_a_row ? "" : ", not in a row");
  Window in(g_node, in_a_row), out(g_node, in_a_row);
  const Tables tables(g_size);
  const int next = (g_rank + 1) % g_size;
  std::uint8_t* const of_next = in.part(next);
  for (int peer = 0; peer < g_size; ++peer) {
    put_block(of_next + static_cast<std::size_t>(peer) * kBlock, next, peer);
  }
  in.meet();
  {
    const InPlace bytes(what);
    if (starts) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Ialltoallv(in.mine(), tables.counts.data(), tables.places.data(), MPI_BYTE, out.mine(),
                     tables.counts.data(), tables.places.data(), MPI_BYTE, g_node, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Alltoallv(in.mine(), tables.counts.data(), tables.places.data(), MPI_BYTE, out.mine(),
                    tables.counts.data(), tables.places.data(), MPI_BYTE, g_node);
    }
    bytes.expect(static_cast<std::size_t>(g_size - 1) * kBlock);
  }
  out.meet();
  const std::uint8_t* const came = out.part(next);
  for (int peer = 0; peer < g_size; ++peer) {
    check_block(came + static_cast<std::size_t>(peer) * kBlock, peer, next, what);
  }
  out.meet();
  in.free();
  out.free();
}

// From the root's part, from another's, and, where the parts are in a row, from several at once.
void test_bcast(bool in_a_row) {
  Window window(g_node, in_a_row);
  for (int root = 0; root < g_size; ++root) {
    for (const int owner : {root, (root + 1) % g_size}) {
      Bytes came(kBlock);
      std::uint8_t* const data = g_rank == root ? window.part(owner) : came.data();
      if (g_rank == root) put_block(data, root, owner);
      const Given before = given();
      MPI_Bcast(data, static_cast<int>(kBlock), MPI_BYTE, root, g_node);
      check_block(data, root, owner, "bcast");
      const bool gave = given().in_place > before.in_place;
      check(gave == (g_rank == root && g_size > 1), "bcast: who gave bytes in place");
      window.meet();
    }
  }
  if (in_a_row && g_size > 1) {
    const std::size_t bytes = 2 * kBlock, before_end = kBlock / 2;
    std::uint8_t* const across = window.part(1) - before_end;
    Bytes came(bytes);
    if (g_rank == 0) std::iota(across, across + bytes, std::uint8_t{5});
    const Given before = given();
    MPI_Bcast(g_rank == 0 ? across : came.data(), static_cast<int>(bytes), MPI_BYTE, 0, g_node);
    Bytes expected(bytes);
    std::iota(expected.begin(), expected.end(), std::uint8_t{5});
    check(g_rank == 0 || came == expected, "bcast of two parts");
    check(g_rank != 0 || given().in_place > before.in_place, "bcast of two parts, in place");
    window.meet();
  }
  window.free();
}

// All of it is the MPI's own.
void test_window(bool in_a_row) {
  Window window(g_node, in_a_row);
  void* value = nullptr;
  int found = 0;
  MPI_Win_get_attr(window.handle, MPI_WIN_CREATE_FLAVOR, static_cast<void*>(&value), &found);
  check(found != 0 && *static_cast<int*>(value) == MPI_WIN_FLAVOR_SHARED, "the window's flavour");
  MPI_Win_get_attr(window.handle, MPI_WIN_BASE, static_cast<void*>(&value), &found);
  check(found != 0 && value == window.mine(), "the window's base");
  const std::uint8_t byte = static_cast<std::uint8_t>(g_rank + 1);
  const int next = (g_rank + 1) % g_size, previous = (g_rank + g_size - 1) % g_size;
  MPI_Put(&byte, 1, MPI_BYTE, next, 7, 1, MPI_BYTE, window.handle);
  MPI_Win_flush(next, window.handle);
  window.meet();
  check(window.mine()[7] == previous + 1, "MPI_Put");
  window.meet();
  window.free();
}

// The root's collective cannot be complete: the others have not begun it.
void test_free_in_use() {
  if (g_size < 2) return;
  Window window(g_node, true);
  Bytes came(kBlock);
  MPI_Request request = MPI_REQUEST_NULL;
  if (g_rank == 0) {
    put_block(window.mine(), 0, 3);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Ibcast(window.mine(), static_cast<int>(kBlock), MPI_BYTE, 0, g_node, &request);
    MPI_Win handle = window.handle;
    check(MPI_Win_free(&handle) != MPI_SUCCESS, "a window is freed while a request uses it");
    check(handle == window.handle, "the handle of a window that is not freed");
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  }
  PMPI_Barrier(g_node);
  if (g_rank != 0) MPI_Ibcast(came.data(), static_cast<int>(kBlock), MPI_BYTE, 0, g_node, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (g_rank != 0) check_block(came.data(), 0, 3, "a bcast whose window was not freed");
  window.free();
}

// Where a window was there is private memory now, and nobody else has that.
void test_memory_after(bool seen) {
  Window window(g_node, true);
  std::uint8_t* const was = window.mine();
  window.unlock();
  if (seen) {
    MPI_Win_free(&window.handle);
  } else {
    PMPI_Win_free(&window.handle);
  }
  const auto page =
      reinterpret_cast<std::uint8_t*>((reinterpret_cast<std::uintptr_t>(was) + 4095) / 4096 * 4096);
  void* const memory = mmap(page, 2 * kBlock, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  // Some MPIs keep what they have mapped.
  std::vector<std::uint8_t> other(kBlock);
  auto* const data = memory == page ? page : other.data();
  for (int root = 0; root < g_size; ++root) {
    if (g_rank == root) put_block(data, root, 9);
    const Given before = given();
    MPI_Bcast(data, static_cast<int>(kBlock), MPI_BYTE, root, g_node);
    check_block(data, root, 9, "bcast of what is no window any more");
    check(given().in_place == before.in_place, "no bytes in place of what is no window any more");
    PMPI_Barrier(g_node);
  }
  if (memory != MAP_FAILED) munmap(memory, 2 * kBlock);
}

// A communicator of some of the node's ranks: the others could not read there.
void test_some_ranks() {
  if (g_size < 3) return;
  MPI_Comm some = MPI_COMM_NULL;
  MPI_Comm_split(g_node, g_rank == 0 ? MPI_UNDEFINED : 0, g_rank, &some);
  Bytes came(kBlock);
  if (some == MPI_COMM_NULL) {
    MPI_Bcast(came.data(), static_cast<int>(kBlock), MPI_BYTE, 1, g_node);
    check_block(came.data(), 1, 2, "bcast from a window of some ranks");
    return;
  }
  Window window(some, true);
  put_block(window.mine(), 1, 2);
  MPI_Bcast(g_rank == 1 ? window.mine() : came.data(), static_cast<int>(kBlock), MPI_BYTE, 1,
            g_node);
  if (g_rank != 1) check_block(came.data(), 1, 2, "bcast from a window of some ranks");
  window.meet();
  window.free();
  MPI_Comm_free(&some);
}

// Of no bytes at some ranks, or at all.
void test_empty() {
  for (const bool any : {false, true}) {
    MPI_Win window = MPI_WIN_NULL;
    std::uint8_t* mine = nullptr;
    const bool has = any && g_rank == g_size - 1;
    MPI_Win_allocate_shared(has ? static_cast<MPI_Aint>(kBlock) : 0, 1, MPI_INFO_NULL, g_node,
                            &mine, &window);
    Bytes came(kBlock);
    if (any) {
      if (has) put_block(mine, 4, 4);
      MPI_Bcast(has ? mine : came.data(), static_cast<int>(kBlock), MPI_BYTE, g_size - 1, g_node);
      if (!has) check_block(came.data(), 4, 4, "bcast from the only part that has bytes");
    }
    MPI_Win_free(&window);
  }
}

}  // namespace
}  // namespace mpi_test

int main(int argc, char** argv) {
  using namespace mpi_test;
  begin(argc, argv);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world_rank(), MPI_INFO_NULL, &g_node);
  MPI_Comm_rank(g_node, &g_rank);
  MPI_Comm_size(g_node, &g_size);
  for (const bool in_a_row : {true, false}) {
    for (const bool starts : {false, true}) test_alltoallv(in_a_row, starts);
    test_bcast(in_a_row);
    test_window(in_a_row);
  }
  test_empty();
  test_free_in_use();
  for (const bool seen : {true, false}) test_memory_after(seen);
  test_some_ranks();
  for (int i = 0; i < 50; ++i) test_bcast(i % 2 == 0);
  MPI_Comm_free(&g_node);
  return end();
}
