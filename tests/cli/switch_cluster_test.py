#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# MPI programs on virtual clusters whose switch reduces: right results, and one copy of the data up
# and one down per node. Only root can do that. Run by hand with --print it says how long allreduces
# take, through the switch and by the hosts' algorithms, and how busy the cores were.
import json
import os
import sys
import unittest
from pathlib import Path

from support import CliTest, has_rtl, main, may_make_clusters, run

PROBES = Path(os.environ.get("CLUSTER_PROBES", "build/tests")).resolve()
PROBE = PROBES / "switch_probe-openmpi"
PRINT = "--print" in sys.argv
HOSTS = ("recursive_doubling", "ring", "reduce_scatter_allgather", "flat_blocks")


class SwitchCluster(CliTest):
    def setUp(self):
        super().setUp()
        if not may_make_clusters():
            self.skipTest("needs root")
        self.key = self.folder / "switch.key"
        self.ok("switchd", "--new-key", self.key)

    def play(self, *words, options=(), **environment):
        done = run("cluster", "run", *options, "--json", "--mpi", "openmpi", "--", PROBE, *words,
                   CARILLON_NETWORK="fabric", **environment)
        self.assertEqual(done.status, 0, done.out + done.err)
        self.assertNotIn("do without a switch", done.err)
        return done.out.splitlines(), json.loads(done.err.splitlines()[-1])

    def test_results_are_right(self):
        for shape in ("1,1,1,1,1", "3,1,2"):
            said, _ = self.play(10, options=("--shape", shape, "--switch", self.key),
                                CARILLON_ALGORITHM="allreduce=switch")
            ranks = sum(map(int, shape.split(",")))
            self.assertEqual(sorted(line for line in said if line.startswith("rank ")),
                             [f"rank {rank} of {ranks}, errors 0, allreduce.switch"
                              for rank in range(ranks)])

    @unittest.skipUnless(has_rtl(), "built without Verilator")
    def test_results_of_the_hardware_are_right(self):
        said, _ = self.play(3, "short", options=("--shape", "1,2,1", "--switch", self.key,
                                                 "--switch-engine", "rtl"),
                            CARILLON_ALGORITHM="allreduce=switch")
        self.assertEqual(sorted(line for line in said if line.startswith("rank ")),
                         [f"rank {rank} of 4, errors 0, allreduce.switch" for rank in range(4)])

    def test_each_node_sends_one_copy(self):
        nodes, count = 5, 100000
        bytes_up, bytes_down = [], []
        for calls in (1, 11):
            _, summary = self.play("time", count, calls,
                                   options=("--nodes", nodes, "--switch", self.key),
                                   CARILLON_ALGORITHM="allreduce=switch")
            bytes_up.append(summary["wire_bytes"])
            bytes_down.append(summary["wire_bytes_down"])
        packets = -(-count * 8 // 1408)
        least = 10 * nodes * (count * 8 + packets * 80)
        for counts in (bytes_up, bytes_down):
            self.assertGreaterEqual(counts[1] - counts[0], least)
            # Packets that are sent again, on a busy machine, and what else the job says.
            self.assertLessEqual(counts[1] - counts[0], 1.2 * least)

    @unittest.skipUnless(PRINT, "prints times")
    def test_times(self):
        for nodes, rate in ((8, "50mbit"), (16, "20mbit")):
            for size in (8, 256, 16384, 131072, 1048576):
                calls = 20 if size < 16384 else 3
                times = {}
                for way in ("switch", *HOSTS):
                    options = ["--nodes", nodes, "--rate", rate]
                    options += ["--switch", self.key] if way == "switch" else []
                    said, summary = self.play("time", size // 8, calls, options=options,
                                              CARILLON_ALGORITHM=f"allreduce={way}")
                    times[way] = float(said[0].split()[1]), summary["busy_percent"]
                best = min(HOSTS, key=times.get)
                bound = 2 * (nodes - 1) / nodes * (1408 / 1488) / (1448 / 1538)
                print(f"{nodes}x1 {rate} {size} B: switch {times['switch'][0]:.0f} us "
                      f"({times['switch'][1]:.0f} % busy), {best} {times[best][0]:.0f} us "
                      f"({times[best][1]:.0f} % busy): {times[best][0] / times['switch'][0]:.2f} "
                      f"times, bound {bound:.2f}", flush=True)


if __name__ == "__main__":
    if PRINT:
        sys.argv.remove("--print")
    if not PROBE.exists():
        raise SystemExit("no Open MPI to run with")
    main()
