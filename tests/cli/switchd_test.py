#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# carillon switchd: its key, its ends, and what it does with packets of strangers.
import json
import signal
import socket
import struct
import subprocess

from support import CARILLON, CliTest, clean_environment, has_rtl, main

HEADER = struct.Struct(">BBBBBBHIIIIHHHQ")
CONTRIBUTE, REFUSE, UNKNOWN_JOB = 1, 3, 1


class SwitchdTest(CliTest):
    def key(self):
        path = self.folder / "switch.key"
        if not path.exists():
            self.ok("switchd", "--new-key", path)
        return path

    def start(self, *words):
        """Returns the process, and the address that it says it listens on."""
        process = subprocess.Popen(
            [str(CARILLON), "switchd", "--key-file", str(self.key()), "--listen", "127.0.0.1:0",
             *words], stdout=subprocess.PIPE, text=True, env=clean_environment({}))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        at = json.loads(line)["listening"] if "--json" in words else line.split()[-1]
        address, port = at.split(":")
        return process, (address, int(port))

    def test_a_new_key_is_private_and_another_one_each_time(self):
        path = self.key()
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertRegex(path.read_text(), r"\A[0-9a-f]{32}\n\Z")
        self.ok("switchd", "--new-key", self.folder / "other.key")
        self.assertNotEqual((self.folder / "other.key").read_text(), path.read_text())
        self.fails("cannot be made: File exists; choose another", "switchd", "--new-key", path)

    def test_it_does_not_start_without_a_key_that_is_one(self):
        self.fails("--key-file is needed.*--new-key", "switchd")
        self.fails("No such file.*--new-key", "switchd", "--key-file", self.folder / "none")
        for text in ("", "ab" * 15, "xy" * 16, "ab" * 17, "0x" + "ab" * 15):
            bad = self.file("bad.key", text, 0o600)
            self.fails("holds no key", "switchd", "--key-file", bad)
        self.fails("is a folder, and no key", "switchd", "--key-file", "/tmp")
        shown = self.file("shown.key", "ab" * 16 + "\n", 0o640)
        self.fails("chmod 600", "switchd", "--key-file", shown)

    def test_addresses_and_limits_are_checked(self):
        for bad in ("localhost", "1.2.3", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:x"):
            self.fails("no IPv4 address", "switchd", "--key-file", self.key(), "--listen", bad)
        self.fails("number", "switchd", "--number", 1024, status=2)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            self.fails(f"cannot listen on 127.0.0.1:{port}: .*port that is free", "switchd",
                       "--key-file", self.key(), "--listen", f"127.0.0.1:{port}")

    def test_strangers_are_counted_and_refused(self):
        for engine in ("reference", "rtl") if has_rtl() else ("reference",):
            with self.subTest(engine=engine):
                self.refuse_strangers("--json", "--engine", engine)

    def test_there_is_no_other_engine(self):
        self.fails("engine", "switchd", "--engine", "none", status=2)

    def refuse_strangers(self, *words):
        process, at = self.start(*words)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.settimeout(60)
            for junk in (b"", b"hello", bytes(38), b"\xff" * 9000):
                stranger.sendto(junk, at)
            header = (1, CONTRIBUTE, 0, 0, 1, 0, 1, 77, 5, 9, 0, 1, 0, 0, 123)
            stranger.sendto(HEADER.pack(*header) + bytes(8), at)
            answer = HEADER.unpack(stranger.recv(100))
            self.assertEqual(answer[1], REFUSE)
            self.assertEqual(answer[7:10], (77, 5, 9), "job, group and sequence are repeated")
            self.assertEqual(answer[13], UNKNOWN_JOB)
        process.send_signal(signal.SIGUSR1)
        now = json.loads(process.stdout.readline())
        self.assertEqual(now["packets"]["malformed"], 4)
        self.assertEqual(now["packets"]["unknown_job"], 1)
        process.send_signal(signal.SIGTERM)
        end = json.loads(process.stdout.readline())
        self.assertEqual(process.wait(), 0)
        self.assertEqual(end["packets"], now["packets"])
        self.assertEqual(end["datagrams"]["received"], 5)
        self.assertEqual(end["datagrams"]["sent"], 1)
        self.assertEqual((end["jobs"], end["groups"], end["memory_bytes"]), (0, 0, 0))

    def test_it_ends_by_an_interrupt_and_says_what_it_did(self):
        process, _ = self.start()
        process.send_signal(signal.SIGINT)
        out = process.stdout.read()
        self.assertEqual(process.wait(), 0)
        self.assertRegex(out, r"\b0  jobs\n +0  groups\n")


if __name__ == "__main__":
    main()
