# SPDX-License-Identifier: Apache-2.0
#
# lists_test.py CARILLON_BREAKDOWN: every layout of Bruck's all-to-all, with every way to handle memory,
# by put and by send and receive, of 8 ranks on 4 soft-RoCE devices: answers are right (the program
# checks them), and what the layouts have as lists is what the devices are given.
import json
import subprocess
import sys
import unittest
from pathlib import Path

import guests
import kernel
from host import Missing

DEVICES = Path(__file__).resolve().parents[2] / "benchmarks/gainaru2016/devices"
SKIPPED = 77
RANKS, STEPS, BYTES = 8, 3, 512
PROGRAM = None


def steps():
    """The indices that go in each step: those with its bit."""
    return [[j for j in range(RANKS) if j >> step & 1] for step in range(STEPS)]


def runs(places):
    """How many runs of blocks that lie together, in this order."""
    return 1 + sum(b != a + 1 for a, b in zip(places, places[1:]))


def entries(layout):
    """Of all steps of a rank, the mean of the ranks; None: it has lists of several buffers."""
    if layout == "inplace":
        return sum(runs(indices) for indices in steps())
    if layout == "reversed":  # places count from the rank on, around the team
        return sum(runs([(rank + j) % RANKS for j in indices])
                   for rank in range(RANKS) for indices in steps()) / RANKS
    return None


class Lists(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        command = [sys.executable, str(DEVICES), "--program", PROGRAM, "--json", "--ranks", str(RANKS),
                   "--sizes", str(BYTES)]
        cls.rows = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)

    def test_all_are_there_over_verbs(self):
        self.assertEqual(len({row["asked"] for row in self.rows}), 4 * 3 * 2)
        for row in self.rows:
            self.assertTrue(row["network"].startswith("verbs"), row)

    def test_each_step_is_one_work_request_and_no_byte_is_copied_for_it(self):
        for row in self.rows:
            self.assertEqual((row["gathered"], row["posts"], row["sent_copied_bytes"]),
                             (STEPS, STEPS, 0), row["asked"])

    def test_lists_are_as_long_as_the_layout_says(self):
        for row in self.rows:
            layout = row["asked"].partition("bruck_")[2].partition(":")[0]
            with self.subTest(row["asked"]):
                if "memory=pack" in row["asked"]:
                    self.assertEqual(row["entries"], STEPS)
                elif entries(layout) is None:
                    self.assertGreater(row["entries"], entries("inplace"))
                else:
                    self.assertAlmostEqual(row["entries"], entries(layout), delta=0.01)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    try:
        guests.check_host()
        kernel.prepared()
    except Missing as missing:
        print(f"skipped: no virtual machine: {missing}")
        sys.exit(SKIPPED)
    unittest.main()
