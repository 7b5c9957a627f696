# SPDX-License-Identifier: Apache-2.0
"""Runs whose steps go wrong, and what guards do about them."""

from tests.end_to_end import runs

CASES = {"one": [], "two": ["launcher.processes=2", "training.batch_size=2"],
         "sharded": ["launcher.processes=2", "training.batch_size=2", "parallel=fsdp"]}
# The first update makes the weights so large that every later loss is no number.
EXPLODES = ["training.max_steps=10", "optimizer.lr=1e28", "guards.max_skips=2"]


class GuardsTest(runs.RunTest):

    def skipped(self, exp_dir):
        return {row["step"]: row["skipped"] for row in self.rows(exp_dir) if "skipped" in row}

    def test_steps_are_skipped_until_they_are_too_many(self):
        for name, arguments in CASES.items():
            with self.subTest(name):
                ended = self.trainer("tiny.yaml", f"exp_dir={name}", *EXPLODES, "guards.on_nonfinite=skip", *arguments,
                                     code=1)
                self.assertRegex(ended.stdout, r"(?m)^warning: step 2 is skipped, nothing has moved: the loss is nan; "
                                 r"samples? \d+")
                self.assertRegex(ended.stderr, r"3 of the last 4 steps are bad, and guards\.max_skips is 2:\n"
                                 r"\s+step 2: the loss is nan; .*\n\s+step 3: .*\n\s+step 4: ")
                self.assertEqual(list(self.skipped(name)), [2, 3])
                self.assertIn("the loss is nan", self.skipped(name)[2])

    def test_the_line_of_a_skipped_step_has_the_keys_that_the_page_says(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=3", "optimizer.lr=1e28", "guards.on_nonfinite=skip",
                     "logging.every_n_steps=100", "training.clip_grad_norm=null")
        row = next(row for row in self.rows("run") if row["step"] == 2)
        self.assertEqual(set(row), {"step", "epoch", "samples", "tokens", "phase", "loss", "grad_norm", "skipped",
                                    "tokens_per_second", "step_seconds", "data_seconds", "elapsed", "time", "nonfinite"})
        self.assertEqual(row["nonfinite"], {"loss": "nan", "grad_norm": "nan"})

    def test_steps_are_undone_until_they_are_too_many(self):
        for name, arguments in CASES.items():
            with self.subTest(name):
                ended = self.trainer("tiny.yaml", f"exp_dir={name}", *EXPLODES, "guards.on_nonfinite=rollback",
                                     "checkpoint.save_every_n_steps=1", *arguments, code=1)
                back = "the run has gone back to the checkpoint of step 1, and goes on behind these samples"
                self.assertEqual(ended.stdout.count(back), 2)
                self.assertIn("3 of the last 4 steps are bad, and guards.max_skips is 2", ended.stderr)
                self.assertEqual([row["step"] for row in self.rows(name) if row["phase"] == "train"], [1])

    def test_stop_names_the_samples_and_what_works(self):
        for name, arguments in CASES.items():
            with self.subTest(name):
                ended = self.trainer("tiny.yaml", f"exp_dir={name}", *EXPLODES[:2], "guards.on_nonfinite=stop",
                                     *arguments, code=1)
                self.assertRegex(ended.stderr, r"step 2: the loss is nan[^\n]*; samples? \d+")
                self.assertIn("guards.on_nonfinite: skip", ended.stderr)
                self.assertNotIn("stop_on_nonfinite_loss", ended.stderr)

    def test_a_rollback_without_a_checkpoint_says_what_was_bad(self):
        for name, arguments in CASES.items():
            with self.subTest(name):
                ended = self.trainer("tiny.yaml", f"exp_dir={name}", *EXPLODES[:2], "guards.on_nonfinite=rollback",
                                     *arguments, code=1)
                self.assertRegex(ended.stderr, r"step 2: the loss is nan; samples? \d+[^\n]*\. Guards would undo this "
                                 r"step \(rollback\), but no checkpoint is saved yet\. Lower checkpoint\.")
                self.assertNotIn("step 2 is bad", ended.stderr)

    def test_a_run_without_a_bad_step_is_as_ever(self):
        self.trainer("tiny.yaml", "exp_dir=plain", "training.max_steps=6")
        self.trainer("tiny.yaml", "exp_dir=guarded", "training.max_steps=6", "guards.on_nonfinite=rollback",
                     "guards.on_spike=skip", "guards.window=3")
        self.assertEqual(self.losses("guarded"), self.losses("plain"))
        self.assertEqual(self.skipped("guarded"), {})

    def test_contradictions_are_refused_before_the_launch(self):
        for arguments, message in (
                (["guards.on_nonfinite=skip", "training.stop_on_nonfinite_loss=false"],
                 "guards.on_nonfinite is skip, and training.stop_on_nonfinite_loss: false"),
                (["guards.on_spike=rollback", "checkpoint.save_every_n_steps=null"],
                 "guards.on_spike is rollback, and no checkpoint is saved before the run's end"),
                (["guards.on_spike=stop", "guards.loss_factor=null", "guards.grad_norm_factor=null"],
                 "no step is a spike"),
                (["guards.on_spike=ignore"], "guards.on_spike")):
            with self.subTest(arguments):
                self.assertIn(message, self.trainer("tiny.yaml", "exp_dir=run", *arguments, code=2).stderr)
        self.assertFalse((self.folder / "run").exists())

    def test_what_guards_have_seen_goes_on_with_a_resume(self):
        for steps, code in ((2, 0), (4, 1)):
            ended = self.trainer("tiny.yaml", "exp_dir=run", *EXPLODES, "guards.on_nonfinite=skip", "guards.max_skips=1",
                                 f"training.max_steps={steps}", code=code)
        self.assertRegex(ended.stderr, r"2 of the last 3 steps are bad[^\n]*\n\s+step 2: [^\n]*\n\s+step 3: ")


if __name__ == "__main__":
    runs.main()
