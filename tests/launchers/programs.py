# SPDX-License-Identifier: Apache-2.0
"""What the tests of real launchers share: their programs, and runs that they have started."""

import json
import os
import shutil
import subprocess
import unittest

from tests.end_to_end import runs

# Debian's daemons are in folders that users' shells do not search.
os.environ["PATH"] += ":/usr/sbin:/sbin"


def require(*programs):
    """Skips the test, naming what is missing."""
    for program in programs:
        if shutil.which(program) is None:
            raise unittest.SkipTest(f"{program} is not installed: see launcher_packages in tools/debian_packages.sh")


class LauncherTest(runs.RunTest):
    """A test whose runs other programs start."""
    trained = {}  # losses of all tests of the process, by what they were trained with

    def launch(self, *command, code=0, env=None):
        """Runs a launcher to its end; what it and its ranks have printed."""
        process = self.start_launcher(*command, env=env)
        output, _ = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        if code is not None:
            self.assertEqual(process.returncode, code, output)
        return output

    def start_launcher(self, *command, env=None):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **(env or {})}
        process = subprocess.Popen([str(word) for word in command], cwd=self.folder, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, env=environment)
        self.addCleanup(process.kill)
        return process

    def read_until(self, process, text):
        """The output of a running launcher up to a line with `text`."""
        output = ""
        for line in process.stdout:
            output += line
            if text in line:
                return output
        self.fail(f"no line with {text!r} in:\n{output}")

    def assert_plain(self, output):
        """Lines alone, though a launcher may give its ranks a terminal."""
        self.assertIn("step 2/", output)
        self.assertNotIn("\x1b", output)
        self.assertNotIn("\r", output.replace("\r\n", "\n"))

    def expected(self, ranks, *overrides):
        """The losses of ranks that the trainer starts itself, into `expected` when they are asked for first."""
        key = (ranks, overrides)
        if key not in LauncherTest.trained:
            self.trainer("tiny.yaml", "exp_dir=expected", f"launcher.processes={ranks}", *overrides)
            LauncherTest.trained[key] = self.losses("expected")
        return LauncherTest.trained[key]

    def starts(self, exp_dir):
        return [json.loads(line) for line in (self.folder / exp_dir / "starts.jsonl").read_text().splitlines()]
