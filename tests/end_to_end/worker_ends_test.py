# SPDX-License-Identifier: Apache-2.0
"""Each kind of worker of a trainer that stands on calls is killed (SIGKILL) and stopped (SIGSTOP) at random moments.

All processes end, the first error and ends.jsonl name the rank and what has come to it, and the run goes on to the
losses of one that nothing has interrupted. By default one of them; --config=long has 50 moments for each kind of
worker and signal, several at a time: two runs train, while others wait for a timeout. Prints a table: how many were
right, and the seconds until all were down.
"""

import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import sys
import threading
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
TRAINING_AT_ONCE = 2  # runs; their ranks are what the machine's load comes from
AT_ONCE = 10  # with runs whose ranks are about to end: one that was stopped takes as long as four that train
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


@dataclass(frozen=True)
class Case:
    """A worker of a run, and the moment of its end."""

    number: int
    row: Row
    victim: int  # its rank
    step: int
    seconds: float  # beyond that step

    @classmethod
    def random(cls, number, row, chooser):
        return cls(number, row, chooser.choice(row.trainer.workers[row.worker]), chooser.randint(2, LAST_STEP_TO_END),
                   chooser.uniform(0, MOST_SECONDS))

    @property
    def exp_dir(self):
        return f"run{self.number}"


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class WorkerEndsTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        print(f"PHALANX_FAULT_SEED={SEED}")
        self.training = threading.Semaphore(TRAINING_AT_ONCE)

    def command(self, trainer, exp_dir):
        return ["tiny.yaml", f"name={trainer.name}", f"launcher.processes={trainer.ranks}", f"exp_dir={exp_dir}",
                f"training.max_steps={STEPS}", f"parallel.timeout={TIMEOUT_SECONDS}s", *trainer.arguments]  # fmt: skip

    def whole(self, trainer, exp_dir):
        """The losses of a run that nothing interrupts from here on."""
        self.trainer(*self.command(trainer, exp_dir))
        return self.losses(exp_dir)

    def signalled(self, case):
        """A run one of whose ranks has got the signal: the launcher, and the ranks' processes."""
        trainer = case.row.trainer
        process = self.start(*self.command(trainer, case.exp_dir))
        self.addCleanup(process.kill)
        for line in process.stdout:
            if f"step {case.step}/" in line:
                break
        time.sleep(case.seconds)
        ranks = sorted(runs.children(process.pid))
        self.assertEqual(len(ranks), trainer.ranks)
        os.kill(ranks[case.victim], case.row.signal)
        return process, ranks

    def end_one(self, case, expected):
        """Ends a worker of a run. Returns the seconds until all are down, and what is wrong, as text."""
        with self.training:
            process, ranks = self.signalled(case)
            began = time.monotonic()
        _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        seconds = time.monotonic() - began
        folder, number = self.folder / case.exp_dir, case.row.signal
        ends = [json.loads(line) for line in (folder / "ends.jsonl").read_text().splitlines()]
        first = re.search(r"error: (.*)|$", errors)[1] or ""
        is_any_left = any(map(is_alive, ranks))
        with self.training:
            losses = self.whole(case.row.trainer, case.exp_dir)
        shutil.rmtree(folder)
        holds = {
            "the exit code is 1": process.returncode == 1,
            "nobody is left": not is_any_left,
            "all are down in time": seconds < SECONDS_UNTIL_DOWN[number],
            "the cause comes first": re.match(rf"rank {case.victim}:? {FIRST_WORDS[number]}", first) is not None,
            "there is one error": errors.count("error:") == 1,
            "the run's folder has the cause": [end.get("rank") for end in ends] == [case.victim],
            "the losses of the resumed run": losses == expected,
        }
        wrong = [what for what, is_right in holds.items() if not is_right]
        return seconds, f"rank {case.victim} at step {case.step}: not {wrong}\n{errors}" if wrong else ""

    def test_each_kind_of_worker(self):
        (trainer,) = (each for each in TRAINERS if each.name == NAME)
        table = [Row(trainer, worker, number) for worker in trainer.workers for number in FIRST_WORDS]
        chooser = random.Random(SEED)
        chosen = table * MOMENTS if is_long() else [chooser.choice(table)]
        cases = [Case.random(number, row, chooser) for number, row in enumerate(chosen)]
        expected = self.whole(trainer, "whole")
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            outcomes = pool.map(lambda case: self.end_one(case, expected), cases)
            for case, (seconds, wrong) in zip(cases, outcomes, strict=True):
                case.row.seconds.append(seconds)
                if wrong:
                    case.row.wrong.append(wrong)
                    print(wrong, flush=True)
        tell_sample(len(chosen), len(table) * MOMENTS, "ends of workers")
        print(f"{'trainer':26} {'worker':16} {'signal':8} {'right':>10}  {'seconds: least, median, most':>23}")
        print("\n".join(map(str, table)), flush=True)
        self.assertEqual([wrong for row in table for wrong in row.wrong], [])


if __name__ == "__main__":
    runs.main()
