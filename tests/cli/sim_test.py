# SPDX-License-Identifier: Apache-2.0
#
# carillon sim: what it prints and writes, what it refuses, and that a sweep can be interrupted.
import csv
import io
import json
import os
import signal
import subprocess
import unittest

from support import CARILLON, CliTest, main, may_make_clusters, run


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

    def test_slots_are_as_long_as_in_the_library(self):
        def messages(ranks, *options):
            return self.ok("sim", "bcast", "-a", "binomial", "-n", ranks, "--ppn", 1, "-b", 32768,
                           "--json", *options).json["messages"]
        self.assertEqual(messages(24), 23)
        self.assertEqual(messages(64), 2 * 63)  # of up to 24,576 bytes
        self.assertEqual(messages(64, "--slot-bytes", 32768), 63)
        self.assertEqual(messages(64, "--slot-bytes", 8192), 4 * 63)
        one_node = self.ok("sim", "bcast", "-a", "binomial", "-n", 32, "--ppn", 32, "-b", 32768,
                           "--json").json
        self.assertEqual(one_node["messages"], 31)
        self.fails("--slot-bytes", "sim", "bcast", "--slot-bytes", 0)

    def test_lists_save_copying(self):
        def report(memory, entries):
            return self.ok("sim", "alltoall", "-a", f"bruck_inplace:memory={memory}", "-n", 64,
                           "--gather-entries", entries, "--json").json
        def copying(memory, entries):
            return report(memory, entries)["phases"]["copy_us"]
        packed = copying("pack", 64)
        self.assertLess(copying("gather", 64), packed)
        self.assertEqual(copying("gather", 64), copying("gather", 2))  # in more requests
        self.assertLess(report("gather", 64)["latency_ps"], report("gather", 2)["latency_ps"])
        self.assertLess(copying("selective", 64), packed)
        self.assertGreater(copying("pack", 1), packed)  # and copied again into registered memory

    def test_switches_that_reduce(self):
        def of(*options):
            return self.ok("sim", "allreduce", "-a", "switch", "-m", "hu2013", *options,
                           "--json").json
        rows = of("--sweep", "ranks=2,16,17,4096", "bytes=8")["rows"]
        self.assertEqual(rows[0]["latency_ps"], rows[1]["latency_ps"])
        self.assertLess(rows[1]["latency_ps"], rows[2]["latency_ps"])
        self.assertLess(rows[3]["latency_ps"] - rows[0]["latency_ps"], 2_000_000)
        self.assertEqual([row["messages"] for row in rows], [2, 16, 17, 4096])
        self.assertEqual(of("-n", 16, "-b", 1 << 20)["messages"], 16 * 745)
        self.assertGreater(of("--nodes", "3,1,2", "-n", 6)["latency_ps"], rows[0]["latency_ps"])
        model = self.ok("model", "allreduce", "-a", "switch", "-m", "hu2013", "-n", 4096,
                        "--json").json["rows"][0]
        self.assertEqual(model["latency_ps"], rows[3]["latency_ps"])
        self.fails("machine edr has no switches that reduce", "sim", "allreduce", "-a", "switch")

    # As the library chooses: from 256 KiB and 3 nodes on, where one switch has a port for each node.
    def test_selection_chooses_the_switch_as_the_library_does(self):
        def chosen(nodes, size, machine="hu2013", ppn=1):
            return self.ok("sim", "allreduce", "-n", nodes * ppn, "--ppn", ppn, "-b", size, "-m",
                           machine, "--json").json["algorithm"]
        for nodes, ppn in [(3, 1), (5, 3), (16, 1)]:
            self.assertEqual(chosen(nodes, 1 << 18, ppn=ppn), "allreduce.switch")
        for nodes, size in [(2, 1 << 18), (17, 1 << 18), (16, (1 << 18) - 8)]:
            self.assertNotIn("switch", chosen(nodes, size))
        self.assertNotIn("switch", chosen(16, 1 << 18, "edr"))

    def test_a_radix_beyond_the_team_is_refused(self):
        for radix in [1, 9]:
            self.fails("a radix is from 2 to the number of ranks", "sim", "alltoall", "-a",
                       f"bruck_resident:k={radix}", "-n", 8)

    def test_skew_is_drawn_from_the_seed(self):
        def latency(seed):
            return self.ok("sim", "alltoall", "-n", 8, "--skew", 20, "--seed", seed,
                           "--json").json["latency_ps"]
        self.assertEqual(latency(3), latency(3))
        self.assertNotEqual(latency(3), latency(4))

    def test_ranks_begin_as_a_file_says(self):
        def latency(*starts):
            file = self.file("starts", "\n".join(map(str, starts)))
            return self.ok("sim", "bcast", "-a", "flat", "-n", 3, "--starts", file,
                           "--json").json["latency_us"]
        at_once = latency(0, 0, 0)
        self.assertEqual(at_once, self.ok("sim", "bcast", "-a", "flat", "-n", 3,
                                          "--json").json["latency_us"])
        self.assertAlmostEqual(latency(100.5, 0, 0), at_once + 100.5)
        self.fails("says when 2 ranks begin; there are 3", "sim", "bcast", "-n", 3, "--starts",
                   self.file("starts", "0 1"))
        for wrong in ("-1", "nan", "1x", "2e9"):
            self.fails("is no number of microseconds", "sim", "bcast", "-n", 1, "--starts",
                       self.file("starts", wrong))
        self.fails("cannot read", "sim", "bcast", "--starts", "/nowhere")
        self.fails("it is a folder", "sim", "bcast", "--starts", "/tmp")

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


