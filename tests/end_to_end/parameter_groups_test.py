# SPDX-License-Identifier: Apache-2.0
"""Groups of parameters, frozen ones, learning rates by depth, and Muon: runs of the real binary."""

import json
import shutil
import struct

from tests.end_to_end import runs
from tests.long import is_long, tell_sample

NO_DROPOUT = ["model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0"]
STEPS = ["training.max_steps=10", "lr_scheduler.decay_steps=40", *NO_DROPOUT]
TWO_RANKS = ["launcher.processes=2", "training.batch_size=2"]
SHARDED = [*TWO_RANKS, "parallel.use_fsdp=true", "parallel.sharding_strategy=FULL_SHARD"]
GROUPS = ["optimizer.groups=[{parameters: ['h.0.*'], lr_scale: 0.5}, {parameters: [wte.*], lr: 0.002, "
          "weight_decay: 0.3}]", "optimizer.layer_lr_decay=0.8"]
FREEZE = ["optimizer.freeze=[wte.*, 'h.0.*.weight']"]
MUON = ["optimizer={name: muon, lr: 0.02, weight_decay: 0.01}"]


def tensors_of(path):
    """The bytes of each tensor of a safetensors file."""
    data = path.read_bytes()
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    body = data[8 + length:]
    return {name: body[slice(*entry["data_offsets"])]
            for name, entry in header.items() if name != "__metadata__"}


