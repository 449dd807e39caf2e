#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# What programs of sessions say and leave behind: counts, recordings, what does not fit, and the line
# about groups that cannot be served.
#
#   session_outputs.py --carillon build/bin/carillon --launcher mpiexec \
#       --library libcarillon_mpich.so --program session_test
import argparse
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ARGS = None


def launch(ranks, *words, **settings):
    """A job of the program, whose ranks have these CARILLON_ settings."""
    pairs = [f"LD_PRELOAD={ARGS.library}"]
    pairs += [f"CARILLON_{name}={value}" for name, value in settings.items()]
    done = subprocess.run([ARGS.launcher, "-n", str(ranks), "env", *pairs, ARGS.program, *words],
                          capture_output=True, text=True, timeout=200, check=False)
    done.said = [line for line in done.stderr.splitlines() if line.startswith("carillon: ")]
    return done


class Outputs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "recorded"

    def test_counts(self):
        done = launch(3, STATS=1)
        self.assertEqual((done.returncode, done.said),
                         (0, ["carillon: collectives of rank 0 of 3"]), done.stderr)
        # Of each communicator two, of which the MPI of those without MPI_Init may have one.
        self.assertRegex(done.stderr, r"\n  Allreduce +8 +0\n")
        self.assertRegex(done.stderr, r"\n  Barrier +4 +0\n")

    def test_off_on_one_is_said_of_what_is_left(self):
        done = launch(3, "off")  # the others have a communicator of their own, which is taken
        line = ("carillon: a communicator of 3 processes is left to the MPI, because CARILLON=off "
                "on rank 0")
        self.assertEqual((done.returncode, done.said), (0, [line]), done.stderr)

    def test_at_each_end(self):
        done = launch(2, "held", STATS=1)
        taken = [int(row) for row in re.findall(r"\n  Barrier +(\d+) ", done.stderr)]
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(taken), 8)
        self.assertEqual(taken, sorted(taken))

    def test_what_does_not_fit(self):
        done = launch(3, "wrong", CHECK=1)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "carillon: check: call 1 on .* \\(3 ranks\\): rank [12] does "
                                      "not fit with rank 0: another root")

    def test_checked_to_the_end(self):
        for words in (["held"], ["mixed"]):
            done = launch(3, *words, CHECK=1)
            self.assertEqual((done.returncode, done.said), (0, []), done.stderr)

    def test_recorded(self):
        done = launch(3, "held", RECORD=self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        read = subprocess.run([ARGS.carillon, "sim", "--program", self.file], capture_output=True,
                              text=True, check=False)
        self.assertEqual(read.returncode, 0, read.stderr)
        lines = self.file.read_text().splitlines()
        self.assertIn("ranks 3", lines)
        ranks = [line.split()[1] for line in lines if line.startswith("rank ")]
        self.assertEqual(ranks, ["0", "1", "2"])

    def test_of_parts_there_is_no_recording(self):
        done = launch(4, "halves", RECORD=self.file)
        line = ("carillon: nothing is recorded of 2 of 4 processes: that begins with a "
                "communicator of all")
        self.assertEqual((done.returncode, done.said), (0, [line] * 2), done.stderr)
        self.assertFalse(self.file.exists())

    def test_too_many_groups_are_said_once(self):
        done = launch(7, "held")
        said = re.findall(r"are left to the MPI: (rank \d+) is in 8 groups", done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(said), 0)
        self.assertEqual(len(said), len(set(said)), done.stderr)


def main():
    global ARGS  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    for name in ("carillon", "launcher", "library", "program"):
        parser.add_argument(f"--{name}", required=True, type=os.path.abspath)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
