# SPDX-License-Identifier: Apache-2.0
#
# What becomes of what the command prints where it cannot be written, and what it says then; wrong
# use; a current folder that is gone.
import json
import os
import shutil
import subprocess
import unittest

from support import CARILLON, CliTest, clean_environment, main, may_make_clusters

PRINTING = [["list"], ["list", "--json"], ["show", "bcast.flat"], ["verify", "bcast.flat", "--ranks", "2"],
            ["model", "--list"], ["sim", "bcast", "-n", "4", "--json"],
            ["sim", "bcast", "--sweep", "ranks=2,3", "--csv"], ["reproduce"], ["info", "--config"],
            ["run", "--dry-run", "--mpi", "openmpi", "true"], ["list", "--help"], ["--version"]]


def start(words, **how):
    return subprocess.run([CARILLON, *words], env=clean_environment({}), stderr=subprocess.PIPE,
                          text=True, timeout=100, **how)


class Lost(CliTest):
    def test_full_disk(self):
        for words in PRINTING:
            with self.subTest(words), open("/dev/full", "w") as full:
                done = start(words, stdout=full)
                if words[0] == "run" and "no launcher" in done.stderr:
                    continue
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, r"^carillon: what it prints cannot be written to stdout"
                                              r"(: No space left on device|; is the disk full\?)\n$")

    def test_closed_stdout(self):
        for words in (["list", "--json"], ["show", "bcast.flat"]):
            done = start(words, preexec_fn=lambda: os.close(1))
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot be written to stdout", done.stderr)

    def test_what_is_printed_goes_to_no_file_of_its_own(self):
        """Which a file that is opened with stdout closed would be, having its number."""
        path = self.folder / "timeline"
        done = start(["sim", "bcast", "-n", "2", "--timeline", path], preexec_fn=lambda: os.close(1))
        self.assertEqual(done.returncode, 1)
        json.loads(path.read_text())

    def test_nothing_to_print(self):
        """Nothing is lost then. A program finds closed what was."""
        with open("/dev/full", "w") as full:
            self.assertEqual(start(["nothing"], stdout=full).returncode, 2)
            done = start(["switchd", "--new-key", self.folder / "key"], stdout=full)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = start(["exec", "--mpi", "openmpi", "sh", "-c", "test -e /proc/$$/fd/1"],
                     preexec_fn=lambda: os.close(1))
        if "no interposer" not in done.stderr:
            self.assertEqual((done.returncode, done.stderr), (1, ""))

    def test_readers_that_have_gone(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = start(["list", "--json"], stdout=writer)
        os.close(writer)
        self.assertEqual(done.returncode, -13)  # SIGPIPE, as of other commands

    @unittest.skipUnless(may_make_clusters(), "needs the right to make namespaces")
    def test_on_a_cluster(self):
        with open("/dev/full", "w") as full:
            done = start(["calibrate", "--cluster", "--json"], stdout=full)
            if "needs the program" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot be written to stdout", done.stderr)


class WrongUse(CliTest):
    def test_a_second_line_names_the_help(self):
        for words, command in ((["run"], "run"), (["exec", "--"], "exec"), (["model"], "model"),
                               (["sim"], "sim"), (["bench", "--rounds", "3"], "bench"),
                               (["bench", "--compare", "sendrecv,rdma"], "bench"),
                               (["cluster", "run"], "cluster run"),
                               (["cluster", "exec", "true"], "cluster exec"),
                               (["list", "--frob"], "list")):
            done = self.fails("carillon: ", *words, status=2)
            self.assertEqual(done.err.splitlines()[1:], [f"Try carillon {command} --help."])


class NoFolder(CliTest):
    def test_the_current_one_is_gone(self):
        """That is no defect of carillon's."""
        place = self.folder / "gone"
        words = ["run", "--dry-run", "--mpi", "openmpi", "--trace", "x", "/bin/true"]
        for command in [words, *([["cluster", "exec", "--nodes", "1", "true"]] if may_make_clusters() else [])]:
            place.mkdir()
            script = 'cd "$0" && rmdir "$0" && exec "$@"'
            done = subprocess.run(["sh", "-c", script, place, CARILLON, *command],
                                  env=clean_environment({}), capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr.splitlines()[-1], "^carillon: ")
            self.assertNotIn("defect", done.stderr)
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
