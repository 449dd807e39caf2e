#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Every setting on one rank of four only: nothing is corrupted, nothing hangs, and all ranks do
# alike, on one node and on several. To save launches, each rank has another setting.
#
#   settings_test.py --mpi ompi|mpich --launcher mpirun --library libcarillon_ompi.so \
#       --carillon build/bin/carillon --program settings_test
import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ARGS = None
RANKS = 4
# What all ranks have, and from how many doubles per block on nothing is tried.
SHAPES = {"one node": ({}, 300001), "two nodes": ({"CARILLON_NODE_RANKS": "2,2"}, 9001)}

# Values that are not the default and that a rank alone may have: the calls are taken.
TAKEN = {
    "CARILLON": ["on"],
    "CARILLON_ALGORITHM": [
        "allreduce=ring;bcast=binomial;alltoall=pairwise;scan=recursive_doubling",
        "allreduce=degree_k:k=4;reduce_scatter_block=recursive_halving;gather=binomial"],
    "CARILLON_CHECK": ["on"],
    "CARILLON_CROSS_PS": ["0"],
    "CARILLON_CROWDED": ["0", "1"],
    "CARILLON_DEAD_PEER_MS": ["10"],
    "CARILLON_DOMAIN_RANKS": ["1,1,1,1"],
    "CARILLON_FAULT": ["delay=0.05,seed=7"],
    "CARILLON_FETCH_BYTES": ["0", "1"],
    "CARILLON_GATHER_BYTES": ["0"],
    "CARILLON_GATHER_ENTRIES": ["0", "3"],
    "CARILLON_HANDED_CHUNKS": ["0", "1", "16"],
    "CARILLON_HEAP_MIB": ["0"],
    "CARILLON_JOIN_TIMEOUT_S": ["300"],
    "CARILLON_LEND_BYTES": ["0", "1"],
    "CARILLON_LOG": ["off"],
    "CARILLON_MACHINE": ["another"],
    "CARILLON_MERGED": ["on"],
    "CARILLON_MULTICAST": ["off", "udp"],
    "CARILLON_MULTICAST_JOIN_S": ["1"],
    "CARILLON_NODE_RANKS": ["1,3", "rr:2"],
    "CARILLON_PLACE_BYTES": ["1"],
    "CARILLON_POOL_MIB": ["0", "16"],
    "CARILLON_RECORD": ["FOLDER/record"],
    "CARILLON_REPRODUCIBLE": ["1"],
    "CARILLON_SERVLET": ["on", "auto"],
    "CARILLON_SHARED_HEAP_MIB": ["1"],
    "CARILLON_SLOT_BYTES": ["1024", "262144"],
    "CARILLON_SPIN_US": ["0"],
    "CARILLON_STATS": ["FOLDER/stats"],
    "CARILLON_SURVEYS": ["on", "off"],
    "CARILLON_SWITCH": ["127.0.0.1:9"],  # where there is none
    "CARILLON_SWITCH_KEY": ["/dev/null"],
    "CARILLON_TRACE": ["FOLDER/trace"],
    "CARILLON_UNCACHED_BYTES": ["0", "1"],
    "CARILLON_VERIFY": ["1"],
    "CARILLON_WATCHDOG": ["20s"],
}


# One rank is enough to leave all calls to the MPI.
LEFT = [("one node", {"CARILLON": "off"}), ("two nodes", {"CARILLON": "off"}),
        ("two nodes", {"CARILLON_NETWORK": "off"})]


class Settings(unittest.TestCase):
    def launch(self, fate, shape, settings):
        """A job whose rank i has settings[i] besides what all have."""
        for_all, limit = SHAPES[shape]
        command = [ARGS.launcher]
        if ARGS.mpi == "ompi":
            command.append("--oversubscribe")
        with tempfile.TemporaryDirectory() as folder:
            for rank, own in enumerate(settings):
                variables = {"LD_PRELOAD": ARGS.library, **for_all, **own}
                pairs = [f"{name}={value.replace('FOLDER', folder)}"
                         for name, value in variables.items()]
                command += ([":"] if rank else []) + ["-n", "1", "env", *pairs, ARGS.program, fate,
                                                      str(limit)]
            kept = {k: v for k, v in os.environ.items()
                    if not k.startswith(("CARILLON", "LD_PRELOAD"))}
            done = subprocess.run(command, env=kept, capture_output=True, text=True, timeout=100,
                                  check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_setting_is_here(self):
        said = subprocess.run([ARGS.carillon, "info", "--config", "--json"], capture_output=True,
                              text=True, check=True)
        names = {row["name"] for row in json.loads(said.stdout)["settings"]}
        self.assertEqual(names, set(TAKEN).union(*(own for _, own in LEFT)))

    def test_taken(self):
        pairs = [(name, value) for name, values in TAKEN.items() for value in values]
        for shift, shape in enumerate(SHAPES):
            for first in range(0, len(pairs), RANKS):
                settings = [{} for _ in range(RANKS)]
                for i, (name, value) in enumerate(pairs[first:first + RANKS]):
                    settings[(i + shift) % RANKS] = {name: value}
                with self.subTest(shape, settings=settings):
                    self.launch("taken", shape, settings)

    def test_left(self):
        for rank, (shape, own) in enumerate(LEFT):
            with self.subTest(shape, own=own):
                settings = [{} for _ in range(RANKS)]
                settings[rank] = own
                self.launch("left", shape, settings)


def main():
    global ARGS  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpi", choices=["ompi", "mpich", "mpiabi"], required=True)
    parser.add_argument("--library", required=True)
    for name in ("launcher", "carillon", "program"):
        parser.add_argument(f"--{name}", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
