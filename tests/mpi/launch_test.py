#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# How the interposer behaves when a job is started in unusual ways: settings that are wrong or
# differ between ranks, ranks without it, another MPI's program, a rank that dies.
#
#   launch_test.py --mpi ompi|mpich --launcher mpirun --library libcarillon_ompi.so \
#       --other libcarillon_mpich.so --probe launch_probe
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ARGS = None


def environment(settings):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CARILLON", "LD_PRELOAD"))}
    return {**kept, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            **settings}


def part(ranks, *words, preload=True, settings=None):
    """One part of a job: so many ranks of the probe, with settings of their own."""
    variables = dict(settings or {})
    if preload:
        variables["LD_PRELOAD"] = ARGS.library if preload is True else preload
    pairs = [f"{name}={value}" for name, value in variables.items()]
    return ["-n", str(ranks), "env", *pairs, ARGS.probe, *words]


def launch(*parts, options=(), timeout=60):
    command = [ARGS.launcher, *options]
    if ARGS.mpi == "ompi":
        command.append("--oversubscribe")
    for number, words in enumerate(parts):
        command += ([":"] if number else []) + words
    begin = time.monotonic()
    done = subprocess.run(command, env=environment({}), capture_output=True, text=True,
                          timeout=timeout)
    done.seconds = time.monotonic() - begin
    done.lines = sorted(done.stdout.splitlines())
    done.said = [line for line in done.stderr.splitlines() if line.startswith("carillon: ")]
    return done


def expected(ranks, taken, left):
    return [f"rank {r} sum {ranks} taken {taken} left {left}" for r in range(ranks)]


