# SPDX-License-Identifier: Apache-2.0
#
# Commands where there is too little memory.
import json
import subprocess

from support import CARILLON, CliTest, main


class Memory(CliTest):
    def start(self, command):
        program = CARILLON.read_bytes()
        if b"__asan_init" in program or b"__tsan_init" in program:
            self.skipTest("a sanitizer takes more than there is to be")
        done = subprocess.run(["sh", "-c", f"ulimit -v 150000; exec {CARILLON} {command}"],
                              capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is not enough memory for this", done.stderr)
        self.assertNotIn("defect", done.stderr)
        return done

    def test_a_system_without_enough_of_it_is_no_defect_of_carillon(self):
        done = self.start("sim alltoall -n 1048576 -b 8")
        self.assertTrue(done.stderr.startswith("carillon: there"))

    def test_a_sweep_keeps_the_rows_that_are_done(self):
        for form in "--json", "--csv", "":
            done = self.start(f"sim alltoall --sweep ranks=4,8,1048576 {form}")
            self.assertIn("1048576 ranks, 8 bytes: there", done.stderr)
            self.assertIn("; 2 of 3 rows are done", done.stderr)
            if form == "--json":
                self.assertEqual([row["ranks"] for row in json.loads(done.stdout)["rows"]], [4, 8])
            else:
                self.assertEqual(len(done.stdout.splitlines()), 3 if form else 4)

    def test_nor_is_a_program_s_lost(self):
        path = self.folder / "program"
        path.write_text("carillon-program 1\nranks 4\ncall all alltoall count=8\nrank all\ndo all\n")
        done = self.start(f"sim --program {path} --sweep ranks=4,8,1048576 --json")
        self.assertIn("1048576 ranks: there", done.stderr)
        self.assertEqual([row["ranks"] for row in json.loads(done.stdout)["rows"]], [4, 8])


if __name__ == "__main__":
    main()
