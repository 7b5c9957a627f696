# SPDX-License-Identifier: Apache-2.0
"""Adapters beside a model of a Hugging Face folder: training, checkpoints, export, and faults.

That their numbers are peft's is compared in tests/parity/lora_parity.py.
"""

import json
import re
import shutil
import struct

from tests.end_to_end import runs

STEPS = ["training.max_steps=10", "lr_scheduler.decay_steps=40"]
NO_DROPOUT = ["model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0"]
FROM = "checkpoint.load_from=hf"
LORA = ["tiny.yaml", FROM, "lora={target_modules: [c_attn, mlp.c_proj], r: 4, lora_alpha: 16}"]


def header_of(path):
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length))


class LoraTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.once(("tiny.yaml", "exp_dir=base", "training.max_steps=5", "lr_scheduler.decay_steps=40"),
                  ("checkpoint", "export", "base", "hf"))

    def train(self, exp_dir, *arguments, **options):
        return self.trainer(*LORA, f"exp_dir={exp_dir}", *STEPS, *arguments, **options)

    def names(self, exp_dir, step, part="model"):
        names = set()
        for path in (self.folder / exp_dir / f"checkpoints/step-{step:08d}").glob(f"{part}*.safetensors"):
            names |= set(header_of(path)) - {"__metadata__"}
        return names

    def test_adapters_alone_are_trained_and_saved(self):
        told = self.train("run", "lora.lora_dropout=0.1", "optimizer.lr=0.02").stdout
        # 2 blocks: c_attn 4 * (16 + 48), mlp.c_proj 4 * (64 + 16).
        self.assertRegex(told, r"lora +r 4, lora_alpha 16; 4 of 8 linear layers; trains 1152 of 12\d+ ")
        expected = {f"h.{block}.{module}.lora_{matrix}.weight" for block in (0, 1)
                    for module in ("attn.c_attn", "mlp.c_proj") for matrix in "AB"}
        self.assertEqual(self.names("run", 10), expected)
        losses = [loss for _, _, loss in self.losses("run")]
        self.assertLess(losses[-1], losses[0])
        self.assertIn("whole", self.trainer("checkpoint", "verify", "run").stdout)
        self.assertIn("loss", self.trainer("evaluate", "run").stdout)

    def test_adapters_are_no_model_to_begin_with(self):
        self.train("run", "training.max_steps=2")
        told = " ".join(self.trainer("tiny.yaml", "checkpoint.load_from=run", "exp_dir=next", code=2).stderr.split())
        self.assertIn("holds adapters alone: merge them into their model by `trainer checkpoint export", told)
        self.assertNotIn("missing", told)

    def test_a_resume_goes_on_bit_for_bit(self):
        self.train("whole", "lora.lora_dropout=0.1")
        self.train("cut", "lora.lora_dropout=0.1", "training.max_steps=5")
        self.train("cut", "lora.lora_dropout=0.1")
        # The first part validated at its end.
        found = [row for row in self.losses("cut") if row[:2] != ("validate", 5)]
        self.assertEqual(found, self.losses("whole"))

    def test_the_base_of_a_resume_is_the_same(self):
        self.train("run", "training.max_steps=5")
        shutil.copytree(self.folder / "hf", self.folder / "moved")
        path = self.folder / "hf/model.safetensors"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        told = self.train("run", code=2).stderr
        self.assertIn("adapters of another model", told)
        self.assertIn("another model", self.trainer("evaluate", "run", code=2).stderr)
        self.assertIn("another model", self.trainer("checkpoint", "export", "run", "out", code=2).stderr)
        shutil.rmtree(self.folder / "hf")
        self.assertIn("hf", self.train("run", code=2).stderr)
        self.assertIn("say by --base where it is",
                      self.trainer("checkpoint", "export", "run", "out", code=2).stderr)
        self.trainer("checkpoint", "export", "run", "out", "--base=moved")
        self.train("run", "checkpoint.load_from=moved")

    def test_ranks_train_the_same(self):
        self.train("one", *NO_DROPOUT)
        sharded = ["parallel.use_fsdp=true", "parallel.sharding_strategy=FULL_SHARD"]
        for name, options in (("ddp", []), ("fsdp", sharded),
                              ("undeferred", [*sharded, "parallel.fsdp.deferred_init=false"])):
            with self.subTest(name):
                self.train(name, *NO_DROPOUT, "launcher.processes=2", "training.batch_size=2", *options)
                for one, other in zip(self.losses("one"), self.losses(name), strict=True):
                    self.assertEqual(one[:2], other[:2])
                    self.assertAlmostEqual(one[2], other[2], delta=1e-5)
                self.assertEqual(self.names(name, 10), self.names("one", 10))
        # Either goes on from the other's checkpoint.
        self.train("fsdp", *NO_DROPOUT, "training.max_steps=12", "training.batch_size=4")

    def test_it_goes_with_what_else_a_run_may_be(self):
        self.train("plain", *NO_DROPOUT)
        self.train("recomputed", *NO_DROPOUT, "activation_checkpointing.policy=unit")
        self.assertEqual(self.losses("recomputed"), self.losses("plain"))
        self.train("both", "mixed_precision=bf16", "activation_checkpointing.policy=unit",
                   "parallel=fsdp", "launcher.processes=2", "training.batch_size=2")
        self.train("double", "use_double_weight_precision=true", "training.max_steps=2")

    def test_exports(self):
        self.train("run")
        self.assertIn("8 tensors of 4 adapters",
                      self.trainer("checkpoint", "export", "run", "peft", "--format=peft").stdout)
        header = header_of(self.folder / "peft/adapter_model.safetensors")
        self.assertEqual(header["base_model.model.transformer.h.1.mlp.c_proj.lora_B.weight"]["shape"], [16, 4])
        config = json.loads((self.folder / "peft/adapter_config.json").read_text())
        self.assertEqual((config["r"], config["lora_alpha"], config["fan_in_fan_out"], config["task_type"]),
                         (4, 16.0, True, "CAUSAL_LM"))
        self.assertEqual(config["base_model_name_or_path"], "hf")
        # Merged, it is a model that computes the same.
        self.trainer("checkpoint", "export", "run", "merged")
        self.trainer("checkpoint", "import", "merged", "whole")
        self.trainer("tiny.yaml", "checkpoint.load_from=merged", "exp_dir=merged_run", "optimizer.lr=1e-30",
                     "optimizer.weight_decay=0", "training.max_steps=1", "lr_scheduler=constant")
        losses = []
        for run in ("run", "merged_run"):
            told = self.trainer("evaluate", run).stdout
            losses.append(float(re.search(r"^  loss +(\S+)", told, re.MULTILINE)[1]))
        self.assertAlmostEqual(*losses, delta=1e-5)
        self.assertIn("holds a whole model",
                      self.trainer("checkpoint", "export", "base", "no", "--format=peft", code=2).stderr)

    def test_faults(self):
        for arguments, told in (
            ([FROM, "lora.target_modules=[c_atn]"],
             "lora.target_modules: no module of the model matches 'c_atn'; there are: c_attn, c_fc, c_proj"),
            (["lora.target_modules=[c_attn]"], "checkpoint.load_from is null"),
            ([FROM, "lora.target_modules=[c_attn]", "checkpoint.load_strict=false"],
             "leave out checkpoint.load_strict=false"),
            (["checkpoint.load_from=gone", "lora.target_modules=[c_attn]"], "gone"),
            ([FROM, "lora.target_modules=[c_attn]", "lora.r=0"], "lora.r"),
        ):
            with self.subTest(arguments):
                before = self.files()
                refused = self.trainer("tiny.yaml", *arguments, code=2)
                self.assertIn(told, refused.stderr)
                self.assertEqual(self.files(), before)
        for rank in (4, 8):  # 8 is the default.
            warned = self.trainer("tiny.yaml", f"lora.r={rank}", f"exp_dir=unused_{rank}", "training.max_steps=1",
                                  "lr_scheduler.decay_steps=40").stderr
            self.assertIn("target_modules is empty", warned)


if __name__ == "__main__":
    runs.main()
