#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exports_test.py NM LIBRARY HEADER: the library exports what the header declares, no more."""
import re
import subprocess
import sys
from pathlib import Path


def declared(header):
    return set(re.findall(r"^CRL_API\b[^;{(]*?\b(\w+)\(", Path(header).read_text(), re.MULTILINE))


def exported(nm, library):
    lines = subprocess.run([nm, "--dynamic", "--defined-only", library], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def main(nm, library, header):
    expected, found = declared(header), exported(nm, library)
    for name in sorted(expected - found):
        print(f"{name} is declared, but the library does not export it")
    for name in sorted(found - expected):
        print(f"{name} is exported, but the header does not declare it")
    print(f"{len(found)} functions exported, {len(expected)} declared")
    return 0 if expected and found == expected else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
