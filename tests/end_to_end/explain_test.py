# SPDX-License-Identifier: Apache-2.0
"""`config explain SECTION FILE` shows the class that the file names, also while the file is being written."""

from tests.end_to_end import runs


class ExplainTest(runs.RunTest):

    def explained(self, path, file, *overrides):
        process = self.trainer("config", "explain", path, file, *overrides)
        return process.stdout, process.stderr

    def refused(self, path, file):
        process = self.trainer("config", "explain", path, file, code=2)
        self.assertEqual(process.stdout, "")
        return process.stderr

    def test_of_a_whole_config(self):
        for section, named, has, lacks in (
                ("task", "language_modeling", "task.data.mixture", "task.data.pairs"),
                ("model", "gpt2", "model.n_embd", "model.d_model"),
                ("optimizer", "adamw", "optimizer.betas", "optimizer.momentum"),
                ("lr_scheduler", "cosine", "lr_scheduler.min_lr_ratio", "with lr_scheduler.name: linear")):
            told, errors = self.explained(section, "tiny.yaml", f"{section}.name={named}")
            self.assertEqual(errors, "")
            self.assertIn(f"with {section}.name: {named}\n", told)
            self.assertIn(has, told)
            self.assertNotIn(lacks, told)

    def test_of_a_config_that_is_not_whole(self):
        self.write("begun.yaml", "name: supervised\ntask: instruction_tuning\nmodel: {name: t5, d_model: 64}\n")
        told, errors = self.explained("task", "begun.yaml")
        self.assertIn("with task.name: instruction_tuning\n", told)
        self.assertNotIn("with task.name: language_modeling", told)
        self.assertIn("here instruction_tuning  # begun.yaml:2", told)
        self.assertIn("warning: this config is not whole", errors)
        told, _ = self.explained("model.d_model", "begun.yaml")
        self.assertIn("here 64  # begun.yaml:3", told)
        self.assertNotIn("with model.name: gpt2", told)

    def test_of_a_section_that_only_another_trainer_has(self):
        told = self.trainer("config", "explain", "anomaly").stdout
        self.assertIn("anomaly.detect", told)
        told = self.trainer("config", "explain", "nothing", code=2).stderr
        self.assertIn("there is no field 'nothing'; `trainer train --help` names them all", told)

    def test_of_a_runs_folder(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2", "optimizer.lr=0.25")
        self.assertRegex(self.explained("optimizer.lr", "run")[0], r"here 0\.25  #\s")

    def test_what_is_no_path_is_answered_with_what_may_be_meant(self):
        for arguments, told in (
            (["n_layer"], "there is no field 'n_layer'; did you mean 'model.n_layer'"),
            (["n_layers"], "there is no field 'n_layers'; did you mean 'model.n_layer'"),
            (["adamw"], "there is no field 'adamw'; 'adamw' is a value of 'optimizer.name', which explain takes;"),
            (["tiny.yaml", "optimizer.lr"],
             "'tiny.yaml' is a file, and the field comes first: trainer config explain PATH tiny.yaml"),
            (["optimizer.lr", "optimizer.betas"],
             "'optimizer.betas' is a field, and no config of this name is there: explain takes one field"),
        ):
            with self.subTest(arguments):
                told_here = self.trainer("config", "explain", *arguments, code=2).stderr
                self.assertIn(told, " ".join(told_here.split()))

    def test_of_what_stands_below_a_name_of_the_users(self):
        told = self.trainer("config", "explain", "optimizers.critic.lr").stdout
        self.assertIn("with optimizers.critic.name: adamw\noptimizers.critic.lr  (", told)
        self.write("two.yaml", "name: supervised\noptimizer: null\noptimizers: {critic: {name: sgd, lr: 0.25}}\n"
                               "validation: {sets: {wiki: [wiki.txt]}}\n")
        told, _ = self.explained("optimizers.critic.lr", "two.yaml")
        self.assertIn("here 0.25  # two.yaml:3", told)
        self.assertNotIn("adamw", told)
        told, _ = self.explained("validation.sets.wiki", "two.yaml")
        self.assertIn("validation.sets  (", told)
        self.assertIn("here [wiki.txt]  # two.yaml:4", told)

    def test_of_a_layer_that_names_no_trainer(self):
        self.write("layer.yaml", "model: gpt2-355m\n")
        told, _ = self.explained("model", "layer.yaml")
        self.assertIn("with model.name: gpt2\n", told)
        self.assertIn("here 1024  # preset gpt2-355m", told)

    def test_a_config_that_names_no_class_or_a_wrong_one(self):
        self.write("begun.yaml", "name: supervised\nmodel: nope\n")
        told = self.refused("task", "begun.yaml")
        self.assertIn("begun.yaml: task: a mandatory value is missing", told)
        self.assertIn("give task=NAME; there are: ", told)
        self.assertNotIn("optimizer", told)
        told = self.refused("model.n_layer", "begun.yaml")
        self.assertIn("begun.yaml:2:8: model.name: unknown model 'nope'", told)
        self.assertNotIn("task", told)

    def test_what_cannot_be_read_is_a_mistake_all_the_same(self):
        self.write("broken.yaml", "name: supervised\ntask: [\n")
        self.assertIn("broken.yaml:", self.refused("model", "broken.yaml"))
        self.write("other.yaml", "name: no_such\nmodel: gpt2\n")
        self.assertIn("unknown trainer 'no_such'", self.refused("model", "other.yaml"))


if __name__ == "__main__":
    runs.main()
