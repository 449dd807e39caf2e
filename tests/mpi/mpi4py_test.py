#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# mpi4py's own tests of collectives, communicators and operators, under the interposer; or, --whole,
# all of its tests, module by module, each without and with carillon: what passes without must pass
# with it.
#
#   mpi4py_test.py --mpi openmpi|mpich --wrapper mpicc.mpich --carillon build/bin/carillon --cache DIR
#   tests/mpi/mpi4py_test.py --mpi mpich --whole -n 2 3
#
# The tests are those of the version that is installed for Open MPI; MPICH gets the same version,
# built from the same archive. The archive comes from PyPI, once, into DIR. What cannot be had here
# is no failure: then one line says what is missing, and the exit status is 77.
import argparse
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

SKIPPED = 77
RANKS = (1, 2, 3, 4)
TESTS = ("test_cco", "test_comm", "test_op", "test_exceptions", "test_errhandler", "test_attributes",
         "test_datatype", "test_request", "test_threads")
PYTHONS = ("/usr/bin/python3", sys.executable)
LIBRARY = {"openmpi": "Open MPI", "mpich": "MPICH"}
RUN_TIMEOUT_S = 250
MODULE_TIMEOUT_S = 120
ROOT = Path(__file__).resolve().parent.parent.parent
PLAIN = {"openmpi": ["mpirun.openmpi", "--oversubscribe"], "mpich": ["mpiexec.mpich"]}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def python_with_mpi4py():
    """An interpreter that has mpi4py, and its version."""
    for python in PYTHONS:
        done = subprocess.run([python, "-c", "import mpi4py; print(mpi4py.__version__)"],
                              capture_output=True, text=True)
        if done.returncode == 0:
            return python, done.stdout.strip()
    return skip("no Python here has mpi4py")


def pip(python, *words, **variables):
    return subprocess.run([python, "-m", "pip", *words, "--no-deps", "--no-build-isolation",
                           "--quiet"], env={**os.environ, **variables}, capture_output=True,
                          text=True)


def source(python, version, cache):
    """The folder of mpi4py's source of this version, with its tests, and its archive."""
    archive = cache / f"mpi4py-{version}.tar.gz"
    folder = cache / f"mpi4py-{version}"
    if not archive.exists():
        done = pip(python, "download", "--no-binary", ":all:", "--dest", str(cache),
                   f"mpi4py=={version}")
        if done.returncode != 0 or not archive.exists():
            last = (done.stderr.strip().split("\n") or [""])[-1]
            skip(f"the source of mpi4py {version} cannot be had from PyPI: {last}")
    if not (folder / "test/runtests.py").exists():
        with tarfile.open(archive) as opened:
            opened.extractall(cache)
    return folder, archive


