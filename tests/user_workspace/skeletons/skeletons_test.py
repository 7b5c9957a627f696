# SPDX-License-Identifier: Apache-2.0
"""The configs that `trainer new` writes train the classes that it writes."""

import pathlib
import shutil

from tests.end_to_end import runs

FOLDER = pathlib.Path(__file__).parent


class SkeletonsTest(runs.RunTest):

    def first_and_last_loss(self, kind, *options):
        for path in FOLDER.glob(f"own_{kind}.[cy]*[lv]"):
            shutil.copy(path, self.folder)
        run = self.trainer(f"own_{kind}.yaml", f"exp_dir=runs/{kind}", *options)
        losses = [row["loss"] for row in self.rows(f"runs/{kind}") if row["phase"] == "train"]
        return losses[0], losses[-1], run

    def test_they_learn(self):
        for kind in ("task", "classification", "regression", "model", "optimizer", "lr_scheduler", "sink",
                     "mixin"):
            with self.subTest(kind):
                first, last, _ = self.first_and_last_loss(kind, "training.max_steps=100")
                self.assertLess(last, 0.9 * first)

    def test_the_schedule_sets_the_learning_rate(self):
        self.first_and_last_loss("lr_scheduler", "training.max_steps=80", "logging.every_n_steps=1")
        rates = [row["lr"] for row in self.rows("runs/lr_scheduler") if row["phase"] == "train"]
        self.assertAlmostEqual(rates[9] / rates[19], 0.5)
        self.assertAlmostEqual(rates[79] / rates[19], 0.5)

    def test_the_optimizer_goes_on_where_it_was(self):
        # Its state is in the checkpoint: the losses are those of a run that was not interrupted.
        options = ["logging.every_n_steps=1", "parallel=fsdp", "launcher.processes=2"]
        _, whole, _ = self.first_and_last_loss("optimizer", "training.max_steps=20", *options)
        (self.folder / "runs/optimizer").rename(self.folder / "runs/whole")
        self.first_and_last_loss("optimizer", "training.max_steps=10", *options)
        _, resumed, _ = self.first_and_last_loss("optimizer", "training.max_steps=20", *options)
        self.assertEqual(resumed, whole)

    def test_the_sink_has_a_line_a_record(self):
        self.first_and_last_loss("sink", "training.max_steps=40")
        lines = (self.folder / "runs/sink/logs/own_sink.csv").read_text().splitlines()
        self.assertEqual(lines[0], "step,phase,loss")
        self.assertEqual([line.rsplit(",", 1)[0] for line in lines[1:]], ["1,train", "20,train", "40,train", "40,validate"])

    def test_a_table_can_be_evaluated_and_is_refused_by_its_line(self):
        for kind in ("classification", "regression"):
            with self.subTest(kind):
                self.first_and_last_loss(kind, "training.max_steps=2")
                (self.folder / "other.csv").write_text("x,y,label\n0.5,0.5,1\n-0.5,0.5,0\n")
                self.assertIn("loss", self.trainer("evaluate", f"runs/{kind}", "other.csv").stdout)
                (self.folder / f"own_{kind}.csv").write_text("x,y,label\n0.5,0.5,1\n0.5,0.5,\n")
                refused = self.trainer(f"own_{kind}.yaml", code=2)
                self.assertIn(f"own_{kind}.csv', line 3: the column 'label' is empty", refused.stderr)

    def test_the_mixin_warns(self):
        _, _, run = self.first_and_last_loss("mixin", "training.max_steps=2",
                                             "own_mixin.seconds=1.0e-9")
        self.assertIn("warning: step 1 took", run.stderr)

    def test_the_model_is_sharded_by_its_blocks(self):
        _, _, run = self.first_and_last_loss("model", "training.max_steps=2",
                                             "launcher.processes=2", "parallel.use_fsdp=true")
        self.assertIn("block_0 and 1 more", run.stdout)


if __name__ == "__main__":
    runs.main()
