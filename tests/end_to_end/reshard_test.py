# SPDX-License-Identifier: Apache-2.0
"""Runs of the real binary that go on under another layout than they were saved under.

By default each layout goes on as one other, so that each is source and target, and two as themselves; with
--config=long every one goes on as every one.
"""

import hashlib
import json
import shutil

from tests.end_to_end import runs
from tests.long import is_long, tell_sample


def sharded(strategy, *more):
    return ("parallel.use_fsdp=true", f"parallel.sharding_strategy={strategy}", *more)


# Ranks, and what else the command line says.
LAYOUTS = {
    "one rank": (1, ()),
    "DDP 2": (2, ()),
    "FULL_SHARD 2": (2, sharded("FULL_SHARD")),
    "FULL_SHARD 4": (4, sharded("FULL_SHARD")),
    "HYBRID_SHARD 2x2": (4, sharded("HYBRID_SHARD", "parallel.fsdp.shard_group_size=2")),
    "SHARD_GRAD_OP 3": (3, sharded("SHARD_GRAD_OP")),
}
GLOBAL_BATCH = 12
SAVED_STEP = 5
LAST_STEP = 10


def pairs():
    names = list(LAYOUTS)
    if is_long():
        return [(source, target) for source in names for target in names]
    # As the one that is three further: parts become wholes, and the reverse.
    others = names[3:] + names[:3]
    return [("FULL_SHARD 4", "FULL_SHARD 4"), ("HYBRID_SHARD 2x2", "HYBRID_SHARD 2x2"), *zip(names, others)]


class ReshardTest(runs.RunTest):

    def train(self, layout, exp_dir):
        ranks, options = LAYOUTS[layout]
        # No dropout: what a sample meets does not depend on which rank draws for it.
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", f"training.max_steps={LAST_STEP}",
                            "training.gradient_accumulation_steps=null",
                            f"training.global_batch_size={GLOBAL_BATCH}",
                            f"training.batch_size={GLOBAL_BATCH // ranks}",
                            "model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0",
                            "checkpoint.keep_last=null", f"launcher.processes={ranks}", *options)

    def checkpoint(self, exp_dir, step):
        return self.folder / exp_dir / f"checkpoints/step-{step:08d}"

    def cut_off(self, source, exp_dir):
        """A copy of a run as it was when it was saved the first time."""
        shutil.copytree(self.folder / source, self.folder / exp_dir)
        shutil.rmtree(self.checkpoint(exp_dir, LAST_STEP))
        latest = self.folder / exp_dir / "checkpoints/latest"
        latest.write_text(f"step-{SAVED_STEP:08d}\n")

    def continued(self, exp_dir):
        """The losses after the checkpoint."""
        losses = {(row["phase"], row["step"]): row["loss"] for row in self.rows(exp_dir)}
        return {key: loss for key, loss in losses.items() if key[1] > SAVED_STEP}

    def digests(self, exp_dir):
        folder = self.checkpoint(exp_dir, LAST_STEP)
        return {part: hashlib.sha256((folder / f"{part}.safetensors").read_bytes()).hexdigest()
                for part in ("model", "optimizer")}

    def test_every_layout_goes_on_as_others(self):
        tell_sample(len(pairs()), len(LAYOUTS)**2, "pairs of layouts")
        for source in {source: None for source, _ in pairs()}:
            self.train(source, source)
        most = 0
        for number, (source, target) in enumerate(pairs()):
            with self.subTest(f"{source} into {target}"):
                exp_dir = f"continued_{number}"
                self.cut_off(source, exp_dir)
                process = self.train(target, exp_dir)
                self.assertNotIn("warning", process.stderr)
                manifest = json.loads((self.checkpoint(exp_dir, LAST_STEP)
                                       / "manifest.json").read_text())
                self.assertEqual(manifest["world_size"], LAYOUTS[target][0])
                self.assertEqual(manifest["previous"], f"step-{SAVED_STEP:08d}")
                expected = self.continued(source)
                found = self.continued(exp_dir)
                self.assertEqual(found.keys(), expected.keys())
                if source == target:
                    self.assertEqual(found, expected)
                    self.assertEqual(self.digests(exp_dir), self.digests(source))
                for key, loss in expected.items():
                    most = max(most, abs(found[key] - loss) / loss)
                    self.assertLess(abs(found[key] - loss), 1e-6 * loss, key)
                shutil.rmtree(self.folder / exp_dir)
        print(f"{len(pairs())} pairs; losses differ by at most {most:.1e} of them")


if __name__ == "__main__":
    runs.main()
