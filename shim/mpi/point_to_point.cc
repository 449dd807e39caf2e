// SPDX-License-Identifier: Apache-2.0
//
// The blocking point-to-point functions. Others may need this process for a collective that it has
// started, while it waits here for a message: a broadcast that it is to pass on, say. So while
// collectives are in flight, what would block is started, and asked about with progress in between.
#include <climits>
#include <cstddef>
#include <memory>
#include <new>

#include "errors.h"
#include "poll.h"
#include "process.h"

namespace carillon::shim {
namespace {

#ifdef OPEN_MPI

template <typename Poll>
int poll_for(MPI_Comm /*comm*/, Poll poll) {
  return poll();
}

#else

// While one lives, errors are only returned: those of a communicator, and those that are of none to
// the host, which tells the handler of MPI_COMM_WORLD, or MPI_COMM_SELF. Not beside other threads.
class ErrorsReturned {
 public:
  explicit ErrorsReturned(MPI_Comm comm) {
    for (const MPI_Comm one : {comm, g_host.comm_world, g_host.comm_self}) {
      if (count_ > 0 && one == comm) continue;
      Handler& kept = handlers_[count_];
      if (host().Comm_get_errhandler(one, &kept.handler) != MPI_SUCCESS) continue;
      kept.comm = one;
      ++count_;
      host().Comm_set_errhandler(one, MPI_ERRORS_RETURN);
    }
  }
  ~ErrorsReturned() {
    while (count_ > 0) {
      Handler& kept = handlers_[--count_];
      host().Comm_set_errhandler(kept.comm, kept.handler);
      host().Errhandler_free(&kept.handler);
    }
  }
  ErrorsReturned(const ErrorsReturned&) = delete;
  ErrorsReturned& operator=(const ErrorsReturned&) = delete;

 private:
  struct Handler {
    MPI_Comm comm{};
    MPI_Errhandler handler{};
  };
  Handler handlers_[3];
  int count_ = 0;
};

// A call of MPICH's that blocks tells its communicator's handler of an error, as of a message that
// is too long. What asks about a request tells that of MPI_COMM_WORLD, which may end the job.
template <typename Poll>
int poll_for(MPI_Comm comm, Poll poll) {
  const Process& state = process();
  if (state.threaded || state.begun.load(std::memory_order_relaxed) != Begun::kByInit) {
    return poll();
  }
  int status = MPI_SUCCESS;
  {
    const ErrorsReturned guard(comm);
    status = poll();
  }
  return status == MPI_SUCCESS ? status : raise_error(comm, status);
}

#endif

int poll_request(MPI_Request* request, MPI_Status* state) {
  int done = 0;
  return poll_until(&done, [&] { return host().Test(request, &done, state); });
}

// begin(request) starts what is waited for, on a communicator.
template <typename Begin>
int begin_and_poll(MPI_Comm comm, MPI_Status* state, Begin begin) {
  MPI_Request request = g_host.request_null;
  const int status = begin(&request);
  if (status != MPI_SUCCESS) return status;
  return poll_for(comm, [&] { return poll_request(&request, state); });
}

void give_up(MPI_Request* receiving) {
  host().Cancel(receiving);
  host().Wait(receiving, MPI_STATUS_IGNORE);
}

// receive(request) and send(request), and what the receive's state is.
template <typename Receive, typename Send>
int begin_both_and_poll(MPI_Comm comm, MPI_Status* state, Receive receive, Send send) {
  MPI_Request receiving = g_host.request_null, sending = g_host.request_null;
  int status = receive(&receiving);
  if (status != MPI_SUCCESS) return status;
  status = send(&sending);
  if (status != MPI_SUCCESS) {
    give_up(&receiving);
    return status;
  }
  return poll_for(comm, [&] {
    const int sent = poll_request(&sending, MPI_STATUS_IGNORE);
    if (sent == MPI_SUCCESS) return poll_request(&receiving, state);
    give_up(&receiving);
    return sent;
  });
}

// MPICH 4.0 tells nothing of a receive from MPI_PROC_NULL that is started; of one that blocks, it
// does.
int told_of_nobody(int status, int source, MPI_Comm comm, MPI_Status* state) {
  if (status != MPI_SUCCESS || source != MPI_PROC_NULL) return status;
  return host().Recv(nullptr, 0, g_host.byte, MPI_PROC_NULL, 0, comm, state);
}

// A message to be sent while another one takes its place.
struct Copy {
  std::unique_ptr<std::byte[]> bytes;
  int length = 0;
};

// There are no bytes afterwards if they are more than MPI_Pack can have, or the host is to tell
// what is wrong.
int copy_message(const void* buffer, MPI_Count count, MPI_Datatype type, MPI_Comm comm,
                 Copy* copy) {
  if (count < 0 || count > INT_MAX || type == g_host.type_null || comm == g_host.comm_null) {
    return MPI_SUCCESS;
  }
  const int elements = static_cast<int>(count);
  MPI_Count size = 0;
  int room = 0;
  int status = host().Type_size_x(type, &size);
  if (status == MPI_SUCCESS && elements > 0 && size > INT_MAX / 2 / elements) return MPI_SUCCESS;
  if (status == MPI_SUCCESS) status = host().Pack_size(elements, type, comm, &room);
  if (status != MPI_SUCCESS) return status;
  copy->bytes.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(room) + 1]);
  if (copy->bytes == nullptr) return MPI_SUCCESS;
  return host().Pack(buffer, elements, type, copy->bytes.get(), room, &copy->length, comm);
}

}  // namespace
}  // namespace carillon::shim

