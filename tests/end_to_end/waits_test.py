# SPDX-License-Identifier: Apache-2.0
"""Threads of OpenMP that wait for each other sleep soon, unless the user has said how they wait."""

import glob
import json
import os
import re
import subprocess
import unittest

from tests.end_to_end import runs

SHORT, LIBGOMPS_OWN, ENDLESS = 10_000, 300_000, 30_000_000_000
WAYS_TO_CHOOSE = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def environment(has_path_of_program=True, **variables):
    """This one, in which nobody has chosen; with the entry that bash gives each program, or without."""
    kept = {name: value for name, value in os.environ.items() if name not in (*WAYS_TO_CHOOSE, "_")}
    return kept | ({"_": "/usr/bin/env"} if has_path_of_program else {}) | variables


class WaitsTest(runs.RunTest):

    def spins(self, command, env):
        """What libgomp has taken when it was loaded, and the command's output."""
        process = subprocess.run(command, cwd=self.folder, env=env | {"OMP_DISPLAY_ENV": "verbose"}, text=True,
                                 capture_output=True, check=True, timeout=runs.TIMEOUT_SECONDS)
        found = re.findall(r"GOMP_SPINCOUNT = '(\d+)'", process.stderr)
        if not found:
            self.skipTest("this OpenMP is not libgomp")
        # Once: a program that starts again does so before libgomp is there.
        self.assertEqual(len(found), 1, process.stderr)
        return int(found[0]), process.stdout

    def test_libgomp_gets_the_number_before_it_is_loaded(self):
        command = [runs.TRAINER, "config", "print", "tiny.yaml", "task.sample.prompt=two words"]
        for has_path in (True, False):
            with self.subTest(has_path_of_program=has_path):
                spin, printed = self.spins(command, environment(has_path))
                self.assertEqual(spin, SHORT)
                self.assertIn('prompt: "two words"', printed)

    def test_the_user_s_choice_is_left_alone(self):
        choices = {"77": {"GOMP_SPINCOUNT": "77"}, str(ENDLESS): {"OMP_WAIT_POLICY": "active"},
                   "0": {"OMP_WAIT_POLICY": "passive"}}
        for expected, chosen in choices.items():
            for has_path in (True, False):
                with self.subTest(chosen, has_path_of_program=has_path):
                    spin, _ = self.spins([runs.TRAINER, "--version"], environment(has_path, **chosen))
                    self.assertEqual(str(spin), expected)

    def test_a_program_that_the_loader_is_called_with_runs_as_it_is(self):
        loader = glob.glob("/lib*/ld-linux-*.so.*")[0]
        spin, printed = self.spins([loader, runs.TRAINER, "--version"], environment(False))
        self.assertEqual(spin, LIBGOMPS_OWN)
        self.assertIn("phalanx", printed)

    def test_the_rest_of_the_environment_stays(self):
        command = [runs.TRAINER, "launch", "--nproc-per-node=1", "--", "env", "-0"]
        expected = environment(False, SAID="a b\nc", EMPTY="")
        for has_path in (True, False):
            with self.subTest(has_path_of_program=has_path):
                env = expected | ({"_": "/usr/bin/env"} if has_path else {})
                output = subprocess.run(command, cwd=self.folder, env=env, stdout=subprocess.PIPE, check=True,
                                        timeout=runs.TIMEOUT_SECONDS).stdout.decode()
                seen = dict(entry.split("=", 1) for entry in output.rstrip("\0\n").split("\0"))
                self.assertEqual({name: seen.get(name) for name in expected}, expected)
                self.assertEqual(seen["GOMP_SPINCOUNT"], str(SHORT))
        output = subprocess.run(command, cwd=self.folder, env=expected | {"OMP_WAIT_POLICY": "passive"},
                                stdout=subprocess.PIPE, check=True, timeout=runs.TIMEOUT_SECONDS).stdout.decode()
        self.assertNotIn("GOMP_SPINCOUNT", output)

    def test_ranks_and_the_record_of_a_start_have_it(self):
        self.trainer("tiny.yaml", "exp_dir=run", "launcher.processes=2", "training.max_steps=1", env=environment(False))
        start, = map(json.loads, (self.folder / "run/starts.jsonl").read_text().splitlines())
        self.assertEqual(start["environment"]["GOMP_SPINCOUNT"], str(SHORT))

    def test_a_single_rank_says_its_threads(self):
        env = environment(OMP_NUM_THREADS="1")
        self.assertRegex(self.trainer("tiny.yaml", "training.max_steps=1", env=env).stdout,
                         r"\ncores +\S+.*; 1 thread\n")


if __name__ == "__main__":
    runs.main()
