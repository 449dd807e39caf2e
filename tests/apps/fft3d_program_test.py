# SPDX-License-Identifier: Apache-2.0
#
# The program fft3d: what it prints, what it refuses, under `carillon run` and in a recording.
import os
import re
import subprocess

from support import CliTest, Done, clean_environment, main, run

FFT3D = os.environ["FFT3D"]
MPI = os.environ["FFT3D_MPI"]
PHASES = ["transform_us", "pack_us", "exchange_us", "unpack_us"]


class Program(CliTest):
    def fft3d(self, ranks, *words, options=()):
        return self.ok("run", "--mpi", MPI, "-n", ranks, *options, FFT3D, *words, "--estimate",
                       "--iterations", 2, CARILLON_JOIN_TIMEOUT_S="60")

    def check_times(self, times, directions):
        total = sum(times[name] for name in directions)
        self.assertGreater(total, 0)
        for name in [*directions, *PHASES]:
            self.assertGreaterEqual(times[name], 0)

    def test_json(self):
        row = self.fft3d(3, "9x5x6", "--compare", "--check", "--json", "--slices", 3).json
        self.assertEqual((row["grid"], row["ranks"], row["process_grid"]), ([9, 5, 6], 3, [3, 1]))
        self.assertEqual((row["field"], row["precision"], row["direction"]),
                         ("real", "double", "both"))
        self.assertEqual(list(row["methods"]), ["blocking", "overlapped"])
        for method in row["methods"].values():
            for who in ["slowest", "mean"]:
                self.check_times(method[who], ["forward_us", "backward_us"])
        overlapped = row["methods"]["overlapped"]
        self.assertEqual((overlapped["slices"], overlapped["window"], overlapped["tests"]),
                         (3, 2, 0))
        for share in [overlapped["overlap"], overlapped["overlap_limit"]]:
            self.assertGreaterEqual(share, 0)
            self.assertLessEqual(share, 1)
        self.assertGreater(overlapped["mean"]["exchange_alone_us"], 0)
        self.assertGreater(row["blocking_to_overlapped"], 0)
        check = row["check"]
        self.assertTrue(check["passed"])
        self.assertLessEqual(max(check["forward_error"], check["backward_error"]), check["bound"])
        self.assertLess(check["bound"], 1e-13)

    def test_one_direction(self):
        for direction in ["forward", "backward"]:
            row = self.fft3d(2, "4x6x10", "--direction", direction, "--field=complex", "--overlap",
                             "--precision=single", "--tests", 2, "--alloc-mem", "--plain",
                             "--decomposition", "pencil", "--process-grid", "1x2", "--check",
                             "--json").json
            self.assertEqual((row["direction"], row["process_grid"]), (direction, [1, 2]))
            self.assertTrue(row["check"]["passed"])
            method = row["methods"]["overlapped"]
            self.check_times(method["slowest"], [direction + "_us"])
            self.assertEqual(len(method["slowest"]), 6)
            self.assertIsNone(method["overlap"])
            # That error is not there which belongs to the other direction.
            other = "backward" if direction == "forward" else "forward"
            self.assertEqual(row["check"][other + "_error"], 0)

    def test_text(self):
        lines = self.fft3d(2, 8, "--compare", "--check").out.splitlines()
        self.assertRegex(lines[0], "^fft3d 8x8x8, real, double precision, slabs of 2x1 ranks")
        for title in ["total", "  forward", "  backward", "transform", "pack", "exchange, wait",
                      "unpack"]:
            row = [line for line in lines if re.match(title + r" +[\d.]", line)]
            self.assertEqual(len(row), 1, (title, lines))
            self.assertEqual(len(re.findall(r"\d+\.\d{3}", row[0])), 4)
        self.assertRegex(lines[-1], "^check: right; ")

    def test_one_rank_exchanges_nothing(self):
        row = self.fft3d(1, "3x4x5", "--compare", "--check", "--json").json
        for method in row["methods"].values():
            self.assertEqual(method["slowest"]["exchange_us"], 0)
        self.assertIsNone(row["methods"]["overlapped"]["overlap"])

    def test_carillon_takes_the_exchanges(self):
        # Two a run, of 4 slices if overlapped; one warm-up and two iterations.
        runs = 2 * 3
        for words, name, calls in [([], "Alltoallv", runs), (["--overlap", "--plain"],
                                                             "Ialltoallv", 4 * runs)]:
            done = self.fft3d(2, 8, *words, options=["--stats"])
            rows = [line.split() for line in done.err.splitlines() if f" {name} " in line]
            self.assertEqual(rows, [[name, str(calls), "0"]], done.err)

    def test_recorded(self):
        path = self.folder / "fft3d.program"
        self.fft3d(4, "8x6x10", "--overlap", "--plain", "--decomposition", "pencil",
                   options=["--record", path])
        row = self.ok("sim", "--program", path, "--json").json
        self.assertEqual(row["ranks"], 4)
        # Of 2 rows and 2 columns, forward and backward, 3 times. The first exchange has slices of
        # axis 0, 4 planes on each rank; the second one of axis 2: 6 are 3 on each rank.
        self.assertEqual(row["collectives"]["alltoallv"]["calls"], 2 * 2 * 3 * (4 + 3))
        self.assertEqual(row["other_calls"], 0)

    def refused(self, pattern, *words, ranks=0):
        """Without a launcher, unless there are to be ranks."""
        command = [FFT3D, *map(str, words)]
        if ranks > 0:
            done = run("run", "--mpi", MPI, "-n", ranks, *command)
        else:
            process = subprocess.run(command, capture_output=True, text=True, timeout=60,
                                     env=clean_environment({}))
            done = Done(process)
        self.assertEqual((done.status, done.out), (2, ""), done.err)
        lines = [line for line in done.err.splitlines() if line.startswith("fft3d: ")]
        self.assertEqual(len(lines), 1, done.err)
        self.assertRegex(lines[0], pattern)

    def test_refused(self):
        self.refused("grid is missing")
        self.refused("no such option", 8, "--slizes", 3)
        self.refused("slices 0: use a number from 1 to", 8, "--overlap", "--slices", 0)
        self.refused("slices 3x: use a number", 8, "--overlap", "--slices", "3x")
        self.refused("means nothing without", 8, "--slices", 3)
        self.refused("means nothing without", 8, "--process-grid", "1x2")
        self.refused("is not of 2 ranks", 8, "--decomposition", "pencil", "--process-grid", "2x2",
                     ranks=2)
        self.refused("its value is missing", 8, "--precision")
        self.refused("takes no value", 8, "--json=yes")

    def test_grids_refused(self):
        for grid, why in [("0", "numbers from 1"), ("8x8", "numbers from 1"), ("8x8x8x8", "numbers"),
                          ("99999999999999999999", "numbers"), ("100000", "too large")]:
            self.refused(why, grid)
        self.refused("there is a grid already", 8, 8)
        # 2 GiPoints a rank are more than MPI counts, unless in slices.
        self.refused("use more ranks, or --overlap", "4096x2048x2048", ranks=2)


if __name__ == "__main__":
    main()
