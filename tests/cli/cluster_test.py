# SPDX-License-Identifier: Apache-2.0
#
# carillon cluster: that its nodes are apart, that MPI programs give right results on them, that a
# rate limits, and that nothing is left of a cluster, however it ends. Only root can make one; MPIs
# that are not here are skipped.
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from support import (CARILLON, CliTest, Done, clean_environment, main, may_make_clusters,
                     run)

PROBES = Path(os.environ.get("CLUSTER_PROBES", "build/tests"))
SHAPES = {"2x2": (["--nodes", 2, "--ppn", 2], [2, 2]), "4x1": (["--nodes", 4], [1, 1, 1, 1]),
          "3,1,2": (["--shape", "3,1,2"], [3, 1, 2])}


def find_nft():
    return shutil.which("nft", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def find_tc():
    return shutil.which("tc", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def probes():
    return {mpi: PROBES / f"cluster_probe-{mpi}" for mpi in ("openmpi", "mpich")
            if (PROBES / f"cluster_probe-{mpi}").exists()}


def start(*words):
    return subprocess.Popen([str(CARILLON), "cluster", *map(str, words)], text=True,
                            env=clean_environment({}), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def run_program(mpi, ranks, *words):
    """Status, stdout and stderr of a probe. MPICH before 4.2 can hang in MPI_Finalize when its ranks
    are on several hosts and UCX speaks TCP (pmodels/mpich#6596), with any program: if it does so
    after all ranks have said their results, it is ended, and counts as if it had ended itself."""
    process = start("run", *words)
    out, said = "", 0
    while said < ranks and (line := process.stdout.readline()):
        out += line
        said += line.startswith("rank ")
    status = None
    if mpi == "mpich" and said == ranks:
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            process.terminate()
            status = 0
    rest, err = process.communicate(timeout=60)
    done = Done(process)
    done.status = process.returncode if status is None else status
    done.out, done.err = out + rest, err
    return done


def namespaces(process):
    """The namespaces of a process; none if it has gone."""
    try:
        return {os.readlink(f"/proc/{process}/ns/{kind}")
                for kind in os.listdir(f"/proc/{process}/ns")}
    except OSError:
        return set()


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def parent(process):
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def namespaces_below(ancestor):
    """Of all descendants of a process, without this process's own."""
    parents = {process: parent(process) for process in processes()}
    found, grown = {ancestor}, True
    while grown:
        more = {process for process, above in parents.items() if above in found}
        grown = not more <= found
        found |= more
    return set().union(*(namespaces(process) for process in found)) - namespaces("self")


def host_state():
    """What of the host a cluster could change."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    names = sorted(re.findall(r"^\d+: (\S+):", links, re.MULTILINE))
    mounts = Path("/proc/self/mountinfo").read_text()
    named = os.listdir("/run/netns") if os.path.isdir("/run/netns") else []
    bridges = subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True).stdout
    return names, mounts, named, re.findall(r"inet \S+", bridges), os.uname().nodename


@unittest.skipUnless(may_make_clusters(), "needs CAP_NET_ADMIN and CAP_SYS_ADMIN (root)")
class Cluster(CliTest):
    def exec(self, nodes, script, *options):
        done = self.ok("cluster", "exec", "--nodes", nodes, *options, "--", "sh", "-c", script)
        return done.out.splitlines()

    def check_ranks(self, out, shape):
        lines = sorted(line for line in out.splitlines() if line.startswith("rank "))
        ranks = [node for node, count in enumerate(shape) for _ in range(count)]
        self.assertEqual(lines, [f"rank {rank} of {len(ranks)} on node{node}, {shape[node]} on "
                                 "this node, errors 0" for rank, node in enumerate(ranks)])


class Nodes(Cluster):
    def test_each_has_its_name_number_and_memory(self):
        lines = self.exec(3, 'touch /dev/shm/mine$CARILLON_NODE; echo $CARILLON_NODE of '
                             '$CARILLON_NODES $(hostname) $(echo /dev/shm/m*) $TMPDIR')
        self.assertEqual(sorted(lines), [f"{i} of 3 node{i} /dev/shm/mine{i} /dev/shm/tmp"
                                         for i in range(3)])

    def test_no_process_of_another_node_is_seen(self):
        lines = self.exec(3, "ls -d /proc/[0-9]* | wc -l")
        self.assertTrue(all(int(line) <= 4 for line in lines), lines)
        names = self.exec(2, "echo $(cat /proc/[0-9]*/environ | tr '\\0' '\\n' | "
                             "grep ^CARILLON_NODE= | sort -u) $CARILLON_NODE")
        self.assertEqual(sorted(names), ["CARILLON_NODE=0 0", "CARILLON_NODE=1 1"])

    def test_they_share_nothing_but_files_and_the_wire(self):
        kinds = ("uts", "pid", "ipc", "mnt", "net")
        files = " ".join(f"/proc/self/ns/{kind}" for kind in kinds)
        rows = [line.split() for line in self.exec(2, f"echo $(readlink {files})")]
        host = namespaces("self")
        self.assertEqual(len(set(rows[0]) | set(rows[1])), 2 * len(kinds))
        self.assertFalse((set(rows[0]) | set(rows[1])) & host)
        boots = self.exec(2, "cat /proc/sys/kernel/random/boot_id")
        self.assertEqual(len(set(boots)), 2)

    def test_their_folder_is_the_one_here(self):
        self.file("seen", "here\n")
        done = run("cluster", "exec", "--nodes", 2, "--", "cat", "seen", cwd=self.folder)
        self.assertEqual((done.status, done.out), (0, "here\nhere\n"), done.err)

    def test_they_find_each_other_by_name(self):
        self.assertEqual(self.exec(2, "echo $(cut -d' ' -f2 /etc/hosts; ls /sys/class/net; "
                                      "cat /sys/class/net/lo/flags)"),
                         ["localhost front node0 node1 eth0 lo 0x9"] * 2)

    def test_status_and_stdin(self):
        self.assertEqual(run("cluster", "exec", "--nodes", 3, "--", "sh", "-c",
                             "exit $((CARILLON_NODE == 1 ? 7 : 0))").status, 7)
        process = subprocess.run([CARILLON, "cluster", "exec", "--nodes", "2", "--", "cat"],
                                 input="for node 0\n", capture_output=True, text=True, timeout=60)
        self.assertEqual((process.returncode, process.stdout), (0, "for node 0\n"))

    def test_rate(self):
        script = f"{os.sys.executable} {Path(__file__).parent / 'cluster_wire.py'} 4000000"
        seconds = {}
        for rate in ("80mbit", "800mbit"):
            done = self.ok("cluster", "exec", "--nodes", 2, "--rate", rate, "--json", "--", "sh",
                           "-c", script)
            seconds[rate] = float(done.out)
            summary = json.loads(done.err.splitlines()[-1])
            self.assertGreater(summary["wire_bytes"], 4000000)
            self.assertEqual(summary["rate_bits_per_s"], int(rate[:-4]) * 1000000)
            self.assertTrue(0 <= summary["busy_percent"] <= 100, summary)
        # 4 MB at 80 Mbit/s are 0.4 s, less the burst; a machine may be slower, a wire not faster.
        self.assertGreater(seconds["80mbit"], 0.35)
        self.assertLess(seconds["800mbit"], seconds["80mbit"])

    def test_burst(self):
        # What is beyond a burst, or fits into the usual one. A machine may be slower, a wire not.
        script = f"{os.sys.executable} {Path(__file__).parent / 'cluster_wire.py'} 100000"
        done = self.ok("cluster", "exec", "--nodes", 2, "--rate", "4mbit", "--burst", "3K", "--", "sh",
                       "-c", script)
        self.assertGreater(float(done.out), (100000 - 2 * 3072) * 8 / 4e6)
        limits = {}
        for burst in ("2K", "3072", "8M"):
            done = self.ok("cluster", "exec", "--nodes", 1, "--rate", "4mbit", "--burst", burst, "--",
                           "sh", "-c", f"{find_tc()} qdisc show dev eth0")
            limits[burst] = re.search(r"tbf .*burst (\S+)", done.out)[1]
        self.assertEqual(limits, {"2K": "2Kb", "3072": "3Kb", "8M": "8Mb"})


@unittest.skipUnless(probes(), "no MPI was found when carillon was built")
class Programs(Cluster):
    def test_results(self):
        for mpi, probe in probes().items():
            for name, (options, shape) in SHAPES.items():
                for how in ([], ["--native"]):
                    with self.subTest(mpi=mpi, shape=name, how=how):
                        done = run_program(mpi, sum(shape), *options, *how, probe)
                        self.assertEqual(done.status, 0, done.err)
                        self.check_ranks(done.out, shape)

    def test_bytes_take_the_wire(self):
        for mpi, probe in probes().items():
            with self.subTest(mpi=mpi):
                done = run_program(mpi, 2, "--nodes", 2, "--rate", "80mbit", "--json", "--native",
                                   probe, 2000000)
                self.assertEqual(done.status, 0, done.err)
                self.assertGreater(float(re.search(r"seconds (\S+)", done.out)[1]), 0.12)
                summary = json.loads(done.err.splitlines()[-1])
                self.assertEqual(summary["ranks_per_node"], [1, 1])
                self.assertGreater(summary["wire_bytes"], 2000000)

    def test_status(self):
        for mpi, probe in probes().items():
            with self.subTest(mpi=mpi):
                process = start("run", "--nodes", 2, probe, "fail")
                _, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 3, err)

    def test_a_killed_rank_ends_the_job(self):
        if "openmpi" not in probes():
            self.skipTest("no Open MPI")
        begin = time.monotonic()
        process = start("run", "--nodes", 3, probes()["openmpi"], "die")
        _, err = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0, err)
        self.assertLess(time.monotonic() - begin, 30)

    def test_a_firewall_between_the_nodes_is_reported(self):
        if "openmpi" not in probes() or shutil.which("nft") is None:
            self.skipTest("needs Open MPI and nft")
        # Open MPI's own ports lie below; orted's are reached from the front only.
        block = ("nft add table inet t && nft add chain inet t in "
                 "'{ type filter hook input priority 0; }' && nft add rule inet t in iifname eth0 "
                 "tcp dport 30000-65535 tcp flags '& (syn|ack) == syn' drop && exec \"$@\"")
        done = subprocess.run([CARILLON, "cluster", "run", "--nodes", "2", "--mpi", "openmpi", "--",
                               "sh", "-c", block, "sh", probes()["openmpi"]], capture_output=True,
                              env=clean_environment({"CARILLON_JOIN_TIMEOUT_S": "2"}), text=True,
                              timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"rank \d of a team of 2 has not answered over .* for 2 s")
        self.assertIn("firewall", done.stderr)

    def test_as_an_ordinary_user_in_a_user_namespace(self):
        user = ["setpriv", "--reuid", "65534", "--clear-groups", "unshare", "-Ur"]
        if subprocess.run([*user, "test", "-x", CARILLON], capture_output=True).returncode != 0:
            self.skipTest("users may make no namespaces here, or not run what is built here")
        done = subprocess.run([*user, CARILLON, "cluster", "exec", "--nodes", "2", "--rate", "1gbit",
                               "--", "hostname"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, sorted(done.stdout.split())), (0, ["node0", "node1"]),
                         done.stderr)

    def test_stdin_of_rank_0(self):
        # Hydra leaves the stdin of the other ranks open.
        script = '[ "$PMI_RANK$OMPI_COMM_WORLD_RANK" != 0 ] || cat'
        for mpi in probes():
            with self.subTest(mpi=mpi):
                done = subprocess.run([CARILLON, "cluster", "run", "--nodes", "2", "--native", "--mpi",
                                       mpi, "sh", "-c", script], env=clean_environment({}), input="line\n",
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stdout), (0, "line\n"), done.stderr)

    def test_all_ranks_are_of_one_session(self):
        # Whose leader is on no node: the kernel shares out the cores by session first. Hydra makes
        # a session for each rank, whatever it is told.
        if "openmpi" not in probes():
            self.skipTest("no Open MPI")
        done = self.ok("cluster", "run", "--nodes", 3, "--native", "--mpi", "openmpi", "--", "sh",
                       "-c", "cut -d' ' -f6 /proc/self/stat")
        self.assertEqual(done.out.split(), ["0"] * 3)

    def test_two_at_once(self):
        if "openmpi" not in probes():
            self.skipTest("no Open MPI")
        both = [start("run", "--nodes", 2, probes()["openmpi"]) for _ in range(2)]
        for process in both:
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, err)
            self.check_ranks(out, [1, 1])


@unittest.skipUnless("openmpi" in probes() and find_nft(), "needs Open MPI and nft (nftables)")
class Losses(Cluster):
    PROBE = """"$0" many || exit 1; echo lost $("$1" list table inet wire | grep -o 'packets [0-9]*')
               echo datagrams $(grep ^Udp: /proc/net/snmp | tail -1)"""

    def many(self, *options, network="fabric"):
        """Right results of many collectives; the packets lost and datagrams sent by the nodes."""
        done = run("cluster", "run", "--nodes", 2, "--mpi", "openmpi", *options, "--", "sh", "-c",
                   self.PROBE, probes()["openmpi"], find_nft(), CARILLON_NETWORK=network)
        if "no provider of libfabric fits" in done.err:
            self.skipTest(f"libfabric has no {network} here")
        self.assertEqual(done.status, 0, done.err)
        self.assertNotIn("serves nothing", done.err)
        self.check_ranks(done.out, [1, 1])
        return (sum(map(int, re.findall(r"lost packets (\d+)", done.out))),
                sum(int(line.split()[5]) for line in done.out.splitlines()
                    if line.startswith("datagrams Udp:")))

    def test_results_over_tcp(self):
        lost, datagrams = self.many("--loss", "3%")
        self.assertGreater(lost, 0)
        self.assertEqual(datagrams, 0)

    def test_results_over_udp(self):
        lost, datagrams = self.many("--loss", "1%", network="fabric:udp;ofi_rxd")
        self.assertGreater(lost, 0)
        self.assertGreater(datagrams, 1000)

    def test_results_with_duplicates_and_reordering(self):
        self.many("--loss", "1%", "--duplicate", "2%", "--reorder", "20%")

    def test_all_is_lost_that_is_said_to_be(self):
        datagrams = f"{os.sys.executable} {Path(__file__).parent / 'cluster_datagrams.py'} 10000"
        done = self.ok("cluster", "exec", "--nodes", 2, "--loss", "5%", "--json", "--", "sh", "-c",
                       f"{datagrams} && {find_nft()} list table inet wire | grep -o 'packets [0-9]*'")
        self.assertEqual(json.loads(done.err.splitlines()[-1])["loss_percent"], 5)
        lost = sum(map(int, re.findall(r"packets (\d+)", done.out)))
        self.assertAlmostEqual(lost, 500, delta=150)  # seven standard deviations


@unittest.skipUnless("openmpi" in probes(), "needs Open MPI")
class SlowWires(Cluster):
    def test_who_waits_behind_long_queues_lives(self):
        done = self.ok("cluster", "run", "--nodes", 2, "--rate", "20mbit", "--mpi", "openmpi", "--",
                       PROBES / "starve_probe-openmpi", 15_500_000, CARILLON_NETWORK="fabric")
        waited = float(re.search(r"waited (\S+) s", done.out)[1])
        # As long as the queue takes; a lifeline that is silent for three seconds is none.
        self.assertGreater(waited, 6)
        self.assertEqual(sorted(line for line in done.out.splitlines() if line.startswith("rank")),
                         ["rank 0 of 2, errors 0", "rank 1 of 2, errors 0"])

    def test_packets_are_as_long_as_they_may_be(self):
        for mtu in (1280, 9000):
            self.assertEqual(self.exec(2, "cat /sys/class/net/eth0/mtu", "--mtu", mtu), [str(mtu)] * 2)


@unittest.skipUnless("openmpi" in probes(), "needs Open MPI")
class Traces(Cluster):
    def test_all_ranks_are_in_one_file(self):
        trace = self.folder / "trace.json"
        self.ok("cluster", "run", "--nodes", 3, "--trace", trace, probes()["openmpi"])
        events = json.loads(trace.read_text())
        named = {event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(named, {"rank 0", "rank 1", "rank 2"})
        rows = {(event["pid"], event["tid"]): event["args"]["name"] for event in events
                if event["name"] == "thread_name"}
        immediates = lambda name, key: sorted(event["args"][key] for event in events
                                              if event["name"] == name and "args" in event)
        # What was posted has arrived, and nothing else.
        self.assertEqual(immediates("put", "label"), immediates("arrived", "immediate"))
        begun = {event["id"]: event for event in events if event["ph"] == "b"}
        ended = {event["id"]: event for event in events if event["ph"] == "e"}
        self.assertEqual(begun.keys(), ended.keys())
        for number, begin in begun.items():
            self.assertLessEqual(begin["ts"], ended[number]["ts"])
            self.assertRegex(rows[begin["pid"], begin["tid"]], "^to rank [012]$")

    def test_a_second_run_begins_anew(self):
        trace = self.folder / "trace.json"
        for nodes in (3, 2):
            self.ok("cluster", "run", "--nodes", nodes, "--trace", trace, probes()["openmpi"])
        self.assertEqual({event["pid"] for event in json.loads(trace.read_text())}, {0, 1})

    def test_within_a_node_there_is_nothing(self):
        trace = self.folder / "trace.json"
        self.ok("cluster", "run", "--shape", "2", "--trace", trace, probes()["openmpi"])
        self.assertEqual(json.loads(trace.read_text()), [])


class Leavings(Cluster):
    def setUp(self):
        super().setUp()
        self.before = host_state()

    def gone(self, spaces):
        """Until the kernel has ended all processes in these namespaces."""
        self.assertTrue(spaces)
        deadline = time.monotonic() + 30
        while left := [p for p in processes() if namespaces(p) & spaces]:
            self.assertLess(time.monotonic(), deadline, f"left behind: {left}")
            time.sleep(0.02)
        self.assertEqual(host_state(), self.before)
        self.assertEqual([name for name in os.listdir("/tmp") if "node0" in name], [])

    def end_by(self, ending, status):
        for mpi, probe in probes().items():
            with self.subTest(mpi=mpi):
                process = start("run", "--nodes", 2, "--ppn", 2, probe, "hang")
                lines = "".join(process.stdout.readline() for _ in range(4))
                self.check_ranks(lines, [2, 2])
                spaces = namespaces_below(process.pid)
                process.send_signal(ending)
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, status)
                self.gone(spaces)

    def test_interrupted(self):
        self.end_by(signal.SIGINT, 130)

    def test_terminated(self):
        self.end_by(signal.SIGTERM, 143)

    def test_killed(self):
        self.end_by(signal.SIGKILL, -signal.SIGKILL)

    def test_ended_or_failed(self):
        for status in (0, 5):
            process = subprocess.Popen(
                [CARILLON, "cluster", "exec", "--nodes", "2", "--", "sh", "-c",
                 f"[ $CARILLON_NODE = 0 ] || exit 0; sleep 1000 & echo started; read line; "
                 f"exit {status}"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            process.stdout.readline()
            spaces = namespaces_below(process.pid)
            process.communicate("go on\n", timeout=60)
            self.assertEqual(process.returncode, status)
            self.gone(spaces)


class Refusals(CliTest):
    def test_wrong_use(self):
        self.fails("which program", "cluster", "run", "--nodes", 2, status=2)
        self.fails("which program", "cluster", "exec", "--nodes", 2, status=2)
        self.fails("how many nodes", "cluster", "run", "true", status=2)
        self.fails("not in range 1 to 64", "cluster", "run", "--nodes", 0, "true", status=2)
        self.fails("not in range 1 to 64", "cluster", "exec", "--nodes", 65, "true", status=2)
        self.fails("excludes", "cluster", "run", "--nodes", 2, "--shape", "1,1", "true", status=2)
        self.fails("subcommand", "cluster", status=2)

    def test_losses(self):
        for share in ("1", "%", "x%", "0%", "51%", "-1%", "nan%", "1 %"):
            self.fails("is no share of 0.001% to 50%", "cluster", "exec", "--nodes", 2,
                       f"--loss={share}", "true")
        self.fails("--reorder \"99%\" is no share", "cluster", "run", "--nodes", 2, "--reorder",
                   "99%", "true")
        self.fails("excludes", "cluster", "run", "--nodes", 2, "--duplicate", "1%", "--native",
                   "true", status=2)
        self.fails("CARILLON_FAULT=delay=2: .* is no share", "cluster", "run", "--nodes", 2, "true",
                   CARILLON_FAULT="delay=2")

    @unittest.skipUnless(may_make_clusters(), "needs CAP_NET_ADMIN and CAP_SYS_ADMIN (root)")
    def test_traces(self):
        self.fails("cannot be opened: .*choose another file", "cluster", "run", "--nodes", 2, "--mpi",
                   "openmpi", "--trace", "/no/such/folder/trace", "true")

    def test_shapes_and_rates(self):
        for shape in ("3,,2", "0,1", "2,", "x", "1,-1", "99999"):
            self.fails("is not a shape", "cluster", "run", "--shape", shape, "true")
        self.fails("65 nodes are too many", "cluster", "run", "--shape", ",".join(["1"] * 65), "true")
        self.fails("ranks are too many", "cluster", "run", "--nodes", 64, "--ppn", 4096, "true")
        for rate in ("fast", "200", "mbit", "-1mbit", "2 mbit", "nanmbit"):
            self.fails("rate", "cluster", "exec", "--nodes", 2, "--rate", rate, "true")
        for rate in ("1kbit", "0mbit", "1000gbit"):
            self.fails("out of range", "cluster", "exec", "--nodes", 2, "--rate", rate, "true")
        for burst in ("2047", "1K", "9M", "8388609", "3k", "K", "-3K", "3KB",
                      "-9223372036854775807M", "9223372036854775807M", "99999999999999999999", "x"):
            self.fails("is no burst of 2K to 8M", "cluster", "exec", "--nodes", 2, "--rate", "1mbit",
                       f"--burst={burst}", "true")
        self.fails("not in range 576", "cluster", "exec", "--nodes", 2, "--mtu", 500, "true", status=2)
        self.fails("packet of --mtu 9000 is longer", "cluster", "exec", "--nodes", 2, "--rate",
                   "1mbit", "--burst", "8K", "--mtu", 9000, "true")
        self.fails("--burst requires --rate", "cluster", "exec", "--nodes", 2, "--burst", "3K", "true",
                   status=2)

    @unittest.skipUnless(may_make_clusters(), "needs CAP_NET_ADMIN and CAP_SYS_ADMIN (root)")
    def test_programs_mpis_and_folders(self):
        self.fails("there is no program", "cluster", "exec", "--nodes", 2, "no-such-program",
                   status=127)
        self.fails("there is no MPI", "cluster", "run", "--nodes", 2, "--mpi", "lam", "true")
        self.fails("not linked with MPI", "cluster", "run", "--nodes", 2, "true")
        self.fails("already started", "cluster", "run", "--nodes", 2, "true", PMI_RANK="0")
        done = run("cluster", "exec", "--nodes", 2, "true", cwd="/dev/shm")
        self.assertEqual(done.status, 1)
        self.assertIn("/dev/shm of its own", done.err)
        done = run("cluster", "exec", "--nodes", 2, "true", PATH=str(self.folder))
        self.assertNotEqual(done.status, 0)

    @unittest.skipUnless(os.geteuid() == 0, "only root can try it with fewer rights")
    def test_rights(self):
        for missing, named in (("net_admin", "CAP_NET_ADMIN"), ("sys_admin", "CAP_SYS_ADMIN")):
            done = subprocess.run(["setpriv", f"--bounding-set=-{missing}", CARILLON, "cluster",
                                   "exec", "--nodes", "2", "true"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, rf"^carillon: .*needs {named}, .* run it as root")
            self.assertEqual(done.stderr.count("\n"), 1)


if __name__ == "__main__":
    main(hide=False)  # users make a /proc of their own only where they see all of one
