# SPDX-License-Identifier: Apache-2.0
#
# lists_test.py CARILLON_BREAKDOWN: every layout of Bruck's all-to-all, with every way to handle memory,
# by put and by send and receive, of 8 ranks on 4 soft-RoCE devices: answers are right (the program
# checks them), what the layouts have as lists is what the devices are given, and what they need not
# copy for it is counted.
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
    """Of all steps of a rank, the mean of the ranks."""
    if layout == "inplace":
        return sum(runs(indices) for indices in steps())
    if layout == "reversed":  # places count from the rank on, around the team
        return sum(runs([(rank + j) % RANKS for j in indices])
                   for rank in range(RANKS) for indices in steps()) / RANKS
    if layout == "resident":  # in step 2: 4 is the input's, 5 came in step 0, 6 and 7 in step 1
        return 4 + 4 + 3
    return 4 + 4 + 2  # in step 2: 4 is the input's, the others lie together


def measured(*words):
    command = [sys.executable, str(DEVICES), "--program", PROGRAM, "--json", "--ranks", str(RANKS),
               "--sizes", str(BYTES), *words]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def named(rows, layout, memory, transfer="put"):
    """The row of that algorithm."""
    name = f"alltoall.bruck_{layout}:memory={memory},transfer={transfer}"
    return next(row for row in rows if row["asked"] == name)


class Lists(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = measured()

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
                expected = STEPS if "memory=pack" in row["asked"] else entries(layout)
                self.assertAlmostEqual(row["entries"], expected, delta=0.01)

    def test_lists_save_the_copies_of_packing(self):
        packed = sum(len(indices) for indices in steps()) * BYTES
        for layout in ("inplace", "resident", "reversed", "zerocopy"):
            pack, gather, selective = (named(self.rows, layout, memory)["copied_bytes"]
                                       for memory in ("pack", "gather", "selective"))
            with self.subTest(layout):
                self.assertEqual(pack - gather, packed)
                self.assertEqual(selective, gather)

    def test_one_call_packs_a_step_and_gathers_another(self):
        # An entry costs what a run of 1,000 bytes does, 85 ns: three more of them, in the first step,
        # cost more than its copy (10 + 4 x 5 + 2,048 x 0.08 ns), one more in the second does not.
        rows = measured("--run-bytes", "1000", "--transfers", "put")
        selective = named(rows, "inplace", "selective")
        self.assertEqual((selective["gathered"], selective["posts"], selective["entries"]),
                         (STEPS, STEPS, 1 + 2 + 1))
        self.assertEqual(selective["sent_copied_bytes"], 0)
        copied = named(self.rows, "inplace", "gather")["copied_bytes"]
        self.assertEqual(selective["copied_bytes"] - copied, RANKS / 2 * BYTES)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    try:
        guests.check_host()
        kernel.prepared()
    except Missing as missing:
        print(f"skipped: no virtual machine: {missing}")
        sys.exit(SKIPPED)
    unittest.main()
