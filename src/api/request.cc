// SPDX-License-Identifier: Apache-2.0
//
// The ends of requests of the C API.
#include <string>

#include "api/call.h"

namespace carillon {

crl_status_t finish(crl_request_h* request_p, bool locked) {
  crl_request* const request = *request_p;
  crl_context& context = *request->context;
  const crl_status_t status = request->status().ok() ? CRL_OK : report(request->status());
  context.note_error(*request);
  context.outstanding[request->place] = context.outstanding.back();
  context.outstanding[request->place]->place = request->place;
  context.outstanding.pop_back();
  (locked ? context.spare_requests : context.leaving_requests).push_back(request);
  *request_p = nullptr;
  return status;
}

crl_status_t finish_done(crl_request_h* request_p) {
  crl_context& context = *(*request_p)->context;
  const Engine::Lock lock(*context.engine, Engine::kToPost);
  return finish(request_p, !lock.busy());
}

}  // namespace carillon

namespace {

crl_status_t no_place(const char* function) {
  return carillon::report(
      carillon::Status(carillon::Code::kInvalidArgument,
                       std::string(function) + ": the place of the request is NULL"));
}

}  // namespace

crl_status_t crl_request_test(crl_request_h* request_p) {
  if (request_p == nullptr) [[unlikely]]
    return no_place("crl_request_test");
  if (*request_p == nullptr) return CRL_OK;
  return carillon::guarded([&] {
    crl_request& request = **request_p;
    carillon::Engine& engine = *request.context->engine;
    if (request.ended_well()) return carillon::finish_done(request_p);
    const carillon::Engine::Lock lock(engine, std::try_to_lock);
    if (lock.busy()) return CRL_IN_PROGRESS;
    if (!request.done()) engine.progress_and_watch();
    return request.done() ? carillon::finish(request_p) : CRL_IN_PROGRESS;
  });
}

crl_status_t crl_request_wait(crl_request_h* request_p) {
  if (request_p == nullptr) [[unlikely]]
    return no_place("crl_request_wait");
  if (*request_p == nullptr) return CRL_OK;
  return carillon::guarded([&] {
    crl_request& request = **request_p;
    carillon::Engine& engine = *request.context->engine;
    if (request.ended_well()) return carillon::finish_done(request_p);
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