using carillon::shim::any_flights;
using carillon::shim::begin_and_poll;
using carillon::shim::begin_both_and_poll;
using carillon::shim::Copy;
using carillon::shim::copy_message;
using carillon::shim::host;
using carillon::shim::poll_request;
using carillon::shim::poll_until;
using carillon::shim::told_of_nobody;

extern "C" {

#define CARILLON_SEND(symbol, started, CRL_COUNT)                                          \
  CARILLON_EXPORT int MPI_##symbol(const void* buffer, CRL_COUNT count, MPI_Datatype type, \
                                   int target, int tag, MPI_Comm comm) {                   \
    if (!any_flights()) return host().symbol(buffer, count, type, target, tag, comm);      \
    return begin_and_poll(comm, MPI_STATUS_IGNORE, [&](MPI_Request* request) {             \
      return host().started(buffer, count, type, target, tag, comm, request);              \
    });                                                                                    \
  }
#define CARILLON_RECEIVE(symbol, started, sendrecv, send, CRL_COUNT)                             \
  CARILLON_EXPORT int MPI_##symbol(void* buffer, CRL_COUNT count, MPI_Datatype type, int source, \
                                   int tag, MPI_Comm comm, MPI_Status* state) {                  \
    if (!any_flights()) return host().symbol(buffer, count, type, source, tag, comm, state);     \
    const int status = begin_and_poll(comm, state, [&](MPI_Request* request) {                   \
      return host().started(buffer, count, type, source, tag, comm, request);                    \
    });                                                                                          \
    return told_of_nobody(status, source, comm, state);                                          \
  }                                                                                              \
  CARILLON_EXPORT int MPI_##sendrecv(const void* in, CRL_COUNT in_count, MPI_Datatype in_type,   \
                                     int target, int in_tag, void* out, CRL_COUNT out_count,     \
                                     MPI_Datatype out_type, int source, int out_tag,             \
                                     MPI_Comm comm, MPI_Status* state) {                         \
    if (!any_flights()) {                                                                        \
      return host().sendrecv(in, in_count, in_type, target, in_tag, out, out_count, out_type,    \
                             source, out_tag, comm, state);                                      \
    }                                                                                            \
    const int status = begin_both_and_poll(                                                      \
        comm, state,                                                                             \
        [&](MPI_Request* request) {                                                              \
          return host().started(out, out_count, out_type, source, out_tag, comm, request);       \
        },                                                                                       \
        [&](MPI_Request* request) {                                                              \
          return host().send(in, in_count, in_type, target, in_tag, comm, request);              \
        });                                                                                      \
    return told_of_nobody(status, source, comm, state);                                          \
  }
