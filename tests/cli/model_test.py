# SPDX-License-Identifier: Apache-2.0
#
# carillon model and machine files: closed forms say what carillon sim says, and what a file has no
# numbers for is refused.
from support import CliTest, main


# As carillon calibrate --cluster writes it, of slow memory.
MEASURED = """title = "two nodes on one host"
[sources]
measured = "carillon calibrate"
[network]
latency_ns = {value = 6000, source = "measured"}
send_overhead_ns = {value = 0, source = "measured"}
send_ns_per_byte = {value = 0.3, source = "measured"}
recv_overhead_ns = {value = 0, source = "measured"}
gap_ns = {value = 0, min = 0, max = 900, estimate = "not told from the time of a post"}
ns_per_byte = {value = 0.2, source = "measured"}
[one_sided]
post_ns = {value = 900, source = "measured"}
doorbell_ns = {value = 0, source = "measured"}
poll_ns = {value = 400, source = "measured"}
stage_puts = {value = true, estimate = "messages are copied into registered buffers"}
[two_sided]
post_ns = {value = 950, source = "measured"}
match_ns = {value = 500, source = "measured"}
eager_bytes = {value = 65536, source = "measured"}
rendezvous_ns = {value = 950, min = 0, max = 9500, estimate = "messages are never that long"}
[memory]
copy_ns = {value = 3, source = "measured"}
copy_run_ns = {value = 2, source = "measured"}
copy_cached_ns_per_byte = {value = 0.03, source = "measured"}
copy_ns_per_byte = {value = 0.1, source = "measured"}
cache_bytes = {value = 30000, source = "measured"}
reduce_ns = {value = 4, source = "measured"}
reduce_cached_ns_per_byte = {value = 0.06, source = "measured"}
reduce_ns_per_byte = {value = 0.2, source = "measured"}
node_ns_per_byte = {value = 0.15, source = "measured"}
[shared_memory]
latency_ns = {value = 90, source = "measured"}
overhead_ns = {value = 20, source = "measured"}
write_ns = {value = 30, source = "measured"}
ns_per_byte = {value = 0.05, source = "measured"}
[node]
cores = {value = 2, source = "measured"}
ranks = {value = 1, source = "measured"}
switch_ns = {value = 1200, source = "measured"}
nodes_per_host = {value = 2, source = "measured"}
shared_ns = {value = 3000, source = "measured"}
shared_ns_per_byte = {value = 0.4, source = "measured"}
backlog_bytes = {value = 200000, source = "measured"}
backlog_ns_per_byte = {value = 1.5, source = "measured"}
"""


