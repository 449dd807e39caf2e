# SPDX-License-Identifier: Apache-2.0
#
# What the scripts of this folder share: programs on virtual clusters, what they print, and what of
# several runs is told.
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from statistics import median, quantiles

BIN = Path(__file__).resolve().parent.parent.parent / "build" / "bin"
ENDS_WITHIN_S = 10  # after all has been said


class Job:
    """How a program is started, and with which settings."""

    def __init__(self, options, mpi, program, nodes=0, ppn=1, rate="", native=False, **settings):
        self.mpi, self.bin, self.patience_s = mpi, Path(options.bin), options.patience
        self.settings = {name: str(value) for name, value in settings.items()}
        carillon = self.bin / "carillon"
        if nodes:
            self.start = [carillon, "cluster", "run", "--json", "--nodes", nodes, "--ppn", ppn,
                          "--mpi", mpi]
            self.start += ["--rate", rate] if rate else []
            self.start += ["--native"] if native else []
        else:
            self.start = [carillon, "run", "--mpi", mpi, "-n", ppn]
        self.program = self.bin / f"{program}-{mpi}"

    def run(self, *words, rows):
        """The objects that the program prints, a line each, of which there are `rows`, and what the
        cluster says of itself. MPICH before 4.2 may hang in MPI_Finalize between nodes, with any
        program (docs/cluster.md): what has said all and does not end is ended, and counts."""
        command = [str(word) for word in (*self.start, "--", self.program, *words)]
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("CARILLON_")}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**environment, **self.settings})
        given_up = threading.Event()

        def give_up():
            given_up.set()
            process.terminate()

        late = threading.Timer(self.patience_s, give_up)
        late.start()
        said, found = [], []
        reader = threading.Thread(target=lambda: said.extend(process.stderr))
        reader.start()
        ended = False
        try:
            while len(found) < rows and (line := process.stdout.readline()):
                if line.startswith("{"):
                    found.append(json.loads(line))
                else:
                    said.append(line)
            process.wait(ENDS_WITHIN_S if len(found) == rows else None)
        except subprocess.TimeoutExpired:
            ended = True
            process.terminate()
        finally:
            late.cancel()
            process.stdout.close()
            process.wait()
            reader.join()
            process.stderr.close()
        errors = [row["error"] for row in found if "error" in row]
        # A program without carillon runs as well: what is compared would be the MPI with itself.
        errors += [line.strip() for line in said if "carillon serves nothing" in line]
        status = 0 if ended else process.returncode
        if errors or status != 0 or len(found) < rows:
            why = errors[0] if errors else (f"gave no answer within {self.patience_s:g} s"
                                            if given_up.is_set() else f"status {status}")
            raise RuntimeError(f"{' '.join(command)}: {why}\n" + "".join(said))
        own = [json.loads(line) for line in said if line.startswith('{"nodes"')]
        return found, own[-1] if own else {}


def mpis_of(options, program):
    """Those asked for that the program was built for."""
    known = [mpi for mpi in ("openmpi", "mpich") if (Path(options.bin) / f"{program}-{mpi}").exists()]
    wanted = options.mpis.split(",") if options.mpis else known
    if missing := set(wanted) - set(known):
        sys.exit(f"{sys.argv[0]}: {program} is not built for {', '.join(sorted(missing))} in "
                 f"{options.bin}")
    if not known:
        sys.exit(f"{sys.argv[0]}: there is no {program} in {options.bin}: run make first")
    return wanted


def define_common(parser):
    parser.add_argument("--rounds", type=int, default=5, help="so many times each, in turn")
    parser.add_argument("--mpis", help="of openmpi,mpich; default: those that are there")
    parser.add_argument("--patience", type=float, default=600,
                        help="seconds after which a job that has not said all is given up")
    parser.add_argument("--bin", default=str(BIN), help="where carillon and the programs are")
    parser.add_argument("--rows", help="a file that gets every run's rows as they come, as JSON")
    parser.add_argument("--table", help="measure nothing; print the tables of such a file")


class Rows:
    """Of all runs, kept in a file, too, if there is one."""

    def __init__(self, options):
        self.file = open(options.rows, "a", encoding="ascii") if options.rows else None
        self.rows = []

    def add(self, **row):
        self.rows.append(row)
        if self.file:
            print(json.dumps(row), file=self.file, flush=True)


def rows_of(path):
    return [json.loads(line) for line in Path(path).read_text(encoding="ascii").splitlines()]


def tell(error):
    """Of a run that failed: the others go on, and the table says how many there were."""
    print(f"left out: {error}", file=sys.stderr, flush=True)


def middle(values, digits=2):
    """The median, and the quartiles if there are enough values for them."""
    text = f"{median(values):.{digits}f}"
    if len(values) < 3:
        return text
    low, _, high = quantiles(values, n=4, method="inclusive")
    return f"{text} ({low:.{digits}f} to {high:.{digits}f})"


def size(count):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return str(count)


def print_table(heads, lines):
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for line in lines:
        print("| " + " | ".join(str(cell) for cell in line) + " |")
