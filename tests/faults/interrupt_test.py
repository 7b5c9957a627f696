# SPDX-License-Identifier: Apache-2.0
"""kill -9, SIGINT and SIGTERM at random moments: the exit codes are right, no half checkpoint is
left, and the run goes on to the very losses of one that was never interrupted."""

import hashlib
import json
import os
import random
import signal
import time

from tests.end_to_end import runs
from tests.long import is_long, tell_sample

SEED = int(os.environ.get("PHALANX_FAULT_SEED", time.time_ns()))
LONG_MOMENTS = 100
MOMENTS = int(os.environ.get("PHALANX_FAULT_MOMENTS", LONG_MOMENTS if is_long() else 3))  # to hit, a test


class InterruptTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        print(f"PHALANX_FAULT_SEED={SEED}")
        # Saving at every step makes most moments fall into a save.
        self.arguments = ["tiny.yaml", "checkpoint.save_every_n_steps=1"]
        self.started = time.monotonic()
        self.trainer(*self.arguments, "exp_dir=whole")
        self.whole_seconds = time.monotonic() - self.started

    def interrupt(self, exp_dir, number):
        """Starts or continues a run and sends a signal at a random moment of it."""
        process = self.start(*self.arguments, f"exp_dir={exp_dir}")
        try:
            process.wait(self.random.uniform(0.02, 0.9 * self.whole_seconds))
        except runs.subprocess.TimeoutExpired:
            process.send_signal(number)
        _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        return process.returncode, errors

    def check_checkpoints(self, exp_dir):
        """Every committed checkpoint is whole: sizes and the files its manifest names."""
        checkpoints = self.folder / exp_dir / "checkpoints"
        if not (checkpoints / "latest").exists():
            return 0
        latest = (checkpoints / "latest").read_text().strip()
        self.assertTrue((checkpoints / latest).is_dir())
        committed = [path for path in checkpoints.iterdir() if path.name[5:].isdigit()]
        for path in committed:
            manifest = json.loads((path / "manifest.json").read_text())
            for name, file in manifest["files"].items():
                self.assertEqual((path / name).stat().st_size, file["size"])
        return len(committed)

    def check_goes_on(self, exp_dir):
        self.trainer(*self.arguments, f"exp_dir={exp_dir}")
        self.check_checkpoints(exp_dir)
        self.assertEqual(self.losses(exp_dir), self.losses("whole"))
        leftovers = [name for name in os.listdir(self.folder / exp_dir / "checkpoints")
                     if "tmp" in name]
        self.assertEqual(leftovers, [])
        self.assertEqual(self.weights(exp_dir), self.weights("whole"))

    def weights(self, exp_dir):
        folder = self.folder / exp_dir / "checkpoints/step-00000040"
        return [hashlib.sha256((folder / name).read_bytes()).hexdigest()
                for name in ("model.safetensors", "optimizer.safetensors", "rng.safetensors")]

    def interrupt_often(self, numbers, expected):
        """Interrupts runs until enough moments were hit; each run goes on until it has ended."""
        tell_sample(MOMENTS, LONG_MOMENTS, "random moments")
        interrupted = attempts = run = 0
        while interrupted < MOMENTS:
            attempts += 1
            self.assertLess(attempts, 10 * MOMENTS, "no moment is hit before the run's end")
            number = numbers[attempts % len(numbers)]
            code, errors = self.interrupt(f"run_{run}", number)
            # Before the handlers stand the process dies of the signal, with nothing to lose.
            self.assertIn(code, (0, -number, expected(number)), errors)
            print(f"signal {number}: exit {code}, {self.check_checkpoints(f'run_{run}')} checkpoints")
            interrupted += code == expected(number)
            if code == 0:  # it was over before the moment came
                self.check_goes_on(f"run_{run}")
                run += 1
        self.check_goes_on(f"run_{run}")

    def test_kill_at_random_moments(self):
        self.interrupt_often([signal.SIGKILL], lambda number: -number)

    def test_sigint_and_sigterm_at_random_moments(self):
        self.interrupt_often([signal.SIGINT, signal.SIGTERM], lambda number: 128 + number)

    def test_a_signal_ends_the_run_after_its_step_with_a_checkpoint_of_it(self):
        process = self.start("tiny.yaml", "exp_dir=run", "training.max_steps=1000000",
                             "lr_scheduler.decay_steps=100", "checkpoint.save_every_n_steps=null")
        for line in process.stdout:
            if "step 1/" in line:
                break
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, errors)
        self.assertIn("stopped by signal 15", output)
        state = json.loads((self.folder / "run/checkpoints" / (self.folder / "run/checkpoints/latest")
                            .read_text().strip() / "manifest.json").read_text())["state"]
        rows = self.rows("run") if (self.folder / "run/logs/metrics.jsonl").exists() else []
        self.assertEqual(state["step"], max((row["step"] for row in rows), default=0))


if __name__ == "__main__":
    runs.main()
