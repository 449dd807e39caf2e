# SPDX-License-Identifier: Apache-2.0
#
# carillon bench and calibrate between the nodes of a virtual cluster: rows of all that is compared,
# ranks that know that they share cores with other nodes', numbers that a simulation takes. Only root
# can make one.
import os
import re
import tempfile
import unittest

from support import CliTest, main, may_make_clusters


@unittest.skipUnless(may_make_clusters(), "needs CAP_NET_ADMIN and CAP_SYS_ADMIN (root)")
class BetweenNodes(CliTest):
    def test_bench_between_nodes(self):
        answer = self.ok("bench", "allreduce", "--compare", "sendrecv,rdma", "--nodes", 2, "--ppn",
                         2, "--sizes", "64", "--degrees", "1,2", "--iterations", 3, "--json").json
        self.assertEqual([row["ranks"] for row in answer["results"]], [4, 4])
        self.assertTrue(answer["virtual_cluster"])
        self.assertTrue(answer["network"].startswith("fabric"))

    def test_nodes_know_that_they_share_the_cores(self):
        # A rank that has its node's only core to itself shares it with the other node's all the same.
        cores = os.sched_getaffinity(0)
        one_of_two = ["bench", "allreduce", "--nodes", 2, "--sizes", 8, "--degrees", 1, "--compare",
                      "sendrecv,rdma", "--iterations", 3, "--json"]
        try:
            os.sched_setaffinity(0, {min(cores)})
            self.assertTrue(self.ok(*one_of_two).json["machine"]["crowded"])
        finally:
            os.sched_setaffinity(0, cores)
        if len(cores) > 1:
            self.assertFalse(self.ok(*one_of_two).json["machine"]["crowded"])

    def test_calibrated(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/cluster.toml"
            done = self.ok("calibrate", "--cluster", "--output", path, "--title", "two nodes")
            # The ping-pongs' bytes went from node to node.
            wire = re.search(r"2 nodes, .* ([\d.]+) MB over the wires", done.err)
            self.assertGreater(float(wire.group(1)), 50, done.err)
            numbers = self.ok("model", "--machine", path, "--numbers", "--json").json["numbers"]
            values = {row["name"]: row["value"] for row in numbers}
            # A message between nodes costs more than one within a node, by memory.
            self.assertGreater(values["two_sided.post_ns"] + values["one_sided.post_ns"],
                               2 * values["shared_memory.overhead_ns"])
            self.assertGreater(values["network.ns_per_byte"] + values["network.send_ns_per_byte"], 0)
            self.assertEqual(values["node.ranks"], 1)
            sim = self.ok("sim", "bcast", "--machine", path, "--ranks", 4, "--bytes", 65536, "--json")
        self.assertGreater(sim.json["latency_us"], 1)


if __name__ == "__main__":
    main()
