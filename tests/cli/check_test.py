# SPDX-License-Identifier: Apache-2.0
#
# carillon run --check: right programs run to their end, and a call that does not fit with those of
# the other ranks ends the job, with both calls named.
import os
import re
from pathlib import Path

from support import CliTest, main, run, yielding

PROBES = Path(os.environ["CLUSTER_PROBES"])
# What is said of each mistake of check_probe.c, if the last rank makes it.
MISTAKES = {
    "function": ["another function", "MPI_Bcast", "MPI_Barrier"],
    "started": ["another function", "MPI_Bcast", "MPI_Ibcast"],
    "count": ["rank 0 sends 4 elements to rank {odd}, which expects 5"],
    "type": ["elements of other types", "4 of MPI_LONG"],
    "root": ["another root", "root 1", "root 0"],
    "operands": ["another count or type of the operands", "2 of MPI_DOUBLE", "1 of MPI_DOUBLE"],
    "operator": ["another operator", "MPI_MAX", "MPI_SUM"],
    "persistent": ["rank 0 sends 2 elements to rank {odd}, which expects 3", "MPI_Bcast_init"],
    "block": ["rank 0 sends 2 elements to rank {odd}, which expects 1"],
    "missing": ["another function", "MPI_Bcast", "MPI_Allreduce"],
}


def mpis():
    rows = run("info", "--json").json["mpis"]
    return [row["name"] for row in rows if row["interposer"] and row["launcher"]
            and (PROBES / f"check_probe-{row['name']}").exists()]


MPIS = mpis()


class Check(CliTest):
    def probe(self, mpi, ranks, *words):
        # Open MPI's launcher would sleep a second before it kills who does not end by SIGTERM.
        return run("run", "-n", ranks, "--check", PROBES / f"check_probe-{mpi}", *words,
                   OMPI_MCA_odls_base_sigkill_timeout="0", **yielding(mpi))

    def test_what_is_right_is_left_alone(self):
        for mpi in MPIS:
            for ranks in [1, 2, 3, 5]:
                done = self.probe(mpi, ranks)
                self.assertEqual((done.status, done.out, done.err), (0, "", ""), (mpi, ranks))

    def test_what_is_wrong_is_said(self):
        for mpi in MPIS:
            for number, (mistake, expected) in enumerate(MISTAKES.items()):
                odd = 1 + number % 3
                with self.subTest(mpi=mpi, mistake=mistake, odd=odd):
                    done = self.probe(mpi, odd + 1, mistake)
                    self.assertNotEqual(done.status, 0)
                    said = re.findall(r"carillon: check: .*\n.*\n.*", done.err)
                    self.assertEqual(len(said), 1, done.err)
                    for words in expected:
                        self.assertIn(words.format(odd=odd), said[0])
                    self.assertIn(f"rank {odd} does not fit with rank 0", said[0])
                    self.assertRegex(said[0], f"rank {odd}: MPI_.* at .*check_probe")
                    self.assertRegex(said[0], "rank 0: MPI_.* at .*check_probe")

    def test_the_place_is_where_the_program_calls(self):
        for mpi in MPIS:
            done = self.probe(mpi, 2, "function")
            place = re.search(r"rank 1: MPI_Barrier.* at .*?([^ (]*)\+(0x[0-9a-f]+)\)?$", done.err,
                              re.MULTILINE)
            self.assertIsNotNone(place, done.err)
            self.assertEqual(Path(place[1]).name, f"check_probe-{mpi}")

    def test_a_call_at_the_end_that_not_all_make(self):
        for mpi in MPIS:
            for odd in [0, 2]:
                done = self.probe(mpi, 3, "last", odd)
                self.assertNotEqual(done.status, 0)
                missing = ", ".join(str(rank) for rank in range(3) if rank != odd)
                self.assertIn(f"the program has ended without rank(s) {missing}", done.err)
                self.assertIn(f"rank {odd}: MPI_Ibarrier", done.err)

    def test_who_ends_before_the_others_call(self):
        for mpi in MPIS:
            done = self.probe(mpi, 3, "early", 0)
            self.assertNotEqual(done.status, 0)
            self.assertRegex(done.err, r"the program has ended without rank\(s\) 0\b")
            self.assertRegex(done.err, "rank [12]: MPI_Barrier")

    def test_values_of_the_setting(self):
        done = run("run", "-n", 1, PROBES / f"check_probe-{MPIS[0]}", CARILLON_CHECK="maybe")
        self.assertNotEqual(done.status, 0)
        self.assertIn("CARILLON_CHECK=maybe is not a setting", done.err)


if __name__ == "__main__":
    main()
