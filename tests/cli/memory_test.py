# SPDX-License-Identifier: Apache-2.0
#
# Commands where there is too little memory.
import subprocess

from support import CARILLON, CliTest, main


class Memory(CliTest):
    def test_a_system_without_enough_of_it_is_no_defect_of_carillon(self):
        program = CARILLON.read_bytes()
        if b"__asan_init" in program or b"__tsan_init" in program:
            self.skipTest("a sanitizer takes more than there is to be")
        done = subprocess.run(
            ["sh", "-c", f"ulimit -v 150000; exec {CARILLON} sim alltoall -n 1048576 -b 8"],
            capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 1)
        self.assertIn("carillon: there is not enough memory for this", done.stderr)
        self.assertNotIn("defect", done.stderr)


if __name__ == "__main__":
    main()
