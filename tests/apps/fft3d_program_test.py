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
            rows = [line.split() for line in done.err.splitlines() if line.startswith(f"  {name} ")]
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

    def steps(self, text):
        """Of each rank: what it starts, with members and bytes written out and times left out,
        each with the number of starts before its end is waited for."""
        teams, calls, steps, ids = {}, {}, {}, {}
        values = lambda word: [int(value) for part in word.split(",") for value in
                               [part.partition("x")[0]] * int(part.partition("x")[2] or 1)]
        ranks_in = lambda word: [rank for part in word.split(",") for first, _, last in
                                 [part.partition(":")[0].partition("-")] for rank in
                                 range(int(first), int(last or first) + 1,
                                       int(part.partition(":")[2] or 1))]
        lines = [line.split() for line in text.splitlines()]
        count = next(int(words[1]) for words in lines if words[0] == "ranks")
        world = list(range(count))
        for words in lines:
            if words[0] == "team":
                teams[words[1]] = [ranks_in(words[2])]
            elif words[0] == "teams" and words[2] == "blocks":
                n = int(words[3])
                teams[words[1]] = [world[first:first + n] for first in range(0, count, n)]
            elif words[0] == "teams":
                teams[words[1]] = [world[first::int(words[3])] for first in range(int(words[3]))]
            elif words[0] == "call":
                calls[words[1]] = (words[2], dict(word.split("=") for word in words[3:]))
            elif words[0] == "rank":
                ranks = world if words[1] == "all" else ranks_in(words[1])
            elif words[0] in ["start", "do"]:
                kind, named = calls[words[1]]
                for rank in ranks:
                    ids[rank, words[-1]] = len(steps.setdefault(rank, []))
                    members = next(team for team in teams.get(named.get("team"), [world])
                                   if rank in team)
                    tables = [values(named[key]) for key in ["send", "recv"] if key in named]
                    steps[rank].append([words[0], kind, members, tables, len(steps[rank]) + 1])
            elif words[0] == "wait":
                for rank in ranks:
                    steps[rank][ids[rank, words[1]]][-1] = len(steps[rank])
        return steps

    def test_the_program_of_other_ranks_is_what_they_do(self):
        path = self.folder / "fft3d.program"
        for words in [["8x6x10", "--overlap", "--decomposition", "pencil"],
                      ["7x9x11", "--overlap", "--slices", 3, "--window", 3, "--field=complex"],
                      ["5x13x8", "--decomposition", "pencil", "--precision", "single"],
                      ["5x7x6", "--overlap", "--decomposition", "pencil", "--process-grid", "1x4",
                       "--direction", "backward"]]:
            words += ["--plain", "--estimate", "--warmups", 0, "--iterations", 1]
            self.ok("run", "--mpi", MPI, "-n", 4, "--record", path, FFT3D, *words,
                    CARILLON_JOIN_TIMEOUT_S="60")
            recorded = self.steps(path.read_text())
            told = subprocess.run([FFT3D, *map(str, words), "--program-of", "4"], text=True,
                                  capture_output=True, timeout=60, check=True,
                                  env=clean_environment({})).stdout
            self.assertEqual(len(recorded), 4)
            for rank, steps in self.steps(told).items():
                # Before them are the options, behind them the times of all ranks.
                first = next(i for i, step in enumerate(recorded[rank]) if step[1] == "barrier")
                done = recorded[rank][first:first + len(steps)]
                self.assertEqual([step[:-1] for step in done], [step[:-1] for step in steps], words)
                # A recording has ends where the program heard of them: before its own wait, too.
                for was, told_end in zip(done, [step[-1] for step in steps]):
                    self.assertLessEqual(was[-1] - first, told_end, words)
                self.assertEqual({step[1] for step in recorded[rank][first + len(steps):]},
                                 {"reduce"})
            path.write_text(told)
            self.assertEqual(self.ok("sim", "--program", path, "--json").json["ranks"], 4)

    def test_the_time_of_a_program(self):
        # 4 x 8 complex lines of 16 points on each rank, and as many points that are copied twice.
        told = subprocess.run([FFT3D, "4x16x16", "--field=complex", "--direction=forward",
                               "--program-of=2", "--line-mflops=1000", "--copy-mbps=8000",
                               "--iterations=1", "--warmups=2"], text=True, capture_output=True,
                              timeout=60, check=True, env=clean_environment({})).stdout
        points = 2 * 16 * 16
        lines_ns = 5 * 4 * points
        copy_ns = points * 16 / 8
        short_ns = 5 * 2 * points
        times = [int(line.split()[1]) for line in told.splitlines() if line.startswith("compute")]
        self.assertEqual(times, [2 * lines_ns + copy_ns, copy_ns + short_ns])
        self.assertIn("repeat 3\n", told)

    def test_a_program_has_a_window_of_slices(self):
        told = subprocess.run([FFT3D, "4x16x16", "--overlap", "--window=2", "--direction=forward",
                               "--program-of=2"], text=True, capture_output=True, timeout=60,
                              check=True, env=clean_environment({})).stdout
        words = [line.split() for line in told.splitlines()]
        self.assertEqual([step[0] + step[-1] for step in words if step[0] in ["start", "wait"]],
                         ["starts0", "starts1", "waits0", "starts0", "waits1", "starts1", "waits0",
                          "waits1"])

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
        self.refused("means nothing without --program-of", 8, "--line-mflops", 7)
        self.refused("means nothing with --program-of", 8, "--program-of", 7, "--compare")
        self.refused("program-of 0: use a number from 1", 8, "--program-of", 0)

    def test_grids_refused(self):
        for grid, why in [("0", "numbers from 1"), ("8x8", "numbers from 1"), ("8x8x8x8", "numbers"),
                          ("99999999999999999999", "numbers"), ("100000", "too large")]:
            self.refused(why, grid)
        self.refused("there is a grid already", 8, 8)
        # 2 GiPoints a rank are more than MPI counts, unless in slices.
        self.refused("use more ranks, or --overlap", "4096x2048x2048", ranks=2)


if __name__ == "__main__":
    main()
