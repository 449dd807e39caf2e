# SPDX-License-Identifier: Apache-2.0
"""The MPIs of PyPI, as benchmarks/peers installs them into build/peers."""
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SKIPPED = 77


def load_peers():
    loader = importlib.machinery.SourceFileLoader("peers", str(ROOT / "benchmarks" / "peers"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("peers", loader))
    loader.exec_module(module)
    return module


def add_option(parser):
    parser.add_argument("--installed", action="store_true",
                        help="install nothing; exit status 77 if nothing is there")


def find(peers, name, installed_only):
    """The folder of an MPI, installed if need be; None: it is not there."""
    folder = peers.BUILD / "peers" / name
    if installed_only and not (folder / "bin" / "mpicc").exists():
        return None
    return peers.install(name, peers.PYPI[name])


def skip():
    print("no MPI of PyPI is in build/peers")
    sys.exit(SKIPPED)
