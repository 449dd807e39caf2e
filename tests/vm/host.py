# SPDX-License-Identifier: Apache-2.0
#
# What the host must have, and its processes.
import ctypes
import os
import shutil
import signal
import sys

PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
OWN_PID = os.getpid()
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


class Failure(Exception):
    """What was asked for cannot be done; the text says why."""


class Missing(Failure):
    """This machine has not what it takes."""


def note(text):
    print(f"rxe: {text}", file=sys.stderr, flush=True)


def die_with_parent():
    """In a child, before it becomes a program: it does not outlive this process, even if that is
    killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != OWN_PID:  # killed meanwhile
        os._exit(1)


def program(name, package):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":" + SYSTEM_PATH)
    if path is None:
        raise Missing(f"{name} is missing (Debian: {package})")
    return path


def static_busybox():
    """Its bytes; it runs where there is no other file."""
    path = program("busybox", "busybox-static")
    with open(path, "rb") as file:
        data = file.read()
    table = int.from_bytes(data[32:40], "little")
    size = int.from_bytes(data[54:56], "little")
    for i in range(int.from_bytes(data[56:58], "little")):
        if data[table + i * size:table + i * size + 4] == b"\3\0\0\0":  # PT_INTERP
            raise Missing(f"{path} needs shared libraries (Debian: busybox-static)")
    return data
