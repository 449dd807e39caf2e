# SPDX-License-Identifier: Apache-2.0
#
# The commands that need no MPI: list, show, verify, model, reproduce, calibrate, info;
# help; wrong use.
import os
import re
import tempfile
from pathlib import Path

from support import CliTest, main, run

WRONG = os.environ.get("CLI_WITH_WRONG_ALGORITHM", "build/tests/carillon_with_wrong_algorithm")
COMMANDS = ["run", "exec", "switchd", "switch-tree", "bench", "demo", "list", "show", "verify",
            "model", "reproduce", "calibrate", "sim", "info"]


class Help(CliTest):
    def test_every_command_has_help_with_an_example(self):
        for command in COMMANDS:
            self.assertRegex(self.ok(command, "--help").out, r"Examples?:\n  .*carillon " + command)

    def test_version(self):
        self.assertRegex(self.ok("--version").out, r"^carillon \d+\.\d+\.\d+\n$")

    def test_wrong_use(self):
        self.fails("which command", status=2)
        self.fails("no command frobnicate", "frobnicate", status=2)
        self.fails("--frob", "list", "--frob", status=2)
        self.fails("which program", "run", status=2)
        self.fails("which program", "exec", "--stats", "--", status=2)
        self.fails("--frob", "run", "--frob", "true", status=2)
        self.fails("no command cluster frobnicate", "cluster", "frobnicate", status=2)


class List(CliTest):
    def test_json_has_every_algorithm_with_its_parameters(self):
        rows = {row["id"]: row for row in self.ok("list", "--json").json["algorithms"]}
        self.assertIn("barrier.dissemination", rows)
        self.assertTrue(rows["allreduce.ring"]["needs_commutative"])
        self.assertEqual(rows["allreduce.degree_k"]["parameters"]["k"]["min"], 1)
        bruck = rows["alltoall.bruck_resident"]["parameters"]
        self.assertEqual(bruck["k"], {"min": 2, "max": "ranks", "default": 2})
        self.assertEqual(bruck["memory"]["values"], ["pack", "gather", "selective"])
        for name, row in rows.items():
            self.assertEqual(name.split(".")[0], row["collective"])
            self.assertTrue(row["description"])

    def test_of_one_collective(self):
        rows = self.ok("list", "bcast", "--json").json["algorithms"]
        self.assertEqual({row["collective"] for row in rows}, {"bcast"})
        self.assertIn("bcast.chain", self.ok("list", "bcast").out)

    def test_unknown_collective(self):
        self.fails("no collective \"allgatherall\"; there are barrier", "list", "allgatherall")


class Show(CliTest):
    def test_text(self):
        text = self.ok("show", "bcast.binomial", "--ranks", 4, "--rank", 3, "--bytes", 64).out
        self.assertRegex(text, r"\A// bcast\.binomial: .*\nschedule ranks 4 rank 3")  # the text form
        self.assertIn("wait", text)

    def test_drawing(self):
        drawing = self.ok("show", "bcast.binomial", "--ranks", 4, "--draw").out
        self.assertRegex(drawing, r"step 1 .*0->")

    def test_nodes(self):
        text = self.ok("show", "allreduce.hierarchical", "--nodes", "3,1,2", "--rank", 5).out
        self.assertIn("schedule ranks 6 rank 5", text)
        drawing = self.ok("show", "bcast.hierarchical", "--nodes", "rr:2", "-n", 5, "--draw").out
        self.assertRegex(drawing, r"step 1 .*0->1")
        for nodes in ("3,x", "3,", ","):
            self.fails("which ranks share a node", "show", "bcast.flat", "--nodes", nodes)
        self.fails("leave one out", "show", "bcast.flat", "--nodes", "3,1", "--ranks", 5)

    def test_json(self):
        row = self.ok("show", "alltoallv.pairwise", "--ranks", 3, "--json").json
        self.assertEqual((row["algorithm"], row["ranks"]), ("alltoallv.pairwise", 3))
        self.assertEqual(self.ok("show", "bcast.flat", "--bytes", "4K", "--json").json["bytes"], 4096)

    def test_errors(self):
        self.fails("no algorithm \"bcast.fast\"; there are bcast.flat", "show", "bcast.fast")
        self.fails("k=1 is not in 2..", "show", "bcast.knomial:k=1")
        self.fails("no parameter k", "show", "bcast.flat:k=3")
        self.fails("rank 4 is not in 0..3", "show", "bcast.flat", "--ranks", 4, "--rank", 4)
        self.fails("root 9 is not in 0..3", "show", "bcast.flat", "--ranks", 4, "--root", 9)
        self.fails("in place", "show", "scatter.flat", "--rank", 1, "--in-place")


