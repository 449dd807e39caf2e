# SPDX-License-Identifier: Apache-2.0
#
# benchmarks/kandalla2013 and posts: that they come to an end and print what docs/servlet.md has, on
# small jobs; not how fast anything is.
import json
import subprocess
import sys
import unittest
from pathlib import Path

from support import CARILLON, CliTest, clean_environment, main, may_make_clusters, run

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "benchmarks" / "kandalla2013"
BIN = CARILLON.parent
MPIS = [mpi for mpi in ("openmpi", "mpich") if (BIN / f"posts-{mpi}").exists()]


def script(name, *words, **variables):
    command = [sys.executable, SCRIPTS / name, "--bin", BIN, *words]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env=clean_environment({"PYTHONDONTWRITEBYTECODE": "1", **variables}),
                          timeout=280)


def tables(text):
    """Each one's rows, without those of its head."""
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        if lines:
            found.append([[cell.strip() for cell in line.strip("|").split("|")]
                          for line in lines[2:]])
    return found


@unittest.skipUnless("openmpi" in MPIS, "needs Open MPI")
class Scripts(CliTest):
    def measured(self, name, *words):
        """The tables; they are the same out of the file of rows."""
        rows = self.folder / "rows"
        done = script(name, "--rounds", 1, "--mpis", "openmpi", "--rows", rows, *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        again = script(name, "--table", rows)
        self.assertEqual((again.stdout, again.stderr), (done.stdout, ""))
        return tables(done.stdout), [json.loads(line) for line in rows.read_text().splitlines()]

    @unittest.skipUnless(may_make_clusters(), "needs CAP_NET_ADMIN and CAP_SYS_ADMIN (root)")
    def test_overlap(self):
        (overlap, copied, sent), rows = self.measured(
            "overlap", "--nodes", 2, "--collectives", "alltoallv,bcast", "--sizes", 65536,
            "--iterations", 1)
        self.assertEqual([row[:4] for row in overlap],
                         [["2x1, 500mbit", name, "64 KiB", by] for name in ("alltoallv", "bcast")
                          for by in ("Open MPI", "carillon, servlet off, Open MPI",
                                     "carillon, servlet on, Open MPI")])
        for row in rows:
            if row["kind"] == "overlap":
                self.assertGreater(row["pure_us"], 0)
                self.assertTrue(0 <= row["busy_percent"] <= 100, row)
        # What is in shared memory is read where it stands, and nothing is staged or copied.
        self.assertEqual([row[:2] for row in copied], [[shape, name] for shape in ("1x4", "2x2")
                                                       for name in ("alltoallv", "bcast")])
        self.assertEqual({(row[4], row[5]) for row in copied}, {("0", "0")})
        self.assertTrue(all(int(row[3]) > 0 for row in copied), copied)
        self.assertEqual([row[:2] for row in sent], [["2x1", "64 KiB"]])

    @unittest.skipUnless(may_make_clusters(), "needs CAP_NET_ADMIN and CAP_SYS_ADMIN (root)")
    @unittest.skipUnless((BIN / "fft3d-openmpi").exists(), "needs fft3d (FFTW)")
    def test_fft3d(self):
        (times, against), _ = self.measured("fft3d", "--nodes", 2, "--grids", "16,12x10x8",
                                            "--iterations", 1, "--check")
        self.assertEqual([row[:4] for row in times],
                         [["2x1, 500mbit", grid, by, "1"] for grid in ("16x16x16", "12x10x8")
                          for by in ("Open MPI", "carillon, servlet off, Open MPI",
                                     "carillon, servlet on, Open MPI")])
        self.assertEqual([row[1] for row in against], ["16x16x16", "12x10x8"])

    @unittest.skipUnless(may_make_clusters(), "needs CAP_NET_ADMIN and CAP_SYS_ADMIN (root)")
    @unittest.skipUnless((BIN / "fft3d-openmpi").exists(), "needs fft3d (FFTW)")
    def test_the_mpi_is_not_compared_with_itself(self):
        (self.folder / "libfabric.so.1").write_bytes(b"")  # so that none can be loaded
        done = script("fft3d", "--rounds", 1, "--mpis", "openmpi", "--grids", "8", "--nodes", 2,
                      "--rates", "500mbit", "--iterations", 1, LD_LIBRARY_PATH=str(self.folder))
        self.assertEqual(done.stderr.count("carillon serves nothing"), 2 * (1 + 2), done.stderr)
        self.assertEqual([row[2] for row in tables(done.stdout)[0]], ["Open MPI"])

    def test_what_fails_is_said_and_left_out(self):
        done = script("fft3d", "--rounds", 1, "--mpis", "openmpi", "--grids", "0", "--nodes", 2)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("left out:", done.stderr)
        self.assertIn("nothing could be measured", done.stderr)
        done = script("overlap", "--mpis", "lam")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is not built for lam", done.stderr)


@unittest.skipUnless(MPIS, "no MPI was found when carillon was built")
class Posts(CliTest):
    def test_rows(self):
        for mpi in MPIS:
            for servlet in ("off", "on"):
                done = self.ok("run", "--mpi", mpi, "-n", 2, BIN / f"posts-{mpi}",
                               "allreduce,alltoallv", "8,70000", 2, CARILLON_SERVLET=servlet)
                rows = [line.split() for line in done.out.splitlines() if line.startswith("i")]
                self.assertEqual(len(rows), 2 * 2 * 2 * 2, done.out)
                for row in rows:
                    low, high = row[-2].split("..")
                    self.assertTrue(0 < float(low) <= float(row[-3]) <= float(high) <=
                                    float(row[-1]), row)

    def test_without_carillon_there_is_nothing_to_say(self):
        done = run("run", "--mpi", MPIS[0], "-n", 2, BIN / f"posts-{MPIS[0]}", "bcast", 8, 2,
                   CARILLON="off")
        self.assertNotEqual(done.status, 0)
        self.assertIn("carillon did not take the calls", done.err)


if __name__ == "__main__":
    main()
