// SPDX-License-Identifier: Apache-2.0
//
// The ends of requests of the C API.
#include "api/call.h"

crl_status_t crl_request_test(crl_request_h* request_p) {
  if (*request_p == nullptr) return CRL_OK;
  return carillon::guarded([&] {
    crl_request& request = **request_p;
    carillon::Engine& engine = *request.context->engine;
    if (request.done()) {
      const carillon::Engine::Lock lock(engine);
      return carillon::finish(request_p);
    }
    const carillon::Engine::Lock lock(engine, std::try_to_lock);
    if (lock.busy()) return CRL_IN_PROGRESS;
    engine.progress_and_watch();
    return request.done() ? carillon::finish(request_p) : CRL_IN_PROGRESS;
  });
}

crl_status_t crl_request_wait(crl_request_h* request_p) {
  if (*request_p == nullptr) return CRL_OK;
  return carillon::guarded([&] {
    crl_request& request = **request_p;
    carillon::Engine& engine = *request.context->engine;
    {
      const carillon::Engine::Lock lock(engine);
      if (engine.look(request)) [[likely]]
        return carillon::finish(request_p);
    }
    engine.wait(request);
    const carillon::Engine::Lock lock(engine);
    return carillon::finish(request_p);
  });
}
