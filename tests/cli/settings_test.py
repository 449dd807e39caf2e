# SPDX-License-Identifier: Apache-2.0
#
# Settings that cannot be: one line that names the variable, before anything runs.
import os
import re

from support import CliTest, main, run


class Empty(CliTest):
    """Scripts say --option "$VALUE", and export what they may not have set."""
    COMMANDS = [["run"], ["exec"], ["cluster", "run"], ["cluster", "exec"], ["bench"], ["demo"], ["show"],
                ["verify"], ["model"], ["sim"], ["calibrate"], ["switchd"], ["switch-tree"]]
    MAY_BE = {"--launcher-options"}

    def test_options(self):
        for command in self.COMMANDS:
            text = self.ok(*command, "--help").out
            options = re.findall(r"^  (?:-\w,)?(--[a-z-]+)(?:,--[a-z-]+)? (?:TEXT|INT|UINT|FLOAT)", text, re.M)
            self.assertGreater(len(options), 1, text)
            behind = ["--", "true"] if command[0] in ("run", "exec", "cluster") else []
            for option in set(options) - self.MAY_BE:
                for words, what in ([option, ""], "empty"), ([option + "="], "missing"):
                    with self.subTest(" ".join(command), words=words):
                        self.fails(f"{option}: .*{what}", *command, *words, *behind, status=2)

    def test_launcher_options(self):
        with_none = self.ok("run", "-n", 1, "--mpi", self.mpi(), "--dry-run", "true")
        with_empty = self.ok("run", "-n", 1, "--mpi", self.mpi(), "--dry-run", "--launcher-options", "", "true")
        self.assertEqual(with_empty.out, with_none.out)

    def mpi(self):
        there = [row["name"] for row in run("info", "--json").json["mpis"]
                 if row["interposer"] and row["launcher"]]
        if not there:
            self.skipTest("no MPI is here")
        return there[0]

    def test_variables_are_as_if_unset(self):
        settings = self.ok("info", "--config", "--json").json["settings"]
        empty = {setting["name"]: "" for setting in settings}
        self.assertEqual(self.ok("info", "--config", "--json", **empty).json["settings"], settings)
        self.ok("run", "-n", 1, "--mpi", self.mpi(), "--dry-run", "true", **empty)


