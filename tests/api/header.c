/* SPDX-License-Identifier: Apache-2.0 */
/* carillon.h is C99, and needs nothing included before it. */
#include "carillon/carillon.h"

const char* used(void);
const char* used(void) { return crl_version(); }
