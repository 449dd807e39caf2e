# SPDX-License-Identifier: Apache-2.0
#
# carillon run --stats: calls, bytes, time and algorithm of each collective on each communicator,
# and what was left to the MPI, and why; against a program whose calls are known.
import json
import os
import re
from collections import Counter
from pathlib import Path

from support import CARILLON, CliTest, main, run, yielding

PROBES = Path(os.environ["CLUSTER_PROBES"])
RANKS = 3
INT = 4
COPY = 'the "copy" \\ of it, \u00e9t?'  # control characters are blanks, what is no UTF-8 is "?"
INTER = "intercommunicator"


def mpis():
    rows = run("info", "--json").json["mpis"]
    return [row["name"] for row in rows if row["interposer"] and row["launcher"]
            and (PROBES / f"stats_probe-{row['name']}").exists()]


MPIS = mpis()


def expected(rank):
    """(communicator, ranks, collective) -> calls, bytes in and out; of all but MPI_COMM_WORLD's and
    those without a name."""
    root = rank == 1
    numbers = sum(range(1, RANKS + 1))  # of all ranks' lists
    own = rank + 1
    rows = {
        "Barrier": (0, 0), "Bcast": (10 * root, 10 * (not root)), "Reduce": (3, 3 * root),
        "Reduce_scatter_block": (2 * RANKS, 2), "Allgather": (3, 3 * RANKS),
        "Gather": (5, 5 * RANKS * root), "Scatter": (6 * RANKS * root, 6),
        "Alltoall": (7 * RANKS, 7 * RANKS), "Scan": (2, 2), "Exscan": (3, 3 * (rank > 0)),
        "Allgatherv": (own, numbers), "Gatherv": (own, numbers * root),
        "Scatterv": (numbers * root, own), "Reduce_scatter": (numbers, own),
        "Alltoallv": (RANKS * rank + 3, RANKS * rank + 3), "Alltoallw": (2 * RANKS, 2 * RANKS)}
    all_rows = {(COPY, RANKS, name): (1, *moved) for name, moved in rows.items()}
    for name in ("Reduce", "Allgather", "Gather", "Scatter", "Alltoall"):
        all_rows["in place", RANKS, name] = (1, *rows[name])
    neighbours = 2 if rank == 1 else 1
    all_rows |= {
        ("grid", RANKS, "Neighbor_allgather"): (1, 3, 3 * neighbours),
        ("grid", RANKS, "Neighbor_alltoall"): (1, 2 * neighbours, 2 * neighbours),
        ("fresh", RANKS, "Iallreduce"): (4, 4, 4),
        ("fresh", RANKS, "Ibcast"): (1, 10 * (rank == 0), 10 * (rank != 0))}
    alone = rank == 0
    group, others = (1, RANKS - 1) if alone else (RANKS - 1, 1)
    all_rows |= {
        ("bridge", group, "Allreduce"): (1, 2, 2),
        ("bridge", group, "Allgather"): (1, 2, 2 * others),
        ("bridge", group, "Bcast"): (1, 9 * alone, 9 * (not alone)),
        ("bridge", group, "Gather"): (1, 4 * (not alone), 4 * others * alone)}
    return {key: (calls, INT * given, INT * got) for key, (calls, given, got) in all_rows.items()}


