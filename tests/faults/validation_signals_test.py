# SPDX-License-Identifier: Apache-2.0
"""Signals within a validation that would take minutes: it is given up within a micro-batch, its step is
saved, and the resumed run validates it first and ends as one that was never stopped. A request to save is
answered at once. On a terminal the first Ctrl-C says what the run waits for, and the second one ends it."""

import json
import os
import re
import signal
import time

from tests.end_to_end import runs, terminals
from tests.long import is_long, tell_sample

STEP = 3  # is validated, and the fifth and last one too
LINES = 60_000  # of validation: 200,000 micro-batches, far more than any test waits for
ENDLESS, SHORT = "null", 40  # validation.max_batches
WAYS = {
    "one rank": ("launcher.processes=1",),
    "DDP": ("launcher.processes=2", "training.batch_size=2"),
    "FSDP": ("launcher.processes=2", "training.batch_size=2", "parallel.use_fsdp=true",
             "parallel.sharding_strategy=FULL_SHARD"),
}  # fmt: skip
SECONDS_TO_END = 30  # on a loaded machine; the validation takes minutes
CTRL_C = "\x03"


class ValidationSignalsTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.write("validation.txt", "".join(f"{i} the quick brown fox jumps over the lazy {i % 97} dogs\n"
                                             for i in range(LINES)))

    def arguments(self, exp_dir, *more, length=ENDLESS):
        return ["tiny.yaml", "task.data.validation_path=validation.txt", "training.max_steps=5",
                "lr_scheduler.warmup_steps=1", "lr_scheduler.decay_steps=5", f"validation.every_n_steps={STEP}",
                f"validation.max_batches={length}", "checkpoint.save_every_n_steps=null",
                *more, f"exp_dir={exp_dir}"]  # fmt: skip

    def start_run(self, exp_dir, *more, length=ENDLESS):
        return self.start(*self.arguments(exp_dir, *more, length=length))

    def manifest(self, exp_dir, step):
        path = self.folder / exp_dir / f"checkpoints/step-{step:08d}/manifest.json"
        return json.loads(path.read_text()) if path.exists() else None

    def weights(self, exp_dir, step=5):
        folder = self.folder / exp_dir / f"checkpoints/step-{step:08d}"
        return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}

    def rows_so_far(self, exp_dir):
        path = self.folder / exp_dir / "logs/metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def wait_until(self, process, is_so):
        """Waits for what the run writes into its folder."""
        deadline = time.monotonic() + runs.TIMEOUT_SECONDS
        while not is_so():
            self.assertIsNone(process.poll(), "the run has ended")
            self.assertLess(time.monotonic(), deadline)

    def wait_for_validation(self, process):
        """Reads on until the run tells how far its validation is; returns that line."""
        for line in process.stdout:
            if line.startswith("validation  ") and " micro-batches, " in line:
                return line
        return self.fail("the run told of no validation: " + process.stderr.read())

    def check_stopped(self, process, number, exp_dir):
        began = time.monotonic()
        process.send_signal(number)
        output, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 128 + number, errors)
        self.assertLess(time.monotonic() - began, SECONDS_TO_END)
        self.assertIn(f"stopped by signal {int(number)} at step {STEP}", output)
        self.assertIn("validation  of this step given up", output)
        manifest = self.manifest(exp_dir, STEP)
        self.assertEqual(manifest["state"]["step"], STEP)
        self.assertIs(manifest["state"]["validation_due"], True)
        self.assertEqual(manifest["metrics"], {})
        self.assertEqual([row["phase"] for row in self.rows(exp_dir)], ["train"] * STEP)

    def check_goes_on(self, exp_dir, whole, *way):
        """The same command, with validations as short as those of the run that was never stopped."""
        self.trainer(*self.arguments(exp_dir, *way, length=SHORT))
        self.assertEqual(self.losses(exp_dir), self.losses(whole))
        self.assertEqual(self.weights(exp_dir), self.weights(whole))
        for step in (STEP, 5):
            self.assertNotIn("validation_due", self.manifest(exp_dir, step)["state"])
        self.assertEqual(self.manifest(exp_dir, 5)["metrics"], self.manifest(whole, 5)["metrics"])

    def check_way(self, name, number):
        way, exp_dir = WAYS[name], name.replace(" ", "_")
        self.trainer(*self.arguments(f"{exp_dir}_whole", *way, length=SHORT))
        process = self.start_run(exp_dir, *way)
        line = self.wait_for_validation(process)
        self.assertRegex(line, r"^validation  \d+%  \d+ of \d+ micro-batches, .* left\n$")
        self.check_stopped(process, number, exp_dir)
        self.check_goes_on(exp_dir, f"{exp_dir}_whole", *way)

    def test_one_rank_gives_it_up_and_the_resumed_run_makes_it(self):
        self.check_way("one rank", signal.SIGTERM)

    def test_ranks_of_ddp_do_alike(self):
        self.check_way("DDP", signal.SIGTERM)

    def test_ranks_of_fsdp_do_alike(self):
        self.check_way("FSDP", signal.SIGTERM)

    def test_a_signal_to_one_of_two_ranks_stops_both(self):
        process = self.start_run("one_of_two", *WAYS["DDP"])
        self.wait_for_validation(process)
        os.kill(runs.children(process.pid)[1], signal.SIGUSR2)
        output, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 128 + signal.SIGUSR2, errors)
        self.assertIn(f"stopped by signal {int(signal.SIGUSR2)} at step {STEP}", output)
        self.assertIs(self.manifest("one_of_two", STEP)["state"]["validation_due"], True)

    def test_sigusr1_saves_at_once_and_the_value_stays(self):
        names = list(WAYS) if is_long() else ["one rank", "FSDP"]
        tell_sample(len(names), len(WAYS), "ways to train")
        for name in names:
            with self.subTest(name):
                self.check_save(name.replace(" ", "_"), *WAYS[name])

    def check_save(self, exp_dir, *way):
        for batches in (1000, 8000, 64000):  # Long enough to be met in, on a fast machine too.
            run = f"{exp_dir}_{batches}"
            process = self.start_run(run, *way, length=batches)
            self.wait_until(process, lambda run=run: len(self.rows_so_far(run)) == STEP)
            process.send_signal(signal.SIGUSR1)
            output, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
            self.assertEqual(process.returncode, 0, errors)
            self.assertIn("(SIGUSR1)\n", output)
            saved = self.manifest(run, STEP)
            if saved is not None:
                break  # Otherwise the signal came after the validation.
        self.assertIs(saved["state"]["validation_due"], True, "it was saved within the validation")
        self.trainer(*self.arguments(f"{run}_whole", *way, length=batches))
        self.assertIsNone(self.manifest(f"{run}_whole", STEP))
        self.assertEqual(self.losses(run), self.losses(f"{run}_whole"))
        self.assertEqual(self.weights(run), self.weights(f"{run}_whole"))

    def test_the_checkpoint_is_there_while_the_validation_goes_on(self):
        process = self.start_run("going_on", *WAYS["DDP"])
        self.wait_for_validation(process)
        process.send_signal(signal.SIGUSR1)
        self.wait_until(process, lambda: self.manifest("going_on", STEP) is not None)
        self.assertIs(self.manifest("going_on", STEP)["state"]["validation_due"], True)
        self.assertEqual(len(self.rows_so_far("going_on")), STEP, "no value yet")
        self.check_stopped(process, signal.SIGTERM, "going_on")

    def terminal(self, exp_dir, *more):
        return terminals.Terminal([str(runs.TRAINER), *self.arguments(exp_dir, *more)], 100,
                                  runs.TIMEOUT_SECONDS, cwd=self.folder,
                                  environment=dict(os.environ, TERM="xterm"))  # fmt: skip

    def read_to_end(self, terminal):
        try:
            terminal.read_until(lambda shown: False)
        except EOFError:
            return terminal.output

    def check_terminal(self, exp_dir, *way):
        """Ctrl-C once: what a person sees, and that the run ends by itself, with a checkpoint."""
        terminal = self.terminal(exp_dir, *way)
        terminal.read_until(re.compile(r"\rvalidation  \d+%  \d+ of \d+ micro-batches, .* left").search)
        terminal.type(CTRL_C)
        seen = self.read_to_end(terminal)
        self.assertEqual(terminal.end(), 128 + signal.SIGINT, seen)
        notice = ("\r\x1b[Kstopping after this micro-batch of the validation; "
                  "Ctrl-C again to stop at once\r\n")  # fmt: skip
        self.assertEqual(seen.count(notice), 1, seen)
        self.assertIn(f"stopped by signal 2 at step {STEP}", seen[seen.index(notice):])
        self.assertIs(self.manifest(exp_dir, STEP)["state"]["validation_due"], True)

    def test_ctrl_c_once_says_what_the_run_waits_for(self):
        self.check_terminal("once")

    def test_ctrl_c_once_on_two_ranks_is_told_once(self):
        self.check_terminal("once_on_two", *WAYS["DDP"])

    def test_ctrl_c_twice_ends_it_at_once_without_a_checkpoint(self):
        # One micro-batch takes tens of seconds, which the first Ctrl-C waits for.
        terminal = self.terminal("twice", "validation.at_start=true", "training.batch_size=20000",
                                 "training.gradient_accumulation_steps=1", "model.n_layer=60")
        terminal.read_until(re.compile(r"\rvalidation  0%  0 of \d+ micro-batches").search)
        terminal.type(CTRL_C)
        terminal.read_until(lambda shown: "Ctrl-C again to stop at once\r\n" in shown)
        self.assertEqual(os.waitpid(terminal.pid, os.WNOHANG), (0, 0), "it waits")
        terminal.type(CTRL_C)
        seen = self.read_to_end(terminal)
        self.assertEqual(terminal.end(), -signal.SIGINT, "a shell is told that the signal ended it")
        self.assertNotIn("stopped by signal", seen)
        self.assertFalse((self.folder / "twice/checkpoints/latest").exists())


if __name__ == "__main__":
    runs.main()
