#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# MPI programs on virtual clusters whose switch, or tree of switches, reduces: right results, also when
# one is killed, and one copy of the data up and one down on each wire. Only root can do that. Run by hand with --print it measures instead: how
# long allreduces take, through the switch and by the best of the hosts' algorithms, what the wires
# allow, how busy the cores were, and how many copies each node sent and received. With --print=8x1
# or --print=16x1 on one of the two clusters only.
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from support import CARILLON, CliTest, clean_environment, has_rtl, main, may_make_clusters, run

PROBES = Path(os.environ.get("CLUSTER_PROBES", "build/tests")).resolve()
PROBE = PROBES / "switch_probe-openmpi"
TIMES = PROBES / "switch_times-openmpi"
PRINT = [word for word in sys.argv if word.split("=")[0] == "--print"]
# Those whose nodes send 2 (n - 1) / n of the data or little more, and those that send more: of long
# messages the wires alone keep these longer than the former need.
SPARING = ("ring", "circulant", "reduce_scatter_allgather", "flat_blocks", "lanes")
OTHERS = ("recursive_doubling", "recursive_multiplying:k=4", "recursive_multiplying:k=8",
          "degree_k:k=2", "degree_k:k=7", "hierarchical")
LONG = 262144
CLUSTERS = {"8x1": (8, 50), "16x1": (16, 20)}  # nodes, Mbit/s
# Doubles, and how many calls.
CALLS = {1: 30, 32: 30, 2048: 11, 8192: 5, 32768: 3, 131072: 3}
OPERAND_BYTES, SWITCH_HEADERS = 1408, 80  # Ethernet 14, IPv4 20, UDP 8, the switch's 38
TCP_BYTES, TCP_HEADERS = 1448, 66         # Ethernet 14, IPv4 20, TCP 32
# Two packets: then messages of 16 KiB are limited, too. One would make a wire slower that the
# kernel wakes late.
BURST = 3072


class SwitchCluster(CliTest):
    def setUp(self):
        super().setUp()
        if not may_make_clusters():
            self.skipTest("needs root")
        self.key = self.folder / "switch.key"
        self.ok("switchd", "--new-key", self.key)

    def play(self, *words, probe=PROBE, options=(), may_fail=False, **environment):
        done = run("cluster", "run", *options, "--json", "--mpi", "openmpi", "--", probe, *words,
                   CARILLON_NETWORK="fabric", **environment)
        if not may_fail:
            self.assertEqual(done.status, 0, done.out + done.err)
        self.assertNotIn("do without a switch", done.err)
        return done.out.splitlines(), json.loads(done.err.splitlines()[-1])

    def test_results_are_right(self):
        for shape in ("1,1,1,1,1", "3,1,2"):
            said, _ = self.play(10, options=("--shape", shape, "--switch", self.key),
                                CARILLON_ALGORITHM="allreduce=switch")
            ranks = sum(map(int, shape.split(",")))
            self.assertEqual(sorted(line for line in said if line.startswith("rank ")),
                             [f"rank {rank} of {ranks}, errors 0, allreduce.switch"
                              for rank in range(ranks)])

    def test_a_tree_has_one_copy_on_each_wire(self):
        nodes, count, leaves = 5, 100000, 2
        least = switch_wire_bytes(count * 8)
        rows, summary = self.measure("switch", {count: 10}, ("--nodes", nodes, "--switch", self.key,
                                                             "--switch-leaves", leaves))
        for way in ("up", "down"):
            self.assertTrue(least <= rows[count][way] <= 1.2 * least, (least, rows))
        for way in ("leaf_bytes", "leaf_bytes_down"):  # with all else that nodes say to each other
            self.assertTrue(11 * leaves * least <= summary[way] <= 1.3 * 11 * leaves * least,
                            (11 * leaves * least, summary))

    def test_any_switch_of_a_tree_may_die(self):
        for victim in ("10.0.255.254", "10.0.254.1", "10.0.254.2"):
            with self.subTest(victim=victim):
                process = subprocess.Popen(
                    [str(CARILLON), "cluster", "run", "--shape", "2,1,1,1", "--mpi", "openmpi",
                     "--switch", str(self.key), "--switch-leaves", "2", "--", str(PROBE), "40"],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    env=clean_environment({"CARILLON_NETWORK": "fabric",
                                           "CARILLON_ALGORITHM": "allreduce=switch"}))
                self.addCleanup(process.kill)
                while process.stdout.readline() != "round 2\n":
                    self.assertIsNone(process.poll())
                os.kill(self.switchd_of(process.pid, victim), signal.SIGKILL)
                out, err = process.communicate(timeout=120)
                self.assertEqual(process.returncode, 0, out + err)
                self.assertEqual(sorted(line for line in out.splitlines() if line[:5] == "rank "),
                                 [f"rank {rank} of 5, errors 0, allreduce.switch" for rank in range(5)])
                self.assertRegex(err, "do without a switch")

    def switchd_of(self, cluster, address):
        """The process of the cluster's switch there."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                above = int(name)
                while above > 1 and above != cluster:
                    stat = Path(f"/proc/{above}/stat").read_text()
                    above = int(stat.rpartition(")")[2].split()[1])
            except OSError:  # it has just ended
                continue
            if above == cluster and b"switchd" in words and address.encode() in words:
                found.append(int(name))
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_packets_are_as_long_as_the_wires_take(self):
        nodes, count = 3, 100000
        for mtu, operand_bytes in ((9000, 8192), (4000, 3840), (1500, 1408), (1280, 1152)):
            with self.subTest(mtu=mtu):
                rows, summary = self.measure(
                    "switch", {count: 5}, ("--nodes", nodes, "--switch", self.key, "--mtu", mtu))
                self.assertEqual(summary["mtu"], mtu)
                least = switch_wire_bytes(count * 8, operand_bytes)
                for way in ("up", "down"):
                    self.assertTrue(least <= rows[count][way] <= 1.03 * least, (least, rows))

    @unittest.skipUnless(shutil.which("nft", path=os.environ["PATH"] + ":/usr/sbin:/sbin"), "no nft")
    def test_packets_that_do_not_get_through_are_made_shorter(self):
        script = self.file("filter", """#!/bin/sh
