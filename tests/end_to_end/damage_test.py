# SPDX-License-Identifier: Apache-2.0
"""Damaged checkpoints of a sharded run of the real binary: named, skipped on all ranks, and the run
is the one that it would have been. By default those of each kind: bytes of a file, its length, its absence, and
what only the manifest tells."""

import json
import os
import shutil

from tests.end_to_end import runs
from tests.long import is_long, tell_sample

SHARDED = ("launcher.processes=2", "training.batch_size=2", "parallel=fsdp")


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 0x10
    path.write_bytes(data)


def replace_by_pipe(path):
    path.unlink()
    os.mkfifo(path)


def edit(path):
    manifest = json.loads(path.read_text())
    manifest["state"]["samples"] += 1
    path.write_text(json.dumps(manifest, indent=2) + "\n")


def exchange_with_optimizer(path):
    other = path.with_name("optimizer.safetensors")
    aside = path.with_name("aside")
    path.rename(aside)
    other.rename(path)
    aside.rename(other)


def copy_older(path):
    shutil.copy(path.parents[1] / "step-00000005" / path.name, path)


# What happens to which file of the newest checkpoint, and what is said of it.
DAMAGES = {
    "the header's length": ("model", lambda path: flip(path, 0), "the checksum of its first"),
    "a value of rank 0's":
        ("model", lambda path: flip(path, path.stat().st_size // 3), "model tensor '"),
    "the last value": ("optimizer", lambda path: flip(path, -1), "optimizer tensor '"),
    "a random state of rank 1's": ("rng", lambda path: flip(path, -1), "rng tensor 'rank_1.cpu'"),
    "cut short": ("optimizer", lambda path: os.truncate(path, 4096), "has 4096 bytes"),
    "made longer": ("rng", lambda path: os.truncate(path, 1 << 20), "has 1048576 bytes"),
    "of another step": ("model", copy_older, "model tensor '"),
    "exchanged": ("model", exchange_with_optimizer, "bytes, its manifest says"),
    "missing": ("optimizer", lambda path: path.unlink(), "No such file"),
    "a pipe": ("model", replace_by_pipe, "has 0 bytes"),
    "an edited manifest": ("manifest", edit, "damaged or edited after it was written"),
    "no manifest": ("manifest", lambda path: path.unlink(), "has no manifest.json"),
}
SAMPLE = ("a value of rank 0's", "a random state of rank 1's", "cut short", "exchanged", "missing", "an edited manifest")


class DamageTest(runs.RunTest):

    def train(self, exp_dir, steps):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", f"training.max_steps={steps}",
                            "lr_scheduler.decay_steps=40", "validation=null", *SHARDED)

    def losses_by_step(self, exp_dir):
        return {row["step"]: row["loss"] for row in self.rows(exp_dir)}

    def test_it_is_named_and_skipped_and_the_run_is_as_if_it_had_not_been(self):
        self.train("whole", 15)
        self.train("cut", 10)
        chosen = DAMAGES if is_long() else {name: DAMAGES[name] for name in SAMPLE}
        tell_sample(len(chosen), len(DAMAGES), "kinds of damage")
        for name, (part, damage, message) in chosen.items():
            with self.subTest(name):
                shutil.copytree(self.folder / "cut", self.folder / name)
                folder = self.folder / name / "checkpoints/step-00000010"
                damage(folder / ("manifest.json" if part == "manifest" else f"{part}.safetensors"))
                process = self.train(name, 15)
                told = [line for line in (process.stdout + process.stderr).splitlines()
                        if "skipped step-00000010: " in line]
                self.assertEqual(len(told), 1, process.stdout + process.stderr)
                self.assertIn(message, told[0])
                self.assertEqual(self.losses_by_step(name), self.losses_by_step("whole"))
                verified = self.trainer("checkpoint", "verify", name).stdout
                self.assertIn("step-00000010: whole", verified)  # it was replaced


if __name__ == "__main__":
    runs.main()
