# SPDX-License-Identifier: Apache-2.0
"""File systems that keep no locks, as Lustre mounted without flock: every flock fails there.

Runs train, save and resume as elsewhere, after one warning; what a lock would have told is left alone, and
what is only right under one is refused.
"""

import errno
import os

from tests.end_to_end import runs
from tests.faults import fault_runs
from tests.faults.fault_runs import PLAIN, TWO_RANKS

ERRORS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)
HALF = ("training.max_steps=3", "lr_scheduler.decay_steps=6")


class NoLocksTest(fault_runs.FaultTest):

    def without_locks(self, error):
        """The environment of a command that finds no locks below the scratch folder."""
        return os.environ | {
            "LD_PRELOAD": str(fault_runs.LIBRARY),
            "FILE_FAULTS_ROOT": str(self.folder.resolve()),
            "FILE_FAULTS_LOCKS": str(error),
        }

    def check_warned(self, text, file, error, consequence):
        warnings = [line for line in text.splitlines() if line.startswith("warning: cannot lock")]
        self.assertEqual(len(warnings), 1, text)
        for part in (f"{file}'", os.strerror(error), consequence):
            self.assertIn(part, warnings[0])

    def trained(self, folder):
        return [row for row in self.losses_of(folder) if row[0] == "train"]

    def check_trains_and_resumes(self, error, arguments):
        folder = self.disk()
        for part in (HALF, ()):
            ended = self.run_on(folder, (*arguments, *part), locks=error)
            self.assertEqual(ended.code, 0, ended.output + ended.errors)
            self.check_warned(ended.errors, "run.lock", error,
                              "nothing keeps a second process from training in this folder")
            self.assertTrue((folder / "disk/run/config.yaml").exists())
        self.assertEqual(ended.resumed_step(), 3, ended.output)
        self.assertEqual(self.weights(folder), self.weights(self.reference))
        self.assertEqual(self.trained(folder), self.trained(self.reference))
        self.assertEqual([name for name in self.checkpoints(folder) if fault_runs.LEFTOVER.search(name)], [])

    def test_a_run_trains_and_resumes(self):
        self.reference = self.whole(PLAIN)
        self.at_once(lambda error: self.check_trains_and_resumes(error, PLAIN), ERRORS)

    def test_several_ranks_do(self):
        arguments = (*PLAIN, *TWO_RANKS)
        self.reference = self.whole(arguments)
        self.check_trains_and_resumes(errno.ENOSYS, arguments)

    def test_another_error_of_a_lock_ends_the_start(self):
        folder = self.disk()
        ended = self.run_on(folder, PLAIN, locks=errno.EIO)
        self.assertEqual(ended.code, 2, ended.output + ended.errors)
        self.assertIn("cannot lock 'disk/run/run.lock': Input/output error", ended.errors)

    def test_what_a_process_may_still_write_stays(self):
        folder = self.disk()
        self.assertEqual(self.run_on(folder, (*PLAIN, *HALF), locks=errno.ENOSYS).code, 0)
        unfinished = folder / "disk/run/checkpoints/step-00000004.tmp-1"
        unfinished.mkdir()
        for error, told, stays in (
            (errno.ENOSYS, "checkpoint: 'step-00000004.tmp-1' stays: this file system keeps no locks", True),
            (0, "checkpoint: removed 'step-00000004.tmp-1', left by a process that died", False),
        ):  # fmt: skip
            ended = self.run_on(folder, PLAIN, locks=error)
            self.assertEqual(ended.code, 0, ended.output + ended.errors)
            self.assertIn(told, ended.output)
            self.assertEqual(unfinished.exists(), stays)

    def test_commands_write_after_a_warning(self):
        self.trainer("tokenize", "text.txt", "--tokenizer=bytes", "--output=expected")
        told = self.trainer("tokenize", "text.txt", "--tokenizer=bytes", "--output=tokens",
                            env=self.without_locks(errno.ENOLCK)).stderr
        self.check_warned(told, "lock", errno.ENOLCK, "nothing keeps a second process from making these tokens")
        for path in (self.folder / "expected").rglob("*.bin"):
            self.assertEqual((self.folder / "tokens" / path.name).read_bytes(), path.read_bytes())

        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2")
        self.write("prompts.jsonl", '{"prompt": "0: the"}\n')
        asked = ("generate", "run", "--input=prompts.jsonl", "max_new_tokens=4")
        told = self.trainer(*asked, "--output=texts.jsonl", env=self.without_locks(errno.ENOLCK)).stderr
        self.check_warned(told, "texts.jsonl.part", errno.ENOLCK, "nothing keeps a second command from writing it")
        self.assertEqual((self.folder / "texts.jsonl").read_text(), self.trainer(*asked).stdout)

    def test_tokens_that_several_processes_would_make_are_refused(self):
        source = "task.data.source={name: text, files: [text.txt], tokenizer: bytes, cache: cache}"
        arguments = ("tiny.yaml", "task.data.path=null", source, "training.max_steps=2")
        told = self.trainer(*arguments, "exp_dir=run", env=self.without_locks(errno.ENOSYS), code=2).stderr
        for part in ("task.data.source: cannot lock '", ".lock': Function not implemented", "trainer tokenize"):
            self.assertIn(part, told)
        self.trainer(*arguments, "exp_dir=other")
        self.trainer(*arguments, "exp_dir=run", env=self.without_locks(errno.ENOSYS))  # they are there


if __name__ == "__main__":
    runs.main()