class Stats(CliTest):
    plain_runs = {}

    def plain(self, mpi):
        """As files(mpi), of one run for all tests."""
        if mpi not in self.plain_runs:
            self.plain_runs[mpi] = self.files(mpi)
        return self.plain_runs[mpi]

    def files(self, mpi, *words, ranks=RANKS, **environment):
        """What each rank says, and what the program prints."""
        prefix = self.folder / "stats"
        done = self.ok("run", "-n", ranks, PROBES / f"stats_probe-{mpi}", *words,
                       CARILLON_STATS=str(prefix), **yielding(mpi), **environment)
        said = [json.loads(Path(f"{prefix}.{rank}.json").read_text()) for rank in range(ranks)]
        return said, dict(line.split() for line in done.out.splitlines())

    def sums(self, rows):
        found = {}
        for row in rows:
            key = (row["communicator"], row["ranks"], row["collective"])
            old = found.get(key, (0, 0, 0))
            found[key] = tuple(a + row[b] for a, b in zip(old, ("calls", "bytes_in", "bytes_out")))
        return found

    def test_calls_and_bytes_of_each_communicator(self):
        for mpi in MPIS:
            for off in (False, True):
                said, _ = self.files(mpi, CARILLON="off") if off else self.plain(mpi)
                for rank, stats in enumerate(said):
                    with self.subTest(mpi=mpi, off=off, rank=rank):
                        wanted = expected(rank)
                        found = self.sums(stats["calls"])
                        for key, row in wanted.items():
                            self.assertEqual(found.get(key), row, key)
                        for row in stats["calls"]:
                            left = ("carillon is off" if off else
                                    INTER if row["communicator"] == "bridge" else None)
                            self.assertEqual(row["left"], left, row)
                            self.assertGreater(row["time_ns"], 0, row)

    def test_two_algorithms_of_one_collective(self):
        for mpi in MPIS:
            said, printed = self.plain(mpi)
            self.assertNotEqual(printed["small"], printed["large"])
            large = 8 << 17
            rows = {row["algorithm"]: (row["calls"], row["bytes_in"], row["bytes_out"])
                    for row in said[0]["calls"]
                    if (row["communicator"], row["collective"]) == ("MPI_COMM_WORLD", "Allreduce")}
            self.assertEqual(rows, {printed["small"]: (5, 40, 40),
                                    printed["large"]: (2, 2 * large, 2 * large),
                                    None: (1, 0, 0)})

    def test_all_have_algorithms_if_they_move_anything(self):
        for mpi in MPIS:
            for stats in self.plain(mpi)[0]:
                for row in stats["calls"]:
                    taken = row["left"] is None
                    moves = row["collective"] == "Barrier" or row["bytes_in"] + row["bytes_out"] > 0
                    self.assertEqual(row["algorithm"] is not None, taken and moves, row)
                    if row["algorithm"]:
                        self.assertRegex(row["algorithm"], r"^[a-z_]+\.\w+$")

    def test_persistent(self):
        for mpi in MPIS:
            for rank, stats in enumerate(self.plain(mpi)[0]):
                row, = [row for row in stats["calls"] if row["collective"] == "Bcast_init"]
                moved = 4 * 3 * INT
                self.assertEqual((row["communicator"], row["calls"], row["bytes_in"],
                                  row["bytes_out"]),
                                 ("MPI_COMM_WORLD", 4, moved * (rank == 0), moved * (rank != 0)))

    def test_full_disk(self):
        for mpi in MPIS:
            (self.folder / f"{mpi}.0.json").symlink_to("/dev/full")
            done = self.ok("run", "-n", 2, CARILLON.parent / f"collectives-{mpi}",
                           CARILLON_STATS=f"{self.folder}/{mpi}")
            self.assertRegex(done.err, rf"carillon: CARILLON_STATS: cannot write .*/{mpi}.0.json: No space left")
            json.loads((self.folder / f"{mpi}.1.json").read_text())

    def test_rows_are_what_was_taken_and_left(self):
        for mpi in MPIS:
            for stats in self.plain(mpi)[0]:
                taken, left = Counter(), Counter()
                for row in stats["calls"]:
                    (taken if row["left"] is None else left)[row["collective"]] += row["calls"]
                for row in stats["collectives"]:
                    name = row["collective"]
                    self.assertEqual((taken[name], left[name]),
                                     (row["taken"], sum(row["left"].values())), name)

    def test_communicators_without_a_name(self):
        for mpi in MPIS:
            rows = self.plain(mpi)[0][0]["calls"]
            named = [(row["communicator"], row["bytes_in"]) for row in rows
                     if row["communicator"].startswith("unnamed")]
            self.assertEqual(named, [("unnamed 1", INT), ("unnamed 2", 2 * INT)])

    def test_algorithms_of_calls_that_surveys_decide_on(self):
        for mpi in MPIS:
            said, _ = self.files(mpi, "surveyed", 9, ranks=5, CARILLON_NODE_RANKS="2,1,2",
                                 CARILLON_CROWDED="0", CARILLON_SURVEYS="on")
            for stats in said:
                decided = Counter()
                for row in stats["alltoallv"]:
                    decided[row["algorithm"]] += row["calls"]
                self.assertEqual({row["algorithm"]: row["calls"] for row in stats["calls"]},
                                 dict(decided))
                self.assertEqual(len(decided), 2)

    def test_bytes_within_the_node(self):
        for mpi in MPIS:
            program = PROBES / f"shared_heap_test-{mpi}"
            done = self.ok("run", "-n", 2, "--shared-heap", "--stats", "--json", program)
            line, = [line for line in done.err.splitlines() if line.startswith('{"rank":0')]
            given = json.loads(line)["node_bytes"]
            # The root's of two rounds of broadcasts, and the blocks of two allgathers.
            self.assertGreaterEqual(given["in_place"], 4 << 20)
            done = self.ok("run", "-n", 2, "--shared-heap", "--stats", program)
            self.assertRegex(done.err, r"\n  to others of the node, bytes: [1-9]\d* read where they "
                                       r"stood, \d+ copied once, \d+ through shared memory( \(.*\))?\n")

    def test_bytes_past_the_caches_and_handed_over(self):
        for mpi in MPIS:
            how = ["-n", 2, "--sizes", "64K", "--mpi", mpi, "--iterations", 50]
            for collective, uncached, key in ("bcast", 64, "uncached"), ("alltoall", 0, "handed"):
                done = self.ok("bench", collective, *how, CARILLON_STATS="json", CARILLON_LEND_BYTES="0",
                               CARILLON_UNCACHED_BYTES=str(uncached))
                line, = [line for line in done.err.splitlines() if line.startswith('{"rank":0')]
                given = json.loads(line)["node_bytes"]
                self.assertGreater(given[key], 0)
                self.assertLessEqual(given["uncached"] + given["handed"], given["copied"])
                done = self.ok("bench", collective, *how, CARILLON_STATS="1", CARILLON_LEND_BYTES="0",
                               CARILLON_UNCACHED_BYTES=str(uncached))
                self.assertRegex(done.err, r"through shared memory \(\d+ of them past the caches, "
                                           r"\d+ in memory that was handed over\)\n")

    def test_time(self):
        seconds = 0.5
        for mpi in MPIS:
            rows = self.files(mpi, "late", seconds)[0][0]["calls"]
            took = {(row["communicator"], row["collective"]): row["time_ns"] / 1e9 for row in rows}
            # Rank 0 waits so long as the others compute; what it computes itself is not the call's.
            self.assertGreater(took["late", "Barrier"], seconds / 2)
            self.assertGreater(took["late", "Ibarrier"], seconds / 2)
            self.assertLess(took["beside", "Ibarrier"], seconds)

    def test_table(self):
        for mpi in MPIS:
            done = self.ok("run", "-n", RANKS, "--stats", PROBES / f"stats_probe-{mpi}",
                           **yielding(mpi))
            self.assertRegex(done.err, r"\n  Allreduce +8 +1  1 intercommunicator\n")
            table = done.err.partition("  on each communicator ")[2]
            self.assertRegex(table, r"^ +calls +bytes in +bytes out +time ms  how\n"
                                    r"  MPI_COMM_WORLD, 3 ranks\n    Allreduce ")
            self.assertRegex(table, r"\n    Allreduce +5 +40 +40 +\d+\.\d{3}  allreduce\.\w+\n")
            self.assertRegex(table, r"\n    Allreduce +1 +0 +0 +\d+\.\d{3}  nothing to move\n")
            self.assertRegex(table, r"\n  bridge, 1 rank\n    Bcast +1 +36 +0 +\d+\.\d{3}"
                                    r"  left: intercommunicator\n")
            self.assertIn(f"\n  {COPY}, 3 ranks\n", table)

    def test_json(self):
        for mpi in MPIS:
            done = self.ok("run", "-n", RANKS, "--stats", "--json", PROBES / f"stats_probe-{mpi}",
                           **yielding(mpi))
            line, = [line for line in done.err.splitlines() if line.startswith("{")]
            stats = json.loads(line)
            self.assertEqual((stats["rank"], stats["ranks"]), (0, RANKS))
            found = self.sums(stats["calls"])
            self.assertEqual({key: found.get(key) for key in expected(0)}, expected(0))
            taken = {row["collective"]: row["taken"] for row in stats["collectives"]}
            self.assertEqual(taken["Allreduce"], 8)
            self.assertNotIn("on each communicator", done.err)

    def test_json_alone(self):
        """It is of the stats, asked for or not."""
        for mpi in MPIS:
            done = self.ok("run", "-n", 2, "--json", PROBES / f"stats_probe-{mpi}")
            line, = [line for line in done.err.splitlines() if line.startswith("{")]
            self.assertEqual(json.loads(line)["ranks"], 2)
            for words in (["--json"], ["--stats", "--json"], ["--json", "--stats"]):
                said = self.ok("exec", *words, "--mpi", mpi, "printenv", "CARILLON_STATS").out
                self.assertEqual(said, "json\n")
            said = self.ok("exec", "--stats", "--mpi", mpi, "printenv", "CARILLON_STATS").out
            self.assertEqual(said, "1\n")
            self.assertEqual(run("exec", "--mpi", mpi, "printenv", "CARILLON_STATS").status, 1)


if __name__ == "__main__":
    if not MPIS:
        raise SystemExit("no MPI to count with")
    main()
