# SPDX-License-Identifier: Apache-2.0
"""How a run ended is in its folder, whoever ended it, and the command that goes on is on the screen."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess

from tests.end_to_end import runs

ENDLESS = ("tiny.yaml", "exp_dir=run", "training.max_steps=1000000", "lr_scheduler.decay_steps=40")
TWO_RANKS = "launcher.processes=2"
NO_SAVES = "checkpoint.save_every_n_steps=null"


class EndsTest(runs.RunTest):

    def ends(self):
        return [json.loads(line) for line in (self.folder / "run/ends.jsonl").read_text().splitlines()]

    def log(self, rank=0):
        return (self.folder / f"run/logs/rank_{rank}.log").read_text()

    def start_and_train(self, *arguments, steps=7, **options):
        """A run that has come to some step."""
        process = self.start(*arguments, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        for line in process.stdout:
            if f"step {steps}/" in line:
                return process
        self.fail("it has ended: " + process.stderr.read())

    def end_of(self, process):
        output, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        return output, errors

    def run_command(self, command):
        ended = subprocess.run(["sh", "-c", command], cwd=self.folder, text=True, capture_output=True,
                               check=False, timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        return ended.stdout

    def test_a_killed_rank(self):
        process = self.start_and_train(*ENDLESS, TWO_RANKS)
        os.kill(runs.children(process.pid)[1], signal.SIGKILL)
        _, errors = self.end_of(process)
        (end,) = self.ends()
        self.assertEqual((end["start"], end["exit_code"], end["rank"], end["signal"]), (1, 1, 1, 9))
        self.assertIn("rank 1 was killed by signal 9", end["error"])
        self.assertGreaterEqual(end["step"], 7)
        saved = (self.folder / "run/checkpoints/latest").read_text().strip()
        self.assertEqual((end["saved"], end["checkpoint"]), (True, saved))
        self.assertIn(f"\n{end['step']} steps were finished; the newest checkpoint is {saved}\n", errors)
        self.assertIn("error: ", self.log(0))  # rank 0's own words: its peer has gone
        command = re.search(r"^next: (.*)$", errors, re.MULTILINE)[1]
        self.assertEqual(shlex.split(command), [str(runs.TRAINER), "run/config.yaml", "exp_dir=run"])
        self.run_command(f"{command} training.max_steps={int(saved[5:]) + 1}")

    def test_a_killed_run_is_told_by_the_next_start(self):
        for ranks in ("launcher.processes=1", TWO_RANKS):
            process = self.start_and_train(*ENDLESS, ranks)
            process.kill()
            self.end_of(process)
            self.assertFalse((self.folder / "run/ends.jsonl").exists())
            output = self.trainer(*ENDLESS, ranks, "training.max_seconds=0.001").stdout
            self.assertRegex(output, r"(?m)^note: the last start of \S+, process \d+ on \S+, left "
                                     r"no record of its end \(killed\?\)$")
            self.assertEqual([(end["start"], end["exit_code"]) for end in self.ends()], [(2, 0)])
            shutil.rmtree(self.folder / "run")

    def test_a_rank_alone_that_aborts_records_it_itself(self):
        process = self.start_and_train(*ENDLESS, "launcher.processes=1")
        process.send_signal(signal.SIGABRT)
        self.end_of(process)
        self.assertEqual(process.returncode, -signal.SIGABRT)
        (end,) = self.ends()
        self.assertEqual((end["start"], end["exit_code"], end["signal"]), (1, 128 + signal.SIGABRT, signal.SIGABRT))
        self.assertRegex(end["error"], r"^step \d+, .*: was killed by signal 6 \(Aborted\)")
        self.assertGreaterEqual(end["step"], 7)
        saved = (self.folder / "run/checkpoints/latest").read_text().strip()
        self.assertEqual((end["saved"], end["checkpoint"]), (True, saved))
        output = self.trainer(*ENDLESS, "training.max_seconds=0.001").stdout
        self.assertNotIn("left no record of its end", output)

    def test_errors_are_in_the_logs_of_ranks(self):
        for ranks in (1, 2):
            self.trainer("tiny.yaml", "exp_dir=run", f"launcher.processes={ranks}",
                         "optimizer.lr=1.0e28", code=1)
            (end,) = self.ends()
            for rank in range(ranks):
                self.assertRegex(self.log(rank), r"(?m)^error: step \d+: the (loss|gradient).*")
            self.assertRegex(end["error"], r"step \d+: the (loss|gradient)")
            self.assertIn("if none was saved, from the beginning", end["error"])
            shutil.rmtree(self.folder / "run")

    def test_a_closed_terminal_saves_the_run(self):
        for ranks in ("launcher.processes=1", TWO_RANKS):
            process = self.start_and_train(*ENDLESS, ranks, NO_SAVES)
            process.send_signal(signal.SIGHUP)
            output, errors = self.end_of(process)
            self.assertEqual(process.returncode, 128 + signal.SIGHUP, errors)
            self.assertIn("stopped by signal 1 ", output)
            (end,) = self.ends()
            self.assertEqual((end["signal"], end["saved"]), (1, True))
            self.assertEqual(int(end["checkpoint"][5:]), end["step"])
            shutil.rmtree(self.folder / "run")

    def test_nohup_keeps_the_run_going(self):
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for ranks in ("launcher.processes=1", TWO_RANKS):
            process = self.start_and_train(*ENDLESS, ranks, preexec_fn=ignore)
            process.send_signal(signal.SIGHUP)
            seen = 0
            for line in process.stdout:  # it trains on
                seen += "train " in line
                if seen == 5:
                    break
            process.send_signal(signal.SIGTERM)
            self.end_of(process)
            self.assertEqual(process.returncode, 128 + signal.SIGTERM)
            shutil.rmtree(self.folder / "run")

    def test_commands_name_the_program_as_it_was_called(self):
        (self.folder / "my programs").mkdir()
        (self.folder / "my programs/train it").symlink_to(runs.TRAINER)
        program = "'my programs/train it'"
        output = self.run_command(f"{program} tiny.yaml exp_name='a b' training.max_steps=2")
        self.assertIn(f"next: {program} evaluate 'runs/a b/run_0'\n", output)
        self.assertIn("step 2", self.run_command(re.search(r"next: (.*)", output)[1]))
        refused = subprocess.run(
            ["sh", "-c", f"{program} tiny.yaml 'exp_dir=\"runs/a b/run_0\"' model.n_embd=32"],
            cwd=self.folder, text=True, capture_output=True, check=False)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn(f"{program} 'runs/a b/run_0/config.yaml' 'exp_dir=\"runs/a b/run_0\"'",
                      refused.stderr)

    def test_a_folder_that_may_be_misspelt_is_told(self):
        self.trainer("tiny.yaml", "exp_dir=runs/large", "training.max_steps=1")
        output = self.trainer("tiny.yaml", "exp_dir=runs/lagre", "training.max_steps=1").stdout
        self.assertIn("note: runs/lagre does not exist: a new run starts there; its parent folder has "
                      "the runs large; did you mean exp_dir=runs/large?\n", output)
        output = self.trainer("tiny.yaml", "exp_dir=runs/large", "training.max_steps=2").stdout
        self.assertNotIn("does not exist", output)
        output = self.trainer("tiny.yaml", "exp_dir=elsewhere/small", "training.max_steps=1").stdout
        self.assertNotIn("does not exist", output)


if __name__ == "__main__":
    runs.main()
