# SPDX-License-Identifier: Apache-2.0
#
# carillon run --record: what real runs write, and that it can be simulated.
import os
from pathlib import Path

from support import CliTest, main, run, yielding

PROBES = Path(os.environ["CLUSTER_PROBES"])
ROUNDS = 10


def mpis():
    rows = run("info", "--json").json["mpis"]
    return [row["name"] for row in rows if row["interposer"] and row["launcher"]
            and (PROBES / f"record_probe-{row['name']}").exists()]


MPIS = mpis()


class Record(CliTest):
    def record(self, mpi, ranks, *words, **environment):
        path = self.folder / f"{mpi}-{ranks}.program"
        done = self.ok("run", "-n", ranks, "--record", path, PROBES / f"record_probe-{mpi}", *words,
                       **yielding(mpi), **environment)
        self.assertEqual(done.out + done.err, "")
        return path

    def test_what_is_called_is_what_is_simulated(self):
        for mpi in MPIS:
            for ranks in [1, 2, 5]:
                path = self.record(mpi, ranks)
                row = self.ok("sim", "--program", path, "--json").json
                parts = min(ranks, 2)
                calls = {name: (kind["calls"], kind["starts"])
                         for name, kind in row["collectives"].items()}
                self.assertEqual(calls, {
                    "barrier": (2, 2 * ranks),
                    "bcast": (2 * ROUNDS * parts + 1, (2 * ROUNDS + 1) * ranks),
                    "allreduce": (ROUNDS + 2, (ROUNDS + 2) * ranks),
                    "reduce_scatter_block": (1, ranks),
                    "reduce": (1, ranks),
                    "allgather": (2, 2 * ranks),
                    "alltoall": (1, ranks),
                    "gather": (1, ranks),
                    "scatter": (1, ranks),
                    "alltoallv": (1, ranks),
                    "scan": (1, ranks)}, mpi)
                self.assertEqual(row["other_calls"], ranks)
                self.assertEqual(row["ranks"], ranks)
                for times in row["rank_times"]:
                    self.assertGreater(times["compute_us"], 0)
                    self.assertGreater(times["other_us"], 0)

    def test_the_lines(self):
        for mpi in MPIS:
            lines = self.record(mpi, 5).read_text().splitlines()
            self.assertEqual(lines[:4], ["carillon-program 1", "ranks 5", "team 3,1 3,1",
                                         "team 4,2,0 4,2,0"])
            calls = [" ".join(line.split()[2:]) for line in lines if line.startswith("call ")]
            for call in ["barrier", "bcast team=4,2,0 root=2 count=200",
                         "bcast team=3,1 root=1 count=200", "bcast team=3,1 count=80",
                         "allreduce count=5 element=8",
                         "reduce_scatter_block count=5 element=8 ordered",
                         "reduce count=4 element=8", "reduce count=4 element=8 in_place",
                         "allgather count=12", "allgather count=8 in_place", "alltoall count=4",
                         "gather root=4 count=12", "gather root=4 count=12 in_place",
                         "scatter root=4 count=8", "scatter root=4 count=8 in_place",
                         "alltoallv send=3,4,5,6,7 recv=3,4,5,6,7",
                         "scan count=1 element=4"]:
                self.assertEqual(calls.count(call), 1, (mpi, call, calls))
            self.assertEqual(len(calls), len(set(calls)))
            others = [line.split()[1] for line in lines if line.startswith("other ")]
            self.assertEqual(others, ["Allreduce"] * 5)
            flights = [" ".join(line.split()[:1] + line.split()[-1:]) for line in lines
                       if line.startswith(("start ", "wait "))]
            self.assertEqual(flights, ["start f1", "start f2", "wait f1", "wait f2", "start f1",
                                       "wait f1", "start f1", "wait f1"] * 5)

    def test_on_another_machine_with_other_algorithms(self):
        path = self.record(MPIS[0], 4)
        base = ["sim", "--program", path, "--json"]
        packed = self.ok(*base, "--ppn", 4).json
        spread = self.ok(*base, "--ppn", 1).json
        self.assertEqual((packed["nodes"], spread["nodes"]), (1, 4))
        self.assertNotEqual(packed["total_ps"], spread["total_ps"])
        chosen = self.ok(*base, "-a", "allreduce=ring", "-a", "bcast=chain").json["collectives"]
        self.assertEqual(chosen["allreduce"]["algorithms"], ["allreduce.ring"])
        self.assertEqual(chosen["bcast"]["algorithms"], ["bcast.chain"])

    def test_more_events_than_stay_in_memory(self):
        path = self.record(MPIS[0], 2, "many")
        row = self.ok("sim", "--program", path, "--json").json
        self.assertEqual(row["collectives"]["allreduce"]["starts"], 2 * (ROUNDS + 2 + 70000))

    def test_by_its_variable(self):
        path = self.folder / "p"
        self.ok("run", "-n", 2, PROBES / f"record_probe-{MPIS[0]}", CARILLON_RECORD=str(path))
        self.ok("sim", "--program", path)

    def test_a_crash_leaves_nothing(self):
        for mpi in MPIS:
            temporary = self.folder / "tmp"
            temporary.mkdir(exist_ok=True)
            before = set(self.folder.iterdir())
            done = run("run", "-n", 2, "--record", self.folder / "p",
                       PROBES / f"record_probe-{mpi}", "crash", cwd=self.folder)
            self.assertNotEqual(done.status, 0)
            names = {path for path in set(self.folder.iterdir()) - before
                     if not path.name.startswith("core")}
            self.assertEqual(names, set())

    def test_off(self):
        path = self.folder / "p"
        done = self.ok("run", "-n", 2, "--record", path, PROBES / f"record_probe-{MPIS[0]}",
                       CARILLON="off")
        self.assertIn("nothing is recorded, because carillon is off", done.err)
        self.assertFalse(path.exists())

    def test_a_file_that_cannot_be(self):
        self.fails("cannot be written", "run", "-n", 2, "--record", "/nowhere/at/all",
                   PROBES / f"record_probe-{MPIS[0]}")


if __name__ == "__main__":
    if not MPIS:
        raise SystemExit("no MPI to record with")
    main()