class Program(CliTest):
    LINES = ("carillon-program 1\nranks 6\nteams row blocks 3\n"
             "call sum allreduce count=100 element=8\ncall rows allgather team=row count=64\n"
             "rank all\nrepeat 4\nstart sum\nstart rows\ncompute 2000\nwait rows\nwait sum\n"
             "end\nother scan 500\n")

    def program(self, lines=LINES):
        return self.file("p", lines, 0o644)

    def test_json(self):
        row = self.ok("sim", "--program", self.program(), "--ppn", 3, "--json").json
        self.assertEqual((row["ranks"], row["nodes"], row["interrupted"]), (6, 2, False))
        self.assertEqual(row["collectives"]["allreduce"]["calls"], 4)
        self.assertEqual(row["collectives"]["allgather"]["calls"], 8)
        self.assertEqual(row["collectives"]["allgather"]["starts"], 24)
        self.assertEqual(row["other_calls"], 6)
        for times in row["rank_times"]:
            self.assertAlmostEqual(times["compute_us"], 8)
            self.assertAlmostEqual(times["other_us"], 0.5)
            self.assertAlmostEqual(times["compute_us"] + times["other_us"] + times["call_us"],
                                   times["end_us"])
        self.assertAlmostEqual(row["total_us"], max(t["end_us"] for t in row["rank_times"]))
        shares = row["compute_share"] + row["other_share"] + row["call_share"]
        self.assertLessEqual(shares, 1.0000001)
        self.assertAlmostEqual(sum(kind["share"] for kind in row["collectives"].values()),
                               row["call_share"])

    def test_text(self):
        out = self.ok("sim", "--program", self.program(), "-a", "allreduce=ring").out
        self.assertRegex(out, r"allreduce +4 .*allreduce\.ring")
        self.assertIn("6 ranks", out)

    # By the same words as the call alone, with the line that makes it.
    def test_a_forced_algorithm_that_cannot_do_a_call(self):
        def program(call):
            return self.program("carillon-program 1\nranks 6\nteams row blocks 3\n"
                                f"call a {call} team=row count=8\nrank all\ncompute 5\ndo a\n")
        for collective, algorithm, machine, why in [
                ("allreduce", "switch", "edr", "machine edr has no switches that reduce; it needs "
                 r"section \[switch\]"),
                ("bcast", "multicast", "clan_via", "the file of machine clan_via does not say"),
                ("alltoall", "bruck_resident:k=4", "edr", "k=4 in a team of 3 ranks; a radix is")]:
            self.fails(rf"p:7: {collective}\.\w+(:| cannot be simulated:) {why}", "sim", "--program",
                       program(collective), "-m", machine, "-a", f"{collective}={algorithm}")
            self.fails(f"^carillon: {collective}.* {why}", "sim", collective, "-n", 3, "-m",
                       machine, "-a", algorithm)
        ordered = program("allreduce ordered")
        self.fails("p:7: allreduce.ring reorders .*; use allreduce.flat$", "sim", "--program",
                   ordered, "-a", "allreduce=ring")
        out = self.ok("sim", "--program", ordered, "-a", "allreduce=recursive_doubling", "-a",
                      "allreduce=ring").out
        self.assertRegex(out, r"allreduce +2 .*allreduce\.recursive_doubling *\n")
        self.ok("sim", "--program", program("allreduce"), "-m", "hu2013", "-a", "allreduce=switch")

    # Alone a rank copies, by whatever algorithm.
    def test_a_forced_algorithm_where_a_team_has_one_rank(self):
        path = self.program("carillon-program 1\nranks 4\nteams own blocks 1\n"
                            "call a alltoall team=own count=8\ncall b alltoall count=8\n"
                            "rank all\ndo a\ndo b\n")
        out = self.ok("sim", "--program", path, "-a", "alltoall=bruck_resident:k=4").out
        self.assertRegex(out, r"alltoall.*bruck_resident")

    def test_one_call_is_the_call_alone(self):
        path = self.program("carillon-program 1\nranks 12\ncall a allreduce count=512 element=8\n"
                            "rank all\ndo a\n")
        for options in [["--ppn", 1], ["--ppn", 4, "--skew", 7, "--seed", 3]]:
            both = [self.ok("sim", *what, "--json", *options).json
                    for what in [["--program", path], ["allreduce", "-n", 12, "--bytes", 4096]]]
            self.assertEqual(both[0]["total_ps"], both[1]["latency_ps"])
            self.assertEqual(both[0]["messages"], both[1]["messages"])

    def test_a_sweep_is_each_size_alone(self):
        base = ["sim", "--program", self.program()]
        sizes = [6, 12, 24]
        alone = [self.ok(*base, "--json", "-n", size).json["total_ps"] for size in sizes]
        self.assertEqual(len(set(alone)), 3)
        rows = self.ok(*base, "--json", "--sweep", "ranks=6..24").json["rows"]
        self.assertEqual([(row["ranks"], row["total_ps"]) for row in rows],
                         list(zip(sizes, alone)))
        lines = self.ok(*base, "--csv", "--sweep", "ranks=6..24").out.splitlines()
        head = lines[0].split(",")
        self.assertEqual([line.split(",")[head.index("ranks")] for line in lines[1:]],
                         [str(size) for size in sizes])
        for line, total_ps in zip(lines[1:], alone):
            self.assertAlmostEqual(float(line.split(",")[head.index("total_us")]), total_ps / 1e6)

    def test_other_sizes_and_machines(self):
        base = ["sim", "--program", self.program(), "--json"]
        self.assertEqual(self.ok(*base, "--ranks", 12).json["collectives"]["allgather"]["calls"], 16)
        times = {self.ok(*base, *more).json["total_ps"] for more in [
            [], ["--machine", "fdr"], ["--compute-scale", 2], ["--ppn", 6], ["--progress", "thread"],
            ["--progress", "servlet"]]}
        self.assertEqual(len(times), 6)
        self.fails(":3:|:5:.*does not divide both", *base, "--ranks", 8)

    def test_ranks_begin_as_a_file_says(self):
        def total(*starts):
            return self.ok("sim", "--program", self.program(), "--json", "--starts", self.file(
                "starts", " ".join(map(str, starts)))).json["total_us"]
        at_once = total(0, 0, 0, 0, 0, 0)
        self.assertEqual(at_once,
                         self.ok("sim", "--program", self.program(), "--json").json["total_us"])
        self.assertGreater(total(0, 0, 0, 0, 0, 1000), at_once + 900)
        self.fails("says when 2 ranks begin; there are 6", "sim", "--program", self.program(),
                   "--starts", self.file("starts", "0 1"))
        self.fails("excludes", "sim", "--program", self.program(), "--starts",
                   self.file("starts", "0"), "--skew", 1, status=2)

    def test_the_simulator_itself(self):
        row = self.ok("sim", "--program", self.program(), "--json").json
        self.assertAlmostEqual(row["messages_per_s"] * row["wall_s"], row["messages"], places=3)
        self.assertGreater(row["peak_rss_mb"], 1)
        self.assertLess(row["peak_rss_mb"], 1000)

    def test_timeline(self):
        path = self.folder / "trace.json"
        self.ok("sim", "--program", self.program(), "--timeline", path)
        events = json.loads(path.read_text())["traceEvents"]
        steps = [event for event in events if event["tid"] == "program"]
        self.assertEqual({event["pid"] for event in steps}, set(range(6)))
        self.assertLessEqual({"compute", "sum", "scan"}, {event["name"] for event in steps})
        self.assertIn("put", {event["name"] for event in events})

    def test_critical_path(self):
        path = self.program()
        row = self.ok("sim", "--program", path, "--path", "--json").json
        steps = row["critical_path"]
        self.assertGreater(len(steps), 4)
        self.assertAlmostEqual(max(step["end_us"] for step in steps), row["total_us"])
        self.assertIn("critical path:", self.ok("sim", "--program", path, "--path").out)

    def test_what_cannot_be(self):
        path = self.program()
        self.fails("cannot read /nowhere/at/all: No such file", "sim",
                   "--program", "/nowhere/at/all")
        self.fails("which collective, or program", "sim")
        self.fails("excludes", "sim", "--program", path, "allreduce", status=2)
        self.fails("ranks only", "sim", "--program", path, "--sweep", "bytes=2,3")
        self.fails("one size", "sim", "--program", path, "--sweep", "ranks=6,12", "--timeline", "t")
        self.fails("requires", "sim", "allreduce", "--compute-scale", 2, status=2)
        self.fails("name the collective", "sim", "--program", path, "-a", "ring")
        self.fails("no algorithm", "sim", "--program", path, "-a", "allreduce=abacus")
        self.fails("given more than once", "sim", "allreduce", "-a", "ring", "-a", "flat")
        self.fails("6 ranks, not|, not 6", "sim", "--program", path, "--nodes", "4,4")
        self.fails(r"p:4: there is no \"sing\"", "sim", "--program",
                   self.program("carillon-program 1\nranks 2\n\nsing\n"))
        self.fails("p:5: rank 0 waits for ever in barrier", "sim", "--program", self.program(
            "carillon-program 1\nranks 2\ncall a barrier\nrank 0\ndo a\nrank 1\n"))