class Model(CliTest):
    RANKS, SIZES = (16, 64, 100, 1024), (8, 1536, 8192, 20000)

    def rows(self, collective, ranks, size, machine, *options):
        return self.ok("model", collective, "-n", ranks, "-b", size, "-m", machine, "--json",
                       *options).json["rows"]

    def compare(self, machine):
        """How many times each closed form agrees with the simulator."""
        agreed = {}
        for collective in ("bcast", "allreduce", "barrier", "reduce", "allgather", "gather",
                           "scatter", "reduce_scatter_block", "alltoall"):
            told = {}
            for ranks in self.RANKS:
                for size in self.SIZES:
                    for row in self.rows(collective, ranks, size, machine):
                        told.setdefault(row["algorithm"], {})
                        if "latency_ps" in row:
                            told[row["algorithm"]][ranks, size] = row["latency_ps"]
            for algorithm, times in told.items():
                agreed[algorithm] = len(times)
                for size in {size for _, size in times}:
                    ranks = [p for p in self.RANKS if (p, size) in times]
                    rows = self.ok("sim", collective, "-a", algorithm, "-m", machine, "--ppn", 1,
                                   "--sweep", "ranks=" + ",".join(map(str, ranks)),
                                   f"bytes={size}", "--json").json["rows"]
                    self.assertEqual({row["ranks"]: row["latency_ps"] for row in rows},
                                     {p: times[p, size] for p in ranks}, (algorithm, size))
        return agreed

    # Slots get shorter the more ranks there are, in both.
    def test_agrees_with_the_simulator(self):
        for machine in "edr", self.file("measured.toml", MEASURED, 0o644):
            agreed = self.compare(machine)
            for algorithm, times in agreed.items():
                if not algorithm.endswith(".switch"):
                    self.assertGreaterEqual(times, 4, (algorithm, machine))
            self.assertEqual(agreed["bcast.chain"], len(self.RANKS) * len(self.SIZES))

    def test_agrees_on_switches(self):
        rows = self.compare("hu2013")
        self.assertEqual(rows["allreduce.switch"], len(self.RANKS) * len(self.SIZES))

    def test_slots(self):
        def of(*options):
            return ("model", "bcast", "-a", "binomial", "-n", 64, "-b", 32768, *options)
        self.fails("messages of 32768 bytes go in segments of 24576", *of())
        self.fails("messages of 32768 bytes go in segments of 1000", *of("--slot-bytes", 1000))
        self.ok(*of("--slot-bytes", 32768))
        self.fails("--slot-bytes", *of("--slot-bytes", 0), status=2)

    def test_shared_cores_are_refused(self):
        file = self.file("measured.toml", MEASURED.replace("nodes_per_host = {value = 2",
                                                           "nodes_per_host = {value = 4"), 0o644)
        def of(ranks):
            return ("model", "bcast", "-a", "binomial", "-m", file, "-n", ranks)
        self.ok(*of(2))
        self.fails("no closed form of bcast.binomial says how long that takes: "
                   "4 nodes of a host share its 2 cores", *of(16))

    def test_what_is_asked_for_is_not_passed_over(self):
        self.fails("excludes", "model", "bcast", "--list", status=2)
        self.fails("excludes", "model", "bcast", "--numbers", status=2)
        self.fails("excludes", "model", "-m", "edr", "--list", status=2)
        for seed in ("-1", "1.5", "18446744073709551616"):
            self.fails("--seed.* is no number from 0", "sim", "bcast", "--seed", seed, status=2)
        self.ok("sim", "bcast", "--skew", "1", "--seed", "18446744073709551615")
        self.fails("no list of numbers", "sim", "bcast", "--sweep", "ranks=2,")
        self.fails("bytes= is given twice", "sim", "bcast", "--sweep", "bytes=8", "bytes=9")


class Multicast(CliTest):
    def test_needs_numbers_in_the_file(self):
        self.ok("sim", "bcast", "-a", "multicast", "-m", "edr")
        self.fails("bcast.multicast cannot be simulated: the file of machine clan_via does not say "
                   r"what multicasts cost; it needs sections \[datagram\] and \[multicast\]$", "sim",
                   "bcast", "-a", "multicast", "-m", "clan_via")
        self.fails("allreduce.multicast cannot", "sim", "allreduce", "-a", "multicast", "-m",
                   "hu2013")
        self.ok("sim", "bcast", "-m", "clan_via", "-n", 64, "-b", "32K")
        program = self.file("p", "carillon-program 1\nranks 2\ncall a bcast count=8\nrank all\n"
                            "do a\n", 0o644)
        for collective in [], ["bcast"]:
            self.fails("file of machine clan_via does not say what multicasts", "sim", *(
                ["bcast", "-a", "multicast_leader"] if collective else
                ["--program", program, "-a", "bcast=multicast_leader"]), "-m", "clan_via")

    def test_one_section_is_not_enough(self):
        multicast = ('[multicast]\nreplicate_ns = {value = 1, source = "measured"}\n'
                     'ack_ns = {value = 1, source = "measured"}\n')
        datagram = ('[datagram]\nmtu_bytes = {value = 4096, source = "measured"}\n'
                    'fragment_ns = {value = 1, source = "measured"}\n'
                    'deliver_ns = {value = 1, source = "measured"}\n')
        def of(*sections):
            file = self.file("mine.toml", MEASURED + "".join(sections), 0o644)
            return ("sim", "bcast", "-a", "multicast_dynamic", "-m", file)
        self.fails(r"machine mine .* it needs section \[datagram\]$", *of(multicast))
        self.fails(r"machine mine .* it needs section \[multicast\]$", *of(datagram))
        self.ok(*of(datagram, multicast))


if __name__ == "__main__":
    main()