def built_for(mpi, python, version, archive, wrapper, cache):
    """The folder with mpi4py built for this MPI; the compiler need not make it fast."""
    folder = cache / f"{mpi}-{version}"
    if (folder / "mpi4py").exists():
        return folder
    done = subprocess.run([python, "-c", "import setuptools, wheel, sysconfig\n"
                           "open(sysconfig.get_path('include') + '/Python.h')"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        skip(f"{python} cannot build mpi4py for {mpi}: {done.stderr.strip().splitlines()[-1]}")
    done = pip(python, "install", "--target", str(folder), str(archive), MPICC=wrapper,
               CFLAGS="-O0 -w")
    if done.returncode != 0:
        sys.exit(f"mpi4py {version} cannot be built with {wrapper}:\n{done.stdout}{done.stderr}")
    return folder


def environment(packages):
    drop = re.compile(r"CARILLON|OMPI_COMM_|PMI_|PMIX_|LD_PRELOAD")
    kept = {k: v for k, v in os.environ.items() if not drop.match(k)}
    kept |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
             "PYTHONDONTWRITEBYTECODE": "1"}
    if packages:
        kept["PYTHONPATH"] = str(packages)
    return kept


def taken(stderr):
    """How many calls of each collective were taken, from what --stats printed."""
    return {name: int(count)
            for name, count in re.findall(r"^  ([A-Z]\w+) +(\d+) +\d+", stderr, re.MULTILINE)}


def problem(done, ranks):
    """What is wrong with a run's end, or nothing."""
    if done.returncode != 0:
        return f"exit status {done.returncode}"
    ended = len(re.findall(r"Ran \d{2,} tests", done.stderr))
    if ended != ranks:
        return f"{ended} of {ranks} ranks ended their tests"
    if not all(taken(done.stderr).get(name) for name in ("Barrier", "Allreduce", "Alltoallv")):
        return "carillon did not take the calls"
    return None


def run_job(words, folder, variables, limit_s):
    """The job, ended; None if it had to be ended."""
    with subprocess.Popen(words, cwd=folder, env=variables, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as job:
        try:
            stdout, stderr = job.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            job.terminate()  # the launcher, which ends its ranks and removes what is theirs
            try:
                job.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                job.kill()
            return None
    return subprocess.CompletedProcess(words, job.returncode, stdout, stderr)


def run(carillon, python, folder, ranks, variables):
    words = [carillon, "run", "--stats", "-n", str(ranks), python, "test/runtests.py",
             "--no-builddir", "--quiet"]
    for name in TESTS:
        words += ["--include", name]
    done = run_job(words, folder, variables, RUN_TIMEOUT_S)
    if done is None:
        print(f"{ranks} ranks: not ended after {RUN_TIMEOUT_S} s")
        return False
    wrong = problem(done, ranks)
    if wrong:
        print(f"{done.stdout}{done.stderr}\n{ranks} ranks: {wrong}")
        return False
    print(f"{ranks} ranks: {re.search(r'Ran .*', done.stderr)[0]}, "
          f"{sum(taken(done.stderr).values())} calls taken")
    return True


class Outcome:
    """How a module's tests ended: which failed on some rank, and whether all came to their end."""

    def __init__(self, done, ranks):
        self.said = "" if done is None else done.stdout + done.stderr
        ends = re.findall(r"Ran (\d+) tests? in", self.said)
        self.tests = int(ends[0]) if ends else 0
        self.failed = set(re.findall(r"(?:FAIL|ERROR): (\w+ \([\w.]+\))", self.said))
        self.trouble = (f"not ended after {MODULE_TIMEOUT_S} s" if done is None else
                        "ended early" if len(ends) != ranks else
                        f"exit status {done.returncode}" if done.returncode and not self.failed
                        else "")

    def __str__(self):
        return ", ".join(sorted(self.failed) + [self.trouble] * bool(self.trouble))


def compare(name, ranks, alone, served):
    """Prints what came out; whether carillon has made nothing worse."""
    row = f"{name} -n {ranks}: "
    worse = sorted(served.failed - alone.failed) + [served.trouble] * bool(served.trouble)
    if alone.trouble:
        ends = str(served) or "passes"
        print(f"{row}the MPI alone: {alone}; with carillon: {ends}", flush=True)
        return True
    if worse:
        print(f"{served.said}\n{row}ONLY WITH CARILLON: {', '.join(worse)}", flush=True)
        return False
    count = sum(taken(served.said).values())
    print(f"{row}{served.tests} tests, {count} calls taken"
          + (f"; the MPI alone fails: {alone}" if alone.failed else ""), flush=True)
    return True


def run_whole(args, python, folder, variables):
    modules = [path.stem for path in sorted((folder / "test").glob("test_*.py"))]
    if args.modules:
        modules = [name for name in modules if re.search("|".join(args.modules), name)]
    same, worse = 0, []
    for name in modules:
        for ranks in args.ranks:
            tests = ["-n", str(ranks), python, "test/runtests.py", "--no-builddir", "--quiet",
                     "--include", f"^{name}$"]
            alone, served = (
                Outcome(run_job(launcher + tests, folder, variables, MODULE_TIMEOUT_S), ranks)
                for launcher in (PLAIN[args.mpi], [args.carillon, "run", "--stats"]))
            if compare(name, ranks, alone, served):
                same += 1
            else:
                worse.append(f"{name} -n {ranks}")
    print(f"{LIBRARY[args.mpi]}, {len(modules)} modules: {same} runs no worse than without carillon"
          + (f", {len(worse)} worse: {', '.join(worse)}" if worse else ""))
    return not worse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpi", required=True, choices=LIBRARY)
    parser.add_argument("--wrapper", help="the MPI's compiler wrapper (mpicc.MPI)")
    parser.add_argument("--carillon", default=str(ROOT / "build" / "bin" / "carillon"))
    parser.add_argument("--cache", default=ROOT / "build" / "mpi4py", type=Path)
    parser.add_argument("--whole", action="store_true", help="all tests, without and with carillon")
    parser.add_argument("-n", "--ranks", type=int, nargs="+", default=[2], help="of --whole (2)")
    parser.add_argument("--modules", nargs="+", metavar="PATTERN", help="of --whole, only these")
    args = parser.parse_args()
    args.wrapper = args.wrapper or f"mpicc.{args.mpi}"

    python, version = python_with_mpi4py()
    args.cache.mkdir(parents=True, exist_ok=True)
    folder, archive = source(python, version, args.cache)
    packages = None
    if args.mpi != "openmpi":
        packages = built_for(args.mpi, python, version, archive, args.wrapper, args.cache)
    variables = environment(packages)
    done = subprocess.run([python, "-c", "from mpi4py import MPI; print(MPI.Get_library_version())"],
                          env=variables, capture_output=True, text=True)
    if LIBRARY[args.mpi] not in done.stdout:
        skip(f"the mpi4py of {python} is not for {LIBRARY[args.mpi]}: {done.stdout}{done.stderr}")
    if args.whole:
        return 0 if run_whole(args, python, folder, variables) else 1
    # MPICH's own waits keep the core: with more ranks than cores, what it does itself takes minutes.
    most = max(RANKS) if args.mpi == "openmpi" else max(2, len(os.sched_getaffinity(0)))
    ends = [run(args.carillon, python, folder, n, variables) for n in RANKS if n <= most]
    return 0 if all(ends) else 1


if __name__ == "__main__":
    sys.exit(main())
