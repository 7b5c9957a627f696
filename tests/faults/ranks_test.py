# SPDX-License-Identifier: Apache-2.0
"""Ranks that die, stop or are told to stop: one message, nobody left, nothing lost."""

import os
import pathlib
import random
import shutil
import signal
import time

from tests.end_to_end import runs

SEED = int(os.environ.get("PHALANX_FAULT_SEED", time.time_ns()))
SECONDS_TO_NOTICE = 20  # far above what it takes, far below the timeouts of collectives


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class RanksTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        print(f"PHALANX_FAULT_SEED={SEED}")
        self.arguments = ["tiny.yaml", "launcher.processes=2", "checkpoint.save_every_n_steps=1"]

    def start_and_train(self, *more, steps=1):
        """A run that has come beyond some steps, and its ranks' process ids."""
        process = self.start(*self.arguments, *more)
        for line in process.stdout:
            if f"step {steps + 1}/" in line:
                break
        ranks = runs.children(process.pid)
        self.assertEqual(len(ranks), 2)
        return process, ranks

    def end_of(self, process, ranks, code):
        began = time.monotonic()
        _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        seconds = time.monotonic() - began
        self.assertEqual(process.returncode, code, errors)
        self.assertLess(seconds, SECONDS_TO_NOTICE)
        self.assertEqual([pid for pid in ranks if is_alive(pid)], [])
        print(f"{self._testMethodName}: {seconds:.2f} s; {errors.strip()}")
        return errors

    def check_goes_on(self, exp_dir):
        self.trainer(*self.arguments, f"exp_dir={exp_dir}")
        self.trainer(*self.arguments, "exp_dir=whole")
        self.assertEqual(self.losses(exp_dir), self.losses("whole"))

    def test_a_killed_rank_ends_the_run_which_goes_on(self):
        for victim in (0, 1):
            process, ranks = self.start_and_train(f"exp_dir=run_{victim}",
                                                  steps=self.random.randint(1, 20))
            os.kill(ranks[victim], signal.SIGKILL)
            errors = self.end_of(process, ranks, code=1)
            self.assertIn(f"error: rank {victim} was killed by signal 9", errors)
            self.assertEqual(errors.count("error:"), 1, errors)
        self.check_goes_on("run_0")

    def test_a_stopped_rank_is_noticed_at_the_timeout(self):
        process, ranks = self.start_and_train("exp_dir=run", "parallel.timeout=3s",
                                              "checkpoint.save_every_n_steps=null")
        os.kill(ranks[1], signal.SIGSTOP)
        errors = self.end_of(process, ranks, code=1)
        self.assertIn("error: rank 1: gave no sign of life on ", errors)
        self.assertIn("\n  rank 0: ", errors)
        self.assertRegex(errors, r"in step \d+, (data|forward|backward|update)")

    def test_a_signal_to_the_launcher_or_one_rank_stops_all_with_a_checkpoint(self):
        for case, (number, to_launcher) in enumerate(
                ((signal.SIGTERM, True), (signal.SIGINT, True), (signal.SIGTERM, False))):
            process, ranks = self.start_and_train(f"exp_dir=run_{case}",
                                                  "checkpoint.save_every_n_steps=null")
            os.kill(process.pid if to_launcher else ranks[1], number)
            self.end_of(process, ranks, code=128 + number)
            checkpoints = self.folder / f"run_{case}/checkpoints"
            latest = (checkpoints / "latest").read_text().strip()
            self.assertTrue((checkpoints / latest / "manifest.json").exists())
        self.check_goes_on("run_0")

    def test_a_killed_launcher_leaves_nobody(self):
        process, ranks = self.start_and_train("exp_dir=run")
        process.kill()
        process.communicate(timeout=runs.TIMEOUT_SECONDS)
        end = time.monotonic() + SECONDS_TO_NOTICE
        while any(map(is_alive, ranks)) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertEqual([pid for pid in ranks if is_alive(pid)], [])
        self.check_goes_on("run")

    def test_a_damaged_save_ends_all_ranks_with_its_cause(self):
        self.trainer(*self.arguments, "exp_dir=run", "training.max_steps=1")
        shutil.rmtree(self.folder / "run/checkpoints")
        (self.folder / "run/checkpoints").write_text("not a folder")
        errors = self.trainer(*self.arguments, "exp_dir=run", code=2).stderr
        self.assertEqual(errors.count("error:"), 1, errors)
        self.assertIn("checkpoints", errors)


if __name__ == "__main__":
    runs.main()
