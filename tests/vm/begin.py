# SPDX-License-Identifier: Apache-2.0
#
# What tests in guests begin with.
import os
import sys

import guests
import kernel
from host import Missing

SKIPPED = 77


def begin():
    """Ends the test as skipped, with one line, if this machine can have no guest, or if it is not the
    test's turn: with CARILLON_TEST_TURN every second has one (tests/support/turn.h)."""
    turn = os.environ.get("CARILLON_TEST_TURN")
    number = int(os.environ.get("VM_TEST_NUMBER", "0"))
    if turn and not os.environ.get("CARILLON_TEST_WHOLE") and (number + int(turn)) % 2:
        print(f"skipped: has no turn with CARILLON_TEST_TURN={turn}")
        sys.exit(SKIPPED)
    try:
        guests.check_host()
        kernel.prepared()
    except Missing as missing:
        print(f"skipped: no virtual machine: {missing}")
        sys.exit(SKIPPED)
