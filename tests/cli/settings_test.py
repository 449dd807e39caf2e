# SPDX-License-Identifier: Apache-2.0
#
# Settings that cannot be: one line that names the variable, before anything runs.
import os
import tempfile
from pathlib import Path

from support import CliTest, main, run


class BadSettings(CliTest):
    def test_values(self):
        for words in (["exec", "true"], ["run", "true"], ["bench"], ["demo"]):
            self.fails("CARILLON_SLOT_BYTES=12x", *words, CARILLON_SLOT_BYTES="12x")
            self.fails("no algorithm \"allreduce.foo\"; there are allreduce.flat", *words,
                       CARILLON_ALGORITHM="allreduce=foo")
            self.fails("k=0", *words, CARILLON_ALGORITHM="allreduce=degree_k:k=0")
            self.fails("CARILLON_LOG=loud", *words, CARILLON_LOG="loud")
            self.fails("CARILLON=maybe", *words, CARILLON="maybe")

    # What is wrong for each setting; CARILLON_MACHINE takes any text.
    WRONG = {"CARILLON_ALGORITHM": "allreduce=foo", "CARILLON_NETWORK": "bogus",
             "CARILLON_MULTICAST": "tcp", "CARILLON_SWITCH": "notanip",
             "CARILLON_SWITCH_KEY": "/nowhere/key", "CARILLON_NODE_RANKS": "3,x",
             "CARILLON_DOMAIN_RANKS": "rr:0", "CARILLON_SURVEYS": "maybe",
             "CARILLON_SERVLET": "maybe", "CARILLON_WATCHDOG": "soon", "CARILLON_FAULT": "some",
             "CARILLON_TRACE": "/nowhere/trace", "CARILLON_LOG": "loud", "CARILLON": "maybe",
             "CARILLON_STATS": "/nowhere/stats", "CARILLON_CHECK": "maybe",
             "CARILLON_MERGED": "maybe", "CARILLON_RECORD": "/nowhere/record",
             "CARILLON_SHARED_HEAP_MIB": "x"}

    def test_each_setting(self):
        names = [setting["name"] for setting in self.ok("info", "--config", "--json").json["settings"]]
        self.assertLessEqual(set(self.WRONG), set(names))
        for name in names:
            if name == "CARILLON_MACHINE":
                continue
            wrong = self.WRONG.get(name, "12x")
            with self.subTest(name):
                done = run("exec", "echo", "ran", **{name: wrong})
                self.assertEqual((done.status, done.out), (1, ""), done.err)
                self.assertEqual(done.err.count("\n"), 1, done.err)
                self.assertIn(f"{name}={wrong}", done.err)

    def test_files_are_left_as_they_are(self):
        with tempfile.TemporaryDirectory() as folder:
            there = Path(folder) / "there"
            there.write_text("kept")
            for name in ("CARILLON_TRACE", "CARILLON_RECORD", "CARILLON_STATS"):
                if name != "CARILLON_STATS":  # a prefix
                    self.fails("is a folder", "exec", "true", **{name: folder})
                for file in (str(there), folder + "/new"):
                    self.assertNotIn(name, run("exec", "true", **{name: file}).err)
            self.assertEqual(there.read_text(), "kept")
            self.assertEqual(os.listdir(folder), ["there"])

    def test_other_ranks_leave_the_first_ones_files_to_it(self):
        for name in ("CARILLON_RECORD", "CARILLON_SWITCH_KEY"):
            for rank, refused in ((0, True), (1, False)):
                done = run("exec", "true", OMPI_COMM_WORLD_RANK=str(rank), **{name: "/nowhere/x"})
                self.assertEqual(f"{name}=/nowhere/x" in done.err, refused, done.err)

    def test_unknown_setting_is_a_warning(self):
        done = run("exec", "true", CARILLON_ALGORTIHM="x")
        self.assertIn("no setting CARILLON_ALGORTIHM", done.err)


if __name__ == "__main__":
    main()
