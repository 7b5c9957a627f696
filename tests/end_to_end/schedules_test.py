# SPDX-License-Identifier: Apache-2.0
"""Schedules and terms of the loss in runs of the real binary: across a resume, and what is said of them."""

from tests.end_to_end import runs

SHORT = ("task.sample.tokens=0", "validation.every_n_steps=null", "checkpoint.save_every_n_steps=null")
SCHEDULES = {
    "chain": ["lr_scheduler={name: chain, schedules: [{name: constant, warmup_steps: 3}, "
              "{name: cosine_with_restarts, cycle_steps: 4}, polynomial], milestones: [3, 9]}"],
    "multi_step": ["lr_scheduler={name: multi_step, milestones: [4, 8], gamma: 0.5}"],
    "one_cycle": ["lr_scheduler={name: one_cycle, decay_steps: 12}"],
    "plateau": ["lr_scheduler={name: warmup_stable_decay, cooldown_steps: 8, decay_steps: 12}"],
}


class SchedulesTest(runs.RunTest):

    def train(self, exp_dir, *options):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", *SHORT, *options)

    def rates(self, exp_dir):
        return [(row["step"], row["lr"]) for row in self.rows(exp_dir) if row["phase"] == "train"]

    def test_go_on_across_a_resume(self):
        for name, options in SCHEDULES.items():
            with self.subTest(name):
                self.train(f"{name}-whole", *options, "training.max_steps=12")
                self.train(name, *options, "training.max_steps=6")
                resumed = self.train(name, *options, "training.max_steps=12")
                # The chain's last schedule needs the run's length, and has not begun in step 7.
                self.assertNotIn("its schedule follows", resumed.stderr)
                self.assertEqual(self.rates(name), self.rates(f"{name}-whole"))
                self.assertEqual(len(self.rates(name)), 12)

    def test_count_epochs_on_request(self):
        by_epochs = ("training.step_lr_interval=epoch", "training.max_steps_per_epoch=2")
        for name, options in SCHEDULES.items():
            with self.subTest(name):
                self.train(f"{name}-steps", *options, "training.max_steps=12")
                self.train(f"{name}-epochs", *options, *by_epochs, "training.max_epochs=12",
                           "training.max_steps=null")
                # Both steps of epoch 5 have the rate of step 5.
                self.assertEqual(self.rates(f"{name}-epochs"),
                                 [(2 * step - second, lr) for step, lr in self.rates(f"{name}-steps")
                                  for second in (1, 0)])
        # In the middle of an epoch.
        self.train("resumed", *SCHEDULES["chain"], *by_epochs, "training.max_steps=7")
        self.train("resumed", *SCHEDULES["chain"], *by_epochs, "training.max_steps=24")
        self.assertEqual(self.rates("resumed"), self.rates("chain-epochs"))

    def test_a_chain_that_cannot_be_is_refused_by_its_place(self):
        self.write("chain.yaml",
                   "lr_scheduler:\n  name: chain\n  milestones: [2]\n  schedules: [constant, plateau]\n")
        error = self.trainer("tiny.yaml", "chain.yaml", code=2).stderr
        self.assertRegex(error, r"chain\.yaml:4:\d+: lr_scheduler: schedules: plateau goes by validations, not by steps")

    def test_what_is_said_counts_epochs_too(self):
        by_epochs = ("training.step_lr_interval=epoch", "training.max_steps_per_epoch=2",
                     "training.max_steps=null", "lr_scheduler.min_lr_ratio=0.1", "lr_scheduler.warmup_steps=2")
        self.train("moved", *by_epochs, "training.max_epochs=6")
        found = self.train("moved", *by_epochs, "training.max_epochs=9")
        self.assertIn("warning: the run has 9 epochs now, and had 6; its schedule follows: the "
                      "learning rate was 0.0001 in epoch 6 and is ", found.stderr)
        found = self.train("short", *by_epochs, "training.max_epochs=1", "lr_scheduler.warmup_steps=10")
        self.assertIn("warning: the run has 1 epoch, and the warm-up 10: the learning rate ends at 0.0001 "
                      "and never reaches optimizer.lr, 0.001; lower lr_scheduler.warmup_steps\n", found.stderr)

    def test_a_moved_horizon_is_said(self):
        config = ("lr_scheduler.min_lr_ratio=0.1", "lr_scheduler.warmup_steps=2")
        self.train("moved", *config, "training.max_steps=12")
        told = ("warning: the run has 18 steps now, and had 12; its schedule follows: the learning rate was 0.0001 in "
                "step 12 and is 0.0003 in step 13; lr_scheduler.decay_steps=12 keeps the earlier schedule\n")
        self.write("longer.yaml", "include: moved/config.yaml\ntraining: {max_steps: 18}\n")
        for second in (["longer.yaml"], ["moved", "training.max_steps=18"]):
            found = self.trainer("config", "diff", "moved", *second)
            self.assertEqual((found.stdout, found.stderr),
                             (f"# moved | {' with '.join(second)}\ntraining.max_steps: 12 | 18\n", told))
        kept = ("training.max_steps=18", "lr_scheduler.decay_steps=12")
        self.assertEqual(self.trainer("config", "diff", "moved", "moved", *kept).stderr, "")
        found = self.train("moved", *config, "training.max_steps=18")
        self.assertIn(told, found.stderr)
        # What the rate was does not follow from another schedule, or from another optimizer.lr.
        for other in (["lr_scheduler={name: linear}", "training.max_steps=20"],
                      ["lr_scheduler={name: linear}", "training.max_steps=22", "optimizer.lr=0.002"]):
            found = self.train("moved", *other)
            self.assertIn("training.max_steps: was ", found.stdout)
            self.assertNotIn("its schedule follows", found.stderr)
        self.train("kept", *config, "training.max_steps=12")
        found = self.train("kept", *config, "training.max_steps=18", "lr_scheduler.decay_steps=12")
        self.assertNotIn("its schedule follows", found.stderr)
        self.assertAlmostEqual(dict(self.rates("kept"))[13], 1e-4)

    def test_a_warm_up_that_is_longer_than_the_run_is_said(self):
        found = self.train("short", "training.max_steps=2", "lr_scheduler.warmup_steps=100")
        self.assertIn("warning: the run has 2 steps, and the warm-up 100: the learning rate ends "
                      "at 2e-05 and never reaches optimizer.lr, 0.001; lower "
                      "lr_scheduler.warmup_steps\n", found.stderr)
        found = self.train("fits", "training.max_steps=2", "lr_scheduler.warmup_steps=2")
        self.assertNotIn("warm-up", found.stderr)

    def test_a_run_that_skipped_every_step_has_not_finished(self):
        half = ("mixed_precision=fp16", "training.max_steps=3")
        found = self.train("skipped", *half, "mixed_precision.init_scale=1e38")
        self.assertIn("ended untrained at step 3", found.stdout)
        self.assertIn("all 3 steps, as the gradients of float16 overflowed", found.stdout)
        self.assertNotIn("finished", found.stdout)
        self.assertIn("finished at step 3", self.train("trained", *half).stdout)


