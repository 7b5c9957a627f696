# SPDX-License-Identifier: Apache-2.0
"""The real binary trains, writes what docs/runs.md says, evaluates and goes on."""

import shutil
import signal

from tests.end_to_end import runs


class TrainTest(runs.RunTest):

    def train_whole(self):
        """Trains into `whole`, once for all tests."""
        self.once(("tiny.yaml", "exp_dir=whole"))

    def test_a_micro_batch_above_the_data_is_said(self):
        told = self.trainer("tiny.yaml", "exp_dir=large", "training.batch_size=100000", "training.max_steps=1")
        self.assertRegex(told.stderr, r"warning: training\.batch_size is 100000, and the training data has \d+ "
                                      "samples: an epoch is one step of one micro-batch with these alone; ")

    def test_a_run_leaves_what_the_readme_says(self):
        output = self.trainer("tiny.yaml").stdout
        run = self.folder / "runs/tiny/run_0"
        self.assertIn("gpt2", output)
        self.assertIn("next: ", output)
        self.assertTrue((run / "config.yaml").is_file())
        self.assertEqual(len(list((run / "logs").glob("events.out.tfevents.*"))), 1)
        self.assertEqual((run / "checkpoints/latest").read_text(), "step-00000040\n")
        self.assertEqual(sorted(p.name for p in (run / "checkpoints").iterdir()),
                         ["latest", "step-00000030", "step-00000035", "step-00000040"])
        train = [row for row in self.rows(run) if row["phase"] == "train"]
        self.assertEqual([row["step"] for row in train], list(range(1, 41)))
        for name in ("loss", "lr", "grad_norm", "tokens_per_second", "step_seconds",
                     "data_seconds", "epoch", "samples"):
            self.assertIn(name, train[0])
        self.assertEqual(train[9]["samples"], 80)
        self.assertLess(train[-1]["loss"], train[0]["loss"] - 0.2)
        self.assertEqual([row["step"] for row in self.rows(run) if row["phase"] == "validate"],
                         [10, 20, 30, 40])

    def test_two_runs_are_bitwise_equal_and_numbered(self):
        self.trainer("tiny.yaml")
        self.trainer("tiny.yaml")
        self.assertEqual(self.losses("runs/tiny/run_0"), self.losses("runs/tiny/run_1"))

    def test_overrides_name_the_run_and_the_resolved_config_tells_where_values_come_from(self):
        self.trainer("tiny.yaml", "training.max_steps=2", "model.n_layer=1")
        config = (self.folder / "runs/tiny.model.n_layer=1.training.max_steps=2/run_0/config.yaml")
        text = config.read_text()
        self.assertRegex(text, r"max_steps: 2 +# command line")
        self.assertRegex(text, r"n_embd: 16 +# tiny.yaml:\d+")
        again = self.trainer("config", "print", str(config)).stdout
        self.assertIn("max_steps: 2", again)

    def test_workers_do_not_change_the_losses(self):
        self.train_whole()  # by two
        self.trainer("tiny.yaml", "exp_dir=none", "task.data.loader.num_workers=0")
        self.assertEqual(self.losses("whole"), self.losses("none"))

    def test_validation_does_not_touch_training(self):
        self.train_whole()
        self.trainer("tiny.yaml", "exp_dir=without", "validation.every_n_steps=null",
                     "validation.at_end=false")
        train = [row for row in self.losses("whole") if row[0] == "train"]
        self.assertEqual(train, self.losses("without"))

    def test_an_unfinished_run_is_offered_and_continued(self):
        self.train_whole()
        self.trainer("tiny.yaml", "training.max_steps=12", "exp_dir=runs/tiny/run_0",
                     "lr_scheduler.decay_steps=40")
        config = self.folder / "runs/tiny/run_0/config.yaml"
        config.write_text(config.read_text().replace("max_steps: 12", "max_steps: 40"))
        offer = self.trainer("tiny.yaml", "lr_scheduler.decay_steps=40", "exp_name=tiny").stdout
        self.assertIn("exp_dir=runs/tiny/run_0 continues it", offer)
        resumed = self.trainer("tiny.yaml", "exp_dir=runs/tiny/run_0",
                               "lr_scheduler.decay_steps=40").stdout
        self.assertIn("after step 12", resumed)
        train = [row for row in self.losses("whole") if row[0] == "train"]
        self.assertEqual([row for row in self.losses("runs/tiny/run_0") if row[0] == "train"], train)

    def test_the_config_that_is_kept_with_a_run_continues_it(self):
        self.train_whole()
        process = self.start("tiny.yaml", "exp_dir=run")
        for line in process.stdout:
            if line.startswith("saves"):
                break
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, errors)
        self.assertIn(f"next: {runs.TRAINER} run/config.yaml exp_dir=run\n", output)
        self.trainer("run/config.yaml", "exp_dir=run")
        self.assertEqual(self.losses("run"), self.losses("whole"))

    def test_a_reader_of_the_screen_that_goes_away_does_not_end_the_run(self):
        process = self.start("tiny.yaml", "exp_dir=run")
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(process.wait(runs.TIMEOUT_SECONDS), 0)
        self.assertEqual(self.rows("run")[-1]["step"], 40)

    def test_a_finished_run_stays_as_it_is(self):
        self.train_whole()
        before = self.losses("whole")
        self.trainer("tiny.yaml", "exp_dir=whole")
        self.assertEqual(self.losses("whole"), before)

    def test_what_may_not_change_under_a_run_is_refused(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=3")
        error = self.trainer("tiny.yaml", "exp_dir=run", "model.n_embd=32", code=2).stderr
        self.assertIn("model.n_embd: was 16, now 32", error)
        changed = self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=4").stdout
        self.assertIn("training.max_steps: was 3, now 4", changed)
        self.assertNotIn("exp_name", changed)  # the run keeps its name
        self.write("text.txt", runs.TEXT + "another line\n")
        error = self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=5", code=2).stderr
        self.assertIn("training data", error)

    def test_evaluate_agrees_with_the_run_and_writes_nothing(self):
        self.trainer("tiny.yaml", "exp_dir=run", "validation.max_batches=null")
        before = self.files()
        loss = [row["loss"] for row in self.rows("run") if row["phase"] == "validate"][-1]
        for folder in ("run", "run/checkpoints/step-00000040"):
            self.assertIn(str(loss), self.trainer("evaluate", folder).stdout)
        self.assertEqual(self.files(), before)
        shutil.copytree(self.folder / "run", self.folder / "moved")
        self.assertIn(str(loss), self.trainer("evaluate", "moved").stdout)

    def test_double_precision_is_double_on_disk(self):
        self.trainer("tiny.yaml", "exp_dir=run", "use_double_weight_precision=true")
        header = (self.folder / "run/checkpoints/step-00000040/model.safetensors").read_bytes()[:4096]
        self.assertIn(b'"F64"', header)
        self.assertNotIn(b'"F32"', header)

    def test_limits_by_epochs_samples_and_seconds(self):
        for index, limit in enumerate(("max_epochs=1", "max_samples=100", "max_seconds=1e-3")):
            self.trainer("tiny.yaml", "training.max_steps=null", f"training.{limit}",
                         "lr_scheduler.decay_steps=100", f"exp_dir=run_{index}")
        last = [self.rows(f"run_{index}")[-1] for index in range(3)]
        self.assertEqual(last[1]["samples"], 104)  # 13 steps of 8
        self.assertEqual(last[2]["step"], 1)
        per_epoch = (len(runs.TEXT) * 9 // 10 - 1) // 16
        self.assertLessEqual(abs(last[0]["samples"] - per_epoch), 1)

    def test_list_and_help_read_the_registries(self):
        listing = self.trainer("list").stdout
        for name in ("supervised", "language_modeling", "gpt2", "adamw", "cosine", "jsonl"):
            self.assertRegex(listing, rf"(?m)^  {name}\b")
        title, *names = self.trainer("list", "optimizers").stdout.split()
        self.assertEqual(title, "optimizers:")
        self.assertEqual(names, sorted(names))
        self.assertLessEqual({"adam", "adamw", "sgd"}, set(names))
        text = self.trainer("train", "--help").stdout
        for field in ("training.clip_grad_norm", "checkpoint.keep_last", "n_layer", "betas",
                      "sequence_length"):
            self.assertIn(field, text)
        self.assertIn("usage:", self.trainer("--help").stdout)
        self.assertIn("2.11.0", self.trainer("--version").stdout)


if __name__ == "__main__":
    runs.main()
