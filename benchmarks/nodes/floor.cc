// SPDX-License-Identifier: Apache-2.0
#include "floor.h"

#include <sys/socket.h>

namespace carillon::bench {

SocketTree::SocketTree(Bootstrap& bootstrap) {
  sockaddr_in mine = bootstrap.own_address();
  const Socket listening = listen_at(&mine);
  std::vector<sockaddr_in> all(static_cast<std::size_t>(bootstrap.ranks()));
  bootstrap.allgather(&mine, all.data(), sizeof mine);
  const int rank = bootstrap.rank();
  // The lowest bit that is set leads to the parent; the bits below it, to the children.
  int bit = 1;
  for (; bit < bootstrap.ranks() && (rank & bit) == 0; bit *= 2) {
    if (rank + bit < bootstrap.ranks()) children_.emplace_back();
  }
  if (rank != 0) {
    parent_ = connect_to(all[static_cast<std::size_t>(rank - bit)], 10);
    send_all(parent_, &bit, sizeof bit);
  }
  for (std::size_t i = 0; i < children_.size(); ++i) {
    Socket socket = accept_from(listening);
    int which = 0;
    receive_all(socket, &which, sizeof which);
    for (std::size_t place = 0; place < children_.size(); ++place) {
      if (which == 1 << place) children_[place] = std::move(socket);
    }
  }
}

void SocketTree::allreduce(float* values, std::size_t count) {
  const std::size_t bytes = count * sizeof *values;
  part_.resize(count);
  for (const Socket& child : children_) {
    receive_all(child, part_.data(), bytes);
    for (std::size_t i = 0; i < count; ++i) values[i] += part_[i];
  }
  if (parent_.fd() >= 0) {
    send_all(parent_, values, bytes);
    receive_all(parent_, values, bytes);
  }
  for (std::size_t i = children_.size(); i-- > 0;) send_all(children_[i], values, bytes);
}

}  // namespace carillon::bench
