#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# carillon switchd with hosts in namespaces of their own, each on a wire of a chosen rate to the
# switch: right results, and one copy up and one down on each wire. Only root can do that. Run by
# hand with --print it says how long calls take.
import json
import os
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

from support import CARILLON, CliTest, clean_environment, main, may_make_clusters

SOAK = Path(os.environ.get("SWITCH_SOAK", "build/tests/switch_soak")).resolve()
PRINT = "--print" in sys.argv
HOSTS, WINDOW, OPERAND_BYTES, RATE_MBIT = 5, 64, 1408, 200


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True)


class Network:
    """A switch's namespace in the middle, a wire from it to each host's. Of host i: 10.9.i.2."""

    def __init__(self, test, hosts, rate_mbit):
        self.test, self.hosts = test, hosts
        self.switch = self.namespace("s")
        self.names = [self.namespace(i) for i in range(hosts)]
        for i, name in enumerate(self.names):
            ip("-n", self.switch, "link", "add", f"p{i}", "type", "veth", "peer", "name", "eth0",
               "netns", name)
            for where, device, address in ((self.switch, f"p{i}", f"10.9.{i}.1/30"),
                                           (name, "eth0", f"10.9.{i}.2/30")):
                ip("-n", where, "addr", "add", address, "dev", device)
                ip("-n", where, "link", "set", device, "up")
                subprocess.run(["tc", "-n", where, "qdisc", "add", "dev", device, "root", "tbf",
                                "rate", f"{rate_mbit}mbit", "burst", "16kb", "limit", "16mb"],
                               check=True, capture_output=True)

    def namespace(self, what):
        name = f"crl-{os.getpid()}-{what}"
        ip("netns", "add", name)
        self.test.addCleanup(ip, "netns", "del", name)
        ip("-n", name, "link", "set", "lo", "up")
        return name

    def start(self, where, *words):
        process = subprocess.Popen(["ip", "netns", "exec", where, *map(str, words)], text=True,
                                   stdout=subprocess.PIPE, env=clean_environment({}))
        self.test.addCleanup(process.stdout.close)
        self.test.addCleanup(process.wait)
        self.test.addCleanup(process.kill)
        return process

    def wire_bytes(self, host):
        """Received from the host, sent to it."""
        done = subprocess.run(["ip", "-n", self.switch, "-j", "-s", "link", "show", f"p{host}"],
                              check=True, capture_output=True, text=True)
        counts = json.loads(done.stdout)[0]["stats64"]
        return counts["rx"]["bytes"], counts["tx"]["bytes"]


class SwitchdNetTest(CliTest):
    def setUp(self):
        super().setUp()
        if not may_make_clusters() or not all(map(shutil.which, ("ip", "tc"))):
            self.skipTest("needs root, ip and tc")

    def allreduce(self, hosts, rate_mbit, count, calls):
        """What the hosts say, the switch's statistics, and the bytes on each wire."""
        key = self.folder / "switch.key"
        if not key.exists():
            self.ok("switchd", "--new-key", key)
        net = Network(self, hosts, rate_mbit)
        switchd = net.start(net.switch, CARILLON, "switchd", "--key-file", key, "--json")
        self.assertEqual(json.loads(switchd.stdout.readline())["listening"], "0.0.0.0:27182")
        shape = ["--key", key, "--window", WINDOW, "--operand-bytes", OPERAND_BYTES]
        children = ",".join(f"10.9.{i}.2:5000" for i in range(hosts))
        build = net.start(net.switch, SOAK, "build", *shape, "--switch", "127.0.0.1:27182",
                          "--children", children)
        group = build.stdout.read().strip()
        self.assertEqual(build.wait(), 0)
        before = [net.wire_bytes(i) for i in range(hosts)]
        processes = [net.start(net.names[i], SOAK, "host", *shape, "--switch",
                               f"10.9.{i}.1:27182", "--at", f"10.9.{i}.2:5000", "--child", i,
                               "--hosts", hosts, "--group", group, "--count", count, "--calls",
                               calls) for i in range(hosts)]
        said = [process.stdout.read() for process in processes]
        self.assertEqual([process.wait() for process in processes], [0] * hosts)
        wires = [tuple(b - a for a, b in zip(before[i], net.wire_bytes(i))) for i in range(hosts)]
        switchd.send_signal(signal.SIGTERM)
        statistics = json.loads(switchd.stdout.read())
        self.assertEqual(switchd.wait(), 0)
        return list(map(json.loads, said)), statistics, wires

    def test_each_wire_carries_one_copy_up_and_one_down(self):
        count, calls = 20000, 3
        hosts, statistics, wires = self.allreduce(HOSTS, RATE_MBIT, count, calls)
        packets = calls * -(-count * 8 // OPERAND_BYTES) + 1
        self.assertEqual(statistics["packets"]["operands"], HOSTS * packets)
        for i, (up, down) in enumerate(wires):
            again = hosts[i]["again"]
            self.assertEqual(hosts[i]["packets"], packets + again)
            # A header of 80 bytes per packet; what little else there is are neighbours' addresses.
            least = calls * count * 8 + packets * 80
            self.assertGreaterEqual(up, least)
            self.assertLessEqual(up, least + again * 1500 + 10000)
            self.assertGreaterEqual(down, least)

    @unittest.skipUnless(PRINT, "prints times")
    def test_times(self):
        for hosts, rate_mbit in ((8, 50), (16, 20)):
            for count in (2048, 16384, 131072):
                calls = max(3, 400000 // count)
                said, statistics, _ = self.allreduce(hosts, rate_mbit, count, calls)
                seconds = max(host["seconds"] for host in said) / calls
                wire = count * 8 * 8 / (rate_mbit * 1e6)
                print(f"{hosts} hosts, {rate_mbit} Mbit/s, {count * 8} B: {seconds * 1e3:.2f} ms, "
                      f"{wire / seconds:.3f} of the rate, sent again "
                      f"{sum(host['again'] for host in said)} of {sum(h['packets'] for h in said)}")
                self.doCleanups()
                self.setUp()


if __name__ == "__main__":
    if PRINT:
        sys.argv.remove("--print")
    main()
