#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# How the interposer behaves when a job is started in unusual ways: settings that are wrong or
# differ between ranks, ranks without it, another MPI's program, a rank that dies.
#
#   launch_test.py --mpi ompi|mpich --launcher mpirun --library libcarillon_ompi.so \
#       --other libcarillon_mpich.so --probe launch_probe --carillon build/bin/carillon
import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ARGS = None

# Of a job of three: who is killed, in which call, of how many bytes, with which error handler.
DEATHS = [(2, "barrier", 0, "return"), (0, "allreduce", 8, "return"),
          (1, "allreduce", 1 << 20, "return"), (2, "alltoall", 1 << 16, "return"),
          (0, "wait", 1 << 20, "return"), (1, "test", 8, "return"), (0, "alltoall", 8, "fatal"),
          (1, "allreduce", 8, "fatal"), (2, "allreduce", 1 << 20, "fatal"),
          (2, "test", 1 << 20, "fatal"), (2, "changing", 1 << 16, "return")]
FOUND_BY = {"barrier": "Barrier", "allreduce": "Allreduce", "changing": "Allreduce", "alltoall": "Alltoall",
            "wait": r"(Iallreduce|Wait) \(allreduce\)",
            "test": r"(Iallreduce|Test) \(allreduce\)"}


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


def lives(pid):
    """Whether the process is there, and has not ended (a launcher need not look after it)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


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

    def test_calls_that_do_not_come_here(self):
        libraries = subprocess.run(["ldd", ARGS.probe], capture_output=True, text=True, check=True)
        library = re.search(r"libmpi\S* => (\S+)", libraries.stdout)[1]
        program = f"import ctypes; m = ctypes.CDLL({library!r}); m.MPI_Init(None, None); m.MPI_Finalize()"
        for settings, lines in (({}, 0), ({"CARILLON_STATS": "1"}, 1), ({"CARILLON_CHECK": "on"}, 1)):
            variables = [f"{k}={v}" for k, v in {"LD_PRELOAD": ARGS.library, **settings}.items()]
            done = launch(["-n", "2", "env", *variables, sys.executable, "-c", program])
            self.assertEqual((done.returncode, len(done.said)), (0, lines), done.stderr)
            if lines:
                self.assertIn("none of the program's calls of MPI came here", done.said[0])

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

    def die(self, folder, victim, call, size, handler):
        """A job of three of which one is killed; the seconds from then until the others ended."""
        prefix = f"{folder}/of"
        command = [ARGS.launcher, "--enable-recovery", "--oversubscribe",
                   *part(3, "die", prefix, str(victim), call, str(size), handler)]
        with subprocess.Popen(command, env=environment({}), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as launcher:
            try:
                end = time.monotonic() + 30
                pids = []
                while time.monotonic() < end and (len(pids) < 3 or any(map(lives, pids))):
                    time.sleep(0.01)
                    texts = [path.read_text() for path in Path(folder).glob("of.pid.*")]
                    pids = [int(text) for text in texts if text.endswith("\n")]
                ended = time.monotonic()
                self.assertEqual((len(pids), [pid for pid in pids if lives(pid)]), (3, []))
                # Open MPI 4.1's own mpirun may hang at its end after that.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    launcher.wait(10)
            finally:
                launcher.kill()
        return ended - float(Path(f"{prefix}.killed.{victim}").read_text())

    def test_rank_that_dies(self):
        if ARGS.mpi != "ompi":
            self.skipTest("the launcher ends the others, too")
        for victim, call, size, handler in DEATHS:
            with self.subTest(victim=victim, call=call, size=size, handler=handler), \
                    tempfile.TemporaryDirectory() as folder:
                self.assertLess(self.die(folder, victim, call, size, handler), 2)
                said = []
                for rank in {0, 1, 2} - {victim}:
                    text = Path(folder, f"of.stderr.{rank}").read_text()
                    lines = [line for line in text.splitlines() if line.startswith("carillon")]
                    self.assertLessEqual(len(lines), 1, text)
                    said += lines
                    for line in lines:
                        self.assertRegex(line, rf"^carillon: MPI_{FOUND_BY[call]} on "
                                               rf"MPI_COMM_WORLD, rank {rank} of 3: peer dead: .*; "
                                               "see what the ranks that ended have said, and ")
                    end = Path(folder, f"of.end.{rank}")
                    self.assertEqual(end.exists(), handler == "return", text)
                    if handler == "return":
                        self.assertIn("carillon: a process of the communicator is dead",
                                      end.read_text())
                # Whoever is told by another one, whose handler ends the job, may say nothing.
                self.assertGreaterEqual(len(said), 2 if handler == "return" else 1)
                self.assertTrue(any(f"rank {victim} of a team of 3" in line for line in said), said)


def names_of_carillon(folder):
    return {name for name in os.listdir(folder) if "arillon" in name}


def whose(name, words):
    """Processes whose file of that name in /proc has one of these words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/" + name):
        with contextlib.suppress(OSError):
            text = path.read_bytes()
            if any(word in text for word in words):
                found.append(int(path.parts[2]))
    return found


class Leftovers(unittest.TestCase):
    """What is there after a job that carillon run has started, and of which a rank was killed."""

    def run_job(self, folder, victim, **variables):
        command = [ARGS.carillon, "run", "-n", "3", "--", ARGS.probe, "die", f"{folder}/of",
                   str(victim), "allreduce", "65536", "return"]
        with subprocess.Popen(command, env=environment(variables), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as launcher:
            try:
                launcher.wait(40)
            finally:
                launcher.kill()

    def leftovers(self, victim, **settings):
        mark = f"{os.getpid()}.{time.monotonic_ns()}"
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as temporary:
            shared = names_of_carillon("/dev/shm")
            self.run_job(folder, victim, JOB_OF_TEST=mark, TMPDIR=temporary, **settings)
            held = "".join(path.read_text() for path in Path(folder).glob("of.held.*"))
            segments = set(re.findall(r" (\S+ \d+) +/memfd:carillon", held))
            sockets = set(re.findall(r"socket:\[(\d+)\]", held))
            self.assertTrue(segments and sockets, held)
            end = time.monotonic() + 5  # what is killed ends soon, but not at once
            while True:
                found = {
                    "processes": whose("environ", [mark.encode()]),
                    "mappings": whose("maps", [f" {one} ".encode() for one in segments]),
                    "sockets": [line for line in Path("/proc/net/unix").read_text().splitlines()
                                if line.split()[6] in sockets],
                    "shared memory": names_of_carillon("/dev/shm") - shared,
                    "files": names_of_carillon(temporary)}
                if not any(found.values()) or time.monotonic() > end:
                    break
                time.sleep(0.05)
            stays = Path(folder, "of.stays.0")
            if stays.exists():
                os.kill(int(stays.read_text()), signal.SIGKILL)
        return found

    def test_nothing_is_left(self):
        for victim in (0, 2):
            with self.subTest(victim=victim):
                found = self.leftovers(victim)
                self.assertFalse(any(found.values()), found)

    def test_what_stays_is_found(self):
        found = self.leftovers(1, PROBE_STAYS="1")
        self.assertEqual((len(found["processes"]), len(found["mappings"])), (1, 1), found)
        self.assertEqual(len(found["sockets"]), 1, found)


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpi", choices=["ompi", "mpich", "mpiabi"], required=True)
    parser.add_argument("--launcher", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--carillon", required=True)
    parser.add_argument("--other", default="")
    parser.add_argument("--probe", required=True)
    ARGS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
