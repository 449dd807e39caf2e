# SPDX-License-Identifier: Apache-2.0
#
# The commands that start MPI programs: run, exec, bench, demo; and what they say of programs that
# they cannot start. Parts for MPIs that are not here are skipped.
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from support import CARILLON, CliTest, main, run, yielding

NON_BLOCKING = [
    "barrier", "bcast", "reduce", "allreduce", "allgather", "gather", "scatter",
    "reduce_scatter_block", "alltoall", "alltoallv", "scan", "exscan", "allgatherv", "gatherv",
    "scatterv", "reduce_scatter", "alltoallw", "neighbor_allgather", "neighbor_allgatherv",
    "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw"]
ROOT_FLAG = ["--allow-run-as-root"] if os.geteuid() == 0 else []


def mpis():
    rows = run("info", "--json").json["mpis"]
    return [row for row in rows if row["interposer"] and row["launcher"]
            and program("collectives", row["name"]).exists()]


def program(name, mpi):
    return CARILLON.parent / f"{name}-{mpi}"


MPIS = mpis()


class Run(CliTest):
    def test_finds_mpi_and_launcher_and_takes_the_calls(self):
        for mpi in MPIS:
            done = self.ok("run", "-n", 2, "--stats", program("collectives", mpi["name"]))
            self.assertRegex(done.out, r"(?m)^allreduce +8 B")
            self.assertRegex(done.err, r"Allreduce +\d+ +0\n")

    def test_own_options_end_at_the_program(self):
        for mpi in MPIS:
            name = program("collectives", mpi["name"])
            for words in ([name, "-n", "7", "--", "--json"], ["--", name, "-n", "7", "--", "--json"]):
                out = self.ok("run", "-n", 3, "--dry-run", *words).out
                self.assertIn(" -n 3 ", out)
                self.assertTrue(out.endswith(f"-- {name} -n 7 -- --json\n"), out)

    def test_status_of_the_program(self):
        for mpi in MPIS:
            done = run("run", "-n", 1, "--mpi", mpi["name"], "false")
            self.assertNotEqual(done.status, 0)

    def test_launcher_options(self):
        for mpi in MPIS:
            out = self.ok("run", "-n", 2, "--dry-run", "--launcher-options", "-x A=1",
                          program("collectives", mpi["name"])).out
            self.assertIn(" -x A=1 ", out)

    def test_too_many_ranks(self):
        self.fails("not in range 1 to 4096", "run", "-n", 100000, "true", status=2)

    def test_inside_a_launcher(self):
        self.fails("carillon exec", "run", "true", OMPI_COMM_WORLD_RANK="0")


