#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""on_cluster.py CARILLON SHAPE MPI PROGRAM: runs an MPI program on a virtual cluster."""
import subprocess
import sys

SKIPPED = 77


def main(carillon, shape, mpi, program):
    cluster = [carillon, "cluster"]
    trial = subprocess.run([*cluster, "exec", "--nodes", "2", "--", "true"], capture_output=True,
                           text=True, check=False)
    if trial.returncode != 0:
        print(f"skipped: no virtual cluster can be made here: {trial.stderr.strip()}",
              file=sys.stderr)
        return SKIPPED
    return subprocess.run([*cluster, "run", "--shape", shape, "--mpi", mpi, "--", program],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
