# SPDX-License-Identifier: Apache-2.0
"""Runs of the real binary whose every change of a file is watched, and may fail or be the last.

The library of tests/faults/files is loaded into the trainer by LD_PRELOAD; the trainer knows nothing
of it. What it can be told is in fault_layer.h.
"""

import concurrent.futures
import dataclasses
import errno
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading

from tests.end_to_end import runs

LIBRARY = pathlib.Path(sys.argv[2]).resolve()
SEED = int(os.environ.get("PHALANX_FAULT_SEED", "0"))
AT_ONCE = 2  # runs
LAST_STEP = 6
PLAIN = (
    "tiny.yaml", f"training.max_steps={LAST_STEP}", f"lr_scheduler.decay_steps={LAST_STEP}",
    "validation.every_n_steps=null", "model.n_layer=1", "checkpoint.save_every_n_steps=2"
)  # fmt: skip
TWO_RANKS = ("launcher.processes=2", "training.batch_size=2")
ASYNC = ("checkpoint.async=true",)
TOKENIZED = (  # with a file that checkpoints carry; characters.txt is linked
    "task.data.path=null",
    "task.data.source={name: text, files: [text.txt], tokenizer: characters.txt, cache: cache}"
)  # fmt: skip
KEEP_ONE = ("checkpoint.keep_last=1",)  # whatever is removed is the last but one
KEEP_TWO = ("checkpoint.keep_last=2",)
LEFTOVER = re.compile(r"\.(tmp|deleted|replaced)-")
STEP_FOLDER = re.compile(r"run/checkpoints/step-(\d{8})")


@dataclasses.dataclass(frozen=True)
class Traced:
    """An operation that a process has ended: of a trace."""
    who: str
    name: str
    occurrence: int
    error: int
    path: str
    other: str

    @property
    def kind(self):
        return self.name.split()[0]


@dataclasses.dataclass(frozen=True)
class Rule:
    """What is to happen at an operation; see fault_layer.h."""
    moment: str
    action: str
    who: str
    name: str
    occurrence: str

    def __str__(self):
        return "|".join((self.moment, self.action, self.who, self.name, self.occurrence))


# File systems that cannot exchange folders say EINVAL.
NO_EXCHANGE = Rule("before", str(errno.EINVAL), "main",
                   "exchange run/checkpoints/step.tmp run/checkpoints/step", "1+")


@dataclasses.dataclass
class Ended:
    """A run that is over, and all of its processes with it."""
    code: int
    output: str
    errors: str

    def resumed_step(self):
        found = re.search(r"^resumed +after step (\d+)", self.output, re.MULTILINE)
        return int(found[1]) if found else 0


def step_committed_by(operation):
    """The step whose folder an operation has brought to its place."""
    found = STEP_FOLDER.fullmatch(operation.other)
    return int(found[1]) if found and operation.error == 0 and ".tmp-" in operation.path else 0


def print_table(head, rows):
    """As docs/checkpoint_faults.md has its tables."""
    for row in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(map(str, row))} |")


