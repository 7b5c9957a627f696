# SPDX-License-Identifier: Apache-2.0
"""A task that declares accuracy, F1 and AUC: in training and validation, on ranks, over a resume, for keep_best."""

import itertools
import json
import pathlib
import shutil

from tests.end_to_end import runs

FOLDER = pathlib.Path(__file__).parent
NAMES = ("accuracy", "f1", "auc")
# 12 samples a step and 64 an epoch: the last step of an epoch has 4, which some ranks lack.
FIELDS = ("task.validation_path=held_back.csv", "training.global_batch_size=12", "training.batch_size=2",
          "logging.every_n_steps=1", "validation.every_n_steps=4", "checkpoint.save_every_n_steps=5")
TASK = ("measured.yaml", *FIELDS)
WHOLE = "training.max_steps=20"
BEST = "checkpoint.keep_best={metric: accuracy, mode: max}"
WORLDS = ([], ["launcher.processes=2"], ["launcher.processes=2", "parallel=fsdp"], ["launcher.processes=3"])


def by_definition(labels, predictions):
    """The three metrics of rows with labels 0 and 1, by what `predict` says of them."""
    chosen = [row["class"] for row in predictions]
    scores = [row["probability"] if row["class"] == 1 else 1 - row["probability"] for row in predictions]
    right = sum(label and choice for label, choice in zip(labels, chosen))
    ones, zeros = ([score for score, label in zip(scores, labels) if label == kind] for kind in (1, 0))
    pairs = [(one > zero) + 0.5 * (one == zero) for one, zero in itertools.product(ones, zeros)]
    return {"accuracy": sum(a == b for a, b in zip(labels, chosen)) / len(labels),
            "f1": 2 * right / (sum(labels) + sum(chosen)), "auc": sum(pairs) / len(pairs)}


class MeasuredTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        for name in ("own_classification.yaml", "own_classification.csv"):
            shutil.copy(FOLDER / name, self.folder)
        config = (self.folder / "own_classification.yaml").read_text()
        self.write("measured.yaml", config.replace("name: own_classification\n", "name: measured\n"))
        heading, *rows = (self.folder / "own_classification.csv").read_text().splitlines()
        # Some labels are turned, so that no metric is 1; the number of rows divides by neither 2 nor 3.
        rows = [row[:-1] + str(1 - int(row[-1])) if number % 7 == 3 else row for number, row in enumerate(rows[:37])]
        self.labels = [int(row[-1]) for row in rows]
        self.write("held_back.csv", "\n".join([heading, *rows]) + "\n")

    def rows_of(self, exp_dir, phase):
        return [row for row in self.rows(exp_dir) if row["phase"] == phase]

    def test_they_are_those_of_the_predictions_on_any_ranks(self):
        self.once([*TASK, WHOLE, "exp_dir=run"])
        self.trainer("predict", "run", "held_back.csv", "--output=classes.jsonl")
        predictions = [json.loads(line) for line in (self.folder / "classes.jsonl").read_text().splitlines()]
        expected = by_definition(self.labels, predictions)
        last = self.rows_of("run", "validate")[-1]
        for world in WORLDS:
            with self.subTest(world):
                told = json.loads(self.trainer("evaluate", "run", "--json", *world).stdout)
                for name in NAMES:
                    self.assertAlmostEqual(told[name], expected[name], places=12, msg=name)
                    self.assertAlmostEqual(last[name], expected[name], places=12, msg=name)
        self.assertTrue(all(0 < value < 1 for value in expected.values()), expected)

    def test_those_of_steps_do_not_depend_on_the_ranks(self):
        steps = {}
        for number, world in enumerate(WORLDS):
            self.trainer(*TASK, f"exp_dir=world_{number}", *world, "training.max_steps=6")
            steps[number] = self.rows_of(f"world_{number}", "train")
            self.assertEqual([row["samples"] for row in steps[number]], [12, 24, 36, 48, 60, 64])
        for number, rows in steps.items():
            for row, alone in zip(rows, steps[0], strict=True):
                for name in NAMES:
                    self.assertAlmostEqual(row[name], alone[name], places=12, msg=f"{WORLDS[number]} {row['step']} {name}")
        self.assertEqual({round(row["accuracy"] * 12) / 12 for row in steps[0][:5]},
                         {row["accuracy"] for row in steps[0][:5]})

    def test_a_resume_goes_on_with_the_same(self):
        self.once([*TASK, WHOLE, "exp_dir=run"])
        for steps in (7, 20):
            self.trainer(*TASK, "exp_dir=resumed", f"training.max_steps={steps}", "validation.at_end=false")
        values = {}
        for run in ("run", "resumed"):
            values[run] = [[row["phase"], row["step"], *(row[name] for name in NAMES)] for row in self.rows(run)]
        self.assertEqual(values["resumed"], values["run"])

    def test_the_best_by_one_stays(self):
        told = self.trainer(*TASK, WHOLE, "exp_dir=best", BEST).stdout
        rows = self.rows_of("best", "validate")
        highest = max(row["accuracy"] for row in rows)
        step = max(row["step"] for row in rows if row["accuracy"] == highest)
        self.assertRegex(self.trainer("checkpoint", "list", "best").stdout, rf"step-{step:08} (\* )?best")
        train = self.rows_of("best", "train")[-1]
        self.assertIn(f"\n  metrics     train accuracy {train['accuracy']:.4g}, f1 {train['f1']:.4g}, ", told)
        self.assertIn(f"; validation accuracy {rows[-1]['accuracy']:.4g}, f1 {rows[-1]['f1']:.4g}, ", told)
        events = b"".join(path.read_bytes() for path in (self.folder / "best/logs").rglob("*tfevents*"))
        for name in NAMES:
            for phase in ("train", "validate"):
                self.assertIn(f"{phase}/{name}".encode(), events)

    def test_a_name_that_none_has_is_refused_before_the_launch(self):
        for task, names in (("measured", "loss, accuracy, f1, auc"), ("own_classification", "loss, accuracy")):
            refused = self.trainer(f"{task}.yaml", *FIELDS, WHOLE, "exp_dir=wrong",
                                   "checkpoint.keep_best={metric: acuracy, mode: max}", code=2)
            self.assertIn(f"checkpoint.keep_best.metric: {task} gives no 'acuracy'; it gives {names}: choose one of these",
                          " ".join(refused.stderr.split()))
            self.assertFalse((self.folder / "wrong").exists())


if __name__ == "__main__":
    runs.main()
