# SPDX-License-Identifier: Apache-2.0
"""benchmarks/rpc with few calls and steps: both sides run, train to the same losses, and fill the page's table."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BENCHMARK, PROBE = (pathlib.Path(argument).absolute() for argument in sys.argv[1:3])
del sys.argv[1:3]
ROWS = 8


class RpcTest(unittest.TestCase):

    def test_both_sides_train_alike(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            process = subprocess.run(
                [sys.executable, BENCHMARK, "--python", sys.executable, "--probe", PROBE, "--rounds", "1", "--calls", "20",
                 "--steps", "5", "--out", page],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)  # fmt: skip
            self.assertEqual(process.returncode, 0, process.stdout + process.stderr)
            text = page.read_text()
        rows = re.findall(r"^\| ([^|]+) \| (\S+) \([^|]+ \| (\S+) \([^|]+ \| \*\*(\S+)\*\* ", text, re.MULTILINE)
        self.assertEqual(len(rows), ROWS, text)
        for what, *rates in rows:
            with self.subTest(what):
                self.assertTrue(all(float(rate) > 0 for rate in rates))
        losses = [float(loss) for loss in re.findall(r"(?:step|pull_and_push) (\d+\.\d+)", text.splitlines()[-1])]
        self.assertEqual(len(losses), 2, text)
        # The same training, whoever computes; it has begun to learn cosines, whose squares' mean is a half.
        self.assertAlmostEqual(losses[0], losses[1], delta=1e-5)
        self.assertTrue(0.3 < losses[0] < 0.6, losses)


if __name__ == "__main__":
    unittest.main()