class TermsTest(runs.RunTest):

    def test_are_parts_of_the_training_loss_alone(self):
        options = ("training.max_steps=2", "validation.every_n_steps=2", "task.sample.tokens=0")
        self.trainer("tiny.yaml", "exp_dir=plain", *options)
        self.trainer("tiny.yaml", "exp_dir=terms", *options, "task.loss.label_smoothing=0.1",
                     "task.loss.z_loss=1e-3", "optimizer.lr=0")
        self.trainer("tiny.yaml", "exp_dir=still", *options, "optimizer.lr=0")
        train, *_ = self.rows("terms")
        self.assertAlmostEqual(train["cross_entropy"], self.rows("plain")[0]["loss"], places=5)
        self.assertAlmostEqual(
            train["cross_entropy"] + train["label_smoothing"] + train["z_loss"], train["loss"])
        self.assertGreater(train["z_loss"], 0.01)  # log 256 squared, times 1e-3
        self.assertNotIn("z_loss", self.rows("plain")[0])
        of_terms, plain = (self.rows(run)[-1] for run in ("terms", "still"))
        self.assertEqual(of_terms["phase"], "validate")
        self.assertNotIn("z_loss", of_terms)
        self.assertEqual(of_terms["loss"], plain["loss"])

    def test_on_ranks_are_those_of_one(self):
        options = ("training.max_steps=4", "training.global_batch_size=16",
                   "training.gradient_accumulation_steps=null", "model.embd_pdrop=0",
                   "model.attn_pdrop=0", "model.resid_pdrop=0", "task.sample.tokens=0",
                   "task.loss.label_smoothing=0.1", "task.loss.z_loss=1e-2", "task.loss.chunk=10")
        self.trainer("tiny.yaml", "exp_dir=one", *options)
        for name, sharded in (("ddp", "false"), ("fsdp", "true")):
            with self.subTest(name):
                self.trainer("tiny.yaml", f"exp_dir={name}", *options, "launcher.processes=2",
                             f"parallel.use_fsdp={sharded}")
                for found, expected in zip(self.rows(name), self.rows("one"), strict=True):
                    if expected["phase"] != "train":
                        continue  # of other samples, as validation.max_batches is of each rank
                    for part in ("loss", "cross_entropy", "label_smoothing", "z_loss"):
                        self.assertAlmostEqual(found[part], expected[part], delta=2e-5)


if __name__ == "__main__":
    runs.main()
