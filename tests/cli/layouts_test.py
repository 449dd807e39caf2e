# SPDX-License-Identifier: Apache-2.0
#
# benchmarks/gainaru2016/layouts: a row for every layout and every length from 8 bytes to 1 KiB that
# docs/gainaru2016.md has, of real calls whose answers are right.
import re
import subprocess
import sys
from pathlib import Path

from support import CARILLON, CliTest, main

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks/gainaru2016/layouts"
LAYOUTS = ["inplace", "resident", "reversed", "zerocopy"]


class Layouts(CliTest):
    def rows(self, *options):
        command = [sys.executable, str(BENCHMARK), "--carillon", str(CARILLON), "--ppn", "2",
                   "--rounds", "2", "--iterations", "2", *options]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertIn("1 x 2 ranks", lines[0])
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[3:-1]]
        self.check_summary(rows, lines[-1])
        return rows

    def check_summary(self, rows, line):
        lows = [float(re.search(r"\[(\S+) ", row[8]).group(1)) for row in rows]
        told, count = map(int, re.search(r"in (\d+) of (\d+) rows$", line).groups())
        self.assertEqual(count, len(rows))
        # As printed, of two digits; 1.00 may be either.
        self.assertLessEqual(sum(low < 1 for low in lows), told)
        self.assertLessEqual(told, sum(low <= 1 for low in lows))

    def test_every_length_and_layout(self):
        rows = self.rows()
        self.assertEqual([(int(row[0]), row[1]) for row in rows],
                         [(size, layout) for size in (8, 64, 256, 1024) for layout in LAYOUTS])
        for row in rows:
            pack, gather, selective, lists, call = map(float, row[2:7])
            self.assertGreaterEqual(min(pack, gather, selective), 0)  # some copy a few bytes only
            self.assertGreater(call, 0)
            self.assertEqual(lists, 0, "there is no network within a node")

    def test_lengths_that_are_asked_for(self):
        self.assertEqual([(row[0], row[1]) for row in self.rows("--sizes", "256")],
                         [("256", layout) for layout in LAYOUTS])


if __name__ == "__main__":
    main()