class Verify(CliTest):
    def test_all(self):
        answer = self.ok("verify", "--ranks", "1-3", "--json").json
        self.assertGreater(answer["verified"], 1000)
        self.assertEqual(answer["failed"], [])

    def test_one(self):
        out = self.ok("verify", "allreduce.degree_k:k=4", "bcast.chain", "--ranks", "7").out
        self.assertRegex(out, r"^\d+ proofs of 2 algorithms for 7 ranks, 0 failed\n$")

    def test_nodes(self):
        out = self.ok("verify", "allreduce.hierarchical:leaders=ring", "--nodes", "3,1,2").out
        self.assertRegex(out, r"^[1-9]\d* proofs of 1 algorithms for 6 ranks, 0 failed\n$")
        self.ok("verify", "bcast.hierarchical", "bcast.flat", "--nodes", "rr:3", "--ranks", "4-7")

    def test_of_a_collective(self):
        def proofs(*ids):
            return self.ok("verify", *ids, "--ranks", "3", "--json").json["verified"]
        rows = self.ok("list", "scatter", "--json").json["algorithms"]
        self.assertEqual(proofs("scatter"), proofs(*(row["id"] for row in rows)))
        self.assertEqual(proofs("scatter", "bcast.flat"), proofs("scatter") + proofs("bcast.flat"))

    def test_roots(self):
        def proofs(ranks, *words):
            answer = self.ok("verify", "bcast.binomial", "--ranks", ranks, "--json", *words).json
            self.assertEqual(answer["failed"], [])
            return answer["verified"]
        self.assertEqual(proofs(16), proofs(16, "--roots", "all"))
        self.assertEqual(proofs(18), proofs(18, "--roots", "some"))
        each = proofs(18) // 4  # of the roots 0, 1, 9 and 17
        self.assertEqual(proofs(18, "--roots", "all"), 18 * each)

    def test_errors(self):
        self.fails("which ranks share a node", "verify", "--nodes", "0,1")
        self.fails("4 ranks, --ranks says 5; leave one out", "verify", "--nodes", "3,1", "--ranks", 5)
        self.fails("no algorithm \"nothing\"", "verify", "nothing")
        self.fails("not a range", "verify", "--ranks", "9-2")
        self.fails("not a range", "verify", "--ranks", "many")
        self.fails("too many", "verify", "--ranks", "1-100000")
        self.fails("--roots", "verify", "--roots", "none", status=2)

    def test_of_a_wrong_algorithm(self):
        """The command with an allreduce.ring that sends a message too many."""
        words = ["verify", "allreduce.ring", "allreduce.flat", "--ranks", "3"]
        done = run(*words, "--json", cli=WRONG)
        self.assertEqual((done.status, done.err), (1, ""))
        answer = done.json
        self.assertEqual({row["id"] for row in answer["failed"]}, {"allreduce.ring"})
        self.assertGreater(answer["verified"], 0)
        for row in answer["failed"]:
            self.assertRegex(row["case"], r"^allreduce\.ring.* --ranks 3 --bytes \d+")
            self.assertTrue(row["reason"])
        self.ok("show", *answer["failed"][0]["case"].split())
        done = run(*words, cli=WRONG)
        self.assertEqual(done.status, 1)
        self.assertRegex(done.out, r"FAILED allreduce\.ring.*\n  .*\n(.*\n)*\d+ proofs .* [1-9]\d* failed\n$")

    def test_jobs(self):
        """Several at a time say the same in the same order, and what is wrong, too."""
        words = ["verify", "allreduce.ring", "allreduce.flat", "reduce.flat", "--ranks", "2-7"]
        for form in ([], ["--json"]):
            one, several = (run(*words, "--jobs", str(jobs), *form, cli=WRONG) for jobs in (1, 3))
            self.assertEqual((one.status, one.err), (1, ""))
            self.assertEqual((several.status, several.out, several.err), (1, one.out, ""))
        self.fails("--jobs", "verify", "--jobs", "0", status=2)