class FaultTest(runs.RunTest):
    """A test whose runs each have a folder of their own: `disk/run` in it is the run's."""

    linked = ("tiny.yaml", "text.txt")  # what each of these folders has

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.lock = threading.Lock()
        cls.number = 0

    def setUp(self):
        super().setUp()
        self.chooser = random.Random(SEED)
        print(f"PHALANX_FAULT_SEED={SEED}")

    def disk(self, template=None):
        """A new folder for a run, which begins with a copy of another one's disk."""
        with self.lock:
            type(self).number += 1
            folder = self.folder / f"at_{self.number}"
        (folder / "trace").mkdir(parents=True)
        for name in self.linked:
            os.link(self.folder / name, folder / name)
        if template is None:
            (folder / "disk").mkdir()
        else:
            shutil.copytree(template / "disk", folder / "disk")
        return folder

    def run_on(self, folder, arguments, rules=(), journal=False, locks=0):
        """Runs the trainer with these rules until none of its processes is left; locks fail with the errno `locks`."""
        for trace in (folder / "trace").iterdir():
            trace.unlink()
        environment = os.environ | {
            "LD_PRELOAD": str(LIBRARY),
            "FILE_FAULTS_ROOT": str(folder.resolve() / "disk"),
            "FILE_FAULTS_TRACE": str(folder.resolve() / "trace"),
            "FILE_FAULTS_RULES": "\n".join(map(str, rules)),
            "FILE_FAULTS_LOCKS": str(locks),
            "OMP_NUM_THREADS": "1",
        }
        if journal:
            environment["FILE_FAULTS_JOURNAL"] = str(folder.resolve() / "journal")
        # Every process of the run holds this pipe's end for writing.
        alive, held = os.pipe()
        try:
            process = subprocess.Popen([runs.TRAINER, *arguments, "exp_dir=disk/run"], cwd=folder,
                                       text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env=environment, pass_fds=[held])
            os.close(held)
            try:
                output, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
            os.read(alive, 1)
        finally:
            os.close(alive)
        return Ended(process.returncode, output, errors)

    def trace_of(self, folder):
        """What each process of the last run on a folder has done."""
        operations = []
        for trace in sorted((folder / "trace").iterdir()):
            for line in trace.read_text().splitlines():
                name, occurrence, error, path, other = line.split("\t")
                operations.append(Traced(trace.name, name, int(occurrence), int(error), path, other))
        return operations

    def committed(self, folder, before=0):
        """The newest step that the last run has committed, or that was there before."""
        return max([before, *map(step_committed_by, self.trace_of(folder))])

    def weights(self, folder, step=LAST_STEP):
        """The bytes of a checkpoint but its manifest's, which tells times."""
        checkpoint = folder / f"disk/run/checkpoints/step-{step:08d}"
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in checkpoint.glob("*.safetensors")
        }

    def checkpoints(self, folder):
        """What stands in a run's `checkpoints`."""
        place = folder / "disk/run/checkpoints"
        return sorted(os.listdir(place)) if place.is_dir() else []

    def losses_of(self, folder):
        """The losses of the rows that are whole."""
        path = folder / "disk/run/logs/metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        rows = [json.loads(line) for line in lines if line.endswith("\n")]
        return [(row["phase"], row["step"], row["loss"]) for row in rows]

    def whole(self, arguments):
        """A run that nothing interrupts, with the journal of what it does."""
        folder = self.disk()
        ended = self.run_on(folder, arguments, journal=True)
        self.assertEqual(ended.code, 0, ended.errors)
        self.assertEqual(len([row for row in self.losses_of(folder) if row[0] == "train"]), LAST_STEP)
        return folder

    def with_damage(self, whole):
        """A run that has ended with its newest checkpoint damaged: going on replaces it."""
        folder = self.disk(whole)
        model = folder / f"disk/run/checkpoints/step-{LAST_STEP:08d}/model.safetensors"
        model.write_bytes(model.read_bytes()[:-1] + b"?")
        return folder

    def check_goes_on(self, folder, arguments, whole, committed):
        """The same command again: from what was committed to the same end. Returns the step it came from."""
        ended = self.run_on(folder, arguments)
        self.assertEqual(ended.code, 0, ended.output + ended.errors)
        self.assertGreaterEqual(ended.resumed_step(), committed, ended.output + ended.errors)
        self.check_end(folder, whole)
        return ended.resumed_step()

    def check_end(self, folder, whole, logged_from=0):
        """A run has ended as the one that nothing has interrupted; of rows up to a step some may be missing."""
        self.assertEqual([name for name in self.checkpoints(folder) if LEFTOVER.search(name)], [])
        self.assertEqual((folder / "disk/run/checkpoints/latest").read_text(),
                         f"step-{LAST_STEP:08d}\n")
        self.assertEqual(self.weights(folder), self.weights(whole))
        rows, expected = self.losses_of(folder), self.losses_of(whole)
        self.assertEqual([row for row in rows if row[1] > logged_from],
                         [row for row in expected if row[1] > logged_from])
        self.assertEqual([row for row in expected if row in rows], rows)

    def at_once(self, action, cases):
        """action(case) for all, several at a time; those that fail are told together."""
        failures = []

        def attempt(case):
            try:
                action(case)
            except Exception as error:  # pylint: disable=broad-except
                failures.append(f"{str(case)[:300]}: {type(error).__name__}: {error}")
                print(failures[-1])

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(attempt, cases))
        if failures:
            self.fail(f"{len(failures)} of {len(cases)} fail:\n" + "\n".join(failures[:10]))
