#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# MPI programs whose allreduces go through carillon switchd, on ranks that count as several nodes:
# what comes out is right with a switch, without one, and when it is killed meanwhile. With
# SWITCH_KILLS=100 so many programs have theirs killed, at moments drawn from SWITCH_SEED, and a line
# says what they came to.
import json
import os
import random
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import CARILLON, CliTest, clean_environment, has_rtl, main, run

PROBES = Path(os.environ["CLUSTER_PROBES"])
KILLS = int(os.environ.get("SWITCH_KILLS", "8"))
SEED = int(os.environ.get("SWITCH_SEED", "1"))


def mpis():
    rows = run("info", "--json").json["mpis"]
    return [row["name"] for row in rows if row["interposer"] and row["launcher"]
            and (PROBES / f"switch_probe-{row['name']}").exists()]


MPIS = mpis()


class SwitchTest(CliTest):
    def setUp(self):
        super().setUp()
        self.key = self.folder / "switch.key"
        self.ok("switchd", "--new-key", self.key)

    def switchd(self, *words, at="127.0.0.1:0"):
        process = subprocess.Popen(
            [str(CARILLON), "switchd", "--key-file", str(self.key), "--listen", at, "--json", *words],
            stdout=subprocess.PIPE, text=True, env=clean_environment({}))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, json.loads(process.stdout.readline())["listening"]

    def statistics(self, switchd):
        switchd.send_signal(signal.SIGTERM)
        said = json.loads(switchd.stdout.read())
        self.assertEqual(switchd.wait(), 0)
        return said

    def start(self, mpi, nodes, at, *words, key=None):
        ranks = sum(map(int, nodes.split(",")))
        settings = {"CARILLON_NODE_RANKS": nodes, "CARILLON_SWITCH": at,
                    "CARILLON_SWITCH_KEY": str(key or self.key), "CARILLON_NETWORK": "fabric",
                    "CARILLON_ALGORITHM": "allreduce=switch;reduce=switch;bcast=switch;"
                                          "barrier=switch"}
        errors = tempfile.TemporaryFile("w+")
        self.addCleanup(errors.close)
        process = subprocess.Popen(
            [str(CARILLON), "run", "--mpi", mpi, "-n", str(ranks),
             str(PROBES / f"switch_probe-{mpi}"), *map(str, words)],
            stdout=subprocess.PIPE, stderr=errors, text=True, env=clean_environment(settings))
        process.errors = errors
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, ranks

    def check(self, process, ranks, algorithm, before=""):
        out = process.stdout.read()
        process.wait()
        process.errors.seek(0)
        err = process.errors.read()
        self.assertEqual(process.returncode, 0, out + err)
        said = sorted(line for line in (before + out).splitlines() if line.startswith("rank "))
        self.assertEqual(len(said), ranks, out + err)
        for line in said:
            self.assertRegex(line, rf"rank \d+ of {ranks}, errors 0, {algorithm}\Z")
        return err

    def test_it_goes_through_the_switch(self):
        for mpi in MPIS:
            for nodes in ("1,1,1", "2,1,2"):
                with self.subTest(mpi=mpi, nodes=nodes):
                    switchd, at = self.switchd()
                    err = self.check(*self.start(mpi, nodes, at, 10), "allreduce.switch")
                    self.assertEqual(err, "")
                    said = self.statistics(switchd)
                    # A leader's packets, and no other rank's: the trial, and each call's.
                    self.assertEqual(said["packets"]["operands"] % 3, 0)
                    self.assertGreater(said["packets"]["operands"], 3 * 10 * 18)
                    self.assertEqual(said["packets"]["refused"], 0)
                    self.assertEqual((said["jobs"], said["groups"]), (0, 0))

    def test_of_one_root_or_none(self):
        for mpi in MPIS:
            for nodes in ("1,1,1", "2,1,2"):
                with self.subTest(mpi=mpi, nodes=nodes):
                    switchd, at = self.switchd()
                    err = self.check(*self.start(mpi, nodes, at, "rooted", 20), "allreduce.switch")
                    self.assertEqual(err, "")
                    said = self.statistics(switchd)
                    self.assertEqual(said["packets"]["operands"] % 3, 0)
                    # A barrier's is one of each leader, a bcast's and a reduce's one at least.
                    self.assertGreater(said["packets"]["operands"], 3 * 20 * 3 * 3)
                    self.assertEqual(said["packets"]["refused"], 0)

    @unittest.skipUnless(has_rtl(), "built without Verilator")
    def test_it_goes_through_the_hardware(self):
        mpi = MPIS[0]
        switchd, at = self.switchd("--engine", "rtl")
        err = self.check(*self.start(mpi, "1,1,1", at, 3, "short"), "allreduce.switch")
        self.assertEqual(err, "")
        said = self.statistics(switchd)
        self.assertEqual(said["packets"]["operands"] % 3, 0)
        self.assertGreater(said["packets"]["operands"], 3 * 3 * 18)
        # Each word of an operand takes the hardware a cycle at least, and of its tag two.
        self.assertGreater(said["cycles"], 40 * said["packets"]["operands"])
        self.assertEqual((said["jobs"], said["groups"]), (0, 0))

    def test_without_a_switch_all_do_without(self):
        for mpi in MPIS:
            switchd, at = self.switchd()
            switchd.kill()
            switchd.wait()
            err = self.check(*self.start(mpi, "1,1,1", at, 2), r"allreduce\.(?!switch).*")
            self.assertEqual(err.count("the hosts do without a switch"), 1, err)

    def test_a_job_without_the_key_gets_nothing(self):
        for mpi in MPIS:
            switchd, at = self.switchd()
            other = self.folder / "other.key"
            if not other.exists():
                self.ok("switchd", "--new-key", other)
            process, ranks = self.start(mpi, "1,1", at, 3)
            stranger, strangers = self.start(mpi, "1,1,1", at, 2, key=other)
            err = self.check(stranger, strangers, r"allreduce\.(?!switch).*")
            self.assertIn("the hosts do without a switch", err)
            self.check(process, ranks, "allreduce.switch")
            self.assertGreater(self.statistics(switchd)["packets"]["bad_tag"], 0)

    def test_two_jobs_share_a_switch(self):
        mpi = MPIS[0]
        switchd, at = self.switchd()
        both = [self.start(mpi, "1,1", at, 3), self.start(mpi, "1,1", at, 3)]
        for process, ranks in both:
            self.check(process, ranks, "allreduce.switch")
        self.assertEqual(self.statistics(switchd)["jobs"], 0)

    def test_who_computes_meanwhile_answers(self):
        for mpi in MPIS:
            go, end = (self.folder / f"{name}-{mpi}" for name in ("go", "end"))
            os.mkfifo(go)
            os.mkfifo(end)
            switchd, at = self.switchd()
            process, ranks = self.start(mpi, "1,1,1", at, 1, go, end)
            self.assertEqual(process.stdout.readline(), "begun\n")
            switchd.kill()
            switchd.wait()
            go.write_text("x")
            self.check(process, ranks, "allreduce.switch")

    def test_a_job_that_finds_the_switch_full_does_without(self):
        mpi = MPIS[0]
        for table in ("--groups", "--jobs"):
            with self.subTest(table=table):
                go, end = (self.folder / f"{name}{table}" for name in ("go", "end"))
                os.mkfifo(go)
                os.mkfifo(end)
                switchd, at = self.switchd(table, "1")
                process, ranks = self.start(mpi, "1,1,1", at, 1, go, end)
                self.assertEqual(process.stdout.readline(), "begun\n")
                late, latecomers = self.start(mpi, "1,1", at, 2)
                err = self.check(late, latecomers, r"allreduce\.(?!switch).*")
                self.assertRegex(err, rf"do without a switch: .*{at} has no room")
                go.write_text("x")
                self.assertEqual(self.check(process, ranks, "allreduce.switch"), "")
                # Who has ended leaves room: the next job has it.
                process, ranks = self.start(mpi, "1,1", at, 1)
                self.assertEqual(self.check(process, ranks, "allreduce.switch"), "")
                said = self.statistics(switchd)
                self.assertEqual((said["jobs"], said["groups"]), (0, 0))

    def operands(self, switchd):
        """How many a switch has got so far."""
        switchd.send_signal(signal.SIGUSR1)
        return json.loads(switchd.stdout.readline())["packets"]["operands"]

    def kill_within(self, process, switchd, packets):
        """Kills the switch when it has got so many operands more, or a few more than these: within
        a call, most likely. Returns what the program has said till then."""
        before = process.stdout.readline()
        self.assertEqual(before, "round 0\n")  # the trial is over: all have the switch
        last = self.operands(switchd) + packets
        while self.operands(switchd) < last:
            self.assertIsNone(process.poll(), "the program has ended before its switch was killed")
        switchd.kill()
        switchd.wait()
        return before

    def test_a_switch_that_is_killed_changes_no_result(self):
        dice = random.Random(SEED)
        right = dict.fromkeys(("allreduces", "allreduces, restarted", "rooted", "rooted, restarted"), 0)
        for i in range(KILLS):
            mpi = MPIS[i % len(MPIS)]
            again, rooted = i // len(MPIS) % 2 == 1, i // len(MPIS) % 4 > 1
            # Of some 40 rounds, within the next ten. One is of 900 operands, or 220.
            packets = dice.randrange(2200 if rooted else 9000)
            with self.subTest(mpi=mpi, seed=SEED, i=i, packets=packets, again=again, rooted=rooted):
                switchd, at = self.switchd()
                process, ranks = self.start(mpi, "2,1,1", at, *["rooted"] * rooted, 40)
                before = self.kill_within(process, switchd, packets)
                if again:
                    self.switchd(at=at)
                err = self.check(process, ranks, "allreduce.switch", before)
                self.assertRegex(err, "the hosts do without a switch")
                right[("rooted" if rooted else "allreduces") + ", restarted" * again] += 1
        if "SWITCH_KILLS" in os.environ:
            print(f"{KILLS} switches killed, seed {SEED}; programs with the right answers: {right}",
                  flush=True)


if __name__ == "__main__":
    if not MPIS:
        raise SystemExit("no MPI to run with")
    main()
