# SPDX-License-Identifier: Apache-2.0
"""Comm hooks of DDP that have a state: checkpoints keep it, and a resumed run goes on from it."""

import json

from tests.end_to_end import runs

TWO = ("tiny.yaml", "launcher.processes=2")
POWER_SGD = "parallel.ddp.comm_hook={name: powerSGD, start_powerSGD_iter: 4, matrix_approximation_rank: 2}"
BATCHED = "parallel.ddp.comm_hook={name: batched_powerSGD, start_powerSGD_iter: 4}"
LOCAL = "parallel.ddp.comm_hook={name: post_localSGD, start_localSGD_iter: 3, period: 4, subgroup_size: %d}"
TWELVE = ("training.max_steps=12", "lr_scheduler.decay_steps=40")
SEVEN = ("training.max_steps=7", "lr_scheduler.decay_steps=40")


class CommHooksTest(runs.RunTest):

    def parts(self, exp_dir, step):
        manifest = self.folder / exp_dir / f"checkpoints/step-{step:08d}/manifest.json"
        return {tensor["part"] for tensor in json.loads(manifest.read_text())["tensors"]}

    def train_losses(self, exp_dir):
        return [loss for phase, _, loss in self.losses(exp_dir) if phase == "train"]

    def test_power_sgd_goes_on_from_its_state(self):
        self.trainer(*TWO, *TWELVE, "exp_dir=plain")
        for name, hook in (("powersgd", POWER_SGD), ("batched_powersgd", BATCHED)):
            with self.subTest(name):
                told = self.trainer(*TWO, *TWELVE, hook, f"exp_dir={name}").stdout
                self.assertRegex(told, r"PowerSGD, iteration 4: \d+ elements of gradients compressed to \d+, rate")
                self.trainer(*TWO, *SEVEN, hook, f"exp_dir={name}_parts")
                self.trainer(*TWO, *TWELVE, hook, f"exp_dir={name}_parts")
                self.assertEqual(self.train_losses(f"{name}_parts"), self.train_losses(name))
                self.assertEqual(self.train_losses(name)[:5], self.train_losses("plain")[:5])
                self.assertNotEqual(self.train_losses(name)[6:], self.train_losses("plain")[6:])
                self.assertLessEqual({name, f"{name}_errors_of_2_ranks"}, self.parts(name, 12))
                self.trainer("checkpoint", "verify", name)

    def test_other_ranks_begin_the_errors_anew(self):
        more = ("training.batch_size=2", "training.gradient_accumulation_steps=null", POWER_SGD, "exp_dir=run",
                "lr_scheduler.decay_steps=40")
        self.trainer("tiny.yaml", *more, "launcher.processes=4", "training.max_steps=6")
        told = self.trainer("tiny.yaml", *more, "launcher.processes=2", "training.max_steps=8").stdout
        self.assertIn("note: step-00000006 holds no state of powersgd_errors_of_2_ranks: the run begins it anew at "
                      "step 6", told)
        self.assertNotIn("no state of powersgd,", told)
        self.assertIn("powersgd_errors_of_2_ranks", self.parts("run", 8))
        self.assertNotIn("powersgd_errors_of_4_ranks", self.parts("run", 8))

    def test_post_local_sgd_goes_on_between_two_averagings(self):
        # Averaged after updates 4, 8 and 12: step 7 and 10 have two models.
        self.trainer(*TWO, *TWELVE, "exp_dir=plain")
        self.trainer(*TWO, *TWELVE, LOCAL % 1, "exp_dir=whole")
        for limit in (SEVEN, ("training.max_steps=10", SEVEN[1]), TWELVE):
            self.trainer(*TWO, *limit, LOCAL % 1, "exp_dir=parts")
        self.assertEqual(self.train_losses("parts"), self.train_losses("whole"))
        self.assertEqual(self.train_losses("whole")[:4], self.train_losses("plain")[:4])
        self.assertNotEqual(self.train_losses("whole")[4:], self.train_losses("plain")[4:])
        self.assertLessEqual({"local_sgd_of_2_groups"}, self.parts("parts", 7))
        self.trainer("checkpoint", "verify", "parts")

    def test_other_groups_begin_with_rank_zeros_model(self):
        more = ("tiny.yaml", "training.batch_size=2", "training.gradient_accumulation_steps=null", "exp_dir=run",
                "lr_scheduler.decay_steps=40")
        self.trainer(*more, LOCAL % 1, "launcher.processes=4", "training.max_steps=6")
        told = self.trainer(*more, LOCAL % 1, "launcher.processes=2", "training.max_steps=8").stdout
        self.assertIn("note: step-00000006 holds no state of local_sgd_of_2_groups: the run begins it anew at step 6",
                      told)
        self.assertNotIn("no state of post_localsgd", told)

    def test_groups_fit_the_ranks(self):
        before = self.files()
        error = self.trainer("tiny.yaml", "launcher.processes=3", LOCAL % 2, code=2).stderr
        self.assertIn("subgroup_size is 2, which does not divide the 3 ranks", error)
        self.assertEqual(self.files(), before)
        error = self.trainer("tiny.yaml", "launcher.processes=2", "parallel.ddp.comm_hook={name: post_localSGD}",
                             code=2).stderr
        self.assertIn("start_localSGD_iter", error)
        self.assertIn("period", error)
        told = self.trainer("tiny.yaml", "launcher.processes=2", "training.max_steps=2", "exp_dir=one",
                            "lr_scheduler.decay_steps=40",
                            "parallel.ddp.comm_hook={name: post_localSGD, start_localSGD_iter: 1, period: 1}").stdout
        self.assertIn("note: post_localSGD has all ranks in one group", told)

    def test_fields_are_refused_before_the_launch(self):
        for hook, message in (
                ("{name: powerSGD, start_powerSGD_iter: 1}", "start_powerSGD_iter must be above 1"),
                ("{name: powerSGD, matrix_approximation_rank: 0}", "matrix_approximation_rank"),
                ("{name: powerSGD_hook}", "powerSGD")):
            self.write("bad.yaml", self.config + f"parallel:\n  ddp:\n    comm_hook: {hook}\n")
            before = self.files()
            line = (self.config + "parallel:\n  ddp:\n    comm_hook").count("\n") + 1
            error = self.trainer("bad.yaml", "launcher.processes=2", code=2).stderr
            self.assertIn(f"bad.yaml:{line}", error)
            self.assertIn(message, error)
            self.assertEqual(self.files(), before)


if __name__ == "__main__":
    runs.main()