class Model(CliTest):
    def test_machines(self):
        names = {row["name"] for row in self.ok("model", "--list", "--json").json["machines"]}
        self.assertLessEqual({"clan_via", "fdr", "edr"}, names)
        self.assertIn("clan_via", self.ok("model", "--list").out)
        numbers = self.ok("model", "--machine", "edr", "--numbers", "--json").json["numbers"]
        latency = next(row for row in numbers if row["name"] == "network.latency_ns")
        self.assertEqual((latency["value"], latency["estimate"]), (600, False))
        self.assertIn("UCX", self.ok("model", "-m", "edr", "--numbers").out)
        levels = self.ok("model", "-m", "hdr", "--numbers", "--json").json["levels"]
        self.assertEqual([level["radix"] for level in levels], [20, 20])
        self.assertIn("non-blocking", levels[0]["source"])
        self.assertRegex(self.ok("model", "-m", "hdr", "--numbers").out,
                         r"topology.levels 2, radix +20 +estimate: non-blocking")

    def test_times(self):
        rows = self.ok("model", "bcast", "-n", 64, "-b", 8, "--json").json["rows"]
        times = {row["algorithm"]: row["latency_us"] for row in rows if "latency_us" in row}
        self.assertLess(times["bcast.binomial"], times["bcast.chain"])
        self.assertIn("us", self.ok("model", "bcast").out)
        row = self.ok("model", "allreduce", "-a", "degree_k:transfer=sendrecv", "--best-k", "-n", 16,
                      "-b", 4, "-m", "clan_via", "--json").json["rows"][0]
        self.assertRegex(row["algorithm"], r"k=\d+,transfer=sendrecv")
        self.assertEqual(row["latency_us"], row["latency_ps"] / 1e6)
        self.assertEqual(self.ok("model", "bcast", "-b", "4K", "--json").json["bytes"], 4096)

    def test_json_is_utf8_whatever_files_are_called(self):
        path = self.folder / os.fsdecode(b"m\xe9.toml")
        path.write_bytes((Path(__file__).parents[2] / "machines" / "edr.toml").read_bytes())
        said = self.ok("model", "bcast", "-m", path, "--json").json
        self.assertIn("m\ufffd.toml", said["machine"])

    def test_errors(self):
        self.fails("which collective", "model", status=2)
        self.fails("there is no collective \"nix\"", "model", "nix")
        self.fails("cannot read /proc/self/mem: ", "model", "bcast", "-m", "/proc/self/mem")
        self.fails("there is no machine \"nix\"", "model", "bcast", "-m", "nix")
        self.fails("no algorithm \"bcast.nix\"", "model", "bcast", "-a", "nix")
        self.fails("there is no closed form of bcast.multicast", "model", "bcast", "-a", "multicast")
        self.fails("in segments of 65536", "model", "bcast", "-a", "binomial", "-b", 100000)
        self.fails("no algorithm for \"alltoallv\" has a closed form", "model", "alltoallv")
        self.fails("--ranks", "model", "bcast", "-n", 0, status=2)


