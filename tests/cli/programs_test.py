# SPDX-License-Identifier: Apache-2.0
"""What `make run` builds: all that the command starts and users link, and nothing of the tests. All of
it is installed. programs_test.py NINJA BUILD_FOLDER FILES..."""
import os
import subprocess
import sys
from pathlib import Path

ninja, build, *wanted = sys.argv[1:]
commands = subprocess.run([ninja, "-C", build, "-t", "commands", "programs"], check=True,
                          capture_output=True, text=True).stdout
words = set(commands.split())
missing = [name for name in (os.path.relpath(path, build) for path in wanted) if name not in words]
of_tests = [word for word in words if word.startswith("tests/") or "gtest" in word]
if not wanted or missing or of_tests:
    sys.exit(f"the target programs lacks {missing}, and makes, of the tests, {of_tests}")
scripts = "".join(path.read_text() for path in Path(build).rglob("cmake_install.cmake"))
elsewhere = [path for path in wanted if f"/{os.path.basename(path)}\"" not in scripts]
if elsewhere:
    sys.exit(f"cmake --install leaves out {elsewhere}")
