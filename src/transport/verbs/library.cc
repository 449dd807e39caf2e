// SPDX-License-Identifier: Apache-2.0
#include "transport/verbs/library.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstring>

namespace carillon::verbs {
namespace {

// Remembers the first that is missing.
class Symbols {
 public:
  bool open(const char* name) {
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr && missing_.empty()) missing_ = dlerror();
    return handle_ != nullptr;
  }
  template <typename Function>
  void find(const char* name, Function* function) {
    void* const symbol = dlsym(handle_, name);
    if (symbol == nullptr && missing_.empty()) missing_ = dlerror();
    *function = reinterpret_cast<Function>(symbol);
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  void* handle_ = nullptr;
  std::string missing_;
};

void find_verbs(Symbols& symbols, Library& library) {
  symbols.find("ibv_query_device", &library.query_device);
  symbols.find("ibv_query_port", &library.query_port);
  symbols.find("ibv_alloc_pd", &library.alloc_pd);
  symbols.find("ibv_dealloc_pd", &library.dealloc_pd);
  symbols.find("ibv_reg_mr", &library.reg_mr);
  symbols.find("ibv_dereg_mr", &library.dereg_mr);
  symbols.find("ibv_create_cq", &library.create_cq);
  symbols.find("ibv_destroy_cq", &library.destroy_cq);
  symbols.find("ibv_create_srq", &library.create_srq);
  symbols.find("ibv_destroy_srq", &library.destroy_srq);
  symbols.find("ibv_create_qp", &library.create_raw_qp);
  symbols.find("ibv_destroy_qp", &library.destroy_raw_qp);
  symbols.find("ibv_create_comp_channel", &library.create_comp_channel);
  symbols.find("ibv_destroy_comp_channel", &library.destroy_comp_channel);
  symbols.find("ibv_get_cq_event", &library.get_cq_event);
  symbols.find("ibv_ack_cq_events", &library.ack_cq_events);
  symbols.find("ibv_create_ah", &library.create_ah);
  symbols.find("ibv_destroy_ah", &library.destroy_ah);
  symbols.find("ibv_attach_mcast", &library.attach_mcast);
  symbols.find("ibv_detach_mcast", &library.detach_mcast);
  symbols.find("ibv_query_gid", &library.query_gid);
  symbols.find("ibv_wc_status_str", &library.wc_status_str);
}

void find_connection_manager(Symbols& symbols, Library& library) {
  symbols.find("rdma_create_event_channel", &library.create_event_channel);
  symbols.find("rdma_destroy_event_channel", &library.destroy_event_channel);
  symbols.find("rdma_create_id", &library.create_id);
  symbols.find("rdma_destroy_id", &library.destroy_id);
  symbols.find("rdma_bind_addr", &library.bind_addr);
  symbols.find("rdma_listen", &library.listen);
  symbols.find("rdma_get_src_port", &library.get_src_port);
  symbols.find("rdma_resolve_addr", &library.resolve_addr);
  symbols.find("rdma_resolve_route", &library.resolve_route);
  symbols.find("rdma_create_qp", &library.create_qp);
  symbols.find("rdma_destroy_qp", &library.destroy_qp);
  symbols.find("rdma_connect", &library.connect);
  symbols.find("rdma_accept", &library.accept);
  symbols.find("rdma_reject", &library.reject);
  symbols.find("rdma_disconnect", &library.disconnect);
  symbols.find("rdma_join_multicast", &library.join_multicast);
  symbols.find("rdma_leave_multicast", &library.leave_multicast);
  symbols.find("rdma_get_cm_event", &library.get_cm_event);
  symbols.find("rdma_ack_cm_event", &library.ack_cm_event);
  symbols.find("rdma_event_str", &library.event_str);
}

Result<Library> open() {
  Symbols symbols;
  Library library;
  const bool has_verbs = symbols.open("libibverbs.so.1");
  if (has_verbs) find_verbs(symbols, library);
  const bool has_manager = symbols.open("librdmacm.so.1");
  if (has_manager) find_connection_manager(symbols, library);
  if (has_verbs && has_manager && symbols.missing().empty()) return library;
  return Status(Code::kUnsupported,
                "the verbs libraries are not there (" + symbols.missing() +
                    "); install them (Debian: libibverbs1 librdmacm1 ibverbs-providers)");
}

}  // namespace

Result<const Library*> Library::load() {
  static const Result<Library> kLibrary = open();
  if (!kLibrary.ok()) return kLibrary.status();
  return &kLibrary.value();
}

Status failure(const std::string& what, int error) {
  const Code code = error == ENOMEM ? Code::kNoMemory : Code::kSystem;
  return {code, what + ": " + std::strerror(error) + " (" + std::to_string(error) + ")"};
}

}  // namespace carillon::verbs
