# SPDX-License-Identifier: Apache-2.0
"""The configs that `trainer new` writes train the classes that it writes."""

import json
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
        for kind in ("task", "classification", "regression", "stepped_regression", "model", "optimizer", "lr_scheduler", "sink",
                     "mixin"):
            with self.subTest(kind):
                first, last, _ = self.first_and_last_loss(kind, "training.max_steps=100")
                self.assertLess(last, 0.9 * first)

    def test_a_step_of_its_own_is_the_usual_one_written_out(self):
        usual = self.first_and_last_loss("task", "training.max_steps=60")[:2]
        self.assertEqual(self.first_and_last_loss("step", "training.max_steps=60")[:2], usual)
        for row in self.rows("runs/step"):
            if row["phase"] == "train":
                self.assertAlmostEqual(row["batch_loss"], row["loss"], places=6)

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
                table = self.folder / f"own_{kind}.csv"
                whole = self.evaluated(kind, table.name)
                rows = [line.split(",") for line in table.read_text().splitlines()]
                self.write("turned.csv", "".join(f"{label},{y},{x}\n" for x, y, label in rows))
                table.unlink()  # The run's config names the columns.
                self.assertEqual(self.evaluated(kind, "turned.csv"), whole)
                self.write("renamed.csv", "x,z,label\n0.5,0.5,1\n")
                refused = self.trainer("evaluate", f"runs/{kind}", "renamed.csv", code=2)
                self.assertIn("'renamed.csv' must have the columns x, y, label, in any order; it has x, z, label",
                              refused.stderr)
                refused = self.trainer("evaluate", f"runs/{kind}", "turned.csv", "task.features=null", code=2)
                self.assertIn("does not exist; to use a model without it, name its columns", refused.stderr)
                refused = self.trainer(f"own_{kind}.yaml", "task.path=renamed.csv", "task.features=null",
                                       "task.label=wrong", "exp_dir=runs/wrong", code=2)
                self.assertIn("task.label: 'renamed.csv' has no column 'wrong'", refused.stderr)
                self.write("large.csv", "x,y,label\n0.5,0.5,1\n1e39,0.5,0\n")
                (self.folder / f"own_{kind}.csv").write_text("x,y,label\n0.5,0.5,1\n0.5,0.5,\n")
                refused = self.trainer(f"own_{kind}.yaml", code=2)
                self.assertIn(f"own_{kind}.csv', line 3: the column 'label' is empty", refused.stderr)
                shutil.copy(self.folder / "large.csv", table)
                refused = self.trainer(f"own_{kind}.yaml", f"exp_dir=runs/large_{kind}", code=2)
                self.assertIn(f"own_{kind}.csv', line 3: features[0] is inf", refused.stderr)

    def evaluated(self, kind, table):
        return self.trainer("evaluate", f"runs/{kind}", table).stdout.splitlines()[2]

    def test_a_class_that_the_model_does_not_know_is_refused_by_its_line(self):
        self.first_and_last_loss("classification", "training.max_steps=2")
        self.write("bad.csv", "x,y,label\n0.5,0.5,1\n0.5,0.5,7\n")
        refused = self.trainer("evaluate", "runs/classification", "own_classification.csv", "bad.csv", code=2)
        self.assertIn("'bad.csv', line 3: the label is 7, but the model knows the classes 0 to 1", refused.stderr)

    def test_predictions_of_a_table_need_no_labels(self):
        self.write("rows.csv", "y,x\n-0.9,0.9\n0.9,0.9\n")
        for kind, names in (("classification", ["index", "class", "probability"]), ("regression", ["index", "value"])):
            with self.subTest(kind):
                self.first_and_last_loss(kind)
                self.trainer("predict", f"runs/{kind}", "rows.csv", f"--output={kind}.jsonl")
                rows = [json.loads(line) for line in (self.folder / f"{kind}.jsonl").read_text().splitlines()]
                self.assertEqual([list(row) for row in rows], [names, names])
                if kind == "classification":
                    self.assertEqual([row["class"] for row in rows], [0, 1])
                else:
                    self.assertLess(rows[0]["value"], rows[1]["value"])

    def test_a_table_trains_in_double_precision(self):
        for kind in ("classification", "regression"):
            with self.subTest(kind):
                self.first_and_last_loss(kind, "training.max_steps=2", "use_double_weight_precision=true")

    def test_the_mixin_stands_beside_all_of_supervised(self):
        sections = {}
        for trainer in ("own_mixin", "supervised"):
            listed = self.trainer("list", "trainers", trainer).stdout.splitlines()[1]
            sections[trainer] = listed.split("sections ")[1].split(", ")
        self.assertEqual([name for name in sections["own_mixin"] if name != "own_mixin"], sections["supervised"])

    def test_the_mixin_warns(self):
        _, _, run = self.first_and_last_loss("mixin", "training.max_steps=2",
                                             "own_mixin.seconds=1.0e-9")
        self.assertIn("warning: step 1 took", run.stderr)
        refused = self.trainer("predict", "runs/mixin", "own_mixin.yaml", "--output=rows.jsonl", code=2)
        self.assertIn("the task 'copying' makes no predictions (a task that does overrides prediction_data and predict",
                      refused.stderr)

    def test_the_model_is_sharded_by_its_blocks(self):
        _, _, run = self.first_and_last_loss("model", "training.max_steps=2",
                                             "launcher.processes=2", "parallel.use_fsdp=true")
        self.assertIn("block_0 and 1 more", run.stdout)


if __name__ == "__main__":
    runs.main()
