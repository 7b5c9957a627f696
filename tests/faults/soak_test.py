# SPDX-License-Identifier: Apache-2.0
"""Runs that are stopped and continued over and over: by signals and kill -9, with checkpoints written at
once or in the background, on the same ranks or on others each time. The losses are those of a run that was
never interrupted, the folder stays small, and nothing is left lying about.

6 cycles, with --config=long 200; SOAK_CYCLES is another number of them, SOAK_SEED repeats one."""

import os
import random
import re
import signal
import time

from tests.end_to_end import runs
from tests.long import is_long, tell_sample

LONG_CYCLES = 200
CYCLES = int(os.environ.get("SOAK_CYCLES", LONG_CYCLES if is_long() else 6))  # over all tests
SEED = int(os.environ.get("SOAK_SEED", "0"))
KEPT = 2
ROUNDING = 2e-5  # of a loss around 5, after sums in another order

# 12 samples a step, however many ranks there are.
BASE = ["tiny.yaml", "task.sample=null", "validation.every_n_steps=null", "training.batch_size=1",
        "training.global_batch_size=12", "training.gradient_accumulation_steps=null",
        "checkpoint.save_every_n_steps=1", f"checkpoint.keep_last={KEPT}"]
ONE_RANK = []
WORLDS = {
    "one rank": ONE_RANK,
    "DDP 2": ["launcher.processes=2"],
    "FULL_SHARD 2": ["launcher.processes=2", "parallel.use_fsdp=true"],
    "FULL_SHARD 4": ["launcher.processes=4", "parallel.use_fsdp=true"],
    "HYBRID_SHARD 2x2": ["launcher.processes=4", "parallel.use_fsdp=true",
                         "parallel.sharding_strategy=HYBRID_SHARD", "parallel.fsdp.shard_group_size=2"],
    "SHARD_GRAD_OP 3": ["launcher.processes=3", "parallel.use_fsdp=true",
                        "parallel.sharding_strategy=SHARD_GRAD_OP"],
}
NO_DROPOUT = ["model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0"]


class SoakTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        self.most = 0
        print(f"SOAK_SEED={SEED}")
        tell_sample(CYCLES, LONG_CYCLES, "cycles")

    def committed(self):
        folder = self.folder / "run/checkpoints"
        names = os.listdir(folder) if folder.exists() else []
        return sorted(name for name in names if re.fullmatch(r"step-\d{8}", name))

    def count(self):
        """Folders of checkpoints: whole ones, one in the making, one that goes, and what a kill has left."""
        folder = self.folder / "run/checkpoints"
        names = os.listdir(folder) if folder.exists() else []
        return sum(name.startswith("step-") for name in names)

    def interrupt(self, process, number):
        """To the launcher, or kill -9 to one of its ranks where there are several."""
        try:
            ranks = runs.children(process.pid)
        except FileNotFoundError:  # a thread of a single rank's has just ended
            ranks = []
        if number == signal.SIGKILL and len(ranks) > 1 and self.random.random() < 0.5:
            os.kill(self.random.choice(ranks), number)
        else:
            process.send_signal(number)

    def cycle(self, arguments):
        """Goes on until one to four checkpoints more, and is stopped; whether it was."""
        before = self.committed()
        last = int(before[-1][5:]) if before else 0
        wanted = last + self.random.randint(1, 4)
        number = self.random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGUSR2))
        process = self.start(*arguments, "exp_dir=run",
                             f"checkpoint.async={self.random.choice(('true', 'false'))}")
        self.addCleanup(process.kill)
        end = time.monotonic() + runs.TIMEOUT_SECONDS
        while process.poll() is None:
            self.assertLess(time.monotonic(), end, "no step is taken any more")
            now = self.committed()
            self.most = max(self.most, self.count())
            if now and int(now[-1][5:]) >= wanted:
                try:
                    self.interrupt(process, number)
                except ProcessLookupError:
                    pass  # it has just ended
                break
            time.sleep(0.002)
        out, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        if number == signal.SIGKILL:
            self.assertNotEqual(process.returncode, 2, out + errors)
        else:
            self.assertIn(process.returncode, (0, 128 + number), out + errors)
        after = self.committed()
        self.assertTrue(after and int(after[-1][5:]) >= last, f"{before} became {after}\n{errors}")

    def soak(self, cycles, worlds, more):
        """Cycles on worlds that take turns at random; then the rest of the run, on the last one."""
        arguments = [*BASE, *more, f"training.max_steps={6 * cycles + 10}",
                     f"lr_scheduler.decay_steps={6 * cycles + 10}"]
        self.trainer(*arguments, *worlds[0], "exp_dir=whole")
        for _ in range(cycles):
            self.cycle([*arguments, *self.random.choice(worlds)])
        self.trainer(*arguments, *self.random.choice(worlds), "exp_dir=run")
        # Those that stay, the one it came from, one in the making and one that goes; after a kill two more
        # of the last two kinds, until the next start has cleaned up.
        self.assertLessEqual(self.most, KEPT + 1 + 2 + 2)
        left = os.listdir(self.folder / "run/checkpoints")
        self.assertEqual(sorted(left), ["latest", *self.committed()])
        self.assertLessEqual(len(left), 1 + KEPT + 1)  # the one that it came from stays, too
        print(f"{cycles} cycles, {self.rows('run')[-1]['step']} steps, at most "
              f"{self.most} checkpoints on the disk, whole or not")

    def by_step(self, exp_dir):
        """The losses of each step; several where it was taken more than once."""
        losses = {}
        for row in self.rows(exp_dir):
            # Over a number of samples that the ranks do not divide, each world measures with others twice.
            if row["phase"] != "train":
                continue
            losses.setdefault(row["step"], set()).add(row["loss"])
        return losses

    def test_on_the_same_ranks_to_the_last_bit(self):
        for name in ("one rank", "FULL_SHARD 2"):
            with self.subTest(name):
                self.most = 0
                self.soak(CYCLES // 3, [WORLDS[name]], [])
                self.assertEqual(self.by_step("run"), self.by_step("whole"))
                (self.folder / "run").rename(self.folder / f"run of {name}")
                (self.folder / "whole").rename(self.folder / f"whole of {name}")

    def test_on_other_ranks_each_time_within_rounding(self):
        self.soak(CYCLES - 2 * (CYCLES // 3), list(WORLDS.values()), NO_DROPOUT)
        expected = self.by_step("whole")
        found = self.by_step("run")
        self.assertEqual(found.keys(), expected.keys())
        largest = max(abs(loss - next(iter(expected[step]))) / next(iter(expected[step]))
                      for step, losses in found.items() for loss in losses)
        print(f"the losses differ by {largest:.1e} of themselves at most")
        self.assertLess(largest, ROUNDING)


if __name__ == "__main__":
    runs.main()
