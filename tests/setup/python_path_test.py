# SPDX-License-Identifier: Apache-2.0
"""A package `tests` among a Python's own packages does not stand for this repository's."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUN_PYTHON_TEST = pathlib.Path(sys.argv[1]).absolute()
del sys.argv[1:]

SCRIPT = "from tests.long import is_long\nprint(is_long())\n"


class PythonPathTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "packages/tests").mkdir(parents=True)
        (self.folder / "packages/tests/__init__.py").write_text("")
        (self.folder / "script.py").write_text(SCRIPT)

    def run_script(self, command, **variables):
        process = subprocess.run(command, env=os.environ | variables, text=True, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(process.returncode, 0, process.stdout)
        self.assertIn(process.stdout, ("True\n", "False\n"))

    def test_among_the_peers(self):
        (self.folder / "python_path.txt").write_text(f"{self.folder / 'packages'}\n")
        self.run_script([RUN_PYTHON_TEST, self.folder / "python_path.txt", self.folder / "script.py"])

    def test_behind_the_repository(self):
        """As site-packages are."""
        self.run_script([sys.executable, self.folder / "script.py"],
                        PYTHONPATH=f"{os.getcwd()}:{self.folder / 'packages'}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