class Launch(unittest.TestCase):
    def test_inert_without_mpi(self):
        for extra in ({}, {"LD_BIND_NOW": "1"}):
            done = subprocess.run(["sh", "-c", "echo hello"], capture_output=True, text=True,
                                  env=environment({"LD_PRELOAD": ARGS.library, **extra}))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "hello\n", ""))

    def test_takes_and_says_nothing(self):
        done = launch(part(3))
        self.assertEqual(done.lines, expected(3, 1, 0))
        self.assertEqual((done.returncode, done.said), (0, []))

    def test_off(self):
        done = launch(part(2, settings={"CARILLON": "off"}))
        self.assertEqual(done.lines, expected(2, 0, 1))
        self.assertEqual((done.returncode, done.said), (0, []))

    def test_off_on_one_rank(self):
        done = launch(part(2), part(1, settings={"CARILLON": "off"}))
        self.assertEqual(done.lines, expected(3, 0, 1))
        self.assertEqual(done.said,
                         ["carillon: off on all ranks, because CARILLON=off on rank 2"])

    def test_wrong_setting_of_the_interposer(self):
        done = launch(part(2, settings={"CARILLON": "maybe"}))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("carillon: CARILLON=maybe is not a setting; use on or off", done.said)

    def test_wrong_setting_of_the_library(self):
        done = launch(part(2, settings={"CARILLON_SLOT_BYTES": "7"}))
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue(any("CARILLON_SLOT_BYTES=7" in line for line in done.said), done.stderr)

    def test_wrong_setting_on_one_rank(self):
        done = launch(part(2), part(1, settings={"CARILLON_SLOT_BYTES": "7"}))
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue(any("CARILLON_SLOT_BYTES=7" in line for line in done.said), done.stderr)

    def test_settings_that_differ(self):
        done = launch(part(1, settings={"CARILLON_ALGORITHM": "allreduce=ring"}),
                      part(1, settings={"CARILLON_SLOT_BYTES": "4096"}),
                      part(1, settings={"CARILLON_SPIN_US": "0"}))
        self.assertEqual(done.lines, expected(3, 1, 0))
        self.assertEqual(done.returncode, 0)

    def test_rank_without_interposer(self):
        settings = {"CARILLON_JOIN_TIMEOUT_S": "3"}
        done = launch(part(2, settings=settings), part(1, preload=False))
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue(any("interposer of other ranks" in line for line in done.said),
                        done.stderr)
        self.assertLess(done.seconds, 30)

    def test_stats_table(self):
        done = launch(part(2, settings={"CARILLON_STATS": "1"}))
        self.assertEqual(done.lines, expected(2, 1, 0))
        self.assertIn("carillon: collectives of rank 0 of 2", done.said)
        rows = [line.split() for line in done.stderr.splitlines() if "Allreduce" in line]
        self.assertEqual(rows[0], ["Allreduce", "1", "0"])
        self.assertEqual(rows[1][:4], ["Allreduce", "1", "4", "4"])  # calls, bytes in and out
        self.assertEqual(len(rows), 2)
        self.assertIn("\n  MPI_COMM_WORLD, 2 ranks\n", done.stderr)

    def test_stats_files(self):
        with tempfile.TemporaryDirectory() as folder:
            launch(part(2, settings={"CARILLON_STATS": f"{folder}/stats"}))
            for rank in range(2):
                stats = json.loads(Path(folder, f"stats.{rank}.json").read_text())
                self.assertEqual(stats["rank"], rank)
                self.assertEqual(stats["collectives"],
                                 [{"collective": "Allreduce", "taken": 1, "left": {}}])
                call, = stats["calls"]
                self.assertGreater(call.pop("time_ns"), 0)
                self.assertRegex(call.pop("algorithm"), r"^allreduce\.\w+$")
                self.assertEqual(call, {
                    "communicator": "MPI_COMM_WORLD", "ranks": 2, "collective": "Allreduce",
                    "calls": 1, "bytes_in": 4, "bytes_out": 4, "left": None})

    def test_stats_say_how_each_alltoallv_was_done(self):
        nodes = {"CARILLON_NODE_RANKS": "2,1,2", "CARILLON_CROWDED": "0"}
        unknown = "nothing known before the first survey"
        surveyed = [{"algorithm": "alltoallv.pairwise", "reason": unknown, "calls": 1},
                    {"algorithm": "alltoallv.pairwise", "reason": "two phases would not be faster",
                     "calls": 5},
                    {"algorithm": "alltoallv.survey", "reason": "a survey of the tables", "calls": 3}]
        few = "no surveys: two phases cannot pay for so few ranks"
        for setting, decided in (
                ("on", surveyed),
                ("auto", [{"algorithm": "alltoallv.pairwise", "reason": few, "calls": 9}])):
            with self.subTest(setting), tempfile.TemporaryDirectory() as folder:
                done = launch(part(5, "alltoallv", "9", settings={
                    "CARILLON_STATS": f"{folder}/stats", "CARILLON_SURVEYS": setting, **nodes}))
                self.assertEqual(done.lines, expected(5, 1, 0))
                for rank in range(5):
                    stats = json.loads(Path(folder, f"stats.{rank}.json").read_text())
                    self.assertEqual(stats["alltoallv"], decided)
        done = launch(part(3, "alltoallv", "4", settings={"CARILLON_STATS": "1"}))
        self.assertIn("  how each alltoallv was done, and why:\n           4  alltoallv.pairwise"
                      "        no surveys: the ranks are on one node\n", done.stderr)

    def test_other_mpi(self):
        if not ARGS.other:
            self.skipTest("only one interposer is built")
        done = launch(part(2, preload=ARGS.other))
        self.assertNotEqual(done.returncode, 0)
        self.assertTrue(any("LD_PRELOAD has the interposer for" in line for line in done.said),
                        done.stderr)

    def test_rank_that_dies(self):
        if ARGS.mpi != "ompi":
            self.skipTest("the launcher ends the others, too")
        with tempfile.TemporaryDirectory() as folder:
            launch(part(3, "die", f"{folder}/end"), options=["--enable-recovery"])
            ends = [Path(folder, f"end.{rank}") for rank in range(2)]
            for text in (path.read_text() for path in ends):
                self.assertIn("carillon: a process of the communicator is dead", text)
                # The victim dies 0.3 s after the others have begun to wait for it.
                self.assertLess(float(text.split()[1]), 2.3)


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpi", choices=["ompi", "mpich", "mpiabi"], required=True)
    parser.add_argument("--launcher", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--other", default="")
    parser.add_argument("--probe", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
