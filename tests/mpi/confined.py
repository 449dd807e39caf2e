#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""confined.py one-core|small-shm|small-files|little-space COMMAND...: runs a job with less than a machine usually gives."""
import os
import resource
import subprocess
import sys

SKIPPED = 77
SHM_MIB = 64
FILE_BYTES = 32 << 30
SPACE_BYTES = 100 << 30  # one shared heap of the default length, and not two
# Run in a mount namespace of its own, whose /dev/shm nobody else sees.
MOUNT = (f"mount --make-rprivate / && mount -t tmpfs -o size={SHM_MIB}m none /dev/shm && "
         'exec "$0" "$@"')


def skip(why):
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(SKIPPED)


def own_file_system():
    """The words that put a command behind a small /dev/shm: with rights, or as a user who is root
    in a namespace only."""
    for rights in (["-m"], ["-r", "-m"]):
        words = ["unshare", *rights, "sh", "-c", MOUNT]
        try:
            done = subprocess.run([*words, "df", "-m", "--output=size", "/dev/shm"],
                                  capture_output=True, text=True, check=False)
        except FileNotFoundError:
            skip("there is no unshare")
        if done.returncode == 0 and done.stdout.split()[-1] == str(SHM_MIB):
            return words
    return skip(f"no mount namespace to be had here: {done.stderr.strip()}")


def main(how, command):
    if how == "one-core":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    elif how == "small-files":  # ulimit -f
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    elif how == "little-space":  # ulimit -v
        resource.setrlimit(resource.RLIMIT_AS, (SPACE_BYTES, SPACE_BYTES))
    elif how == "small-shm":
        command = own_file_system() + command
    else:
        sys.exit(__doc__)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
