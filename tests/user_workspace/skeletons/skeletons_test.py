# SPDX-License-Identifier: Apache-2.0
"""The configs that `trainer new` writes train the classes that it writes."""

import pathlib
import shutil

from tests.end_to_end import runs

FOLDER = pathlib.Path(__file__).parent


class SkeletonsTest(runs.RunTest):

    def first_and_last_loss(self, kind, *options):
        shutil.copy(FOLDER / f"own_{kind}.yaml", self.folder)
        run = self.trainer(f"own_{kind}.yaml", f"exp_dir=runs/{kind}", *options)
        losses = [row["loss"] for row in self.rows(f"runs/{kind}") if row["phase"] == "train"]
        return losses[0], losses[-1], run

    def test_they_learn(self):
        for kind in ("task", "model", "mixin"):
            with self.subTest(kind):
                first, last, _ = self.first_and_last_loss(kind, "training.max_steps=100")
                self.assertLess(last, 0.9 * first)

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