class BadInput(CliTest):
    def test_is_one_clear_line(self):
        self.fails("no collective \"allsend\"", "sim", "allsend")
        self.fails("no algorithm \"bcast.ring\"", "sim", "bcast", "-a", "ring")
        self.fails("0 not in range", "sim", "bcast", "--ranks", 0, status=2)
        self.fails("no machine \"abacus\"", "sim", "bcast", "--machine", "abacus")
        self.fails("root 16 is not in", "sim", "bcast", "-a", "binomial", "--root", 16)
        self.fails("sweep ranks or bytes", "sim", "bcast", "--sweep", "nodes=2..4")
        self.fails("4 is less than 8", "sim", "bcast", "--sweep", "ranks=8..4")
        for sweep in ("ranks=many", "ranks=2..many", "bytes=", "ranks=..4", "ranks=2..4,8"):
            self.fails(f"--sweep {sweep}: .* list of numbers", "sim", "bcast", "--sweep", sweep)
        self.fails("excludes", "sim", "bcast", "--validate", status=2)
        self.fails("cannot write /nowhere/t: No such file .*choose another", "sim", "bcast",
                   "--timeline", "/nowhere/t")
        self.fails("0 ranks", "sim", "bcast", "--sweep", "ranks=0..4")
        self.fails("8 ranks, not 6", "sim", "bcast", "-n", 6, "--nodes", "4,4")
        self.fails("cores", "sim", "bcast", "-n", 999999, "--ppn", 999999)
        self.fails("not of a sweep", "sim", "bcast", "--sweep", "ranks=2,3", "--timeline", "x")
        self.fails("not of a sweep", "sim", "bcast", "--sweep", "ranks=2,3", "--path")
        self.fails("excludes --csv", "sim", "bcast", "--json", "--csv", status=2)
        self.fails("nan is no number", "sim", "bcast", "--skew", "nan", status=2)
        empty = self.file("empty.toml", "")
        self.fails("empty.toml:1: the file needs title", "sim", "bcast", "--machine", empty)
        self.fails("cannot write", "sim", "bcast", "--timeline", "/nowhere/at/all")

    def test_sizes_have_units(self):
        self.assertEqual(self.ok("sim", "bcast", "-b", "4K", "--json").json["bytes"], 4096)


