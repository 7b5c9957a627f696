# SPDX-License-Identifier: Apache-2.0
"""`trainer generate RUN` beside the training of the run, which keeps one checkpoint: the one that generate has found
goes while it is opened, and generate looks again.

A lease on a file of that checkpoint (fcntl(2), F_SETLEASE) stops generate as it opens the file, until the training has
saved a newer one, however fast each of both is.
"""

import contextlib
import fcntl
import os
import pathlib
import signal
import subprocess
import time
import unittest

from tests.end_to_end import runs

TRAINING = ["tiny.yaml", "exp_dir=run", "training.max_steps=1000000", "checkpoint.keep_last=1",
            "validation.every_n_steps=null", "lr_scheduler=constant"]


class GenerateBesideTrainingTest(runs.RunTest):

    def start_training(self):
        process = self.start(*TRAINING)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        for line in process.stdout:
            if "step 12/" in line:
                return process
        self.fail(process.stderr.read())

    def newest(self):
        folder = self.folder / "run/checkpoints"
        return folder / (folder / "latest").read_text().strip()

    @contextlib.contextmanager
    def stopping_at(self, path, process):
        """The process stops when it opens the file, which fails then: the kernel sends SIGSTOP to the lease's owner."""
        file = os.open(path, os.O_RDONLY)
        try:
            try:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            except OSError as error:
                raise unittest.SkipTest(f"no leases on this file system: {error}") from error
            fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGSTOP)
            fcntl.fcntl(file, fcntl.F_SETOWN, process.pid)
            yield
        finally:
            os.close(file)

    def wait_until(self, condition, process):
        end = time.monotonic() + runs.TIMEOUT_SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(process.poll())
            time.sleep(0.01)

    @staticmethod
    def is_stopped(process):
        stat = pathlib.Path(f"/proc/{process.pid}/stat").read_text()
        return stat[stat.rindex(")") + 2] == "T"

    def test_it_looks_again(self):
        training = self.start_training()
        training.send_signal(signal.SIGSTOP)
        self.wait_until(lambda: self.is_stopped(training), training)
        found = self.newest()
        generate = subprocess.Popen([runs.TRAINER, "generate", "run", "max_new_tokens=5"], cwd=self.folder, text=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(generate.kill)
        with self.stopping_at(found / "model.safetensors", generate):
            generate.stdin.write("0: the")  # It loads the model once it has its prompt.
            generate.stdin.close()
            self.wait_until(lambda: self.is_stopped(generate), generate)
            training.send_signal(signal.SIGCONT)
            self.wait_until(lambda: not found.exists(), training)
            training.send_signal(signal.SIGSTOP)  # so that the next one stays
            self.wait_until(lambda: self.is_stopped(training), training)
        generate.send_signal(signal.SIGCONT)
        text, told = generate.stdout.read(), generate.stderr.read()
        self.assertEqual(generate.wait(timeout=runs.TIMEOUT_SECONDS), 0, told)
        self.assertTrue(text.startswith("0: the"), text)
        self.assertIn(f"skipped {found.name}: it was removed meanwhile", told)


if __name__ == "__main__":
    runs.main()
