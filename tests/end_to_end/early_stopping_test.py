# SPDX-License-Identifier: Apache-2.0
"""Runs that go by their validations: early stopping, and the schedule plateau."""

import json

from tests.end_to_end import runs

TWO_RANKS = ["launcher.processes=2", "training.batch_size=2"]
VALIDATE = ["validation.every_n_steps=2", "validation.max_batches=2"]
# Nothing gets better.
STILL = ["optimizer.lr=0", "lr_scheduler=constant"]
PATIENCE = ["early_stopping.metric=loss", "early_stopping.patience=3"]
PLATEAU = ["lr_scheduler={name: plateau, factor: 0.5, patience: 1, threshold: 0.5, min_lr_ratio: 0.1}"]


class EarlyStoppingTest(runs.RunTest):

    def ends(self, exp_dir):
        return [json.loads(line) for line in (self.folder / exp_dir / "ends.jsonl").read_text().splitlines()]

    def test_a_run_whose_patience_is_over_has_finished(self):
        for exp_dir, ranks in (("one", []), ("two", TWO_RANKS)):
            reason = r"loss has got no better in 3 validations: the best was [\d.]+ at step 2 \(early_stopping\.patience 3\)"
            told = self.trainer("tiny.yaml", f"exp_dir={exp_dir}", *VALIDATE, *STILL, *PATIENCE, *ranks).stdout
            self.assertRegex(told, r"(?m)^ended early at step 8 ")
            self.assertRegex(told, rf"(?m)^  reason      {reason}$")
            self.assertRegex(told, r"(?m)^next: \S+ evaluate ")
            (end,) = self.ends(exp_dir)
            self.assertEqual((end["exit_code"], end["step"], end["checkpoint"]), (0, 8, "step-00000008"))
            self.assertRegex(end["reason"], f"^{reason}$")
            # The same command trains nothing; with more patience the run goes on.
            again = self.trainer("tiny.yaml", f"exp_dir={exp_dir}", *VALIDATE, *STILL, *PATIENCE, *ranks).stdout
            self.assertRegex(again, r"(?m)^ended early at step 8 ")
            more = self.trainer("tiny.yaml", f"exp_dir={exp_dir}", *VALIDATE, *STILL, *PATIENCE, *ranks,
                                "early_stopping.patience=4").stdout
            self.assertRegex(more, r"(?m)^ended early at step 10 ")
            self.assertEqual(len(self.ends(exp_dir)), 3)

    def test_a_run_that_has_ended_early_is_not_unfinished(self):
        fields = [*VALIDATE, *STILL, *PATIENCE]
        self.trainer("tiny.yaml", "exp_name=early", *fields)
        self.assertNotIn("unfinished", self.trainer("tiny.yaml", "exp_name=early", *fields).stdout)
        run = "runs/early/run_0"
        self.assertIn("the run is at its end, step 8: nothing is trained with what ++ sets",
                      self.trainer("tiny.yaml", f"exp_dir={run}", *fields, "++training.seed=7").stdout)
        self.assertIn("was 0, now 7", self.trainer("tiny.yaml", f"exp_dir={run}", *fields, "++training.seed=7",
                                                   "early_stopping.patience=4").stdout)

    def test_a_threshold(self):
        told = self.trainer("tiny.yaml", "exp_dir=run", *VALIDATE, "early_stopping={metric: perplexity, threshold: 1e9}")
        self.assertRegex(told.stdout, r"(?m)^ended early at step 2 ")
        self.assertRegex(self.ends("run")[0]["reason"], r"^perplexity \S+ has reached early_stopping.threshold, 1e\+09$")

    def test_a_metric_that_the_task_does_not_give_is_refused_before_the_launch(self):
        for field, arguments in (("early_stopping.metric", ["early_stopping.metric=f1"]),
                                 ("lr_scheduler.metric", ["lr_scheduler={name: plateau, metric: f1}"])):
            error = self.trainer("tiny.yaml", "exp_dir=run", *arguments, code=2).stderr
            self.assertIn(f"{field}: language_modeling gives no 'f1'; it gives loss, perplexity", error)
        self.assertFalse((self.folder / "run").exists())

    def test_without_validations_it_is_said_that_nothing_ends_the_run(self):
        told = self.trainer("tiny.yaml", "exp_dir=run", "validation.every_n_steps=null", "validation.at_end=false",
                            "training.max_steps=2", "early_stopping.metric=loss").stdout
        self.assertIn("warning: early_stopping.metric is set (command line), and nothing says when to validate", told)

    def test_what_cannot_act_in_the_length_of_the_run_is_told(self):
        self.write("late.yaml", "validation: {every_n_steps: 2}\nlogging: {every_n_steps: 50}\n"
                   "early_stopping: {metric: loss, patience: 3}\nguards: {on_spike: skip}\n")
        told = self.trainer("tiny.yaml", "late.yaml", "exp_dir=run", "training.max_steps=6").stderr
        for line in [
            "warning: logging.every_n_steps (late.yaml:2) never acts: the run has 6 steps, and it is 50: ",
            "warning: early_stopping.patience (late.yaml:3) never acts: the run has 3 validations, and a patience of 3 "
            "needs 4 at least: ",
            "warning: guards.on_spike (late.yaml:4) never acts: no step is a spike before there are 100 good ones ",
        ]:
            self.assertIn(line, told)
        told = self.trainer("tiny.yaml", "late.yaml", "exp_dir=long", "training.max_steps=60",
                            "guards.window=20", "early_stopping.threshold=0.0").stderr
        self.assertNotIn("never acts", told)

    def test_a_resume_that_validates_other_samples_is_told(self):
        run = ["tiny.yaml", "exp_dir=run", *VALIDATE, "early_stopping={metric: loss, patience: 30}",
               "checkpoint.keep_best={metric: loss}"]
        self.trainer(*run, "training.max_steps=4")
        told = self.trainer(*run, "training.max_steps=6", "launcher.processes=2",
                            "training.gradient_accumulation_steps=1").stderr
        self.assertIn("warning: validations measured 8 samples before this resume and measure 16 now "
                      "(validation.max_batches, on each rank): checkpoint.keep_best and early_stopping will compare "
                      "values of different samples; validation.max_batches=1 measures the earlier ones again\n", told)
        told = self.trainer(*run, "training.max_steps=8", *TWO_RANKS, "training.gradient_accumulation_steps=2",
                            "validation.max_batches=4").stderr
        self.assertNotIn("different samples", told)

    def rates(self, exp_dir):
        return [(row["step"], row["lr"]) for row in self.rows(exp_dir) if row["phase"] == "train"]

    def test_a_rate_that_goes_by_validations_goes_on_with_a_resume(self):
        for ranks in ([], TWO_RANKS):
            whole, cut = (f"{name}{len(ranks)}" for name in ("whole", "cut"))
            self.trainer("tiny.yaml", f"exp_dir={whole}", *VALIDATE, *PLATEAU, *ranks, "training.max_steps=20")
            rates = dict(self.rates(whole))
            # The second validation that is no better lowers it: of steps 4 and 6, then of 8 and 10.
            self.assertEqual([rates[step] for step in (6, 7, 10, 11, 20)], [1e-3, 5e-4, 5e-4, 2.5e-4, 1e-4])
            self.trainer("tiny.yaml", f"exp_dir={cut}", *VALIDATE, *PLATEAU, *ranks, "training.max_steps=8")
            self.trainer("tiny.yaml", f"exp_dir={cut}", *VALIDATE, *PLATEAU, *ranks, "training.max_steps=20")
            self.assertEqual(self.losses(cut), self.losses(whole))
            self.assertEqual(self.rates(cut), self.rates(whole))


if __name__ == "__main__":
    runs.main()
