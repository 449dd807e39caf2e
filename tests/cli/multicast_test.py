# SPDX-License-Identifier: Apache-2.0
#
# Multicast on virtual clusters: switches that pass it on to who has asked for it only, nodes where it
# does not work, ranks that are late or dead, and others that send to the same groups. Needs root,
# Open MPI and nftables.
import os
import re
import shutil
import subprocess
import sys
import time
import unittest
from pathlib import Path

from support import CARILLON, CliTest, clean_environment, main, may_make_clusters, run

PROBE = Path(os.environ.get("CLUSTER_PROBES", "build/tests")) / "multicast_probe-openmpi"
SOAK = os.environ.get("MULTICAST_SOAK", "build/bin/multicast_soak")
NOISE = Path(__file__).with_name("multicast_noise.py")
NFT = shutil.which("nft", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
WAYS = ("multicast", "multicast_leader", "multicast_dynamic")
NONE = "there is no multicast: "
# Before the command of one node.
OUTPUT = (f"{NFT} add table inet t; {NFT} add chain inet t o '{{ type filter hook output priority 0; }}';"
          f"{NFT} add rule inet t o ")


def at(node, command):
    return f'if [ $(hostname) = node{node} ]; then {command}; fi; '


@unittest.skipUnless(may_make_clusters(), "needs CAP_NET_ADMIN and CAP_SYS_ADMIN (root)")
class Multicast(CliTest):
    def play(self, way, *words, shape="2,2,1", options=(), before="", **environment):
        """The probe, on such nodes; what it says and what is said besides."""
        if not PROBE.exists() or NFT is None:
            self.skipTest("needs Open MPI and nft (nftables)")
        return run("cluster", "run", "--shape", shape, *options, "--mpi", "openmpi", "--", "sh", "-c",
                   before + 'exec "$0" "$@"', PROBE, *words, **self.settings(way, **environment))

    def settings(self, way, **environment):
        return {"CARILLON_ALGORITHM": f"bcast={way}", "CARILLON_NETWORK": "fabric",
                "CARILLON_MULTICAST_JOIN_S": "60", **environment}

    def check(self, done, algorithm, ranks=5):
        self.assertEqual(done.status, 0, done.err)
        said = sorted(line for line in done.out.splitlines() if line.startswith("rank "))
        self.assertEqual(said, [f"rank {rank} of {ranks}, errors 0, bcast.{algorithm}"
                                for rank in range(ranks)])

    def check_multicast(self, done, way):
        self.check(done, way)
        self.assertNotIn(NONE, done.err)

    def check_fallback(self, done, why):
        """All ranks do without, and one line says so."""
        self.check(done, "hierarchical")
        self.assertEqual(done.err.count(NONE), 1, done.err)
        self.assertRegex(done.err, NONE + why)

    def soak(self, nodes, script, *options):
        done = run("cluster", "exec", "--nodes", nodes, *options, "--", "sh", "-c", script)
        self.assertEqual(done.status, 0, done.out + done.err)
        return done.out


class Ranks(Multicast):
    def test_one_comes_late(self):
        # It leads its node, or not.
        for way, late in (("multicast", 3), ("multicast_leader", 2), ("multicast_leader", 3),
                          ("multicast_dynamic", 2), ("multicast_dynamic", 3)):
            with self.subTest(way=way, late=late):
                self.check_multicast(self.play(way, "late", late), way)

    def test_one_is_killed(self):
        for way in WAYS:
            with self.subTest(way=way):
                for said in self.survivors(way, 2, (0, 1, 3, 4)):
                    self.assertIn(f"bcast.{way}, carillon: a process of the communicator is dead", said)

    def survivors(self, way, victim, others):
        """How the others' broadcasts end. The launcher leaves them alone, and does not end by itself."""
        if not PROBE.exists():
            self.skipTest("needs Open MPI")
        environment = self.settings(way, OMPI_MCA_orte_enable_recovery="1")
        words = [CARILLON, "cluster", "run", "--shape", "2,2,1", "--mpi", "openmpi", "--", PROBE, "kill",
                 victim, self.folder / way]
        ends = [Path(f"{self.folder / way}.{rank}") for rank in others]
        with subprocess.Popen([str(word) for word in words], env=clean_environment(environment),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as launcher:
            deadline = time.monotonic() + 90
            while not all(end.exists() for end in ends) and time.monotonic() < deadline:
                try:
                    launcher.wait(timeout=0.1)
                    break
                except subprocess.TimeoutExpired:
                    pass
            launcher.terminate()
        return [end.read_text() if end.exists() else "nothing" for end in ends]


class Unasked(Multicast):
    def test_all_ranks_go_by_the_trial(self):
        # Wires are the limit, so that it should win; on a machine that is busy it may not.
        done = self.play("", "much", options=["--rate", "20mbit"], shape="2,1,1,1",
                         CARILLON_ALGORITHM="")
        wins = "bcast.multicast_leader" in done.out
        self.check(done, "multicast_leader" if wins else "hierarchical")
        self.assertNotIn(NONE, done.err)

    def test_not_where_it_is_forbidden(self):
        done = self.play("", "much", CARILLON_ALGORITHM="", CARILLON_LOG="info",
                         CARILLON_MULTICAST_JOIN_S="0",
                         before=at(2, OUTPUT + "ip daddr 224.0.0.0/4 udp dport != 0 drop"))
        self.check_fallback(done, r".*does not hear member ")


class Switches(Multicast):
    def test_snooping(self):
        for way in WAYS:
            with self.subTest(way=way):
                self.check_multicast(self.play(way, options=["--snooping"]), way)

    def test_snooping_spares_who_has_not_joined(self):
        # Nodes 0 and 1 broadcast; node 2 says what it has heard when they have ended.
        os.mkfifo(self.folder / "ended")
        script = (f'if [ $CARILLON_NODE = 2 ]; then cat {self.folder}/ended; '
                  'echo heard $(cat /sys/class/net/eth0/statistics/rx_bytes); else '
                  f'CARILLON_NODES=2 {SOAK} --broadcasts 6000 || exit 1; '
                  f'[ $CARILLON_NODE = 1 ] || echo > {self.folder}/ended; fi')
        heard = {}
        for options in ((), ("--snooping",)):
            out = self.soak(3, script, *options)
            sent = float(re.search(r"6000 broadcasts, (\S+) MB", out)[1]) * 1e6
            heard[options] = int(re.search(r"heard (\d+)", out)[1])
        self.assertGreater(heard[()], sent)
        self.assertLess(heard["--snooping",], sent / 100)

    def test_a_node_joins_slowly(self):
        # Its first report gets lost: the switch does not hear of node 1 before it asks again.
        slow = at(1, OUTPUT + "ip protocol igmp quota until 60 bytes drop")
        out = self.soak(3, slow + f"{SOAK} --broadcasts 100; status=$?; " +
                        at(1, f"{NFT} list table inet t") + "exit $status", "--snooping")
        self.assertIn("3 members, 100 broadcasts", out)
        self.assertGreaterEqual(int(re.search(r"used (\d+) bytes", out)[1]), 28, out)

    def test_a_node_never_joins(self):
        self.check_fallback(self.play("multicast_leader", shape="1,1,1,1,1", options=["--snooping"],
                                      before=at(1, OUTPUT + "ip protocol igmp drop"),
                                      CARILLON_MULTICAST_JOIN_S="2"),
                            r".*member 1 does not hear member \d")


class Networks(Multicast):
    def test_multicast_is_forbidden(self):
        for way in WAYS:
            with self.subTest(way=way):
                done = self.play(way, shape="1,1,1,1,1",
                                 before=at(2, OUTPUT + "ip daddr 224.0.0.0/4 udp dport != 0 drop"),
                                 CARILLON_MULTICAST_JOIN_S="2")
                self.check_fallback(done, r".*does not hear member 2 ")

    def test_multicasts_stop_being_passed_on(self):
        # Of 1.2 MB that node 2 sends to all no more than 0.7 get through.
        for way in WAYS:
            with self.subTest(way=way):
                done = self.play(way, "much", before=at(2, OUTPUT + "ip daddr 224.0.0.0/4 udp dport != 0 "
                                                        "quota over 700 kbytes drop"))
                self.check_multicast(done, way)
                self.assertIn(" sends to all does not reach member ", done.err)

    def test_an_mtu_is_lowered_at_the_root(self):
        # What is too long goes in fragments. Node 2 gets nothing long itself.
        for way in WAYS:
            with self.subTest(way=way):
                done = self.play(way, "change", 4, at(2, "ip link set eth0 mtu 1000") + ":")
                self.check_multicast(done, way)
                self.assertIn("go in fragments now; has an MTU been lowered?", done.err)

    def test_an_mtu_is_lowered_elsewhere(self):
        # What is too long is dropped before it reaches node 1: its rank says so, and all calls end.
        for way in WAYS:
            with self.subTest(way=way):
                done = self.play(way, "change", 4, at(1, "ip link set eth0 mtu 1000") + ":")
                self.assertNotEqual(done.status, 0)
                self.assertRegex(done.err, r"error: .*rank [23] of a team of 5 \(its collective \d+ on the "
                                 r"team\): multicast: packet \d+ of member \d does not reach member \d "
                                 r"\(udp eth0\).*has the MTU of an interface been lowered\? It must let "
                                 r"datagrams of 1472 bytes through")

    def test_no_such_interface(self):
        done = self.play("multicast_leader",
                         before=at(1, "export CARILLON_MULTICAST=udp:eth7"))
        self.check_fallback(done, r".*no interface 'eth7' is up; .*eth0")

    def test_a_node_may_not_join(self):
        # All others do not hear it; what is said is why.
        for shape, ranks in (("1,1,1", 3), ("2,2,1", 5)):
            with self.subTest(shape=shape):
                done = self.play("multicast_leader", shape=shape, CARILLON_MULTICAST_JOIN_S="2",
                                 before=at(1, "echo 0 > /proc/sys/net/ipv4/igmp_max_memberships"))
                self.check(done, "hierarchical", ranks)
                self.assertRegex(done.err, NONE + r".*cannot join 239\.\S+ port \d+ on eth0: .* \(member [12]\)")
                self.assertEqual(done.err.count(NONE), 1, done.err)

    def test_an_interface_that_leads_nowhere(self):
        done = self.play("multicast_leader", CARILLON_MULTICAST_JOIN_S="2",
                         before=at(1, "export CARILLON_MULTICAST=udp:lo"))
        self.check_fallback(done, r".*does not hear member ")

    def test_one_node_has_a_shorter_mtu(self):
        out = self.soak(3, at(1, "ip link set eth0 mtu 1000") + f"{SOAK} --broadcasts 300")
        self.assertIn("of 916 bytes", out)  # less IP's and UDP's heads and carillon's 56 bytes


class Others(Multicast):
    def test_two_jobs(self):
        out = self.soak(2, f"{SOAK} --broadcasts 1000 --port 9100 & first=$!; "
                           f"{SOAK} --broadcasts 1000 --port 9200 --seed 2 && wait $first")
        self.assertEqual(out.count("2 members, 1000 broadcasts"), 2, out)

    def test_noise(self):
        script = (f"mkfifo /dev/shm/ready; {sys.executable} {NOISE} > /dev/shm/ready & noise=$!; "
                  f"read ready < /dev/shm/ready; {SOAK} --broadcasts 10000; status=$?; kill $noise; "
                  "exit $status")
        out = self.soak(3, script)
        self.assertIn("3 members, 10000 broadcasts", out)
        self.assertGreater(int(re.search(r"foreign or damaged (\d+)", out)[1]), 100, out)


if __name__ == "__main__":
    main()