class ParameterGroupsTest(runs.RunTest):

    def train(self, exp_dir, *arguments, **options):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", *STEPS, *arguments, **options)

    def tensors(self, exp_dir, step, part="model"):
        tensors = {}
        for path in (self.folder / exp_dir / f"checkpoints/step-{step:08d}").glob(f"{part}*.safetensors"):
            tensors |= tensors_of(path)
        return tensors

    def expect_close(self, one, other, delta=2e-5):
        for mine, theirs in zip(self.losses(one), self.losses(other), strict=True):
            self.assertEqual(mine[:2], theirs[:2])
            self.assertAlmostEqual(mine[2], theirs[2], delta=delta)

    def expect_same_training(self, options, delta=2e-5):
        """On one rank, in DDP and sharded; ended and resumed, there and on other ranks."""
        self.train("one", *options)
        self.train("ddp", *options, *TWO_RANKS)
        self.train("fsdp", *options, *SHARDED)
        self.expect_close("one", "ddp", delta)
        self.expect_close("one", "fsdp", delta)
        self.train("cut", *options, *SHARDED, "training.max_steps=5")
        shutil.copytree(self.folder / "cut", self.folder / "moved")
        self.train("cut", *options, *SHARDED)
        found = [row for row in self.losses("cut") if row[:2] != ("validate", 5)]
        self.assertEqual(found, self.losses("fsdp"))
        self.train("moved", *options)
        self.assertAlmostEqual(self.losses("moved")[-1][2], self.losses("one")[-1][2], delta=delta)

    def test_groups_that_change_nothing_change_nothing(self):
        self.train("plain")
        self.train("grouped", "optimizer.groups=[{parameters: ['h.*.weight']}, {parameters: ['h.1.*'], lr: 0.001}]")
        self.assertEqual(self.losses("grouped"), self.losses("plain"))
        self.assertEqual(self.tensors("grouped", 10), self.tensors("plain", 10))
        self.assertEqual(self.tensors("grouped", 10, "optimizer"), self.tensors("plain", 10, "optimizer"))

    def test_the_start_says_what_holds(self):
        told = self.train("run", *GROUPS, "optimizer.freeze=[wpe.*]").stdout
        # Two units: the last norm is above them, wte below, at 0.8 ** 3.
        for line in (r"h\.0\.\*, h\.0, decay: 4 tensors, 3072 parameters, lr 0\.00032, weight_decay 0\.01",
                     r"wte\.\*, below h\.0: 1 tensor, 4096 parameters, lr 0\.001024, weight_decay 0\.3",
                     r"above h\.1, no decay: 2 tensors, 32 parameters, lr 0\.001, weight_decay 0",
                     r"frozen: 1 tensor, 256 parameters"):
            self.assertRegex(told, line)

    def test_groups_train_alike_on_ranks(self):
        self.train("plain")
        self.expect_same_training(GROUPS)
        self.assertNotEqual(self.losses("one")[-1], self.losses("plain")[-1])

    def test_muon_trains_alike_on_ranks(self):
        # The update is rounded to bfloat16, so that another order of sums moves a few elements by 1 / 256 of it.
        self.expect_same_training(MUON, delta=1e-3)
        self.assertLess(self.losses("one")[-1][2], self.losses("one")[0][2])
        names = set(self.tensors("fsdp", 10, "optimizer"))
        self.assertEqual(names, set(self.tensors("one", 10, "optimizer")))
        self.assertIn("h.0.attn.c_attn.weight.momentum_buffer", names)
        self.assertIn("wte.weight.exp_avg_sq", names)
        self.assertNotIn("h.0.attn.c_attn.weight.exp_avg", names)

    def test_what_is_frozen_stays(self):
        self.expect_same_training(FREEZE)
        for run in ("one", "ddp", "fsdp"):
            before, after = self.tensors(run, 5), self.tensors(run, 10)
            for name, values in after.items():
                frozen = name == "wte.weight" or (name.startswith("h.0.") and name.endswith(".weight"))
                self.assertEqual(values == before[name], frozen, name)
            states = self.tensors(run, 10, "optimizer")
            self.assertIn("h.0.attn.c_attn.bias.exp_avg", states)
            self.assertFalse([name for name in states if name.startswith(("wte", "h.0.attn.c_attn.weight"))])
        self.train("recomputed", *FREEZE, "activation_checkpointing.policy=unit")
        self.assertEqual(self.losses("recomputed"), self.losses("one"))
        self.assertIn("optimizer.freeze", self.train("one", "optimizer.freeze=[]", "training.max_steps=12",
                                                     code=2).stderr)

    def test_units_that_are_frozen_whole(self):
        """At the bottom nothing flows back to them, above it something flows through."""
        layouts = [("fsdp", SHARDED), ("ddp", TWO_RANKS)][:2 if is_long() else 1]
        tell_sample(len(layouts), 2, "layouts")
        for patterns in ("wte.*, wpe.*, 'h.0.*'", "'h.1.*'"):
            frozen = [f"optimizer.freeze=[{patterns}]", "activation_checkpointing.policy=unit"]
            with self.subTest(patterns):
                where = "bottom" if "wte" in patterns else "top"
                self.train(f"{where}_one", *frozen)
                for name, options in layouts:
                    self.train(f"{where}_{name}", *frozen, *options)
                    self.expect_close(f"{where}_one", f"{where}_{name}")

    def test_a_run_from_before_groups_goes_on(self):
        self.train("run", "training.max_steps=5")
        self.train("whole")
        for path in (self.folder / "run").rglob("config.yaml"):
            lines = path.read_text().splitlines(keepends=True)
            kept = [line for line in lines if line.strip().split(":")[0] not in ("groups", "freeze", "layer_lr_decay")]
            self.assertEqual(len(kept), len(lines) - 3)
            path.write_text("".join(kept))
        told = self.train("run").stdout
        self.assertIn("changed since the last start: training.max_steps: was 5, now 10 (command line)\n", told)
        self.assertEqual([row for row in self.losses("run") if row[:2] != ("validate", 5)], self.losses("whole"))

    def test_a_resume_may_change_rates(self):
        self.train("run", *GROUPS, "training.max_steps=5")
        told = self.train("run", "optimizer.groups=[{parameters: [wte.*], lr_scale: 0}]",
                          "optimizer.layer_lr_decay=1").stdout
        self.assertEqual(self.tensors("run", 5)["wte.weight"], self.tensors("run", 10)["wte.weight"])
        self.assertIn("changed since the last start: optimizer.layer_lr_decay", told)
        self.assertIn("changed since the last start: optimizer.groups[0].lr_scale", told)

    def test_a_resume_whose_groups_need_another_state_is_refused(self):
        self.train("run", *MUON, "training.max_steps=5")
        told = self.train("run", "optimizer={name: muon, lr: 0.02, weight_decay: 0.01, groups: [{parameters: "
                          "['h.0.mlp.*'], orthogonalize: false}]}", code=2).stderr
        self.assertIn("h.0.mlp.c_fc.weight.exp_avg", told)
        self.train("run", *MUON)  # its config is as it was

    def test_faults(self):
        self.write("bad.yaml", runs.CONFIG.replace(
            "lr: 1.0e-3}", "lr: 1.0e-3,\n  groups: [{parameters: ['h.*.atn.*'], lr: 0.1}]}"))
        for arguments, told in (
            (["bad.yaml"], "optimizer.groups[0].parameters (bad.yaml:14): no trained parameter of the model matches "
                           "'h.*.atn.*'; the nearest of 28: "),
            (["tiny.yaml", "optimizer.freeze=[wtf.weight]"], "no parameter of the model matches 'wtf.weight'; the "
                                                            "nearest of 28: wte.weight"),
            (["tiny.yaml", "optimizer.freeze=['*']"], "this freezes all parameters"),
            (["tiny.yaml", "optimizer.groups=[{parameters: ['*']}, {parameters: [wte.*]}]"],
             "optimizer.groups[1].parameters"),
            (["tiny.yaml", "optimizer.groups=[{parameters: [wte.*], momentum: 1}]"], "momentum"),
            (["tiny.yaml", "optimizer.layer_lr_decay=1.5"], "layer_lr_decay"),
            (["tiny.yaml", "optimizer={name: muon, groups: [{parameters: ['*'], ns_steps: 100}]}"],
             "optimizer.groups[0].ns_steps"),
        ):
            with self.subTest(arguments):
                before = self.files()
                for ranks in ([], ["launcher.processes=2"]):
                    refused = self.trainer(*arguments, *ranks, code=2)
                    self.assertIn(told, " ".join(refused.stderr.split()))
                self.assertEqual(self.files(), before)


if __name__ == "__main__":
    runs.main()
