# SPDX-License-Identifier: Apache-2.0
#
# What tests in guests begin with.
import sys

import guests
import kernel
from host import Missing

SKIPPED = 77


def begin():
    """Ends the test as skipped, with one line, if this machine can have no guest."""
    try:
        guests.check_host()
        kernel.prepared()
    except Missing as missing:
        print(f"skipped: no virtual machine: {missing}")
        sys.exit(SKIPPED)
