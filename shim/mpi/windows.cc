// SPDX-License-Identifier: Apache-2.0
//
// Windows of MPI_Win_allocate_shared. They are the host's, with all that can be asked and done of
// them; carillon only asks it where each rank's part is in this process, so that bytes there can be
// named to the others.
//
// MPI_Win_free is where they end. Whoever frees one as PMPI_Win_free passes carillon by; then the
// host tells of it by an attribute of the window: where nothing may be locked.
#include "windows.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "bootstrap.h"
#include "errors.h"
#include "process.h"
#include "thread_cache.h"
#include "world.h"

namespace carillon::shim {
namespace {

// The value of its attribute. Of one that has gone unseen, it stays until its context goes.
struct Window {
  crl_context_h context = nullptr;
  std::atomic<crl_window_h> shared = nullptr;  // null: the context has gone
  std::atomic<bool> gone = false;              // the host's window has
};

struct Windows {
  std::mutex mutex;  // of `all`, and of making the keyval
  std::vector<Window*> all;
  std::atomic<int> keyval = MPI_KEYVAL_INVALID;
};

Windows& windows() {
  static Windows& all = *new Windows();
  return all;
}

// The host may hold locks of its own, and whoever has the context's may wait for these.
int on_window_freed(MPI_Win /*window*/, int /*keyval*/, void* value, void* /*extra*/) {
  auto* const window = static_cast<Window*>(value);
  crl_window_abandon(window->shared.load(std::memory_order_acquire));
  window->gone.store(true, std::memory_order_release);
  return MPI_SUCCESS;
}

int keyval() {
  const std::lock_guard lock(windows().mutex);
  std::atomic<int>& made = windows().keyval;
  int value = made.load(std::memory_order_relaxed);
  if (value == MPI_KEYVAL_INVALID &&
      host().Win_create_keyval(copy_no_attribute<MPI_Win>, on_window_freed, &value, nullptr) ==
          MPI_SUCCESS) {
    made.store(value, std::memory_order_release);
  }
  return value;
}

// Null: none of these.
Window* find_window(MPI_Win handle) {
  const int known = windows().keyval.load(std::memory_order_acquire);
  if (known == MPI_KEYVAL_INVALID || handle == MPI_WIN_NULL) return nullptr;
  void* value = nullptr;
  int found = 0;
  const int status = host().Win_get_attr(handle, known, &value, &found);
  return status == MPI_SUCCESS && found != 0 ? static_cast<Window*>(value) : nullptr;
}

void destroy(Window* window) {
  {
    const std::lock_guard lock(windows().mutex);
    std::erase(windows().all, window);
  }
  crl_window_destroy(window->shared.load(std::memory_order_relaxed));
  delete window;
}

void keep(crl_context_h context, crl_window_h shared, MPI_Win handle) {
  auto window = std::make_unique<Window>();
  window->context = context;
  window->shared.store(shared, std::memory_order_relaxed);
  if (host().Win_set_attr(handle, keyval(), window.get()) != MPI_SUCCESS) {
    // The others may tell of bytes there; this rank reads them, and tells of none.
    crl_window_abandon(shared);
    window->gone.store(true, std::memory_order_relaxed);
  }
  const std::lock_guard lock(windows().mutex);
  windows().all.push_back(window.release());
}

}  // namespace

void share_window(MPI_Comm comm, MPI_Win handle) {
  if (t_cache.depth > 0 || process().phase.load(std::memory_order_acquire) != Phase::kRunning) {
    return;
  }
  const InsideHost guard;
  Bootstrap bootstrap{comm, 0, 0};
  host().Comm_rank(comm, &bootstrap.rank);
  host().Comm_size(comm, &bootstrap.size);
  if (bootstrap.size < 2) return;
  World* const world = use_world(comm, bootstrap.size);
  if (world == nullptr) return;
  const auto size = static_cast<std::size_t>(bootstrap.size);
  std::vector<void*> parts(size);
  std::vector<std::size_t> bytes(size);
  for (int rank = 0; rank < bootstrap.size; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    MPI_Aint length = 0;
    int unit = 0;
    const int status =
        host().Win_shared_query(handle, rank, &length, &unit, static_cast<void*>(&parts[i]));
    // Too long to be told of, so that all hear that it is not.
    bytes[i] = status == MPI_SUCCESS ? static_cast<std::size_t>(length) : SIZE_MAX;
  }
  const crl_oob_t oob = bootstrap.oob();
  crl_window_h shared = nullptr;
  const crl_status_t status =
      crl_window_create(world->context, &oob, parts.data(), bytes.data(), &shared);
  if (status == CRL_OK) keep(world->context, shared, handle);
  drop_world(world);
}

void forget_windows(crl_context_h context) {
  std::vector<Window*> its;
  {
    const std::lock_guard lock(windows().mutex);
    auto& all = windows().all;
    std::copy_if(all.begin(), all.end(), std::back_inserter(its),
                 [&](const Window* one) { return one->context == context; });
  }
  for (Window* const window : its) {
    crl_window_destroy(window->shared.exchange(nullptr, std::memory_order_acq_rel));
    window->context = nullptr;
    if (window->gone.load(std::memory_order_acquire)) destroy(window);
  }
}

void stop_windows() {
  int made = windows().keyval.exchange(MPI_KEYVAL_INVALID);
  if (made != MPI_KEYVAL_INVALID) host().Win_free_keyval(&made);
}

namespace {

int free_window(MPI_Win* handle) {
  Window* const window = handle == nullptr ? nullptr : find_window(*handle);
  if (window == nullptr) return host().Win_free(handle);
  crl_status_t closed = CRL_OK;
  {
    const WorldsStay stay;
    closed = crl_window_close(window->shared.load(std::memory_order_acquire));
  }
  // With no worlds held: an error handler need not return.
  if (closed != CRL_OK) return raise_carillon_error(MPI_COMM_SELF, closed, "MPI_Win_free");
  const MPI_Win freed = *handle;
  const int status = host().Win_free(handle);
  // All ranks have come there, and so nothing is told of its bytes any more. Of MPICH 5's refusals
  // the status does not tell (made.h).
  if (status == MPI_SUCCESS && *handle != freed) {
    const WorldsStay stay;
    destroy(window);
  }
  return status;
}

}  // namespace
}  // namespace carillon::shim

extern "C" {

CARILLON_EXPORT int MPI_Win_free(MPI_Win* handle) { return carillon::shim::free_window(handle); }

}  // extern "C"
