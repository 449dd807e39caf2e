// SPDX-License-Identifier: Apache-2.0
#include "early_handlers.h"

#include <pthread.h>

namespace heap_test {

EarlyHandlers& early_handlers() {
  static constinit EarlyHandlers handlers;
  return handlers;
}

namespace {

void call(void (*handler)()) {
  if (handler != nullptr) handler();
}

__attribute__((constructor)) void tell() {
  pthread_atfork([] { call(early_handlers().before); }, [] { call(early_handlers().in_parent); },
                 [] { call(early_handlers().in_child); });
}

}  // namespace
}  // namespace heap_test
