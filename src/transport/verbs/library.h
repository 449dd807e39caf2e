// SPDX-License-Identifier: Apache-2.0
//
// libibverbs and librdmacm, loaded when an end is opened and not before.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <string>

#include "base/status.h"

namespace carillon::verbs {

/// The functions of the two libraries that are not inline in their headers.
struct Library {
  decltype(&::ibv_query_device) query_device = nullptr;
  decltype(&::ibv_query_port) query_port = nullptr;
  decltype(&::ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&::ibv_dealloc_pd) dealloc_pd = nullptr;
  decltype(&::ibv_reg_mr) reg_mr = nullptr;
  decltype(&::ibv_dereg_mr) dereg_mr = nullptr;
  decltype(&::ibv_create_cq) create_cq = nullptr;
  decltype(&::ibv_destroy_cq) destroy_cq = nullptr;
  decltype(&::ibv_create_srq) create_srq = nullptr;
  decltype(&::ibv_destroy_srq) destroy_srq = nullptr;
  decltype(&::ibv_create_qp) create_raw_qp = nullptr;  // without a connection
  decltype(&::ibv_destroy_qp) destroy_raw_qp = nullptr;
  decltype(&::ibv_create_comp_channel) create_comp_channel = nullptr;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel = nullptr;
  decltype(&::ibv_get_cq_event) get_cq_event = nullptr;
  decltype(&::ibv_ack_cq_events) ack_cq_events = nullptr;
  decltype(&::ibv_create_ah) create_ah = nullptr;
  decltype(&::ibv_destroy_ah) destroy_ah = nullptr;
  decltype(&::ibv_attach_mcast) attach_mcast = nullptr;
  decltype(&::ibv_detach_mcast) detach_mcast = nullptr;
  decltype(&::ibv_query_gid) query_gid = nullptr;
  decltype(&::ibv_wc_status_str) wc_status_str = nullptr;
  decltype(&::rdma_create_event_channel) create_event_channel = nullptr;
  decltype(&::rdma_destroy_event_channel) destroy_event_channel = nullptr;
  decltype(&::rdma_create_id) create_id = nullptr;
  decltype(&::rdma_destroy_id) destroy_id = nullptr;
  decltype(&::rdma_bind_addr) bind_addr = nullptr;
  decltype(&::rdma_listen) listen = nullptr;
  decltype(&::rdma_get_src_port) get_src_port = nullptr;
  decltype(&::rdma_resolve_addr) resolve_addr = nullptr;
  decltype(&::rdma_resolve_route) resolve_route = nullptr;
  decltype(&::rdma_create_qp) create_qp = nullptr;
  decltype(&::rdma_destroy_qp) destroy_qp = nullptr;
  decltype(&::rdma_connect) connect = nullptr;
  decltype(&::rdma_accept) accept = nullptr;
  decltype(&::rdma_reject) reject = nullptr;
  decltype(&::rdma_disconnect) disconnect = nullptr;
  decltype(&::rdma_join_multicast) join_multicast = nullptr;
  decltype(&::rdma_leave_multicast) leave_multicast = nullptr;
  decltype(&::rdma_get_cm_event) get_cm_event = nullptr;
  decltype(&::rdma_ack_cm_event) ack_cm_event = nullptr;
  decltype(&::rdma_event_str) event_str = nullptr;

  /// Loads both, once in the process; they stay loaded.
  static Result<const Library*> load();
};

/// "what: Invalid argument (22)"
Status failure(const std::string& what, int error);

}  // namespace carillon::verbs
