# SPDX-License-Identifier: Apache-2.0
"""Each kind of worker of a trainer that stands on calls is killed (SIGKILL) and stopped (SIGSTOP) at random moments.

All processes end, the first error and ends.jsonl name the rank and what has come to it, and the run goes on to the
losses of one that nothing has interrupted. By default one of them; --config=long has 50 moments for each kind of
worker and signal. Prints a table: how many were right, and the seconds until all were down.
"""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import sys
import time
from dataclasses import dataclass, field

from tests.end_to_end import runs
from tests.long import is_long, tell_sample

NAME = sys.argv.pop(2)  # of the trainer
SEED = int(os.environ.get("PHALANX_FAULT_SEED", time.time_ns()))
MOMENTS = 50
STEPS = 60
LAST_STEP_TO_END = 30  # far enough from the end for what a rank does in MOST_SECONDS
MOST_SECONDS = 0.05  # beyond the step
TIMEOUT_SECONDS = 5  # of calls and collectives: all ranks of a busy machine come to each within it
# A rank that is stopped is missed after the timeout, and has to be killed (docs/faults.md).
SECONDS_UNTIL_DOWN = {signal.SIGKILL: 20, signal.SIGSTOP: TIMEOUT_SECONDS + 30}
FIRST_WORDS = {signal.SIGKILL: "was killed by signal 9", signal.SIGSTOP: "gave no sign of life on "}


@dataclass(frozen=True)
class Trainer:
    """A trainer, and what the ranks of a run of it are."""

    name: str
    ranks: int
    workers: dict  # the ranks of each kind of worker
    arguments: tuple = ()


TRAINERS = (
    Trainer("ddp_with_remote_embedding", 3, {"rank that trains": (0, 1), "server": (2,)}),
    Trainer("parameter_server", 3, {"server": (0,), "other rank": (1, 2)}),
    Trainer("pipeline", 3, {"first": (0,), "middle": (1,), "last": (2,)},
            ("model.n_layer=3", "training.batch_size=2", "training.gradient_accumulation_steps=4")),
)


@dataclass
class Row:
    """What has come of one kind of worker and one signal."""

    trainer: Trainer
    worker: str
    signal: signal.Signals
    seconds: list = field(default_factory=list)
    wrong: list = field(default_factory=list)

    def __str__(self):
        name = f"{self.trainer.name:26} {self.worker:16} {self.signal.name:8}"
        if not self.seconds:
            return f"{name} none in this sample"
        count = len(self.seconds)
        return (f"{name} {count - len(self.wrong):3} of {count:3}  {min(self.seconds):7.1f} "
                f"{statistics.median(self.seconds):7.1f} {max(self.seconds):7.1f}")


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class WorkerEndsTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        print(f"PHALANX_FAULT_SEED={SEED}")
        self.expected = None

    def command(self, trainer, exp_dir):
        return ["tiny.yaml", f"name={trainer.name}", f"launcher.processes={trainer.ranks}", f"exp_dir={exp_dir}",
                f"training.max_steps={STEPS}", f"parallel.timeout={TIMEOUT_SECONDS}s", *trainer.arguments]  # fmt: skip

    def whole(self, trainer):
        """The losses of a run that nothing interrupts."""
        if self.expected is None:
            self.trainer(*self.command(trainer, "whole"))
            self.expected = self.losses("whole")
        return self.expected

    def end_one(self, row):
        """Ends a worker of a run. Returns the seconds until all are down, and what is wrong, as text."""
        step, victim = self.random.randint(2, LAST_STEP_TO_END), self.random.choice(row.trainer.workers[row.worker])
        process = self.start(*self.command(row.trainer, "run"))
        for line in process.stdout:
            if f"step {step}/" in line:
                break
        time.sleep(self.random.uniform(0, MOST_SECONDS))
        ranks = sorted(runs.children(process.pid))
        self.assertEqual(len(ranks), row.trainer.ranks)
        os.kill(ranks[victim], row.signal)
        began = time.monotonic()
        _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        seconds = time.monotonic() - began
        ends = [json.loads(line) for line in (self.folder / "run/ends.jsonl").read_text().splitlines()]
        first = re.search(r"error: (.*)|$", errors)[1] or ""
        holds = {
            "the exit code is 1": process.returncode == 1,
            "nobody is left": not any(map(is_alive, ranks)),
            "all are down in time": seconds < SECONDS_UNTIL_DOWN[row.signal],
            "the cause comes first": re.match(rf"rank {victim}:? {FIRST_WORDS[row.signal]}", first) is not None,
            "there is one error": errors.count("error:") == 1,
            "the run's folder has the cause": [end.get("rank") for end in ends] == [victim],
            "the losses of the resumed run": self.resumed(row.trainer) == self.whole(row.trainer),
        }
        wrong = [what for what, is_right in holds.items() if not is_right]
        return seconds, f"rank {victim} at step {step}: not {wrong}\n{errors}" if wrong else ""

    def resumed(self, trainer):
        """The losses of the run that goes on."""
        self.trainer(*self.command(trainer, "run"))
        losses = self.losses("run")
        shutil.rmtree(self.folder / "run")
        return losses

    def test_each_kind_of_worker(self):
        (trainer,) = (each for each in TRAINERS if each.name == NAME)
        table = [Row(trainer, worker, number) for worker in trainer.workers for number in FIRST_WORDS]
        chosen = table * MOMENTS if is_long() else [self.random.choice(table)]
        for row in chosen:
            seconds, wrong = self.end_one(row)
            row.seconds.append(seconds)
            if wrong:
                row.wrong.append(wrong)
                print(wrong, flush=True)
        tell_sample(len(chosen), len(table) * MOMENTS, "ends of workers")
        print(f"{'trainer':26} {'worker':16} {'signal':8} {'right':>10}  {'seconds: least, median, most':>23}")
        print("\n".join(map(str, table)), flush=True)
        self.assertEqual([wrong for row in table for wrong in row.wrong], [])


if __name__ == "__main__":
    runs.main()
