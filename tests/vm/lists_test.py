# SPDX-License-Identifier: Apache-2.0
#
# lists_test.py CARILLON_BREAKDOWN: every layout of Bruck's all-to-all, with every way to handle memory,
# by put and by send and receive, of 8 ranks on 4 soft-RoCE devices: answers are right (the program
# checks them), what the layouts have as lists is what the devices are given, and what they need not
# copy for it is counted. And with lists at both ends.
import json
import subprocess
import sys
import unittest
from pathlib import Path

from begin import begin

DEVICES = Path(__file__).resolve().parents[2] / "benchmarks/gainaru2016/devices"
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


def landing_entries(layout):
    """The same of where blocks land."""
    if layout == "resident":  # each message in one range
        return STEPS
    if layout != "zerocopy":  # where the same step's blocks were
        return entries(layout)
    # With an odd number of steps left in the second buffer, by index, else in the output.
    def place(rank, step, j):
        left = bin(j >> step).count("1") - 1
        return 2 * RANKS + j if left % 2 else (rank + j) % RANKS
    return sum(runs([place(rank, step, j) for j in indices])
               for rank in range(RANKS) for step, indices in enumerate(steps())) / RANKS


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


class ListsAtBothEnds(unittest.TestCase):
    # A message that its reader has not asked for in a tenth of a second, when its bytes are to be
    # overwritten, is copied: guests are slow enough for some. Such are not posted as lists.
    @classmethod
    def setUpClass(cls):
        cls.rows = measured("--place-bytes", "1", "--transfers", "sendrecv")

    def each(self, memories=("gather", "selective")):
        for layout in ("inplace", "resident", "reversed", "zerocopy"):
            for memory in memories:
                yield layout, named(self.rows, layout, memory, "sendrecv")

    def late(self, row):
        """How many messages of a call were copied so."""
        calls = RANKS * row["calls"]
        return round((row["gathered"] - row["posts"]) * calls) / calls

    def test_each_step_is_one_receive(self):
        for _, row in self.each(("pack", "gather", "selective")):
            self.assertTrue(row["network"].startswith("verbs"), row)
            self.assertEqual(row["placed"], STEPS, row["asked"])

    def test_receives_have_as_many_entries_as_the_layout_says(self):
        for layout, row in self.each():
            self.assertAlmostEqual(row["placed_entries"], landing_entries(layout), msg=row["asked"],
                                   delta=0.01)

    def test_so_have_sends_but_for_what_the_same_step_overwrites(self):
        for layout, row in self.each():
            if layout in ("inplace", "reversed"):
                self.assertEqual((row["posts"], row["entries"]), (0, 0), row["asked"])
            else:
                self.assertEqual(row["gathered"], STEPS, row["asked"])
                self.assertGreater(row["posts"], STEPS / 2, row["asked"])
                longest = self.late(row) * RANKS / 2
                self.assertLessEqual(row["entries"], entries(layout) + 0.01, row["asked"])
                self.assertGreaterEqual(row["entries"], entries(layout) - longest - 0.01, row["asked"])

    def test_nothing_is_copied_but_what_the_layout_must(self):
        sent = sum(len(indices) for indices in steps()) * BYTES
        for layout, row in self.each():
            # What is rotated, turned or sorted; of zerocopy a rank's block for itself.
            moved = {"inplace": 2 * RANKS, "zerocopy": 1}.get(layout, RANKS) * BYTES
            hasty = layout in ("inplace", "reversed")
            copied = sent if hasty else self.late(row) * sent / STEPS
            self.assertEqual((row["sent_copied_bytes"], row["copied_bytes"]),
                             (copied, moved + copied), row["asked"])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    begin()
    unittest.main()