class Reproduce(CliTest):
    def test_list(self):
        papers = self.ok("reproduce", "--json").json["papers"]
        self.assertIn("gupta2003", [row["name"] for row in papers])

    def test_gupta2003(self):
        report = self.ok("reproduce", "gupta2003", "--json").json
        self.assertEqual(report["paper"], "gupta2003")
        self.assertEqual(len(report["rows"]), 7)
        for row in report["rows"]:
            self.assertLessEqual(row["ours_min"], row["ours"])
            self.assertLessEqual(row["ours"], row["ours_max"])
            self.assertEqual((row["unit"], row["model"]), ("%", row["ours"]))
            self.assertIn("fitted", row["assumed"])
        self.assertIn("deviation", self.ok("reproduce", "gupta2003").out)

    def test_mamidala2006(self):
        report = self.ok("reproduce", "mamidala2006", "--json").json
        self.assertEqual([row["published"] for row in report["rows"]], [2.3, 1.8, 1.7] + [None] * 3)
        for row in report["rows"]:
            self.assertEqual((row["unit"], row["model"], row["bytes"]), ("times", None, 8192))

    def test_hu2013(self):
        report = self.ok("reproduce", "hu2013", "--json").json
        self.assertEqual(report["fitted"], [])
        published = [row["published"] for row in report["rows"]]
        self.assertEqual(published, [16, 1] + [None] * 7)
        for row in report["rows"]:
            self.assertEqual(row["deviation"] is None, row["published"] is None)
        self.assertIn("nothing is fitted", self.ok("reproduce", "hu2013").out)

    def test_errors(self):
        self.fails("there is no paper \"gupta1812\"; there are gainaru2016, gupta2003", "reproduce", "gupta1812")

    def test_gainaru2016_of_few_ranks(self):
        text = (Path(__file__).parents[2] / "papers" / "gainaru2016.toml").read_text()
        path = self.folder / "few.toml"
        path.write_text(re.sub("(?m)^ranks = .*", "ranks = 48", text))
        report = self.ok("reproduce", path, "--json").json
        rows, tried = report["rows"], report["combinations"]
        self.assertEqual([row["published"] for row in rows], [9.7, 9.1, 40.6, 57.9])
        closest = [each for each in tried if each["closest"]]
        self.assertEqual((len(tried), len(closest)), (40, 1))
        for i, row in enumerate(rows):
            self.assertLessEqual({"what", "published", "ours", "ours_min", "ours_max", "unit",
                                  "model", "assumed"}, set(row))
            ours = [each["figures"][i]["ours"] for each in tried]
            self.assertEqual((row["combinations_min"], row["combinations_max"]), (min(ours), max(ours)))
            self.assertLess(row["ours_min"], row["ours"])
            self.assertLess(row["ours"], row["ours_max"])
            self.assertEqual(row["ours"], closest[0]["figures"][i]["ours"])
            self.assertEqual((row["unit"], row["model"]), ("%", None))
            self.assertIn(closest[0]["way"], row["assumed"])
        entry = next(each for each in report["varied"] if each["number"] == "network.gather_ns")
        self.assertEqual((entry["min"], entry["value"], entry["max"]), (10, 20, 50))
        self.assertTrue(entry["estimate"] and entry["source"])
        out = self.ok("reproduce", path).out
        self.assertRegex(out, "least and most: over the ranges of .*, network.gather_ns \\(10 to 50\\)")
        for row in rows:  # of the table of the closest combination
            line = next(line for line in out.splitlines() if line.startswith(row["what"]))
            numbers = [float(each) for each in re.findall(r"[-+]?\d+\.\d", line)]
            for number, key in zip(numbers, ["published", "ours", "ours_min", "ours_max"]):
                self.assertAlmostEqual(number, row[key], delta=0.051)

    def test_kandalla2013_of_few_ranks(self):
        text = (Path(__file__).parents[2] / "papers" / "kandalla2013.toml").read_text()
        path = self.folder / "few.toml"
        text = re.sub("(?m)^ranks = .*", "ranks = 20", text)
        path.write_text(re.sub("(?m)^grids = .*", "grids = [32]", text))
        rows = self.ok("reproduce", path, "--json").json["rows"]
        self.assertEqual([row["published"] for row in rows], [97.5, None, 27] + [None] * 5)
        self.assertEqual([row.get("grid") for row in rows], [None] * 2 + [32] * 6)
        self.assertLess(rows[1]["ours"], rows[0]["ours"])
        for row in rows:
            self.assertEqual(row["deviation"] is None, row["published"] is None)
        out = self.ok("reproduce", path).out
        self.assertIn("32^3", out)
        self.assertIn("over the ranges of line_mflops, network.ns_per_byte", out)


class Calibrate(CliTest):
    def test_writes_a_machine_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/mine.toml"
            self.assertIn(path, self.ok("calibrate", "--output", path, "--title", "a test").out)
            numbers = self.ok("model", "--machine", path, "--numbers", "--json").json
            self.assertNotIn("datagram", {name.split(".")[0] for name in self.names(numbers)})
        self.assertIn("a test", numbers["title"])
        self.assertIn("network.latency_ns", self.names(numbers))

    @staticmethod
    def names(report):
        return [row["name"] for row in report["numbers"]]

    def test_json(self):
        path = self.folder / "mine.toml"
        printed = self.ok("calibrate", "--output", path, "--title", "a test", "--json").json
        read = self.ok("model", "--machine", path, "--numbers", "--json").json
        self.assertEqual(printed["machine"], "calibrated")
        self.assertEqual({**printed, "machine": "mine"}, read)

    def test_errors(self):
        self.fails("cannot write /nowhere/mine.toml: No such file .*choose another", "calibrate", "-o", "/nowhere/mine.toml")
        self.fails("--title", "calibrate", "--title", 'my "desk"')


