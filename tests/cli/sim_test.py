# SPDX-License-Identifier: Apache-2.0
#
# carillon sim: what it prints and writes, what it refuses, and that a sweep can be interrupted.
import csv
import io
import json
import signal
import subprocess
import unittest

from support import CARILLON, CliTest, main


class Output(CliTest):
    def test_json_of_one_call(self):
        row = self.ok("sim", "allreduce", "-a", "recursive_doubling", "--ranks", 8, "--bytes", 8,
                      "--machine", "edr", "--json").json
        self.assertEqual(row["algorithm"], "allreduce.recursive_doubling")
        self.assertEqual(row["messages"], 24)
        self.assertEqual(row["message_bytes"], 24 * 8)
        self.assertEqual(row["nodes"], 8)
        self.assertGreater(row["latency_us"], 1)
        for key in ["messages_per_s", "wall_s", "cpu_s", "peak_rss_mb"]:
            self.assertGreater(row[key], 0)
        self.assertEqual(set(row["phases"]), {"send_us", "wait_us", "copy_us", "reduce_us"})
        spent = sum(row["phases"].values())
        self.assertAlmostEqual(spent, row["rank_mean_us"], places=5)  # of one strand each

    def test_a_sweep_is_rows(self):
        options = ["sim", "bcast", "-a", "binomial", "--sweep", "ranks=2..9", "bytes=8,4K"]
        rows = self.ok(*options, "--json").json["rows"]
        self.assertEqual([row["ranks"] for row in rows], [2, 2, 4, 4, 8, 8, 9, 9])
        self.assertEqual([row["bytes"] for row in rows], [8, 4096] * 4)
        table = list(csv.DictReader(io.StringIO(self.ok(*options, "--csv").out)))
        self.assertEqual([float(row["latency_us"]) for row in table],
                         [row["latency_us"] for row in rows])
        self.assertEqual([line.split()[0] for line in self.ok(*options).out.splitlines()[2:]],
                         [str(row["ranks"]) for row in rows])

    def test_the_default_is_what_selection_chooses(self):
        self.assertIn("barrier.", self.ok("sim", "barrier", "--ranks", 4).out)

    def test_ranks_of_a_node(self):
        spread = self.ok("sim", "allgather", "-a", "ring", "-n", 8, "--ppn", 1, "--json").json
        packed = self.ok("sim", "allgather", "-a", "ring", "-n", 8, "--ppn", 8, "--json").json
        self.assertEqual((spread["nodes"], packed["nodes"]), (8, 1))
        self.assertLess(packed["latency_ps"], spread["latency_ps"])
        dealt = self.ok("sim", "allgather", "-n", 8, "--nodes", "3,1,4", "--json").json
        self.assertEqual(dealt["nodes"], 3)

    def test_skew_is_drawn_from_the_seed(self):
        def latency(seed):
            return self.ok("sim", "alltoall", "-n", 8, "--skew", 20, "--seed", seed,
                           "--json").json["latency_ps"]
        self.assertEqual(latency(3), latency(3))
        self.assertNotEqual(latency(3), latency(4))

    def test_timeline(self):
        path = self.folder / "trace.json"
        row = self.ok("sim", "bcast", "-a", "binomial", "-n", 4, "--timeline", path, "--json").json
        events = json.loads(path.read_text())["traceEvents"]
        self.assertEqual(sum(event["name"] == "put" for event in events), 3)
        self.assertEqual({event["pid"] for event in events}, {0, 1, 2, 3})
        end = max(event["ts"] + event["dur"] for event in events)
        self.assertAlmostEqual(end, row["latency_us"], places=5)

    def test_critical_path(self):
        row = self.ok("sim", "bcast", "-a", "chain", "-n", 4, "--path", "--json").json
        steps = row["critical_path"]
        self.assertEqual([step["rank"] for step in steps if step["from"] != step["rank"]],
                         [1, 2, 3])
        self.assertAlmostEqual(steps[-1]["end_us"], row["latency_us"], places=5)
        self.assertIn("2 -> 3", self.ok("sim", "bcast", "-a", "chain", "-n", 4, "--path").out)


class BadInput(CliTest):
    def test_is_one_clear_line(self):
        self.fails("no collective \"allsend\"", "sim", "allsend")
        self.fails("no algorithm \"bcast.ring\"", "sim", "bcast", "-a", "ring")
        self.fails("0 not in range", "sim", "bcast", "--ranks", 0, status=2)
        self.fails("no machine \"abacus\"", "sim", "bcast", "--machine", "abacus")
        self.fails("root 16 is not in", "sim", "bcast", "-a", "binomial", "--root", 16)
        self.fails("sweep ranks or bytes", "sim", "bcast", "--sweep", "nodes=2..4")
        self.fails("4 is less than 8", "sim", "bcast", "--sweep", "ranks=8..4")
        self.fails("0 ranks", "sim", "bcast", "--sweep", "ranks=0..4")
        self.fails("8 ranks, not 6", "sim", "bcast", "-n", 6, "--nodes", "4,4")
        self.fails("cores", "sim", "bcast", "-n", 999999, "--ppn", 999999)
        self.fails("not of a sweep", "sim", "bcast", "--sweep", "ranks=2,3", "--timeline", "x")
        self.fails("cannot write", "sim", "bcast", "--timeline", "/nowhere/at/all")


class Interrupt(CliTest):
    def test_the_rows_done_stay(self):
        sweep = [CARILLON, "sim", "alltoall", "-a", "pairwise", "--sweep", "ranks=2,16K"]
        process = subprocess.Popen([*sweep, "--csv"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.assertIn("collective", process.stdout.readline())
        self.assertTrue(process.stdout.readline().startswith("alltoall"))  # now the long one
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(out, "")
        self.assertIn("1 of 2 rows are done", err)
        self.assertEqual(process.returncode, 130)


if __name__ == "__main__":
    main()
