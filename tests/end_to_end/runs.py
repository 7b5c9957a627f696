# SPDX-License-Identifier: Apache-2.0
"""A tiny run of the real binary, in a scratch folder: what the end-to-end tests share."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TRAINER = pathlib.Path(sys.argv[1]).resolve()

# Dropout makes a lost random-number state show; two workers make a lost place in the data show.
CONFIG = """\
name: supervised
task:
  name: language_modeling
  data: {path: text.txt, sequence_length: 16, loader: {num_workers: 2}}
  sample: {tokens: 8}
model:
  name: gpt2
  vocab_size: 256
  n_positions: 16
  n_layer: 2
  n_head: 2
  n_embd: 16
optimizer: {name: adamw, lr: 1.0e-3}
lr_scheduler: {name: cosine, warmup_steps: 5}
training: {max_steps: 40, batch_size: 4, gradient_accumulation_steps: 2, clip_grad_norm: 1.0}
validation: {every_n_steps: 10, max_batches: 2}
checkpoint: {save_every_n_steps: 5}
logging: {every_n_steps: 1}
"""
TEXT = "".join(f"{i}: the quick brown fox jumps over {i * i % 97} lazy dogs.\n" for i in range(200))
TIMEOUT_SECONDS = 120


def children(pid):
    """Processes that a process has started and that still are: a launcher's ranks."""
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


class RunTest(unittest.TestCase):
    """A test in a folder of its own that holds tiny.yaml and text.txt."""

    config = CONFIG  # what tiny.yaml holds; a test of another trainer has another

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.write("tiny.yaml", self.config)
        self.write("text.txt", TEXT)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(self, *arguments, **options):
        return subprocess.Popen([TRAINER, *arguments], cwd=self.folder, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    def trainer(self, *arguments, code=0, **options):
        """Runs the binary, expects its exit code, and returns what it printed."""
        process = subprocess.run([TRAINER, *arguments], cwd=self.folder, text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, check=False, timeout=TIMEOUT_SECONDS,
                                 **options)
        self.assertEqual(process.returncode, code, process.stdout + process.stderr)
        return process

    def once(self, *commands):
        """Runs the trainer with each of these arguments. What they leave is copied for later tests of the class."""
        test = type(self)
        if "left" in vars(test):
            shutil.copytree(test.left.name, self.folder, symlinks=True, dirs_exist_ok=True)
            return
        for arguments in commands:
            self.trainer(*arguments)
        test.left = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        test.addClassCleanup(test.left.cleanup)
        shutil.copytree(self.folder, test.left.name, symlinks=True, dirs_exist_ok=True)

    def rows(self, exp_dir):
        return [json.loads(line)
                for line in (self.folder / exp_dir / "logs/metrics.jsonl").read_text().splitlines()]

    def losses(self, exp_dir):
        """(phase, step, loss) of every row: what a resumed run must repeat to the last bit."""
        return [(row["phase"], row["step"], row["loss"]) for row in self.rows(exp_dir)]

    def files(self):
        """Every path below the scratch folder."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))


def main():
    unittest.main(argv=sys.argv[:1], verbosity=2)
