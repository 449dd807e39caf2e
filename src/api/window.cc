// SPDX-License-Identifier: Apache-2.0
//
// Windows of the C API: memory that the node's processes have mapped already.
#include <memory>
#include <vector>

#include "api/objects.h"

using carillon::Code;
using carillon::Engine;

namespace {

crl_status_t create_window(crl_context& context, const crl_oob_t& oob, void* const* parts,
                           const size_t* bytes, crl_window_h* window_p) {
  std::vector<carillon::WindowPart> all;
  all.reserve(static_cast<std::size_t>(oob.size));
  for (int i = 0; i < oob.size; ++i) {
    all.push_back({static_cast<std::byte*>(parts[i]), bytes[i]});
  }
  auto window = std::make_unique<crl_window>();
  window->context = &context;
  auto shared = context.engine->share_window(oob, all);
  if (!shared.ok()) return carillon::report(shared.status());
  window->shared = std::move(shared.value());
  *window_p = window.release();
  return CRL_OK;
}

}  // namespace

crl_status_t crl_window_create(crl_context_h context, const crl_oob_t* oob, void* const* parts,
                               const size_t* bytes, crl_window_h* window_p) {
  if (context == nullptr || oob == nullptr || parts == nullptr || bytes == nullptr ||
      window_p == nullptr || !carillon::is_complete(*oob)) {
    return carillon::report({Code::kInvalidArgument,
                             "crl_window_create: needs a context, an oob with both functions and a "
                             "rank below its size, parts and bytes of all its members, and a place "
                             "for the window"});
  }
  return carillon::guarded([&] { return create_window(*context, *oob, parts, bytes, window_p); });
}

crl_status_t crl_window_close(crl_window_h window) {
  if (window == nullptr) return CRL_OK;
  return carillon::guarded([&] {
    Engine& engine = *window->context->engine;
    const Engine::Lock lock(engine);
    return carillon::report(engine.close_window(window->shared));
  });
}

void crl_window_abandon(crl_window_h window) {
  if (window == nullptr) return;
  // Partner: Windows::reference_to.
  window->shared.stands->store(false, std::memory_order_release);
}

void crl_window_destroy(crl_window_h window) {
  if (window == nullptr || window->context->is_inherited()) return;
  Engine& engine = *window->context->engine;
  const Engine::Lock lock(engine);
  engine.forget_window(window->shared);
  delete window;
}
