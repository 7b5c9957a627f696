# SPDX-License-Identifier: Apache-2.0
"""The mixin AnomalyMixin, in the composition that comes with it."""

from tests.end_to_end import runs


class AnomalyTest(runs.RunTest):

    DIVERGES = ("name=supervised_debug", "optimizer.lr=1e28", "exp_dir=run",
                "training.stop_on_nonfinite_loss=false", "task.sample.tokens=0")
    # Anomaly mode takes seconds a step: it notes the stack of every operation.
    FEW = ("training.max_steps=3", "validation.max_batches=1")

    def test_the_backward_that_returns_nan_is_named_with_its_step(self):
        error = self.trainer("tiny.yaml", *self.DIVERGES, code=1).stderr
        self.assertRegex(error, r"error: step \d+: ")
        self.assertRegex(error, r"Function '\w+' returned nan values")

    def test_detect_false_lets_the_run_go_on(self):
        self.trainer("tiny.yaml", *self.DIVERGES, "anomaly.detect=false", *self.FEW)

    def test_the_losses_are_those_of_the_plain_composition(self):
        self.trainer("tiny.yaml", "exp_dir=plain", *self.FEW)
        self.trainer("tiny.yaml", "exp_dir=debug", "name=supervised_debug",
                     *self.FEW)
        self.assertEqual(self.losses("plain"), self.losses("debug"))

    def test_a_run_keeps_its_trainer_unless_that_is_insisted_on(self):
        self.trainer("tiny.yaml", "exp_dir=run", *self.FEW)
        error = self.trainer("tiny.yaml", "exp_dir=run", "name=supervised_debug", *self.FEW, code=2).stderr
        self.assertIn("run holds a run of the trainer supervised, and name is supervised_debug (command line)", error)
        self.assertIn("\nOr begin a new run of supervised_debug with its weights, in another exp_dir, with "
                      "checkpoint.load_from=run\n", error)
        self.assertIn("++name=supervised_debug", error)
        self.trainer("tiny.yaml", "exp_dir=other", "name=supervised_debug", "checkpoint.load_from=run", *self.FEW)
        self.trainer("tiny.yaml", "exp_dir=run", "++name=supervised_debug", "training.max_steps=4")
        error = self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=5", code=2).stderr
        self.assertIn("so write name=supervised_debug", error)
        self.assertNotIn("insist", error)


if __name__ == "__main__":
    runs.main()
