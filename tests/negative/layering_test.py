#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layering_test.py COMPILER SRC LAYER=DIR:DIR ...

Each layer, with its own include path, can include the folders that it may use and no others.
"""
import subprocess
import sys
from pathlib import Path

# Written down here a second time, so that a change of the layering is a change of this table.
MAY_INCLUDE = {
    "base": set(),
    "schedule": {"base"},
    "algorithms": {"base", "schedule"},
    "select": {"base", "schedule", "algorithms"},
    "reduce": {"base"},
    "team": {"base"},
    "transport": {"base"},
    "engine": {"base", "schedule", "transport", "team", "reduce"},
    "api": {"base", "schedule", "algorithms", "select", "reduce", "team", "transport", "engine"},
    "machine": {"base"},
    "program": {"base", "schedule"},
    "sim": {"base", "schedule", "machine", "program"},
    "predict": {"base", "schedule", "algorithms", "machine", "sim", "program"},
    # Beside these, the C API.
    "carillon_cli": {"base", "schedule", "algorithms", "select", "machine", "sim", "predict",
                     "program", "transport", "reduce"},  # sockets for switchd, kernels to calibrate
    "carillon_ompi": {"base", "schedule", "program"},  # the interposer: what it writes
}


def compiles(compiler, path, header):
    """Preprocesses, which is where a wrong include fails."""
    command = [compiler, "-std=c++20", "-E", "-o", "/dev/null", "-x", "c++", "-"]
    command += [f"-I{directory}" for directory in path]
    done = subprocess.run(command, input=f'#include "{header}"\n', capture_output=True, text=True)
    if done.returncode == 0:
        return True
    if "No such file" not in done.stderr and "not found" not in done.stderr:
        sys.exit(f"{header} fails, but not because it is not found:\n{done.stderr}")
    return False


def main(compiler, src, *arguments):
    layers = dict(argument.split("=", 1) for argument in arguments)
    folders = {folder.name: min(folder.rglob("*.h"), default=None)
               for folder in Path(src).iterdir() if folder.is_dir()}
    mistakes, checked = [], 0
    for layer, path in layers.items():
        allowed = MAY_INCLUDE[layer] | {layer}
        for folder, header in folders.items():
            if header is None:
                continue
            checked += 1
            name = header.relative_to(src)
            if compiles(compiler, path.split(":"), name) != (folder in allowed):
                verb = "cannot" if folder in allowed else "can"
                mistakes.append(f"{layer} {verb} include {name}")
    print("\n".join(mistakes) or f"{checked} pairs of layer and folder are as they should be")
    return 1 if mistakes or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