class Large(CliTest):
    """A million ranks, of which nothing is kept that is not needed: by messages and memory alone."""

    def test_takes_at_most_600_bytes_per_rank(self):
        ranks = 1 << 20
        for collective, algorithm, messages in [("allreduce", "recursive_doubling", 20 * ranks),
                                                ("bcast", "binomial", ranks - 1)]:
            row = self.ok("sim", collective, "-a", algorithm, "-n", ranks, "--ppn", 1, "--skew", 5,
                          "--json").json
            self.assertEqual(row["messages"], messages)
            self.assertEqual(row["message_bytes"], 8 * messages)
            self.assertLessEqual(row["peak_rss_mb"] * (1 << 20), 600 * ranks)


class FailedRow(CliTest):
    """A sweep of which a row cannot be: what was done before is printed."""
    CALL = ["sim", "alltoall", "-a", "bruck_resident:k=9", "--sweep", "ranks=16,32,8,64"]
    PROGRAM = "carillon-program 1\nranks 4\nteams row blocks 4\ncall a barrier team=row\nrank all\ndo a\n"

    def sweep(self, form, words, row, why):
        done = run(*words, *form)
        self.assertEqual(done.status, 1, done.err)
        self.assertRegex(done.err, f"^carillon: {row}: .*{why}.*; 2 of 4 rows are done\n$")
        return done

    def check(self, words, row, why):
        rows = self.sweep(["--json"], words, row, why).json["rows"]
        table = list(csv.DictReader(io.StringIO(self.sweep(["--csv"], words, row, why).out)))
        for printed in rows, table:
            self.assertEqual([int(one["ranks"]) for one in printed], [16, 32])
        return self.sweep([], words, row, why).out

    def test_of_calls(self):
        out = self.check(self.CALL, "8 ranks, 8 bytes", "a radix is from 2")
        self.assertEqual(out.count("bruck_resident"), 2)

    def test_of_programs(self):
        out = self.check(["sim", "--program", self.file("p", self.PROGRAM, 0o644), "--sweep",
                          "ranks=16,32,6,64"], "6 ranks", "row")
        self.assertEqual(out.count("on machine edr"), 2)

    def test_the_first_row(self):
        for form in ["--json"], ["--csv"], []:
            self.fails("8 ranks, 8 bytes: .*; 0 of 2 rows are done", "sim", "alltoall", "-a",
                       "bruck_resident:k=9", "--sweep", "ranks=8,16", *form)
            self.fails("6 ranks: .*; 0 of 2 rows are done", "sim", "--program",
                       self.file("p", self.PROGRAM, 0o644), "--sweep", "ranks=6,16", *form)


