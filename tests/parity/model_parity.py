# SPDX-License-Identifier: Apache-2.0
"""Runs a model of transformers and ours on the same weights and batch, and compares all they compute:
logits, loss, gradients, three steps of AdamW.
"""

import json
import subprocess
import sys
from pathlib import Path

PROBE = str(Path(sys.argv.pop()).resolve())

import torch
from safetensors.torch import load_file, save_file

from tests.end_to_end import runs
from tests.parity.transformers_peer import be_quiet_on_one_thread, computing_in, groups, relative_difference


def expected_results(model, batch, loss_and_logits, lr):
    loss, logits = loss_and_logits(model, batch)
    loss.backward()
    results = {"logits": logits.detach(), "loss": loss.detach()}
    for name, parameter in model.named_parameters():
        results["gradient." + name] = parameter.grad.clone()
    optimizer = torch.optim.AdamW(groups(model), lr=lr, eps=1e-5, fused=True)
    for _ in range(3):
        optimizer.zero_grad()
        loss_and_logits(model, batch)[0].backward()
        optimizer.step()
    return results | {"weight." + n: p.detach() for n, p in model.named_parameters()}


class ModelParityTest(runs.RunTest):

    lr = 1e-3
    limits = {}  # of differences, by dtype; None: they are printed only

    def setUp(self):
        super().setUp()
        be_quiet_on_one_thread()

    @staticmethod
    def loss_and_logits(model, batch):
        raise NotImplementedError

    @staticmethod
    def is_nothing(_name):
        """Whether a result is rounding alone."""
        return False

    def found_results(self, model, batch):
        config = self.write("probe.json", json.dumps(model.config.to_dict(), default=str))
        weights = {name: p.detach().contiguous() for name, p in model.named_parameters()}
        named = {"batch." + name: tensor for name, tensor in batch.items()}
        save_file(weights | named, self.folder / "input")
        subprocess.run([PROBE, config, self.folder / "input", self.folder / "output", str(self.lr)],
                       check=True)
        found = load_file(self.folder / "output")
        (self.folder / "output").unlink()
        return found

    def compare(self, label, make_model, batch, dtype, compares_steps=True):
        """`make_model` gives a new model of the dtype."""
        with computing_in(dtype):
            model = make_model(dtype)
            found = self.found_results(model, batch)
            expected = expected_results(model, batch, self.loss_and_logits, self.lr)
        self.assertEqual(found.keys(), expected.keys())
        differences = {name: relative_difference(found[name], expected[name])
                       for name in expected if not self.is_nothing(name)}
        worst = {}
        for name, difference in differences.items():
            kind = name.split(".")[0]
            worst[kind] = max(worst.get(kind, (0, "")), (difference, name))
        print(f"{label} {dtype}: " + ", ".join(f"{k} {d:.1e} ({n})" for k, (d, n) in worst.items()))
        limit = self.limits[dtype]
        if not compares_steps:
            differences = {n: d for n, d in differences.items() if not n.startswith("weight.")}
        if limit is not None:
            self.assertEqual({n: d for n, d in differences.items() if not d <= limit}, {})

    def require_round_trip(self, model, folder, batch):
        """The folder that they saved, imported and exported, opens there as the same model."""
        self.trainer("checkpoint", "import", folder, folder + "_ours")
        self.trainer("checkpoint", "export", folder + "_ours", folder + "_back")
        again, told = type(model).from_pretrained(self.folder / (folder + "_back"),
                                                  output_loading_info=True)
        self.assertFalse(any(told[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), told)
        expected, found = dict(model.named_parameters()), dict(again.named_parameters())
        self.assertEqual(found.keys(), expected.keys())
        for name, parameter in expected.items():
            self.assertTrue(torch.equal(found[name], parameter), name)
        with torch.no_grad():
            self.assertTrue(torch.equal(self.loss_and_logits(again.eval(), batch)[1],
                                        self.loss_and_logits(model.eval(), batch)[1]))
