# SPDX-License-Identifier: Apache-2.0
#
# The virtual machines themselves: what goes in and comes out, and that nothing stays behind.
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from begin import begin

RXE = Path(__file__).with_name("rxe")
PATIENCE_S = 120
PINGPONG = shutil.which("ibv_rc_pingpong")


def alive(pid):
    """A process that ended and was not waited for counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


class RxeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="carillon-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()

    def start(self, *words, **variables):
        environment = {**os.environ, "TMPDIR": str(self.temporary), **variables}
        process = subprocess.Popen([str(RXE), *map(str, words)], env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_rxe(self, *words, status=0, **variables):
        process = self.start(*words, **variables)
        out, err = process.communicate(timeout=3 * PATIENCE_S)
        self.assertEqual(process.returncode, status, err.decode("utf-8", "replace"))
        self.assertEqual(list(self.temporary.iterdir()), [])
        return out, err.decode("utf-8", "replace")


class Command(RxeTest):
    def test_output_is_passed_on_as_it_is_and_so_is_the_status(self):
        data = os.urandom(2_000_000)
        (self.folder / "data").write_bytes(data)
        out, err = self.run_rxe(
            "--", "sh", "-c", f"sleep 1000 & cat {self.folder}/data; echo words >&2; exit 7",
            status=7)
        self.assertEqual(out, data)
        self.assertEqual(err, "words\n")

    def test_sees_and_writes_files_and_has_the_variables_it_is_given(self):
        kept = self.folder / "kept"
        kept.mkdir()
        out, _ = self.run_rxe(
            "--rw", kept, "--env", "COLOUR=deep blue", "--env", "TMPDIR", "--", "sh", "-c",
            f"echo $COLOUR, $TMPDIR; echo 1 >{kept}/here && echo 1 >{self.folder}/gone && pwd")
        self.assertEqual(out.decode(), f"deep blue, {self.temporary}\n{os.getcwd()}\n")
        self.assertEqual((kept / "here").read_text(), "1\n")
        self.assertFalse((self.folder / "gone").exists())

    def test_time_limit(self):
        _, err = self.run_rxe("--timeout", 2, "--", "sleep", 1000, status=124)
        self.assertRegex(err, r"rxe: time limit of 2 s: not (booted|ended) on node 0\n")

    def test_cores_and_memory_are_in_domains(self):
        out, _ = self.run_rxe("--domains", 2, "--cpus", 3, "--", "sh", "-c",
                              "cd /sys/devices/system/node; cat has_cpu node*/cpulist;"
                              "awk '/MemTotal/ {print ($4 > 100000)}' node*/meminfo")
        self.assertEqual(out.decode().split(), ["0-1", "0", "1-2", "1", "1"])


class Network(RxeTest):
    def test_nodes_see_each_other(self):
        talk = ("if [ $CARILLON_VM_NODE = 0 ]; then ibv_rc_pingpong -g 1; else"
                " until ibv_rc_pingpong -g 1 node0 2>/dev/null; do sleep 0.2; done; fi"
                if PINGPONG else "busybox ping -c 1 node$((1 - CARILLON_VM_NODE))")
        out, _ = self.run_rxe("--nodes", 2, "--memory", 256, "--", "sh", "-c", talk)
        pattern = "1000 iters in" if PINGPONG else "1 packets received"
        for node in range(2):
            self.assertRegex(out.decode(), rf"(?m)^\[{node}\] .*{pattern}")

    @unittest.skipUnless(PINGPONG, "no ibv_rc_pingpong (Debian: ibverbs-utils)")
    def test_devices_of_one_guest_see_each_other(self):
        out, _ = self.run_rxe(
            "--devs", 2, "--", "sh", "-c",
            "ibv_rc_pingpong -d rxe0 -g 1 >/dev/null & until ibv_rc_pingpong -d rxe1 -g 1 node0"
            " 2>/dev/null; do sleep 0.2; done; wait && rdma link")
        self.assertIn("1000 iters in", out.decode())
        self.assertRegex(out.decode(), r"link rxe1/1 state ACTIVE")


class Refusals(RxeTest):
    def test_no_command(self):
        for words in ([], ["--nodes", 2], ["--"]):
            self.assertIn("which command?", self.run_rxe(*words, status=2)[1])

    def test_options_that_cannot_be(self):
        self.assertIn("must be 1 to 16", self.run_rxe("--nodes", 17, "--", "true", status=2)[1])
        self.assertIn("is no folder", self.run_rxe("--rw", "/nowhere", "--", "true", status=2)[1])
        self.assertIn("is no name", self.run_rxe("--env", "a b=1", "--", "true", status=125)[1])

    def test_what_is_missing_is_named_with_its_package(self):
        _, err = self.run_rxe("--", "true", status=125, CARILLON_VM_QEMU="/nowhere/qemu")
        self.assertEqual(err, "rxe: /nowhere/qemu is missing (Debian: qemu-system-x86)\n")

    def test_a_package_that_is_no_kernel(self):
        wrong = self.folder / "wrong.deb"
        wrong.write_text("no package")
        cache = self.folder / "cache"
        _, err = self.run_rxe("--", "true", status=125, CARILLON_VM_DEB=str(wrong),
                              CARILLON_VM_CACHE=str(cache))
        self.assertIn("wrong.deb", err)
        self.assertEqual([path.name for path in cache.iterdir()], ["lock"])

    def test_a_guest_that_dies(self):
        _, err = self.run_rxe("--", "true", status=125, CARILLON_VM_QEMU="false")
        self.assertIn("node 0: the guest died while it booted", err)


class NothingStays(RxeTest):
    def ended_by(self, number, ready):
        process = self.start("-v", "--nodes", 2, "--memory", 256, "--", "sleep", 1000)
        if ready:
            while b"node 1: ready" not in process.stderr.readline():
                self.assertIsNone(process.poll())
        deadline = time.monotonic() + PATIENCE_S
        machines = []
        while len(machines) < 2 and time.monotonic() < deadline:
            machines = children(process.pid)
        process.send_signal(number)
        status = process.wait(PATIENCE_S)
        while any(map(alive, machines)) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual([pid for pid in machines if alive(pid)], [])
        self.assertEqual(list(self.temporary.iterdir()), [])
        return status

    def test_after_a_signal(self):
        self.assertEqual(self.ended_by(signal.SIGTERM, ready=True), 128 + signal.SIGTERM)
        self.assertEqual(self.ended_by(signal.SIGINT, ready=False), 128 + signal.SIGINT)

    def test_after_sigkill(self):
        self.assertEqual(self.ended_by(signal.SIGKILL, ready=True), -signal.SIGKILL)


if __name__ == "__main__":
    begin()
    unittest.main()
