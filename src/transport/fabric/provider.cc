// SPDX-License-Identifier: Apache-2.0
#include "transport/fabric/provider.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>

#include "base/kept_signals.h"
#include "transport/wire.h"

namespace carillon::fabric {
namespace {

constexpr std::size_t kImmediateBytes = sizeof(std::uint32_t);
constexpr std::uint64_t kTagsOfOneField = UINT64_C(0xAAAA'AAAA'AAAA'AAAA);  // FI_TAG_GENERIC

// Within one node; superseded; and the datagram layers, whose one-sided operations are not to be
// relied on (an atomic through them ends the process).
constexpr std::array<std::string_view, 3> kUnfit = {"shm", "sockets", "ofi_rxd"};

bool unfit(std::string_view provider) {
  return std::any_of(kUnfit.begin(), kUnfit.end(), [&](std::string_view name) {
    return provider.find(name) != std::string_view::npos;
  });
}

Info wishes(const Library& library) {
  Info hints(library.dupinfo(nullptr), {&library});
  if (hints == nullptr) return hints;
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->ep_attr->mem_tag_format = kTagsOfOneField >> (64 - wire::kTagBits);
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->av_type = FI_AV_TABLE;
  // Threads of the provider's own would take the cores from the ranks.
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->domain_attr->cq_data_size = kImmediateBytes;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  return hints;
}

// Does the address reach this node only?
bool loopback(const fi_info& info) {
  if (info.src_addr == nullptr) return false;
  if (info.addr_format == FI_SOCKADDR_IN && info.src_addrlen >= sizeof(sockaddr_in)) {
    const auto* const address = static_cast<const sockaddr_in*>(info.src_addr);
    return ntohl(address->sin_addr.s_addr) >> 24 == 127;
  }
  if (info.addr_format == FI_SOCKADDR_IN6 && info.src_addrlen >= sizeof(sockaddr_in6)) {
    const auto* const address = static_cast<const sockaddr_in6*>(info.src_addr);
    return IN6_IS_ADDR_LOOPBACK(&address->sin6_addr) != 0;
  }
  return false;
}

// Addresses that are good on one link only are passed over: which link, is lost on the way.
bool link_local(const fi_info& info) {
  if (info.src_addr == nullptr || info.addr_format != FI_SOCKADDR_IN6) return false;
  const auto* const address = static_cast<const sockaddr_in6*>(info.src_addr);
  return IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr) != 0;
}

bool fits(const fi_info& info, const Options& options) {
  const std::string_view provider = info.fabric_attr->prov_name;
  if (options.provider.empty() ? unfit(provider) : provider != options.provider) return false;
  if (!options.domain.empty() && info.domain_attr->name != options.domain) return false;
  return info.domain_attr->cq_data_size >= kImmediateBytes && !link_local(info);
}

bool layered(const fi_info& info) {
  return std::string_view(info.fabric_attr->prov_name).find(';') != std::string_view::npos;
}

bool same_place(const fi_info& a, const fi_info& b) {
  return std::string_view(a.domain_attr->name) == b.domain_attr->name &&
         a.src_addrlen == b.src_addrlen &&
         (a.src_addrlen == 0 || std::memcmp(a.src_addr, b.src_addr, a.src_addrlen) == 0);
}

// Is `info` to be taken rather than `best`, which comes first in libfabric's order?
bool better(const fi_info& info, const fi_info& best) {
  if (loopback(best) != loopback(info)) return loopback(best);
  // A provider of the same device that needs no layer above it saves that layer's time.
  return same_place(info, best) && layered(best) && !layered(info);
}

// The same provider on the same device if it also has what is `added` to the wishes; else null.
template <typename Add>
Info ask_again(const Library& library, const fi_info& chosen, Add add) {
  const Info hints = wishes(library);
  Info none(nullptr, {&library});
  if (hints == nullptr) return none;
  add(*hints);
  fi_info* found = nullptr;
  if (library.getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), nullptr, nullptr, 0,
                      hints.get(), &found) != 0) {
    return none;
  }
  const Info list(found, {&library});
  for (const fi_info* info = found; info != nullptr; info = info->next) {
    if (std::string_view(info->fabric_attr->prov_name) == chosen.fabric_attr->prov_name &&
        same_place(*info, chosen)) {
      return {library.dupinfo(info), {&library}};
    }
  }
  return none;
}

// Some keep writes in order, but only if they are asked to. Who cannot is not passed over for it,
// but must then tell when a write has landed.
Result<Info> settle_order(const Library& library, const fi_info& chosen) {
  if (writes_in_order(chosen)) return Info(library.dupinfo(&chosen), {&library});
  Info in_order = ask_again(library, chosen, [](fi_info& hints) {
    hints.tx_attr->msg_order |= FI_ORDER_WAW;
    hints.rx_attr->msg_order |= FI_ORDER_WAW;
  });
  if (in_order != nullptr && writes_in_order(*in_order)) return in_order;
  const auto tells = [](fi_info& hints) { hints.tx_attr->op_flags = FI_DELIVERY_COMPLETE; };
  if (ask_again(library, chosen, tells) == nullptr) {
    return Status(Code::kUnsupported,
                  std::string("libfabric's provider ") + chosen.fabric_attr->prov_name +
                      " neither keeps writes in order nor tells when they have landed; choose "
                      "another one (CARILLON_NETWORK=fabric:PROVIDER)");
  }
  return Info(library.dupinfo(&chosen), {&library});
}

std::string found_names(const fi_info* list) {
  std::set<std::string> names;
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    names.insert(std::string(info->fabric_attr->prov_name) + " on " + info->domain_attr->name);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

bool writes_in_order(const fi_info& info) {
  return ((info.tx_attr->msg_order & info.rx_attr->msg_order) &
          (FI_ORDER_WAW | FI_ORDER_RMA_WAW)) != 0 &&
         info.ep_attr->max_order_waw_size >= info.ep_attr->max_msg_size;
}

bool is_of_sockets(const fi_info& info) {
  std::string_view provider = info.fabric_attr->prov_name;
  provider = provider.substr(0, provider.find(';'));  // what is layered above it
  constexpr std::array<std::string_view, 4> kProviders{"net", "sockets", "tcp", "udp"};
  return std::ranges::find(kProviders, provider) != kProviders.end();
}

Result<Info> choose_provider(const Library& library, const Options& options) {
  const Info hints = wishes(library);
  if (hints == nullptr) return Status(Code::kNoMemory, "out of memory for libfabric");
  fi_info* found = nullptr;
  const KeptSignals kept;  // the first call loads further libraries
  const int error = library.getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), nullptr,
                                    nullptr, 0, hints.get(), &found);
  if (error != 0 && error != -FI_ENODATA) {
    return library.failure("libfabric could not list its providers", error);
  }
  const Info list(found, {&library});
  const fi_info* best = nullptr;
  for (const fi_info* info = found; info != nullptr; info = info->next) {
    if (!fits(*info, options)) continue;
    if (best == nullptr || better(*info, *best)) best = info;
  }
  if (best == nullptr) {
    return Status(Code::kUnsupported,
                  "no provider of libfabric fits" +
                      (options.provider.empty() ? "" : " '" + options.provider + "'") +
                      (options.domain.empty() ? "" : " on '" + options.domain + "'") +
                      " (reliable datagrams, one-sided with immediates, tagged); there are: " +
                      found_names(found));
  }
  return settle_order(library, *best);
}

}  // namespace carillon::fabric