class LoadsMpiItself(CliTest):
    """A program that is not linked with MPI, but loads one: --mpi says which."""

    SOURCE = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  void* const mpi = dlopen(argv[argc - 1], RTLD_NOW | RTLD_GLOBAL);
  int (*init)(int*, char***) = (int (*)(int*, char***))dlsym(RTLD_DEFAULT, "MPI_Init");
  int (*finalize)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "MPI_Finalize");
  if (mpi == NULL || init(NULL, NULL) != 0) return 1;
  puts("started");
  return finalize();
}
"""

    def test_with_mpi_option(self):
        path = self.compile("loader", "-ldl", source=self.SOURCE)
        self.fails("not linked with MPI; if it loads MPI later.*--mpi openmpi, mpich or mpiabi",
                   "run", path)
        for mpi in MPIS:
            needed = subprocess.run(["ldd", program("collectives", mpi["name"])],
                                    capture_output=True, text=True).stdout
            library = re.search(r"libmpi(ch|_abi)?\.so\.\d+ => (\S+)", needed).group(2)
            done = self.ok("run", "-n", 2, "--mpi", mpi["name"], "--stats", path, library)
            self.assertEqual(done.out.count("started"), 2, done.out)
            self.assertIn("carillon: ", done.err)


class Python(CliTest):
    def interpreter(self):
        for name in ("/usr/bin/python3", sys.executable):
            if subprocess.run([name, "-c", "import mpi4py"], capture_output=True).returncode == 0:
                return name
        self.skipTest("no Python with mpi4py")

    def test_interpreter_and_script(self):
        python = self.interpreter()
        code = ("import sys\nfrom mpi4py import MPI\n"
                "sys.stdout.write(f'sum {MPI.COMM_WORLD.allreduce(1)}\\n')\n")
        script = self.file("script.py", f"#!{python}\n{code}")
        for words in ([python, "-c", code], [python, script], [script]):
            done = self.ok("run", "-n", 2, "--stats", *words)
            self.assertEqual(done.out.count("sum 2\n"), 2, done.out)
            self.assertIn("carillon: collectives of rank 0 of 2", done.err)

    def test_without_mpi4py(self):
        python = self.file("bin/python3", "#!/bin/sh\nexit 1\n")
        self.fails("no mpi4py.*--mpi openmpi", "run", "-n", 1, python, "x.py")
        script = self.file("script.py", "#!/usr/bin/env python3\n")
        self.fails("no mpi4py", "run", script, PATH=f"{python.parent}:/usr/bin:/bin")


class Refused(CliTest):
    """Programs that cannot be run, or have no MPI: the cause and the remedy."""

    def test_no_program(self):
        self.fails("no program nothing-of-the-kind", "run", "nothing-of-the-kind", status=127)
        self.fails("no program", "exec", "./nothing-of-the-kind", status=127)
        self.file("app")
        done = run("run", "app", cwd=self.folder)
        self.assertIn("did you mean ./app", done.err)

    def test_not_executable(self):
        self.fails("chmod", "run", self.file("data", "x", 0o644), status=126)
        self.fails("is a folder", "run", self.folder, status=126)
        self.fails("neither a program nor a script", "run", self.file("text", "hello\n"))

    def test_not_linked_with_mpi(self):
        for command in ("run", "exec"):
            self.fails("not linked with MPI.*--mpi", command, self.compile("plain"))

    def test_statically_linked(self):
        self.fails("statically linked", "run", self.compile("static", "-static"))

    def test_shell_script(self):
        script = self.file("job.sh", "#!/bin/sh\nexit 0\n")
        self.fails("script for /bin/sh.*--mpi openmpi", "run", script)
        for mpi in MPIS:
            self.ok("exec", "--mpi", mpi["name"], script)

    def test_damaged(self):
        """None of these is another processor's, statically linked, or without MPI."""
        whole = bytearray(self.linked_with("libmpi.so.40").read_bytes())
        segments = int.from_bytes(whole[32:40], "little")  # of 56 bytes each, first its type
        of = {int.from_bytes(whole[at:at + 4], "little"): at
              for at in range(segments, segments + 56 * int.from_bytes(whole[56:58], "little"), 56)}
        loader, dynamic = (int.from_bytes(whole[at + 8:at + 16], "little") for at in (of[3], of[2]))
        no_whole = "no whole program: it is damaged, or was not linked"
        for words, at, new in (
                (no_whole, 0, None), (no_whole, 32, b"\xff" * 8), (no_whole, 54, b"\0\0"),
                (no_whole, 56, b"\xff\xff"), (no_whole, 16, b"\1\0"), (no_whole, of[3] + 32, b"\0" * 8),
                ("to be loaded by /none/.*, which is not there", loader, b"/none/"),
                ("cannot be loaded: /.* ends with status 139", dynamic, b"\xff" * 400),
                ("cannot be loaded: /.* says: .*: ELF file OS ABI invalid", 7, b"\x63")):
            path = self.folder / "damaged"
            path.write_bytes(whole[:4] if new is None else whole[:at] + new + whole[at + len(new):])
            path.chmod(0o755)
            for command in ("run", "exec"):
                self.fails(words, command, path, status=126)

    def test_no_regular_file(self):
        os.mkfifo(self.folder / "pipe", 0o755)
        self.fails("no file that can be run", "run", self.folder / "pipe", status=126)

    def test_names(self):
        self.fails('no program ""', "run", "", status=127)
        self.fails("no program aaaa", "run", "a" * 300, status=127)
        script = self.file("script", "#!/none/interpreter\n")
        self.fails(f"{script}: its #! line names /none/interpreter: there is no program", "run", script,
                   status=127)

    def test_foreign_processor(self):
        elf = bytearray(Path("/proc/self/exe").read_bytes()[:4096])
        elf[18:20] = (0xF3, 0) if elf[18] != 0xF3 else (0x3E, 0)
        path = self.folder / "foreign"
        path.write_bytes(elf)
        path.chmod(0o755)
        self.fails("another kind of processor", "run", path, status=126)

    def test_library_not_found(self):
        path = self.linked_with("libmpi_abi.so.99")
        shutil.rmtree(self.folder / "mpi")
        self.fails("loader does not find; add its folder to LD_LIBRARY_PATH", "run", path)

    def test_unknown_mpi(self):
        self.fails("libmpi.so.20.*no interposer for", "run", self.linked_with("libmpi.so.20"))
        self.fails("no MPI \"lam\"; there are openmpi", "run", "--mpi", "lam", "true")

    def lonely(self):
        """The command, with nothing beside it."""
        path = self.folder / "bin" / "carillon"
        path.parent.mkdir()
        shutil.copy(CARILLON, path)
        return path

    def test_no_interposer(self):
        lonely = self.lonely()
        for soname in ("libmpi.so.40", "libmpi.so.12", "libmpi_abi.so.0"):
            self.fails("no interposer for .* was not built", "run", self.linked_with(soname),
                       cli=lonely)

    def test_no_launcher(self):
        for mpi, soname in (("openmpi", "libmpi.so.40"), ("mpich", "libmpi.so.12")):
            if mpi in [row["name"] for row in MPIS]:
                self.fails("no launcher.*srun -n 4 carillon exec", "run", self.linked_with(soname),
                           PATH=str(self.folder))

    def test_launcher_beside_the_library(self):
        """Also where the user says which MPI it is."""
        names = {"libmpi.so.40": "openmpi", "libmpi.so.12": "mpich", "libmpi_abi.so.0": "mpiabi"}
        for soname, mpi in names.items():
            if mpi not in [row["name"] for row in MPIS]:
                continue  # there is no interposer
            program = self.linked_with(soname)
            for name in ("mpirun", "mpiexec"):
                says = "mpirun (Open MPI) 4.1.4" if mpi == "openmpi" else "HYDRA build details:"
                self.file(f"mpi/bin/{name}", f"#!/bin/sh\necho '{says}'\n")
            for how in ([], ["--mpi", mpi]):
                done = self.ok("run", "--dry-run", *how, program)
                self.assertTrue(done.out.startswith(f"{self.folder}/mpi/bin/mpi"), done.out)
        # A library of another MPI than the user says has nothing beside it that would do.
        for mpi in [row["name"] for row in MPIS if row["name"] != "mpiabi"]:
            done = self.ok("run", "--dry-run", "--mpi", mpi, self.linked_with("libmpi_abi.so.0"))
            self.assertNotIn(str(self.folder / "mpi/bin"), done.out)

    def test_no_mpi_found(self):
        lonely = self.lonely()
        for command, name in (("bench", "carillon-bench"), ("demo", "collectives")):
            self.fails(f"no {name}-openmpi, -mpich or -mpiabi in {lonely.parent}; "
                       "install an MPI .*apt-get install.* and build", command, cli=lonely)
            for mpi in ("openmpi", "mpich", "mpiabi"):
                self.fails(f"{lonely.parent}/{name}-{mpi} was not built for .*; install its "
                           "compiler wrapper .* and build", command, "--mpi", mpi, cli=lonely)

    def test_mpi_has_gone(self):
        """Since bench's and demo's programs were built: the launcher, then the library."""
        lonely = self.lonely()
        programs = [("bench", "carillon-bench"), ("demo", "collectives")]
        for command, name in programs:
            path = lonely.parent / f"{name}-openmpi"
            shutil.copy(self.linked_with("libmpi.so.40"), path)
            self.fails("no interposer for .* was not built", command, cli=lonely)
            self.file("lib/libcarillon_ompi.so")
            self.fails(f"{path}: no launcher .*apt-get install", command, cli=lonely,
                       PATH=str(self.folder))
            (self.folder / "lib/libcarillon_ompi.so").unlink()
            path.unlink()
        program = self.linked_with("libmpi_abi.so.99")
        shutil.rmtree(self.folder / "mpi")
        for command, name in programs:
            shutil.copy(program, lonely.parent / f"{name}-mpiabi")
            self.fails(f"{name}-mpiabi.*loader does not find; add its folder to LD_LIBRARY_PATH",
                       command, cli=lonely)


