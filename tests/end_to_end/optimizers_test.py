# SPDX-License-Identifier: Apache-2.0
"""Several optimizers in a config: runs of the real binary."""

import json
import shutil

from tests.end_to_end import runs

NO_DROPOUT = ["model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0"]
STEPS = ["training.max_steps=8", *NO_DROPOUT]
SHARDED = ["launcher.processes=2", "training.batch_size=2", "parallel.use_fsdp=true",
           "parallel.sharding_strategy=FULL_SHARD"]
TWO_RANKS = ["launcher.processes=2", "training.batch_size=2"]
ALIKE = ["optimizer=null", "training.clip_grad_norm=null",
         "optimizers={blocks: {name: adamw, lr: 1.0e-3, parameters: ['h.*']}, rest: {name: adamw, lr: 1.0e-3}}"]
UNLIKE = ["optimizer=null",
          "optimizers={blocks: {name: sgd, lr: 0.1, momentum: 0.9, parameters: ['h.*'], clip_grad_norm: 0.5, "
          "lr_scheduler: {name: linear, warmup_steps: 2}}, rest: {name: adamw, lr: 2.0e-3, freeze: [wpe.*]}}"]


class OptimizersTest(runs.RunTest):

    def train(self, exp_dir, *arguments, **options):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", *STEPS, *arguments, **options)

    def checkpoint(self, exp_dir, step):
        folder = self.folder / exp_dir / f"checkpoints/step-{step:08d}"
        return json.loads((folder / "manifest.json").read_text())

    def names(self, exp_dir, step):
        return {(tensor["part"], tensor["name"]) for tensor in self.checkpoint(exp_dir, step)["tensors"]}

    def test_two_alike_are_one(self):
        self.train("one", "training.clip_grad_norm=null")
        self.train("two", *ALIKE)
        self.assertEqual(self.losses("two"), self.losses("one"))
        self.assertEqual(self.names("two", 8), self.names("one", 8))

    def test_each_has_its_schedule_and_clipping(self):
        told = self.train("run", *UNLIKE).stdout
        for line in ("blocks: sgd, lr_scheduler linear", "rest: adamw", "frozen: 1 tensor, 256 parameters"):
            self.assertIn(line, told)
        rows = [row for row in self.rows("run") if row["phase"] == "train"]
        self.assertAlmostEqual(rows[0]["lr/blocks"], 0.05)
        self.assertAlmostEqual(rows[0]["lr/rest"], 2e-3 / 5)
        for row in rows:
            self.assertNotIn("lr", row)
            self.assertNotIn("grad_norm", row)
            self.assertGreater(row["grad_norm/blocks"], 0)
        self.assertLess(rows[-1]["loss"], rows[0]["loss"])

    def test_runs_on_ranks_and_goes_on(self):
        self.train("one", *UNLIKE)
        self.train("ddp", *UNLIKE, *TWO_RANKS)
        self.train("fsdp", *UNLIKE, *SHARDED)
        for run in ("ddp", "fsdp"):
            for mine, theirs in zip(self.losses("one"), self.losses(run), strict=True):
                self.assertAlmostEqual(mine[2], theirs[2], delta=1e-4)
        self.train("cut", *UNLIKE, *SHARDED, "training.max_steps=5", "optimizers.blocks.lr_scheduler.decay_steps=8",
                   "lr_scheduler.decay_steps=8")
        shutil.copytree(self.folder / "cut", self.folder / "moved")
        self.train("whole", *UNLIKE, *SHARDED, "optimizers.blocks.lr_scheduler.decay_steps=8",
                   "lr_scheduler.decay_steps=8")
        self.train("cut", *UNLIKE, *SHARDED, "optimizers.blocks.lr_scheduler.decay_steps=8",
                   "lr_scheduler.decay_steps=8")
        found = [row for row in self.losses("cut") if row[:2] != ("validate", 5)]
        self.assertEqual(found, self.losses("whole"))
        self.train("moved", *UNLIKE, "optimizers.blocks.lr_scheduler.decay_steps=8", "lr_scheduler.decay_steps=8")
        self.assertAlmostEqual(self.losses("moved")[-1][2], self.losses("whole")[-1][2], delta=1e-4)

    def test_a_long_warm_up_is_said_of_each(self):
        told = self.train("run", *UNLIKE, "lr_scheduler.warmup_steps=20",
                          "optimizers.blocks.lr_scheduler.warmup_steps=30").stderr
        for name in ("blocks", "rest"):
            self.assertIn(f"never reaches optimizers.{name}.lr", told)

    def test_a_moved_horizon_is_said_of_each(self):
        self.train("moved", *UNLIKE)
        told = self.train("moved", *UNLIKE, "training.max_steps=12").stderr
        for name, field in (("blocks", "optimizers.blocks.lr_scheduler"), ("rest", "lr_scheduler")):
            self.assertRegex(told, rf"warning: the run has 12 steps now, and had 8; .* the learning rate of "
                                   rf"optimizers\.{name} was .*; {field}\.decay_steps=8 keeps the earlier schedule\n")

    def test_a_resume_may_take_another_schedule(self):
        self.train("run", *UNLIKE, "training.max_steps=4")
        found = self.train("run", *UNLIKE, "lr_scheduler={name: plateau, patience: 3}",
                           "optimizers.blocks.lr_scheduler=constant")
        self.assertIn("changed since the last start: lr_scheduler.name: was cosine, now plateau (command line)\n",
                      found.stdout)
        self.assertIn("changed since the last start: optimizers.blocks.lr_scheduler.name: was linear, now constant",
                      found.stdout)
        rows = [row for row in self.rows("run") if row["phase"] == "train"]
        self.assertAlmostEqual(rows[-1]["lr/blocks"], 0.1)
        self.assertAlmostEqual(rows[-1]["lr/rest"], 2e-3)

    def test_mistakes_are_told_before_anything_is_written(self):
        cases = [
            ([ALIKE[2]], "optimizer (tiny.yaml:13) and optimizers (command line) are both given"),
            (["optimizer=null"], "optimizers names none"),
            (["optimizer=null", "optimizers={a: {name: adamw, parameters: ['h.*']}}"],
             "no optimizer takes these of the model's trained parameters: wte.weight"),
            (["optimizer=null", "optimizers={a: {name: adamw, parameters: ['h.*']}, "
              "b: {name: adamw, parameters: ['*']}}"], "match the same parameters"),
            (["optimizer=null", "optimizers={a: {name: adamw, parameters: ['g.*']}, b: adamw}"],
             "optimizers.a.parameters"),
            (["optimizer=null", "training.clip_grad_norm=null", "training.clip_grad_value=1",
              "optimizers={a: {name: adamw, clip_grad_norm: 1}}"], "training.clip_grad_value"),
        ]
        for arguments, problem in cases:
            with self.subTest(problem):
                self.assertIn(problem, self.train("none", *arguments, code=2).stderr)
        self.assertFalse((self.folder / "none").exists())

    def test_a_resume_keeps_who_moves_what(self):
        self.train("run", *ALIKE, "training.max_steps=4")
        renamed = [ALIKE[0], ALIKE[1], ALIKE[2].replace("blocks:", "body:")]
        error = self.train("run", *renamed, code=2).stderr
        self.assertIn("may not change under a run", error)
        self.assertIn("optimizers.blocks", error)
        self.train("run", *ALIKE, "optimizers.blocks.lr=5.0e-4", "training.max_steps=6")


if __name__ == "__main__":
    runs.main()