class BadSettings(CliTest):
    def test_values(self):
        for words in (["exec", "true"], ["run", "true"], ["bench"], ["demo"]):
            self.fails("CARILLON_SLOT_BYTES=12x", *words, CARILLON_SLOT_BYTES="12x")
            self.fails("no algorithm \"allreduce.foo\"; there are allreduce.flat", *words,
                       CARILLON_ALGORITHM="allreduce=foo")
            self.fails("k=0", *words, CARILLON_ALGORITHM="allreduce=degree_k:k=0")
            self.fails("CARILLON_LOG=loud", *words, CARILLON_LOG="loud")
            self.fails("CARILLON=maybe", *words, CARILLON="maybe")

    # What is wrong for each setting. A number of any kind is none with letters behind it;
    # CARILLON_MACHINE takes any text.
    NUMBER = ["12x", "-7", "99999999999999999999"]
    WRONG = {"CARILLON_ALGORITHM": ["allreduce=foo"],
             "CARILLON_NETWORK": ["bogus", ":mlx5_0", "verbs:", "off:lo"],
             "CARILLON_MULTICAST": ["tcp", "udp:", "auto:lo"],
             "CARILLON_SWITCH": ["notanip", "10.0.0.1:", "10.0.0.1:99999", "10.0.0.1,"],
             "CARILLON_SWITCH_KEY": ["/nowhere/key", "/"],
             "CARILLON_NODE_RANKS": ["3,x", "rr:", "rr:2,3", "0"],
             "CARILLON_DOMAIN_RANKS": ["rr:0", "x"],
             "CARILLON_SURVEYS": ["maybe"], "CARILLON_SERVLET": ["maybe"],
             "CARILLON_WATCHDOG": ["soon", "0s"], "CARILLON_FAULT": ["some"],
             "CARILLON_TRACE": ["/nowhere/trace", "/dev/null/trace", "/"],
             "CARILLON_LOG": ["loud"], "CARILLON": ["maybe"], "CARILLON_CHECK": ["maybe"],
             "CARILLON_MERGED": ["maybe"], "CARILLON_STATS": ["/nowhere/stats", "/dev/null/stats"],
             "CARILLON_SHARED_HEAP_MIB": ["x", "12x", "-7", "4194305"],
             "CARILLON_RECORD": ["/nowhere/record", "/dev/null/record", "/" + 300 * "a"]}
    ANY = ["CARILLON_MACHINE"]

    def starters(self):
        """Words that start the script that says that it ran; under any MPI there is here, so that
        only a setting is in the way."""
        script = self.file("script", "#!/bin/sh\necho ran >>\"$0.ran\"\n")
        there = [row["name"] for row in run("info", "--json").json["mpis"]
                 if row["interposer"] and row["launcher"]]
        how = ["--mpi", there[0]] if there else []
        return script, [["exec", *how, "--", script], ["run", "-n", 1, *how, "--", script]], there

    def test_each_setting(self):
        names = [setting["name"] for setting in self.ok("info", "--config", "--json").json["settings"]]
        self.assertLessEqual({*self.WRONG, *self.ANY}, set(names))
        script, starters, mpis = self.starters()
        ran = script.with_suffix(".ran")
        for name in sorted(set(names) - set(self.ANY)):
            for wrong in self.WRONG.get(name, self.NUMBER):
                for words in starters:
                    with self.subTest(f"{name}={wrong}", command=words[0]):
                        done = run(*words, **{name: wrong})
                        self.assertEqual((done.status, done.out), (1, ""), done.err)
                        self.assertEqual(done.err.count("\n"), 1, done.err)
                        self.assertIn(f"{name}={wrong}", done.err)
                        self.assertFalse(ran.exists())
        if mpis:  # else nothing could be started at all
            self.ok(*starters[0])
            self.assertEqual(ran.read_text(), "ran\n")

    def test_files_of_the_first_rank(self):
        """They need not be on other nodes, but what each rank writes does."""
        script, (words, _), mpis = self.starters()
        if not mpis:
            self.skipTest("no MPI whose programs could be started")
        for name in ("CARILLON_RECORD", "CARILLON_SWITCH_KEY"):
            for variable in ("OMPI_COMM_WORLD_RANK", "PMI_RANK"):
                self.ok(*words, **{name: "/nowhere/file", variable: "1"})
                self.fails(name, *words, **{name: "/nowhere/file", variable: "0"})
        self.assertEqual(script.with_suffix(".ran").read_text(), 4 * "ran\n")
        for name in ("CARILLON_TRACE", "CARILLON_STATS"):
            self.fails(name, *words, **{name: "/nowhere/file", "PMI_RANK": "1"})

    def test_files_are_left_as_they_are(self):
        script, (words, _), mpis = self.starters()
        folder = self.folder / "files"
        folder.mkdir()
        there, link, astray = folder / "there", folder / "link", folder / "astray"
        there.write_text("kept")
        link.symlink_to("new")
        astray.symlink_to(folder / "nowhere" / "new")
        for name in ("CARILLON_TRACE", "CARILLON_RECORD", "CARILLON_STATS"):
            if name != "CARILLON_STATS":  # a prefix
                self.fails("is a folder", *words, **{name: str(folder)})
                self.fails("cannot be written", *words, **{name: str(astray)})
            for file in (there, folder / "new", link):
                done = run(*words, **{name: str(file)})
                self.assertNotIn(name, done.err)
                if mpis:
                    self.assertEqual(done.status, 0, done.err)
        if mpis:
            self.assertEqual(script.with_suffix(".ran").read_text(), 9 * "ran\n")
        self.assertEqual(there.read_text(), "kept")
        self.assertEqual(sorted(os.listdir(folder)), ["astray", "link", "there"])

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