class Info(CliTest):
    def test_json(self):
        info = self.ok("info", "--json").json
        names = {row["name"] for row in info["settings"]}
        self.assertIn("CARILLON_ALGORITHM", names)
        self.assertEqual([row["name"] for row in info["mpis"]], ["openmpi", "mpich", "mpiabi"])
        self.assertGreaterEqual(info["machine"]["cores"], 1)
        memory = info["network_memory"]
        self.assertEqual(memory["ranks"], 1024)
        self.assertLess(0, memory["mib_per_rank_trees"])
        self.assertLess(memory["mib_per_rank_trees"], memory["mib_per_rank_all_to_all"])
        self.assertLessEqual(memory["mib_per_rank_all_to_all"], 64)
        topology = info["machine"]["topology"]
        self.assertGreaterEqual(topology["threads"], info["machine"]["cores"])
        self.assertGreaterEqual(topology["threads"], topology["cores"])
        self.assertGreaterEqual(topology["numa_nodes"], 1)

    def test_surveys(self):
        def surveys(**settings):
            return self.ok("info", "--json", **settings).json["surveys"]
        auto = surveys()
        self.assertEqual(auto["setting"], "auto")
        self.assertGreater(auto["from_ranks_one_on_a_node"], 16)
        self.assertLess(auto["from_ranks_four_on_a_node"], 128)
        self.assertEqual(surveys(CARILLON_SURVEYS="on"),
                         {"setting": "on", "from_ranks_one_on_a_node": 2,
                          "from_ranks_four_on_a_node": 8})
        for settings in ({"CARILLON_SURVEYS": "off"}, {"CARILLON_ALGORITHM": "alltoallv=pairwise"}):
            self.assertIsNone(surveys(**settings)["from_ranks_one_on_a_node"])
            self.assertIn("tables are not surveyed", self.ok("info", **settings).out)

    def test_settings_in_force(self):
        out = self.ok("info", "--config", CARILLON_SPIN_US="7").out
        self.assertRegex(out, r"CARILLON_SPIN_US +7 ")
        self.assertRegex(self.ok("info").out, r"^carillon ")

    def test_settings_that_cannot_be(self):
        done = run("info", CARILLON_SLOT_BYTES="many")
        self.assertEqual(done.status, 0)
        self.assertRegex(done.err, r"^carillon: warning: CARILLON_SLOT_BYTES=many is not .*\n$")
        self.assertIn("between nodes: see the settings\n", done.out)
        self.assertIsNone(run("info", "--json", CARILLON_SLOT_BYTES="many").json["network_memory"])