class Validate(CliTest):
    def check(self, *options):
        report = self.ok("sim", "--validate", "--sizes", "8,4K", "--rounds", 1, "--json",
                         *options).json
        self.assertEqual([(row["collective"], row["bytes"]) for row in report["rows"]],
                         [(name, n) for name in ("bcast", "allreduce", "alltoall")
                          for n in (8, 4096)])
        for row in report["rows"]:
            self.assertGreater(row["measured_us"], 0)
            self.assertGreater(row["predicted_us"], 0)
        return report

    def test_on_one_node(self):
        self.assertFalse(self.check("-n", 3)["between_nodes"])

    def test_by_a_machine_file(self):
        self.assertEqual(self.check("-m", "edr")["machine"], "edr")

    def test_ranks_that_count_as_nodes(self):
        self.assertTrue(self.check("--apart")["between_nodes"])

    @unittest.skipUnless(may_make_clusters(), "needs CAP_NET_ADMIN and CAP_SYS_ADMIN (root)")
    def test_on_a_virtual_cluster(self):
        self.assertTrue(self.check("-n", 3, "--cluster")["virtual_cluster"])

    @unittest.skipUnless(may_make_clusters(), "needs CAP_NET_ADMIN and CAP_SYS_ADMIN (root)")
    def test_multicasts_only_where_the_machine_has_numbers_for_it(self):
        def algorithm_of_bcast(*options):
            return self.ok("sim", "--validate", "-n", 3, "--cluster", "--sizes", "16K", "--rounds",
                           1, "--json", *options, CARILLON_MULTICAST="udp").json["rows"][0][
                               "algorithm"]
        self.assertNotIn("multicast", algorithm_of_bcast())
        self.assertEqual(algorithm_of_bcast("-m", "edr"), "bcast.multicast_leader")

    def test_bad_input(self):
        self.fails("there is no machine \"nix\"", "sim", "--validate", "-m", "nix")
        self.fails("at most 16 ranks", "sim", "--validate", "-m", "edr", "-n", 17)
        self.fails("--validate", "sim", "bcast", "--cluster", status=2)


