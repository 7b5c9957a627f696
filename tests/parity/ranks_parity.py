# SPDX-License-Identifier: Apache-2.0
"""Compares GPT-2, Llama and T5 on two ranks with transformers: every gradient, and three steps of AdamW.

The trainer begins with transformers' folder, trains on DDP 2 or FULL_SHARD 2, and exports. A gradient is what
one step of SGD with lr 1 takes away; in float32 that difference would show the rounding of the weights, so
gradients are compared in float64.
"""

import json

import torch
from safetensors.torch import load_file

from tests.end_to_end import runs
from tests.parity.families import FAMILIES, SAMPLES, loss_of
from tests.parity.transformers_peer import be_quiet_on_one_thread, computing_in, groups, relative_difference

LIMITS = {torch.float32: 1e-5, torch.float64: 1e-10}
RANKS = {"DDP": {}, "FULL_SHARD": {"use_fsdp": True, "sharding_strategy": "FULL_SHARD"}}


class RanksParityTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        be_quiet_on_one_thread()

    def trained(self, exp_dir, task, optimizer, parallel, steps, dtype):
        """The weights, by their names there."""
        self.write("train.yaml", json.dumps({
            "name": "supervised",
            "exp_dir": exp_dir,
            "use_double_weight_precision": dtype == torch.float64,
            "task": task,
            "optimizer": optimizer,
            "lr_scheduler": {"name": "constant"},
            "training": {"max_steps": steps, "batch_size": SAMPLES // 2},
            "checkpoint": {"load_from": "lm"},
            "launcher": {"processes": 2},
            "parallel": parallel,
        }))  # fmt: skip
        self.trainer("train.yaml")
        self.trainer("checkpoint", "export", exp_dir, exp_dir + "_hf")
        return load_file(self.folder / (exp_dir + "_hf") / "model.safetensors")

    def compare(self, label, found, expected, limit):
        differences = {name: relative_difference(found[name], tensor) for name, tensor in expected.items()}
        name, worst = max(differences.items(), key=lambda item: item[1])
        print(f"{label}: {len(differences)} tensors differ by {worst:.1e} at most ({name})")
        self.assertEqual({n: d for n, d in differences.items() if not d <= limit}, {})

    def compare_gradients(self, name, model, task, batch):
        model.zero_grad()
        loss_of(model, batch).backward()
        before = {key: p.detach() for key, p in model.named_parameters()}
        expected = {key: p.grad for key, p in model.named_parameters()}
        sgd = {"name": "sgd", "lr": 1.0, "momentum": 0, "weight_decay": 0}
        for ranks, parallel in RANKS.items():
            weights = self.trained(f"{name}-sgd-{ranks}", task, sgd, parallel, 1, torch.float64)
            found = {key: before[key] - weights[key] for key in expected}
            self.compare(f"{name}, gradients on {ranks} 2, float64", found, expected, LIMITS[torch.float64])

    def compare_steps(self, name, model, task, batch, dtype):
        lr = 1e-4 if name == "t5" else 1e-3  # T5's queries begin small (t5_parity.py)
        adamw = {"name": "adamw", "lr": lr, "betas": [0.9, 0.999], "eps": 1e-5, "weight_decay": 0.01}
        optimizer = torch.optim.AdamW(groups(model), lr=lr, eps=1e-5, fused=True)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
        expected = {key: p.detach() for key, p in model.named_parameters()}
        for ranks, parallel in RANKS.items():
            weights = self.trained(f"{name}-{ranks}-{dtype}", task, adamw, parallel, 3, dtype)
            limit = (2 if name == "t5" else 1) * LIMITS[dtype]
            self.compare(f"{name}, weights on {ranks} 2, {dtype}", weights, expected, limit)

    def test_two_ranks_are_equal_to_transformers(self):
        for name, family in FAMILIES.items():
            with self.subTest(name):
                family.random_model().save_pretrained(self.folder / "lm")
                task, batch = family.write_data(self)
                with computing_in(torch.float64):
                    self.compare_gradients(name, family.random_model().double(), task, batch)
                for dtype in LIMITS:
                    with computing_in(dtype):
                        self.compare_steps(name, family.random_model().to(dtype), task, batch, dtype)


if __name__ == "__main__":
    runs.main()
