#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# mpi4py's own tests of collectives, communicators and operators, under the interposer.
#
#   mpi4py_test.py --mpi openmpi|mpich --wrapper mpicc.mpich --carillon build/bin/carillon --cache DIR
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


def run(carillon, python, folder, ranks, variables):
    words = [carillon, "run", "--stats", "-n", str(ranks), python, "test/runtests.py",
             "--no-builddir", "--quiet"]
    for name in TESTS:
        words += ["--include", name]
    with subprocess.Popen(words, cwd=folder, env=variables, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as job:
        try:
            stdout, stderr = job.communicate(timeout=RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            job.terminate()  # the launcher, which ends its ranks and removes what is theirs
            try:
                job.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                job.kill()
            print(f"{ranks} ranks: not ended after {RUN_TIMEOUT_S} s")
            return False
    done = subprocess.CompletedProcess(words, job.returncode, stdout, stderr)
    wrong = problem(done, ranks)
    if wrong:
        print(f"{done.stdout}{done.stderr}\n{ranks} ranks: {wrong}")
        return False
    print(f"{ranks} ranks: {re.search(r'Ran .*', done.stderr)[0]}, "
          f"{sum(taken(done.stderr).values())} calls taken")
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpi", required=True, choices=LIBRARY)
    parser.add_argument("--wrapper", required=True)
    parser.add_argument("--carillon", required=True)
    parser.add_argument("--cache", required=True, type=Path)
    args = parser.parse_args()

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
    # MPICH's own waits keep the core: with more ranks than cores, what it does itself takes minutes.
    most = max(RANKS) if args.mpi == "openmpi" else max(2, len(os.sched_getaffinity(0)))
    ends = [run(args.carillon, python, folder, n, variables) for n in RANKS if n <= most]
    return 0 if all(ends) else 1


if __name__ == "__main__":
    sys.exit(main())
