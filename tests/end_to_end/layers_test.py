# SPDX-License-Identifier: Apache-2.0
"""Configs in layers: files over files, includes, overrides, and a resume that is told to insist."""

from tests.end_to_end import runs


class LayersTest(runs.RunTest):

    def test_files_includes_and_overrides_make_one_run(self):
        self.write("more/short.yaml", "include: ../tiny.yaml\ntraining: {max_steps: 4}\n")
        self.write("wide.yaml", "model: {n_embd: 32}\noptimizer: {lr: 0.5}\n")
        self.trainer("more/short.yaml", "wide.yaml", "optimizer.lr=1e-3", "~validation")
        run = "runs/short+wide.optimizer.lr=1e-3._validation/run_0"
        config = (self.folder / run / "config.yaml").read_text()
        self.assertRegex(config, r"max_steps: 4 +# more/short.yaml:2")
        self.assertRegex(config, r"n_embd: 32 +# wide.yaml:1")
        self.assertRegex(config, r"lr: 0.001 +# command line")
        self.assertRegex(config, r"n_layer: 2 +# tiny.yaml:\d+")
        self.assertEqual(self.rows(run)[-1]["step"], 4)
        # What is kept makes the same run again.
        self.trainer(f"{run}/config.yaml", "exp_dir=again")
        self.assertEqual(self.losses("again"), self.losses(run))

    def test_mistakes_are_named_with_the_file_they_are_in(self):
        self.write("base.yaml", "include: [gone.yaml]\nmodel: {n_embed: 32}\n")
        before = self.files()
        errors = self.trainer("tiny.yaml", "base.yaml", "+training.max_steps=3", "a[0]=1",
                              code=2).stderr
        self.assertIn("base.yaml:1:11: include: there is no file 'gone.yaml'", errors)
        self.assertIn("'training.max_steps' is set already (tiny.yaml:", errors)
        self.assertIn("'a' is not written in the config", errors)
        self.assertEqual(self.files(), before)
        self.write("base.yaml", "include: tiny.yaml\nmodel: {n_embed: 32}\n")
        errors = self.trainer("base.yaml", code=2).stderr
        self.assertIn("base.yaml:2:9: model.n_embed: unknown key", errors)
        self.assertIn("did you mean 'n_embd'?", errors)

    def test_what_differs_between_files_and_runs_is_told(self):
        self.write("other.yaml", "include: tiny.yaml\noptimizer: {lr: 0.5}\nmodel: {n_head: 1}\n")
        found = self.trainer("config", "diff", "tiny.yaml", "other.yaml").stdout
        self.assertEqual(found, "# tiny.yaml | other.yaml\nmodel.n_head: 2 | 1\noptimizer.lr: 0.001 | 0.5\n")
        self.write("mixture.yaml", "include: tiny.yaml\ntask: {data: {path: null, mixture: ["
                   "{source: {name: bytes, files: [a.txt]}}, {source: {name: bytes, files: [b.txt]}}]}}\n")
        self.assertEqual(self.trainer("config", "diff", "mixture.yaml", "mixture.yaml",
                                      "task.data.mixture[1].source.files=[c.txt]").stdout,
                         "# mixture.yaml | mixture.yaml with task.data.mixture[1].source.files=[c.txt]\n"
                         "task.data.mixture[1].source.files: [b.txt] | [c.txt]\n")
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2")
        found = self.trainer("config", "diff", "run", "tiny.yaml").stdout
        self.assertIn("training.max_steps: 2 | 40\n", found)
        self.assertEqual(self.trainer("config", "diff", "run", "run").stdout,
                         "# run | run\n# no field differs\n")
        for part in ("checkpoints", "checkpoints/latest", "checkpoints/step-00000002"):
            self.assertEqual(self.trainer("config", "diff", f"run/{part}", "tiny.yaml").stdout,
                             found.replace("# run |", f"# run/{part} |"))
        self.trainer("config", "diff", "run", code=2)
        self.assertIn("unknown action 'dif'; did you mean 'diff'? There are: diff",
                      self.trainer("config", "dif", code=2).stderr)

    def test_two_pluses_insist_on_what_a_resume_may_not_change(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=10")
        errors = self.trainer("tiny.yaml", "exp_dir=run", "training.clip_grad_norm=2",
                              code=2).stderr
        self.assertIn("training.clip_grad_norm: was 1.0, now 2.0", errors)
        self.assertIn("++key=value", errors)
        process = self.trainer("tiny.yaml", "exp_dir=run", "++training.clip_grad_norm=2")
        self.assertIn("training.clip_grad_norm: was 1.0, now 2.0 (command line)", process.stdout)
        self.assertEqual(self.rows("run")[-1]["step"], 40)


if __name__ == "__main__":
    runs.main()
