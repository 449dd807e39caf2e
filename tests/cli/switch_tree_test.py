#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# carillon switch-tree: what it prints of trees of the switch's hardware, and what it refuses.
import unittest

from support import CliTest, has_rtl, main


@unittest.skipUnless(has_rtl(), "built without Verilator")
class SwitchTree(CliTest):
    def test_rows_are_trees_by_lengths(self):
        said = self.ok("switch-tree", "-n", "2,17", "-b", "8,4K", "--json").json
        self.assertEqual([(row["nodes"], row["bytes"], row["levels"]) for row in said["rows"]],
                         [(2, 8, 1), (2, 4096, 1), (17, 8, 2), (17, 4096, 2)])
        self.assertEqual((said["radix"], said["cycle_ns"], said["link_ns"]), (16, 6.4, 200))
        for row in said["rows"]:
            self.assertAlmostEqual(row["latency_us"], row["cycles"] * 6.4e-3)
            self.assertLessEqual(row["evaluated_cycles"], row["switch_cycles"])
            self.assertIsNone(row["hosts"])
        hops = said["rows"][2]["hops"]
        self.assertEqual([hop["down_cycles"] is None for hop in hops], [False, True])
        self.assertEqual(said["rows"][1]["hops"], [])
        self.assertEqual([(each["bytes"], each["from_nodes"], each["to_nodes"])
                          for each in said["growth"]], [(8, 2, 17), (4096, 2, 17)])
        growth = said["rows"][2]["latency_us"] - said["rows"][0]["latency_us"]
        self.assertAlmostEqual(said["growth"][0]["us"], growth)

    def test_costs_are_as_they_are_told(self):
        def cycles(*words):
            return self.ok("switch-tree", "-n", 2, *words, "--json").json["rows"][0]["cycles"]

        plain = cycles()
        self.assertEqual(cycles("--link-ns", 264), plain + 2 * 10)
        self.assertEqual(cycles("--nic-ns", 564), plain + 2 * 10)
        self.assertEqual(cycles("--send-ns", 364), plain + 10)
        self.assertEqual(cycles("--receive-ns", 264), plain + 10)

    def test_clock_and_radix(self):
        said = self.ok("switch-tree", "-n", "2,5", "--mhz", 312.5, "--radix", 4, "--json").json
        self.assertEqual((said["cycle_ns"], said["radix"]), (3.2, 4))
        self.assertEqual([row["levels"] for row in said["rows"]], [1, 2])
        self.assertIn("4 ports at 312.5 MHz",
                      self.ok("switch-tree", "-n", 2, "--mhz", 312.5, "--ports", 4).out)
        self.fails("--cycle-ns excludes --mhz", "switch-tree", "--mhz", 100, "--cycle-ns", 10,
                   status=2)
        self.fails("--radix", "switch-tree", "--radix", 65, status=2)

    def test_against_hosts(self):
        said = self.ok("switch-tree", "-n", 16, "--against", "writes", "--json").json
        hosts = said["rows"][0]["hosts"]
        self.assertEqual(hosts["tree_by"], "rtl")
        self.assertGreater(hosts["fat_tree_times"], 1)
        self.assertGreaterEqual(hosts["tree_cycles"], hosts["fat_tree_cycles"])
        slower = self.ok("switch-tree", "-n", 16, "--against", "mpi", "--json").json["rows"][0]
        self.assertGreater(slower["hosts"]["tree_cycles"], hosts["tree_cycles"])
        self.assertIn("growth of 8 from 2 to 16 nodes",
                      self.ok("switch-tree", "-n", "2,16", "--against", "writes").out)

    def test_what_cannot_be(self):
        self.fails("4097", "switch-tree", "-n", 4097, status=2)
        self.fails("12 bytes are no number of elements of int64", "switch-tree", "-b", 12)
        self.fails("no xor of float64", "switch-tree", "--op", "xor", "--type", "float64")
        self.fails("no operation product; there are sum, min, ", "switch-tree", "--op", "product")
        self.fails("no type int16; there are int32, ", "switch-tree", "--type", "int16")
        self.fails("--window 3 is no power of two", "switch-tree", "--window", 3)
        self.fails("nan is no number", "switch-tree", "-n", 2, "--link-ns", "nan", status=2)
        self.fails("machine edr has no switches that reduce", "switch-tree", "-m", "edr")
        self.fails("hosts reduce integers here", "switch-tree", "-n", 2, "--type", "float64",
                   "--against", "writes")


if __name__ == "__main__":
    main()
