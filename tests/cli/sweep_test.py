# SPDX-License-Identifier: Apache-2.0
#
# benchmarks/gainaru2016/sweep: every point of ranks, bytes and longest lists is there, with what
# carillon sim says of it, and the quickest is named.
import subprocess
import sys
from pathlib import Path

from support import CARILLON, CliTest, main

SWEEP = Path(__file__).resolve().parents[2] / "benchmarks/gainaru2016/sweep"
LAYOUTS = ["inplace", "resident", "reversed", "zerocopy"]


class Sweep(CliTest):
    def rows(self):
        """{(ranks, bytes, entries): (us of pairwise exchange, {layout: (us, radix)}, best, saved %)}"""
        command = [sys.executable, str(SWEEP), "--carillon", str(CARILLON), "--ranks", "5,64",
                   "--bytes", "8,512", "--entries", "4,64", "--radixes", "2,4"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        rows = {}
        for line in lines[1:]:
            words = line.replace("r=", "").split()
            layouts = {layout: (float(words[4 + 2 * i]), int(words[5 + 2 * i]))
                       for i, layout in enumerate(LAYOUTS)}
            rows[tuple(map(int, words[:3]))] = (float(words[3]), layouts, words[12:-2],
                                                float(words[-2]))
        return rows

    def sim_us(self, algorithm, point):
        ranks, size, entries = point
        out = self.ok("sim", "alltoall", "-a", algorithm, "--machine", "edr", "-n", ranks, "--bytes",
                      size, "--gather-entries", entries, "--ppn", 1, "--json").json
        return out["latency_us"]

    def test_every_point(self):
        rows = self.rows()
        self.assertEqual(set(rows), {(ranks, size, entries) for ranks in (5, 64)
                                     for size in (8, 512) for entries in (4, 64)})
        for pairwise, layouts, best, saved in rows.values():
            layout = min(layouts, key=lambda name: layouts[name][0])
            us, radix = layouts[layout]
            self.assertEqual(best, ["pairwise"] if pairwise <= us else [layout, str(radix)])
            self.assertGreaterEqual(saved, 0)
        for layout in LAYOUTS:
            point = (64, 512, 64)
            us, radix = rows[point][1][layout]
            self.assertAlmostEqual(us, self.sim_us(f"bruck_{layout}:k={radix}", point), delta=0.006)
        self.assertNotEqual(rows[64, 512, 4][1], rows[64, 512, 64][1])


if __name__ == "__main__":
    main()
