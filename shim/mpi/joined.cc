// SPDX-License-Identifier: Apache-2.0
#include "joined.h"

#include "comm_key.h"
#include "world.h"

namespace carillon::shim {
namespace {

int copy_mark(MPI_Comm /*comm*/, int /*keyval*/, void* /*extra*/, void* value, void* copied,
              int* flag) {
  *static_cast<void**>(copied) = value;
  *flag = use_again(static_cast<World*>(value)) ? 1 : 0;
  return MPI_SUCCESS;
}

int delete_mark(MPI_Comm /*comm*/, int /*keyval*/, void* value, void* /*extra*/) {
  drop_again(static_cast<World*>(value));
  return MPI_SUCCESS;
}

constinit CommKey g_joined_key(copy_mark, delete_mark);

}  // namespace

void mark_joined(MPI_Comm comm, World& world) { g_joined_key.set(comm, &world); }

World* joined_world(MPI_Comm comm) {
  void* value = nullptr;
  return g_joined_key.find(comm, &value) ? static_cast<World*>(value) : nullptr;
}

void mark_part(MPI_Comm whole, MPI_Comm part) {
  World* const world = joined_world(whole);
  if (world == nullptr || joined_world(part) != nullptr || !has_strangers(part)) return;
  if (use_again(world)) mark_joined(part, *world);
}

void forget_joined() { g_joined_key.forget(); }

}  // namespace carillon::shim