class Exec(CliTest):
    def test_under_a_launcher(self):
        for mpi in MPIS:
            extra = ROOT_FLAG + ["--oversubscribe"] if mpi["name"] == "openmpi" else []
            done = subprocess.run(
                [mpi["launcher"], "-n", "2", *extra, CARILLON, "exec", "--stats",
                 program("collectives", mpi["name"])], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"Allreduce +\d+ +0\n")
            self.assertTrue(done.stdout.startswith("barrier"), done.stdout)

    def test_keeps_other_preloads_and_stdout(self):
        for mpi in MPIS:
            done = self.ok("exec", "--mpi", mpi["name"], "printenv", "LD_PRELOAD",
                           LD_PRELOAD="libm.so.6")
            self.assertEqual(done.out, f"{mpi['interposer']}:libm.so.6\n")

    def test_status_of_the_program(self):
        for mpi in MPIS:
            done = run("exec", "--mpi", mpi["name"], "sh", "-c", "exit 5")
            self.assertEqual((done.status, done.out), (5, ""))


class Bench(CliTest):
    KEYS = {"collective", "algorithm", "ranks", "bytes", "latency_us", "native_us", "speedup"}

    def test_json(self):
        for mpi in MPIS:
            answer = self.ok("bench", "allreduce", "bcast", "-n", 2, "--sizes", "8,4K", "--vs",
                             "native", "--mpi", mpi["name"], "--iterations", 20, "--json").json
            rows = answer["results"]
            self.assertEqual([(r["collective"], r["bytes"]) for r in rows],
                             [("allreduce", 8), ("allreduce", 4096), ("bcast", 8), ("bcast", 4096)])
            for row in rows:
                self.assertLessEqual(self.KEYS, set(row))
                self.assertEqual(row["ranks"], 2)
                self.assertGreater(row["latency_us"], 0)
                self.assertGreater(row["speedup"], 0)
            self.assertGreaterEqual(answer["machine"]["cores"], 1)

    def test_all_collectives_and_buffers(self):
        for mpi in MPIS:
            for buffer in ("private", "shared"):
                rows = self.ok("bench", "-n", 3, "--sizes", "5,64", "--mpi", mpi["name"],
                               "--iterations", 2, "--buffer", buffer, "--json",
                               **yielding(mpi["name"])).json["results"]
                self.assertEqual(len(rows), 1 + 15 * 2)  # a barrier has no size

    def test_buffers_that_others_read(self):
        for mpi in MPIS:
            for overlap in ([], ["--overlap", "--tests", 1]):
                for buffer, read in (("private", False), ("heap", True), ("shared", True)):
                    done = self.ok("bench", "bcast", *overlap, "-n", 2, "--sizes", "64K", "--mpi", mpi["name"],
                                   "--iterations", 2, "--buffer", buffer, CARILLON_STATS="json")
                    self.assertIn(f"{buffer} buffers", done.out)
                    said = [line for line in done.err.splitlines() if line.startswith('{"rank":0')]
                    self.assertTrue(said)
                    for line in said:
                        bytes_of = json.loads(line)["node_bytes"]
                        self.assertEqual(bytes_of["in_place"] > 0, read, buffer)
                        self.assertEqual(bytes_of["lent"] + bytes_of["copied"] > 0, not read, buffer)

    def test_sums_that_others_read(self):
        # Of each call half of the input is read in place, and half of the sum copied.
        for mpi in MPIS:
            done = self.ok("bench", "allreduce", "-n", 2, "--sizes", "64K", "--mpi", mpi["name"],
                           "--iterations", 2, "--buffer", "heap", CARILLON_STATS="json",
                           CARILLON_ALGORITHM="allreduce=flat_blocks")
            line, = [line for line in done.err.splitlines() if line.startswith('{"rank":0')]
            bytes_of = json.loads(line)["node_bytes"]
            self.assertGreater(bytes_of["in_place"], 0)
            self.assertGreater(bytes_of["copied"], bytes_of["in_place"] / 2)

    def test_overlap(self):
        for mpi in MPIS:
            answer = self.ok("bench", "--overlap", "-n", 2, "--sizes", 64, "--mpi", mpi["name"],
                             "--iterations", 1, "--tests", 1, "--json").json
            rows = answer["results"]
            settings = {row["native_settings"] for row in rows}
            self.assertEqual(settings, {"default"} if mpi["name"] == "openmpi" else
                             {"default", "progress thread"})
            self.assertEqual([row["collective"] for row in rows], NON_BLOCKING * len(settings))
            for row in rows:
                for side in ("native", "carillon"):
                    figures = row[side]
                    self.assertGreater(figures["start_us"], 0)
                    self.assertGreater(figures["pure_us"], figures["start_us"])
                    self.assertGreater(figures["compute_us"], 0)
                    self.assertGreater(figures["total_us"], 0)
                    self.assertTrue(0 <= figures["overlap_percent"] <= 100, row)
                    self.assertTrue(0 <= figures["busy_percent"] <= 100, row)
            self.fails("nothing to compare", "bench", "bcast", "--overlap", "--sizes", "8", "--mpi",
                       mpi["name"], CARILLON="off")
        self.assertIn("overlap %", self.ok("bench", "bcast", "--overlap", "--sizes", 8,
                                           "--iterations", 1).out)

    def test_formats(self):
        for mpi in MPIS[:1]:
            words = ["bench", "allreduce", "--sizes", "8", "--iterations", "20"]
            self.assertRegex(self.ok(*words).out, r"floor: .*\n(.*\n)*allreduce +8 ")
            # As osu_allreduce and osu_barrier print it: the widths of their osu_util_mpi.c.
            osu = self.ok(*words, "barrier", "--format", "osu").out
            for side in ("carillon", "native"):
                self.assertRegex(osu, rf"\n# {side} MPI Allreduce Latency Test.*\n"
                                 rf"# Size {{9}}Avg Latency\(us\)\n8 {{9}}(?=.{{20}}\n) *\d+\.\d\d\n")
                self.assertRegex(osu, rf"\n# {side} MPI Barrier Latency Test.*\n"
                                 rf"# Avg Latency\(us\)\n(?=.{{17}}\n) *\d+\.\d\d\n")
            for line in osu.splitlines():  # what reads OSU's output skips the lines with #
                self.assertRegex(line, r"^$|^#|^8? +\d+\.\d\d$")
            best = self.ok(*words, "--native-best", "--json").json["results"][0]
            self.assertLessEqual(best["native_us"], best["native_default_us"])

    def test_agreed_beginnings(self):
        cores = len(os.sched_getaffinity(0))
        for mpi in MPIS if cores > 1 else []:
            words = ["bench", "barrier", "reduce", "-n", 2, "--sizes", 8, "--mpi", mpi["name"],
                     "--iterations", 20, "--start", "together"]
            answer = self.ok(*words, "--json").json
            self.assertEqual(answer["start"], "together")
            self.assertEqual([row["collective"] for row in answer["results"]], ["barrier", "reduce"])
            for row in answer["results"]:
                self.assertGreater(row["latency_us"], 0)
                self.assertGreater(row["native_us"], 0)
            self.assertIn("from an agreed beginning", self.ok(*words, "--clock", "tsc", "--fresh").out)
            # More calls than a batch may have, and input that takes longer to write than there is time.
            self.ok(*words[:-4], "--iterations", 1000000, "--seconds", 0.001, *words[-2:])
            self.ok("bench", "reduce", "-n", 2, "--sizes", "16M", "--iterations", 2, "--fresh", "--mpi",
                    mpi["name"], *words[-2:])
        self.fails("cannot begin together", "bench", "barrier", "-n", cores + 1, "--start", "together")

    def test_bare_loop(self):
        for mpi in MPIS:
            for more in ([], ["--fresh"], ["--start", "together"]):
                if more[1:] == ["together"] and len(os.sched_getaffinity(0)) < 2:
                    continue
                rows = self.ok("bench", "barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall",
                               "scan", "-n", 2, "--sizes", "5,56,57,4K,300001,4M", "--mpi", mpi["name"],
                               "--iterations", 10, "--bare", "--json", *more).json["results"]
                for row in rows:  # whose answers have been compared with the MPI's
                    self.assertEqual("bare_us" in row, row["collective"] != "scan")
                    self.assertGreater(row.get("bare_us", 1), 0)
                    self.assertGreater(row.get("room", 1), 0)
            self.assertIn("native / bare", self.ok("bench", "bcast", "scan", "--sizes", 8, "--bare", "--mpi",
                                                   mpi["name"], "--iterations", 10).out)
        self.fails("loop of two ranks", "bench", "bcast", "-n", 3, "--bare", status=2)
        self.fails("blocking calls only", "bench", "bcast", "--overlap", "--bare", status=2)

    def test_fails_if_carillon_does_not_take_the_calls(self):
        for mpi in MPIS:
            self.fails("nothing to compare", "bench", "allreduce", "--sizes", "8", "--mpi",
                       mpi["name"], CARILLON="off")


class Demo(CliTest):
    def test_json(self):
        for mpi in MPIS:
            answer = self.ok("demo", "-n", 2, "--mpi", mpi["name"], "--json").json["demo"]
            self.assertEqual([(one["mpi"], one["problem"]) for one in answer], [(mpi["name"], "")])
            self.assertTrue(all(row["equal"] for row in answer[0]["results"]))

    def test_fails_if_carillon_does_not_take_the_calls(self):
        for mpi in MPIS[:1]:
            done = run("demo", "-n", 2, "--mpi", mpi["name"], CARILLON="off")
            self.assertEqual(done.status, 1)
            self.assertIn("did not take the calls", done.err)


if __name__ == "__main__":
    main()
