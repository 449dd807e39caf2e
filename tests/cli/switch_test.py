#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# MPI programs whose allreduces go through carillon switchd, on ranks that count as several nodes:
# what comes out is right with a switch or a tree of them, without one, and when one is killed
# meanwhile. With SWITCH_KILLS=100 so many programs have theirs killed, at moments drawn from
# SWITCH_SEED, and a line says what they came to.
import json
import os
import random
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

import switch_wire as wire
from support import CARILLON, CliTest, clean_environment, has_rtl, main, may_make_clusters, run, yielding

PROBES = Path(os.environ["CLUSTER_PROBES"])
KILLS = int(os.environ.get("SWITCH_KILLS", "8"))
SEED = int(os.environ.get("SWITCH_SEED", "1"))
# A rank's way up is that of its line in the file.
BY_RANK = """#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
CARILLON_SWITCH=$(sed -n "$((rank + 1))p" "$0.ways")
export CARILLON_SWITCH
exec "$@"
"""


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

    def switchd(self, *words, at="127.0.0.1:0", operand_bytes=1408):
        process = subprocess.Popen(
            [str(CARILLON), "switchd", "--key-file", str(self.key), "--listen", at, "--json",
             "--operand-bytes", str(operand_bytes), *words],
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

    def tree(self, leaves):
        """A root and leaves: their processes, and where they listen."""
        return zip(*(self.switchd("--number", str(i)) for i in range(leaves + 1)))

    @staticmethod
    def ways(nodes, at):
        """Of ranks on such nodes: leaves have as many nodes each, or one more."""
        root, *leaves = at
        count = len(nodes.split(","))
        return [f"{leaves[i * len(leaves) // count]},{root}"
                for i, ranks in enumerate(map(int, nodes.split(","))) for _ in range(ranks)]

    def start(self, mpi, nodes, at, *words, key=None, **more):
        """`at`: the switch, or the way up of each rank."""
        ranks = sum(map(int, nodes.split(",")))
        program = [str(PROBES / f"switch_probe-{mpi}")]
        if not isinstance(at, str):
            script = self.file("by_rank", BY_RANK)
            self.file("by_rank.ways", "\n".join(at) + "\n")
            program.insert(0, str(script))
            at = ""
        settings = {"CARILLON_NODE_RANKS": nodes, "CARILLON_SWITCH": at,
                    "CARILLON_SWITCH_KEY": str(key or self.key), "CARILLON_NETWORK": "fabric",
                    "CARILLON_ALGORITHM": "allreduce=switch;reduce=switch;bcast=switch;"
                                          "barrier=switch", **yielding(mpi), **more}
        errors = tempfile.TemporaryFile("w+")
        self.addCleanup(errors.close)
        process = subprocess.Popen(
            [str(CARILLON), "run", "--mpi", mpi, "-n", str(ranks),
             *program, *map(str, words)],
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

    def test_reproducible_sums_do_not(self):
        for mpi in MPIS:
            with self.subTest(mpi=mpi):
                switchd, at = self.switchd()
                self.check(*self.start(mpi, "1,1,1", at, 3, CARILLON_REPRODUCIBLE="1"),
                           r"allreduce\.(?!switch).*")
                # Each leader's trial and its two farewells.
                self.assertEqual(self.statistics(switchd)["packets"]["operands"], 3 * 3)

    def test_it_goes_through_a_tree(self):
        for mpi in MPIS:
            for nodes in ("1,1,1,1,1", "2,1,1,2"):
                with self.subTest(mpi=mpi, nodes=nodes):
                    switches, at = self.tree(2)
                    err = self.check(*self.start(mpi, nodes, self.ways(nodes, at), 10),
                                     "allreduce.switch")
                    self.assertEqual(err, "")
                    root, *leaves = map(self.statistics, switches)
                    packets = root["packets"]["operands"] // 2
                    self.assertGreater(packets, 10 * 18)
                    self.assertEqual(root["packets"]["operands"], 2 * packets)
                    hosts = len(nodes.split(","))
                    self.assertEqual([leaf["packets"]["operands"] for leaf in leaves],
                                     [-(-hosts // 2) * packets, hosts // 2 * packets])
                    for said in (root, *leaves):
                        self.assertEqual(said["packets"]["refused"], 0)
                        self.assertEqual((said["jobs"], said["groups"]), (0, 0))

    def test_ways_that_are_no_tree_do_without(self):
        mpi = MPIS[0]
        switches, at = self.tree(2)
        ways = [f"{at[1]},{at[0]}", f"{at[2]},{at[0]}", f"{at[2]},{at[1]}"]
        err = self.check(*self.start(mpi, "1,1,1", ways, 2), r"allreduce\.(?!switch).*")
        self.assertEqual(err.count("are not one tree"), 1, err)
        for said in map(self.statistics, switches):
            self.assertEqual(said["datagrams"]["received"], 0)

    def test_packets_are_as_long_as_all_switches_take(self):
        mpi = MPIS[0]
        operands = []
        for operand_bytes in (1408, 4096, 8192):
            switchd, at = self.switchd(operand_bytes=operand_bytes)
            err = self.check(*self.start(mpi, "1,1,1", at, 10), "allreduce.switch")
            self.assertEqual(err, "")
            operands.append(self.statistics(switchd)["packets"]["operands"])
        # Most are of long messages.
        self.assertGreater(operands[0], 2 * operands[1])
        self.assertGreater(operands[1], 1.3 * operands[2])
        switches, at = zip(*(self.switchd(operand_bytes=most) for most in (4096, 8192, 8192)))
        err = self.check(*self.start(mpi, "1,1,1", self.ways("1,1,1", at), 10), "allreduce.switch")
        self.assertEqual(err, "")
        said = list(map(self.statistics, switches))
        self.assertEqual(said[0]["packets"]["operands"], operands[1] // 3 * 2)

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

    def test_more_groups_than_the_table_has(self):
        for mpi in MPIS:
            with self.subTest(mpi=mpi):
                switchd, at = self.switchd("--groups", "2")
                process, ranks = self.start(mpi, "1,2,1", at, "groups", 5)
                # Other ranks may have said their last word before.
                out = [process.stdout.readline()]
                while out[-1] and not out[-1].startswith("groups "):
                    out.append(process.stdout.readline())
                err = self.check(process, ranks, "allreduce.switch", "".join(out))
                self.assertEqual(out[-1], "groups 1 of 5\n")
                self.assertEqual(err.count("do without a switch"), 1, err)
                self.assertRegex(err, rf"{at} has no room for another group")
                said = self.statistics(switchd)
                self.assertEqual(said["packets"]["refused"], 1)
                self.assertEqual((said["jobs"], said["groups"]), (0, 0))

    def held_job(self, mpi, at, name):
        """A program in the middle of a call, and the files that it waits for."""
        go, end = (self.folder / f"{what}-{name}" for what in ("go", "end"))
        os.mkfifo(go)
        os.mkfifo(end)
        process, ranks = self.start(mpi, "1,1,1", at, 1, go, end)
        self.assertEqual(process.stdout.readline(), "begun\n")
        return process, ranks, go

    def job_heard(self, ear, administrator, known):
        """The number and the key of a job that has been installed, and its group."""
        packet = ear.find(wire.INSTALL_JOB, lambda one: one.job not in known)
        self.assertEqual(packet.tag, wire.tag_of(administrator, packet.datagram))
        nonce = int.from_bytes(packet.payload[:8], "big")
        built = ear.find(wire.GROUP_BUILT, lambda one: one.job == packet.job)
        key = wire.job_key(administrator, packet.job, nonce)
        self.assertEqual(built.tag, wire.tag_of(key, built.datagram))
        return packet.job, key, built.group

    @unittest.skipUnless(may_make_clusters(), "needs root")
    def test_groups_of_others_and_groups_that_are_gone(self):
        mpi = MPIS[0]
        switchd, at = self.switchd()
        to = "127.0.0.1", int(at.split(":")[1])
        ear = wire.Ear(to[1])
        self.addCleanup(ear.close)
        administrator = wire.read_key(self.key)
        jobs = []
        for name in ("a", "b"):
            program = self.held_job(mpi, at, name)
            jobs.append((program, *self.job_heard(ear, administrator, [job for _, job, _, _ in jobs])))
        (first, job, key, group), (second, other_job, other_key, other_group) = jobs
        said = self.counts(switchd)

        def contribution(**fields):
            return wire.Packet(kind=wire.CONTRIBUTE, flags=wire.EMPTY | wire.LAST, **fields)

        # Of the one job's group, with the other's key; of a group that the other has not; of its own
        # from elsewhere than its hosts. A word that comes back says that all are counted.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(contribution(job=job, group=group).sealed(other_key), to)
            stranger.sendto(contribution(job=other_job, group=other_group).sealed(other_key), to)
        refusal = wire.asked(contribution(job=other_job, group=other_group + 1).sealed(other_key), to)
        self.assertEqual((refusal.kind, refusal.reason), (wire.REFUSE, wire.UNKNOWN_GROUP))
        self.assertEqual(refusal.tag, wire.tag_of(other_key, refusal.datagram))
        after = self.counts(switchd)
        self.assertEqual({name: after[name] - said[name]
                          for name in ("bad_tag", "wrong_source", "refused")},
                         {"bad_tag": 1, "wrong_source": 1, "refused": 1})
        # And a group that is freed meanwhile: its hosts are refused, and do without.
        answer = wire.asked(wire.Packet(kind=wire.FREE_GROUP, job=job, group=group,
                                        sequence=1 << 30).sealed(key), to)
        self.assertEqual(answer.kind, wire.GROUP_FREED)
        for _, _, go in (first, second):
            go.write_text("x")
        self.assertRegex(self.check(*first[:2], "allreduce.switch"),
                         "do without a switch: .*(does not know the group|has lost a switch)")
        self.assertEqual(self.check(*second[:2], "allreduce.switch"), "")
        self.assertGreater(self.statistics(switchd)["packets"]["refused"], after["refused"])

    def counts(self, switchd):
        switchd.send_signal(signal.SIGUSR1)
        return json.loads(switchd.stdout.readline())["packets"]

    def operands(self, switchd):
        """How many a switch has got so far."""
        return self.counts(switchd)["operands"]

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
            # Within the next ten rounds of 40. One is of 900 operands, or 220; of these, which take less
            # time than a busy machine may keep this test waiting, there are more.
            packets = dice.randrange(2200 if rooted else 9000)
            with self.subTest(mpi=mpi, seed=SEED, i=i, packets=packets, again=again, rooted=rooted):
                switchd, at = self.switchd()
                process, ranks = self.start(mpi, "2,1,1", at, *["rooted"] * rooted,
                                            200 if rooted else 40)
                before = self.kill_within(process, switchd, packets)
                if again:
                    self.switchd(at=at)
                err = self.check(process, ranks, "allreduce.switch", before)
                self.assertRegex(err, "the hosts do without a switch")
                right[("rooted" if rooted else "allreduces") + ", restarted" * again] += 1
        if "SWITCH_KILLS" in os.environ:
            print(f"{KILLS} switches killed, seed {SEED}; programs with the right answers: {right}",
                  flush=True)


    def test_any_switch_of_a_tree_that_is_killed_changes_no_result(self):
        dice = random.Random(SEED)
        right = dict.fromkeys(("root", "root, restarted", "leaf", "leaf, restarted"), 0)
        nodes = "2,1,1,1"
        for i in range(KILLS):
            mpi = MPIS[i % len(MPIS)]
            again, victim = i // len(MPIS) % 2 == 1, (0, 1, 0, 2)[i // len(MPIS) // 2 % 4]
            # Of some 40 rounds, within the next ten. One is of 600 operands of each, or 150.
            packets = dice.randrange(6000)
            with self.subTest(mpi=mpi, seed=SEED, i=i, packets=packets, again=again, victim=victim):
                switches, at = self.tree(2)
                process, ranks = self.start(mpi, nodes, self.ways(nodes, at), 40)
                before = self.kill_within(process, switches[victim], packets)
                if again:
                    self.switchd("--number", str(victim), at=at[victim])
                err = self.check(process, ranks, "allreduce.switch", before)
                self.assertRegex(err, "the hosts do without a switch")
                right[("leaf" if victim else "root") + ", restarted" * again] += 1
        if "SWITCH_KILLS" in os.environ:
            print(f"{KILLS} switches of trees killed, seed {SEED}; programs with the right answers: "
                  f"{right}", flush=True)


if __name__ == "__main__":
    if not MPIS:
        raise SystemExit("no MPI to run with")
    main()
