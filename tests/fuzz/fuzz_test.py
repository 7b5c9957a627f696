# SPDX-License-Identifier: Apache-2.0
"""Fuzzing on what reads the files of one room, under the address and undefined behaviour sanitizers: tools/fuzz,
from the inputs on that it has kept. Four seconds for each target, with --config=long up to 20 minutes."""

import pathlib
import subprocess
import sys
import unittest

from tests.long import is_long, tell_sample

FUZZ = pathlib.Path(sys.argv[1]).resolve()
TARGETS = sys.argv[2:]
LONG_SECONDS = min(1200, 6000 // len(TARGETS))  # for each; Bazel gives two hours
SECONDS = LONG_SECONDS if is_long() else 4
TIMEOUT_SECONDS = 700 + len(TARGETS) * SECONDS  # it is compiled first


class FuzzTest(unittest.TestCase):

    def test_nothing_is_found(self):
        tell_sample(SECONDS, LONG_SECONDS, f"seconds for each of {', '.join(TARGETS)}")
        result = subprocess.run([FUZZ, f"--seconds={SECONDS}", *TARGETS], timeout=TIMEOUT_SECONDS, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                check=False)
        if result.returncode == 2:
            self.skipTest(result.stdout.splitlines()[-1])
        print(result.stdout)
        self.assertEqual(result.returncode, 0, result.stdout)
        for target in TARGETS:
            # Where nothing is run nothing is found.
            self.assertRegex(result.stdout, rf"\n{target} +[1-9]\d\d\d+ executions, .* 0 findings")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