class Interrupt(CliTest):
    def test_the_rows_done_stay(self):
        for sent in signal.SIGINT, signal.SIGTERM:
            self.interrupt("-a", "pairwise", "--sweep", "ranks=2,16K", sent=sent)

    def test_while_a_schedule_is_emitted(self):
        self.interrupt("-a", "bruck_inplace", "-n", "1024", "--sweep", "bytes=8,1024M")

    def interrupt(self, *options, sent=signal.SIGINT):
        sweep = [CARILLON, "sim", "alltoall", *options]
        process = subprocess.Popen([*sweep, "--csv"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.assertIn("collective", process.stdout.readline())
        self.assertTrue(process.stdout.readline().startswith("alltoall"))  # now the long one
        process.send_signal(sent)
        out, err = process.communicate(timeout=60)
        self.assertEqual(out, "")
        self.assertIn("1 of 2 rows are done", err)
        self.assertEqual(process.returncode, 128 + sent)

    def test_the_rows_done_are_in_json_and_in_the_table(self):
        for form in ["--json"], []:
            terminal, stderr = os.openpty()
            process = subprocess.Popen([CARILLON, "sim", "alltoall", "-a", "pairwise", "--sweep",
                                        "ranks=2,16K", *form], stdout=subprocess.PIPE,
                                       stderr=stderr, text=True)
            os.close(stderr)
            said = b""
            while b"2 of 2" not in said:  # now the long one
                said += os.read(terminal, 1000)
            process.send_signal(signal.SIGINT)
            out = process.communicate(timeout=60)[0]
            os.close(terminal)
            self.assertEqual(process.returncode, 130)
            if form:
                self.assertEqual([row["ranks"] for row in json.loads(out)["rows"]], [2])
            else:
                self.assertEqual(out.count("pairwise"), 1, out)


class InterruptedProgram(CliTest):
    def test_what_is_done_is_printed(self):
        path = self.file("p", "carillon-program 1\nranks 2\ncall a barrier\nrank all\n"
                         "repeat 1000000000\ncompute 10\ndo a\nend\n")
        process = subprocess.Popen([CARILLON, "sim", "--program", path, "--json", "--timeline",
                                    self.folder / "t"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while not (self.folder / "t").exists() or (self.folder / "t").stat().st_size < 100000:
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertTrue(json.loads(out)["interrupted"])
        self.assertGreater(json.loads(out)["total_us"], 0)
        self.assertIn("interrupted after", err)
        self.assertEqual(process.returncode, 130)

    # An interrupted size has no row.
    def test_the_sizes_done_stay(self):
        for sent in signal.SIGINT, signal.SIGTERM:
            self.interrupt("call a barrier\nrank all\nrepeat 2000\ndo a\nend\n", 4096, sent=sent)

    def test_while_a_schedule_is_emitted(self):
        self.interrupt("call a alltoall count=1000000000\nrank all\ndo a\n", 1024,
                       "-a", "alltoall=bruck_inplace")

    def interrupt(self, body, ranks, *options, sent=signal.SIGINT):
        path = self.file("p", "carillon-program 1\nranks 2\n" + body)
        process = subprocess.Popen([CARILLON, "sim", "--program", path, "--sweep",
                                    f"ranks=2,{ranks}", "--csv", *options],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertTrue(process.stdout.readline().startswith("program,"))
        self.assertIn(",2,", process.stdout.readline())  # now the long one
        process.send_signal(sent)
        out, err = process.communicate(timeout=60)
        self.assertEqual(out, "")
        self.assertIn("interrupted after", err)
        self.assertEqual(process.returncode, 128 + sent)


if __name__ == "__main__":
    main()