class Bench(CliTest):
    def test_errors(self):
        self.fails("no collective \"allgatherall\"", "bench", "allgatherall")
        self.fails("not a size", "bench", "--sizes", "8x")
        self.fails("not a size", "bench", "--sizes", "4096M")
        self.fails("from 0 to 1 GiB", "bench", "--sizes", "1G,2G")
        self.fails("nan is no number", "bench", "--seconds", "nan", status=2)
        for nodes in (-1, 0, 1048576):
            self.fails("--nodes", "bench", "--nodes", nodes, status=2)
        self.fails("bogus is none of verbs", "bench", "alltoallv", "--surveys", "--nodes", 2,
                   "--network", "bogus")
        self.fails("\"k=x\"", "bench", "alltoall", "--breakdown", "-a", "alltoall.bruck_inplace:k=x")
        self.fails("not a rate", "bench", "bcast", "--overlap", "--nodes", 2, "--rate", "fast")
        self.fails("too many", "bench", "bcast", "--overlap", "--nodes", 65)
        self.fails("--sizes: its value is empty", "bench", "--sizes", "", status=2)
        self.fails("--ranks", "bench", "-n", 0, status=2)
        self.fails("--ranks", "bench", "-n", 1000000, status=2)
        self.fails("--format", "bench", "--format", "xml", status=2)
        for more in ("--json", "--overlap", "--breakdown", "--surveys"):
            self.fails("--format osu", "bench", "--format", "osu", more, status=2)
        self.fails("--start", "bench", "--start", "never", status=2)
        self.fails("--start says", "bench", "--overlap", "--start", "together", status=2)
        self.fails("no MPI \"lam\"", "bench", "--mpi", "lam")

    def test_errors_between_nodes(self):
        for given in ("--buffer=heap", "--fresh", "--bare", "--native-best", "--start=together", "--clock=tsc"):
            for what in ("--compare=sendrecv,rdma", "--breakdown", "--surveys"):
                self.fails(f"leave {given.split('=')[0]} out", "bench", what, given, status=2)
        breakdown = ["bench", "--breakdown"]
        self.fails("alltoall --breakdown", *breakdown, "bcast", status=2)
        self.fails("has no algorithm", *breakdown, "alltoall", "-a", "bcast.binomial")
        self.fails("-a says", "bench", "alltoall", "-a", "alltoall.bruck_resident", status=2)
        self.fails("nothing to overlap", "bench", "--overlap", "-n", 1, status=2)
        self.fails("go with --overlap", "bench", "--rate", "1gbit", status=2)
        self.fails("go with --overlap", "bench", "--tests", 1, status=2)
        self.fails("--nodes, --ppn and --rate only", "bench", "--overlap", "--one-machine", status=2)
        compare = ["bench", "--compare", "sendrecv,rdma"]
        self.fails("how many nodes", *compare, status=2)
        self.fails("how many nodes", *compare, "--nodes", 1, status=2)
        self.fails("what to compare", "bench", "--nodes", 2, status=2)
        self.fails("--compare sendrecv,rdma", "bench", "--compare", "rdma", "--nodes", 2, status=2)
        self.fails("--compare sendrecv,rdma", "bench", "--compare", "a,b", "--nodes", 2, status=2)
        self.fails("not gather", *compare, "--nodes", 2, "gather", status=2)
        self.fails("6 bytes", *compare, "--nodes", 2, "--sizes", "6", status=2)
        self.fails("--ppn", *compare, "--nodes", 2, "--ppn", 0, status=2)
        self.fails("--degrees", *compare, "--nodes", 2, "--degrees", "1,0", status=2)
        self.fails("too many", *compare, "--nodes", 65)

    def test_breakdown(self):
        words = ["bench", "alltoall", "--breakdown", "--sizes", "64,1K", "--iterations", 5, "--json"]
        rows = self.ok(*words, "-n", 3, "-a", "alltoall.bruck_resident", "alltoall.pairwise").json["results"]
        self.assertEqual([row["asked"] for row in rows],
                         2 * ["alltoall.bruck_resident"] + 2 * ["alltoall.pairwise"])
        for row in rows:
            us = row["us"]
            self.assertEqual(list(us), ["pack", "unpack", "rotate", "reduce", "post", "wait"])
            self.assertAlmostEqual(sum(us.values()), row["total_us"], 3)
            self.assertAlmostEqual(us["pack"] + us["unpack"] + us["rotate"], row["memory_us"], 3)
            for work in us:
                (self.assertEqual if work == "reduce" else self.assertLess)(0, us[work], work)
        # Lists that are sent as they are leave nothing to pack.
        words += ["--nodes", 3, "--one-machine", "-a", "alltoall.bruck_resident"]
        for entries, lists in ("0", 0), ("3", 2):
            for row in self.ok(*words, CARILLON_GATHER_ENTRIES=entries,
                               CARILLON_GATHER_BYTES="1").json["results"]:
                self.assertEqual(row["gathered"], lists)
                self.assertEqual(row["us"]["pack"] > 0, lists == 0)

    def test_breakdown_of_all_layouts_and_modes_of_16_ranks(self):
        names = [f"alltoall.bruck_{layout}:memory={memory}"
                 for layout in ("inplace", "resident", "reversed", "zerocopy")
                 for memory in ("pack", "gather", "selective")]
        words = ["bench", "alltoall", "--breakdown", "--sizes", "8,1K", "--iterations", 1, "--json",
                 "--nodes", 4, "--ppn", 4, "--one-machine", "-a", *names]
        answer = self.ok(*words).json  # each one's first answers are checked
        self.assertEqual([(row["asked"], row["bytes"]) for row in answer["results"]],
                         [(name, size) for name in names for size in (8, 1024)])
        self.assertEqual(answer["not_suited"], [])
        copied = {row["asked"]: row["copied_bytes"] for row in answer["results"] if row["bytes"] == 1024}
        for layout in ("inplace", "resident", "reversed", "zerocopy"):
            with self.subTest(layout):
                pack, gather = (copied[f"alltoall.bruck_{layout}:memory={memory}"]
                                for memory in ("pack", "gather"))
                self.assertEqual(pack - gather, 4 * 8 * 1024)

    def test_breakdown_has_each_layout_in_each_mode_unasked(self):
        words = ["bench", "alltoall", "--breakdown", "-n", 2, "--sizes", "8", "--iterations", 1, "--json"]
        asked = [row["asked"] for row in self.ok(*words).json["results"]]
        self.assertIn("alltoall.pairwise", asked)
        self.assertEqual([name for name in asked if "bruck" in name],
                         [f"alltoall.bruck_{layout}:memory={memory}"
                          for layout in ("inplace", "resident", "reversed", "zerocopy")
                          for memory in ("pack", "gather", "selective")])

    def test_a_radix_beyond_the_team_is_told_once(self):
        done = self.ok("bench", "alltoall", "--breakdown", "-n", 3, "--sizes", "8,64", "--iterations", 2,
                       "-a", "alltoall.bruck_inplace:k=9", "alltoall.bruck_inplace:k=3")
        told = "k=9 in a team of 3 ranks; a radix is from 2 to the number of ranks"
        self.assertEqual(done.err.count(told), 1, done.err)
        self.assertNotIn("k=3", done.err)
        self.assertIn("alltoall.bruck_inplace:k=9 does not suit", done.out)

    def test_surveys(self):
        words = ["bench", "alltoallv", "--surveys"]
        self.fails("alltoallv --surveys", "bench", "alltoall", "--surveys", status=2)
        self.fails("how many nodes", *words, status=2)
        self.fails("goes with --surveys", "bench", "--rounds", 3, status=2)
        self.fails("--rounds", *words, "--nodes", 2, "--rounds", 0, status=2)
        answer = self.ok(*words, "--nodes", 3, "--one-machine", "--sizes", "8", "--rounds", 2,
                         "--iterations", 64, "--json").json
        ways = ["pairwise", "two_phase", "merged", "survey", "surveyed"]
        self.assertEqual([(row["tables"], row["way"]) for row in answer["results"]],
                         [("same", way) for way in ways] + [("new", way) for way in ways])
        for row in answer["results"]:
            self.assertEqual((row["bytes"], row["ranks"], len(row["us"])), (8, 3, 2))
            low, high = row["over_pairwise"]["interval"]
            self.assertTrue(0 < low <= row["over_pairwise"]["median"] <= high, row)
            calls = {(each["algorithm"], each["reason"]): each["calls"] for each in row["decisions"]}
            forced = "as CARILLON_ALGORITHM says"
            if row["way"] == "surveyed":  # at 2, 4, 8, 16, 32, 64, 128 and 192
                self.assertEqual(calls["alltoallv.survey", "a survey of the tables"], 8)
                self.assertEqual(sum(calls.values()), 3 * 64)
            else:
                way = {"two_phase": "bruck_two_phase"}.get(row["way"], row["way"])
                self.assertEqual(calls, {(f"alltoallv.{way}", forced): 3 * 64})
        self.assertIn("more than pairwise", self.ok(*words, "--nodes", 2, "--one-machine", "--sizes",
                                                    "8", "--rounds", 1, "--iterations", 2).out)

    def test_between_nodes(self):
        answer = self.ok("bench", "bcast,allreduce", "--compare", "sendrecv,rdma", "--nodes", 2,
                         "--one-machine", "--sizes", "4,4K", "--degrees", "1,3",
                         "--iterations", 5, "--json").json
        self.assertEqual(len(answer["results"]), 2 * 2 * 2)
        for row in answer["results"]:
            messages = 1 if row["collective"] == "bcast" else 2
            self.assertEqual(row["ranks"], 2)
            self.assertGreater(row["sendrecv_us"], 0)
            self.assertAlmostEqual(row["ratio"], row["rdma_us"] / row["sendrecv_us"], 3)
            # A few more, of the barriers around the calls and of what tells what is done.
            self.assertGreaterEqual(row["sendrecv"]["sends"], messages)
            self.assertEqual(row["rdma"]["sends"], 0)
            self.assertGreaterEqual(row["rdma"]["puts"], messages)
            self.assertLess(row["sendrecv"]["puts"], 1)
        self.assertEqual([row["bytes"] for row in answer["floor"]], [8, 64, 512, 1024])
        self.assertGreater(answer["floor"][0]["socket_us"], 0)
        self.assertIn("busy_percent", answer["machine"])


if __name__ == "__main__":
    main()