#define CARILLON_REPLACE(symbol, started, CRL_COUNT)                                              \
  CARILLON_EXPORT int MPI_##symbol(void* buffer, CRL_COUNT count, MPI_Datatype type, int target,  \
                                   int in_tag, int source, int out_tag, MPI_Comm comm,            \
                                   MPI_Status* state) {                                           \
    Copy copy;                                                                                    \
    const int status =                                                                            \
        any_flights() ? copy_message(buffer, count, type, comm, &copy) : MPI_SUCCESS;             \
    if (status != MPI_SUCCESS) return status;                                                     \
    if (copy.bytes == nullptr) {                                                                  \
      return host().symbol(buffer, count, type, target, in_tag, source, out_tag, comm, state);    \
    }                                                                                             \
    const int done = begin_both_and_poll(                                                         \
        comm, state,                                                                              \
        [&](MPI_Request* request) {                                                               \
          return host().started(buffer, count, type, source, out_tag, comm, request);             \
        },                                                                                        \
        [&](MPI_Request* request) {                                                               \
          return host().Isend(copy.bytes.get(), copy.length, host().packed, target, in_tag, comm, \
                              request);                                                           \
        });                                                                                       \
    return told_of_nobody(done, source, comm, state);                                             \
  }
// Whose errors are of no communicator, however it is called.
#define CARILLON_MATCHED(symbol, started, CRL_COUNT)                                 \
  CARILLON_EXPORT int MPI_##symbol(void* buffer, CRL_COUNT count, MPI_Datatype type, \
                                   MPI_Message* message, MPI_Status* state) {        \
    if (!any_flights()) return host().symbol(buffer, count, type, message, state);   \
    MPI_Request request = carillon::shim::g_host.request_null;                       \
    const int status = host().started(buffer, count, type, message, &request);       \
    return status == MPI_SUCCESS ? poll_request(&request, state) : status;           \
  }

CARILLON_SEND(Send, Isend, int)
CARILLON_SEND(Ssend, Issend, int)
CARILLON_SEND(Rsend, Irsend, int)
CARILLON_RECEIVE(Recv, Irecv, Sendrecv, Isend, int)
CARILLON_REPLACE(Sendrecv_replace, Irecv, int)
CARILLON_MATCHED(Mrecv, Imrecv, int)
#ifdef CARILLON_LARGE_COUNTS
CARILLON_SEND(Send_c, Isend_c, MPI_Count)
CARILLON_SEND(Ssend_c, Issend_c, MPI_Count)
CARILLON_SEND(Rsend_c, Irsend_c, MPI_Count)
CARILLON_RECEIVE(Recv_c, Irecv_c, Sendrecv_c, Isend_c, MPI_Count)
CARILLON_REPLACE(Sendrecv_replace_c, Irecv_c, MPI_Count)
CARILLON_MATCHED(Mrecv_c, Imrecv_c, MPI_Count)
#endif

CARILLON_EXPORT int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* state) {
  if (!any_flights()) return host().Probe(source, tag, comm, state);
  int found = 0;
  return poll_until(&found, [&] { return host().Iprobe(source, tag, comm, &found, state); });
}

CARILLON_EXPORT int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message,
                               MPI_Status* state) {
  if (!any_flights()) return host().Mprobe(source, tag, comm, message, state);
  int found = 0;
  return poll_until(&found,
                    [&] { return host().Improbe(source, tag, comm, &found, message, state); });
}

}  // extern "C"
