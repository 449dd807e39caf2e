# SPDX-License-Identifier: Apache-2.0
#
# gtest_in_guest.py PROGRAM FILTER [NAME=VALUE ...]: runs tests that need RDMA devices in a virtual
# machine, with these variables (CARILLON_TEST_DEVICES: and so many devices; CARILLON_TEST_DOMAINS: so
# many NUMA domains of two cores); none of them may be skipped. Status 77, and one line, if this machine
# can have no guest. A guest has one core: ranks that wait for each other on two keep two of the host
# busy, and end no sooner.
import os
import subprocess
import sys
from pathlib import Path

from begin import begin

TIME_LIMIT_S = 500
VARIABLES = {
    # ofi_rxm makes completion queues for so many peers; for its own 256, larger than rxe has them.
    "FI_UNIVERSE_SIZE": 32,
    "CARILLON_TEST_PATIENCE_S": 60,
}


def main(program, only, *settings):
    begin()
    argv = [str(Path(__file__).with_name("rxe")), "-v", "--timeout", str(TIME_LIMIT_S), "--cpus", "1"]
    for name, value in VARIABLES.items():
        argv += ["--env", f"{name}={value}"]
    for name in ("CARILLON_TEST_TURN", "CARILLON_TEST_WHOLE"):
        if name in os.environ:
            argv += ["--env", f"{name}={os.environ[name]}"]
    for setting in settings:
        argv += ["--env", setting]
        if setting.startswith("CARILLON_TEST_DEVICES="):
            argv += ["--devs", setting.partition("=")[2]]
        if setting.startswith("CARILLON_TEST_DOMAINS="):
            count = setting.partition("=")[2]
            argv += ["--domains", count, "--cpus", str(2 * int(count))]
    argv += ["--", str(Path(program).resolve()), f"--gtest_filter={only}"]
    passed = skipped = 0
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            passed += line.startswith("[       OK ]")
            skipped += line.startswith("[  SKIPPED ]")
    if process.returncode:
        return process.returncode
    if skipped or not passed:
        print(f"{passed} tests ran and {skipped} were skipped: there is something amiss")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