PATH=$PATH:/usr/sbin:/sbin
printf '%s\n' 'add table inet narrow' 'add chain inet narrow in { type filter hook input priority 0; }' \
  'add rule inet narrow in meta l4proto udp meta length gt 2000 drop' | nft -f - || exit 1
exec "$@"
""")
        done = run("cluster", "run", "--nodes", 3, "--switch", self.key, "--mtu", 9000, "--mpi",
                   "openmpi", "--", script, PROBE, 5, CARILLON_NETWORK="fabric",
                   CARILLON_ALGORITHM="allreduce=switch")
        self.assertEqual(done.status, 0, done.out + done.err)
        self.assertNotIn("do without a switch", done.err)
        self.assertEqual(sorted(line for line in done.out.splitlines() if line.startswith("rank ")),
                         [f"rank {rank} of 3, errors 0, allreduce.switch" for rank in range(3)])

    @unittest.skipUnless(has_rtl(), "built without Verilator")
    def test_results_of_the_hardware_are_right(self):
        said, _ = self.play(3, "short", options=("--shape", "1,2,1", "--switch", self.key,
                                                 "--switch-engine", "rtl"),
                            CARILLON_ALGORITHM="allreduce=switch")
        self.assertEqual(sorted(line for line in said if line.startswith("rank ")),
                         [f"rank {rank} of 4, errors 0, allreduce.switch" for rank in range(4)])

    def measure(self, algorithm, calls, options, may_fail=False):
        """What switch_times says of each count: {count: {"us": ..., "busy", "up", "down"}}; and what
        the cluster does. What may fail has the counts that were done before."""
        words = [number for pair in calls.items() for number in pair]
        said, summary = self.play(*words, probe=TIMES, options=options, may_fail=may_fail,
                                  CARILLON_ALGORITHM=f"allreduce={algorithm}")
        rows = {}
        for line in said:
            names = line.split()
            rows[int(names[1])] = dict(zip(names[2::2], map(float, names[3::2])))
        self.assertEqual(list(rows), list(calls)[:len(rows)])
        self.assertTrue(may_fail or len(rows) == len(calls), said)
        return rows, summary

    def test_each_node_sends_one_copy(self):
        nodes, count = 5, 100000
        least = switch_wire_bytes(count * 8)
        rows, summary = self.measure("switch", {count: 10},
                                     ("--nodes", nodes, "--switch", self.key))
        for way in ("up", "down"):
            # Packets that are sent again, on a busy machine, and what else the job says.
            self.assertTrue(least <= rows[count][way] <= 1.2 * least, (least, rows))
        for way in ("wire_bytes", "wire_bytes_down"):  # with the call that is not counted
            self.assertGreaterEqual(summary[way], 11 * nodes * least)

    @unittest.skipUnless(PRINT, "measures")
    def test_times(self):
        names = PRINT[-1].split("=")[1:] or CLUSTERS
        for name in names:
            nodes, mbit = CLUSTERS[name]
            options = ["--nodes", nodes, "--rate", f"{mbit}mbit", "--burst", BURST]
            switch, _ = self.measure("switch", CALLS, [*options, "--switch", self.key])
            hosts = {}
            for algorithm in SPARING + OTHERS:
                calls = {count: number for count, number in CALLS.items()
                         if algorithm in SPARING or count * 8 < LONG}
                hosts[algorithm], end = self.measure(algorithm, calls, options, may_fail=True)
                times = [f"{count * 8} B {row['us']:.0f} us"
                         for count, row in hosts[algorithm].items()]
                failed = [f"THEN FAILED with status {end['status']}"] * (end["status"] != 0)
                print(f"  {algorithm}: {', '.join(times + failed)}", flush=True)
            for count, row in switch.items():
                best = min((algorithm for algorithm in hosts if count in hosts[algorithm]),
                           key=lambda algorithm: hosts[algorithm][count]["us"])
                print(f"{name} {mbit} Mbit/s {row_text(nodes, mbit, count * 8, row)}\n"
                      f"    {comparison(nodes, mbit, count * 8, row, best, hosts[best][count])}",
                      flush=True)


def switch_wire_bytes(size, operand_bytes=OPERAND_BYTES):
    """Of a message to or from a switch, with all headers."""
    return size + -(-size // operand_bytes) * SWITCH_HEADERS


def host_wire_bytes(nodes, size):
    """The least that each node has to send, and to receive, without a switch, in full segments."""
    return 2 * (nodes - 1) / nodes * size * (TCP_BYTES + TCP_HEADERS) / TCP_BYTES


def floor_us(wire_bytes, mbit):
    """As long as the wire takes; a burst may be there already."""
    return max(0, wire_bytes - BURST) * 8 / mbit


def row_text(nodes, mbit, size, row):
    copy = switch_wire_bytes(size)
    return (f"{size} B: switch {row['us']:.0f} us, the wire alone {floor_us(copy, mbit):.0f} us, "
            f"{row['busy']:.0f} % busy; {row['up'] / copy:.2f} copies up, {row['down'] / copy:.2f} "
            "down per node")


def comparison(nodes, mbit, size, row, algorithm, best):
    bytes_by_hosts = host_wire_bytes(nodes, size)
    ratio, bound = best["us"] / row["us"], bytes_by_hosts / switch_wire_bytes(size)
    text = (f"{algorithm} {best['us']:.0f} us, the wires alone {floor_us(bytes_by_hosts, mbit):.0f} us, "
            f"{best['busy']:.0f} % busy: {ratio:.2f} times")
    if size < 16384:  # it is no matter of the wires
        return text
    return f"{text}; bound {bound:.2f}, reached {100 * ratio / bound:.0f} %"


if __name__ == "__main__":
    sys.argv = [word for word in sys.argv if word not in PRINT]
    if PRINT and not {PRINT[-1].split("=")[-1]} <= {"--print", *CLUSTERS}:
        raise SystemExit(f"{PRINT[-1]}: there are {' and '.join(CLUSTERS)}")
    if not PROBE.exists():
        raise SystemExit("no Open MPI to run with")
    main()
