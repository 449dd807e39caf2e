# SPDX-License-Identifier: Apache-2.0
#
# What the tests of the command share: running it, and small programs to run it on.
import ctypes
import json
import os
import re
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

CARILLON = Path(os.environ.get("CLI_UNDER_TEST", "build/bin/carillon")).resolve()


class Done:
    """A finished command."""

    def __init__(self, process):
        self.status, self.out, self.err = process.returncode, process.stdout, process.stderr

    @property
    def json(self):
        return json.loads(self.out)


def clean_environment(extra):
    """This one's without settings and without signs of a launcher, so that tests are alike."""
    drop = re.compile(r"CARILLON|OMPI_COMM_|PMI_|PMIX_")
    environment = {k: v for k, v in os.environ.items() if not drop.match(k)}
    environment.update(extra)
    return environment


def yielding(mpi):
    """Variables by which ranks of MPICH that wait give their core to others (tests/mpi/yielding.c):
    those of more ranks than cores wait for each other's time slices else."""
    library = Path(os.environ.get("CLUSTER_PROBES", "build/tests")) / "libyielding.so"
    return {"LD_PRELOAD": str(library)} if mpi == "mpich" and library.exists() else {}


def stands_alone(pid):
    """Whether it is a launcher of Open MPI's, and none of its processes is alive any more."""
    try:
        if not Path(f"/proc/{pid}/comm").read_text().startswith("mpirun"):
            return False
        children = " ".join(p.read_text() for p in Path(f"/proc/{pid}/task").glob("*/children"))
        states = [Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
                  for child in children.split()]
        return all(state in "ZX" for state in states)
    except OSError:  # something has just ended
        return False


def run(*words, cli=CARILLON, cwd=None, **environment):
    """Runs carillon with these arguments and extra variables.

    When a job ends by an error, Open MPI 4.1's mpirun may hang in the end of its own PMIx server,
    waiting for a lock, or crash there: all has been said and all ranks have ended by then. One that
    hangs is ended."""
    process = subprocess.Popen([str(cli), *map(str, words)], env=clean_environment(environment),
                               cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    alone_until = None
    while True:
        try:
            out, err = process.communicate(timeout=1)
            return Done(subprocess.CompletedProcess(process.args, process.returncode, out, err))
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            alone_until = (alone_until or now + 10) if stands_alone(process.pid) else None
            if now > deadline:
                process.kill()
                process.communicate()
                raise
            if alone_until is not None and now > alone_until:
                process.kill()


def has_rtl():
    """Whether the command was built with the switch in hardware."""
    said = run("switchd", "--engine", "rtl", "--key-file", "/dev/null").err
    return "not part of this build" not in said


CAPABILITIES = 1 << 12 | 1 << 21  # CAP_NET_ADMIN, CAP_SYS_ADMIN


def may_make_clusters():
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"CapEff:\s*(\w+)", status)[1], 16) & CAPABILITIES == CAPABILITIES


class CliTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="carillon-test-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def ok(self, *words, **environment):
        done = run(*words, **environment)
        self.assertEqual(done.status, 0, f"{words}: {done.out}{done.err}")
        return done

    def fails(self, pattern, *words, status=None, **environment):
        """It must end with a status, one line on stderr that matches, and nothing on stdout."""
        done = run(*words, **environment)
        self.assertNotEqual(done.status, 0, words)
        self.assertNotEqual(done.status, 70, done.err)
        if status is not None:
            self.assertEqual(done.status, status, done.err)
        self.assertEqual(done.out, "", words)
        lines = done.err.strip().split("\n")
        self.assertTrue(lines[0].startswith("carillon: "), done.err)
        self.assertRegex(done.err, pattern)
        self.assertLessEqual(len(lines), 2, done.err)
        return done

    def file(self, name, text="", mode=0o755):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def compile(self, name, *options, source="int main(void) { return 0; }\n"):
        """A C program; skips the test if that is not possible here."""
        code = self.file(name + ".c", source, 0o644)
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["cc", str(code), "-o", str(path), *map(str, options)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"cannot compile with {options}: {done.stderr[:200]}")
        return path

    def linked_with(self, soname, folder="mpi/lib"):
        """A program linked with an empty library of this name, which the loader will find."""
        library = self.compile(f"{folder}/{soname}", "-shared", "-fPIC", f"-Wl,-soname,{soname}",
                               source="int MPI_Init(void) { return 0; }\n")
        return self.compile("program-" + soname, library, f"-Wl,-rpath,{library.parent}",
                            source="int MPI_Init(void);\nint main(void) { return MPI_Init(); }\n")


def hide_kernel_symbols():
    """libfabric reads the kernel's list of symbols (100,000 lines) twice in each process that looks for
    networks, for what GPUs may do beside RDMA devices. Here, and in what is started from here, it is
    empty, as it is on the nodes of clusters; where that is not possible, all is as it was, and slower."""
    if not may_make_clusters():
        return
    new_mounts, bind, private = 0x20000, 4096, 0x4000 | 1 << 18  # CLONE_NEWNS, MS_BIND, MS_REC | MS_PRIVATE
    libc = ctypes.CDLL(None)
    if libc.unshare(new_mounts) == 0 and libc.mount(None, b"/", None, private, None) == 0:
        libc.mount(b"/dev/null", b"/proc/kallsyms", None, bind, None)


def main(hide=True):
    if hide:
        hide_kernel_symbols()
    unittest.main(verbosity=2)
