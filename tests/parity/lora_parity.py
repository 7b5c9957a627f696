# SPDX-License-Identifier: Apache-2.0
"""Trains adapters with the trainer and with peft: same model, adapters and batches.

Losses, gradient norms, AdamW's moments and the adapters after three steps are compared; then peft
opens what `checkpoint export --format=peft` writes, and transformers the merged model. A difference
is the largest one of a tensor, relative to its largest value. Every epoch is one batch of all
samples, so the order of samples changes nothing but rounding.
"""

import json
import unittest

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel
from transformers.utils import logging

from tests.end_to_end import runs

LIMIT = 1e-5
LENGTH, SAMPLES, STEPS = 16, 4, 3
ADAMW = {"lr": 1e-2, "betas": [0.9, 0.95], "eps": 1e-5, "weight_decay": 0.1}
LORA = {"r": 4, "lora_alpha": 16, "lora_dropout": 0.0, "target_modules": ["c_attn", "mlp.c_proj"]}
GPT2 = GPT2Config(
    vocab_size=256, n_positions=LENGTH, n_embd=24, n_layer=2, n_head=2, embd_pdrop=0, attn_pdrop=0,
    resid_pdrop=0, bos_token_id=None, eos_token_id=None,
)  # fmt: skip


def difference(found, expected):
    largest = expected.abs().max().item()
    return (found.double() - expected.double()).abs().max().item() / (largest or 1)


class LoraParityTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        torch.set_num_threads(1)
        torch.manual_seed(2)
        model = GPT2LMHeadModel(GPT2)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
        model.save_pretrained(self.folder / "lm")
        text = runs.TEXT[:LENGTH * SAMPLES + 1].encode()
        (self.folder / "text").write_bytes(text)
        tokens = torch.tensor(list(text))
        self.inputs = tokens[:-1].view(SAMPLES, LENGTH)
        self.targets = tokens[1:].view(SAMPLES, LENGTH)

    def train(self, exp_dir, optimizer, steps):
        self.write("lora.yaml", json.dumps({
            "name": "supervised",
            "exp_dir": exp_dir,
            "task": {"name": "language_modeling", "sample": {"tokens": 0},
                     "data": {"path": "text", "sequence_length": LENGTH, "validation_fraction": 0}},
            "lora": LORA,
            "optimizer": {"name": "adamw"} | optimizer,
            "lr_scheduler": {"name": "constant"},
            "training": {"max_steps": steps, "batch_size": SAMPLES, "clip_grad_norm": 1000.0},
            "checkpoint": {"load_from": "lm", "save_every_n_steps": 1},
            "logging": {"every_n_steps": 1, "sinks": ["jsonl"]},
        }))  # fmt: skip
        self.trainer("lora.yaml")
        return [row for row in self.rows(exp_dir) if row["phase"] == "train"]

    def tensors(self, exp_dir, step, part):
        tensors = {}
        for path in (self.folder / exp_dir / f"checkpoints/step-{step:08d}").glob(f"{part}*.safetensors"):
            tensors |= load_file(path)
        return tensors

    def peft_model(self, initial):
        model = get_peft_model(AutoModelForCausalLM.from_pretrained(self.folder / "lm"),
                               LoraConfig(task_type="CAUSAL_LM", fan_in_fan_out=True, **LORA))
        with torch.no_grad():
            for name, parameter in self.adapters(model).items():
                parameter.copy_(initial[name] if "lora_A" in name else torch.zeros_like(parameter))
        return model.train()

    @staticmethod
    def adapters(model):
        """Trained parameters by our names."""
        prefix = "base_model.model.transformer."
        return {name.removeprefix(prefix).replace(".default", ""): parameter
                for name, parameter in model.named_parameters() if parameter.requires_grad}

    def peft_steps(self, model, rows):
        adapters = self.adapters(model)
        optimizer = torch.optim.AdamW(adapters.values(), **ADAMW)
        for row in rows:
            optimizer.zero_grad()
            logits = model(self.inputs).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), self.targets.flatten())
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(adapters.values(), 1000.0)
            optimizer.step()
            for field, value in (("loss", loss), ("grad_norm", norm)):
                self.require_close(f"step {row['step']}, {field}", torch.tensor(row[field]), value.detach())
        return {f"{name}.exp_avg": optimizer.state[parameter]["exp_avg"]
                for name, parameter in adapters.items()}

    def require_close(self, what, found, expected):
        worst = difference(found, expected)
        self.assertLessEqual(worst, LIMIT, what)
        return worst

    def compare_all(self, label, found, expected):
        self.assertTrue(expected)
        worst = max(self.require_close(name, found[name], tensor.detach())
                    for name, tensor in expected.items())
        print(f"{label}: {len(expected)} tensors differ by {worst:.1e} at most, {LIMIT:.0e} is rounding")

    def logits(self, model):
        with torch.no_grad():
            return model.eval()(self.inputs).logits

    def test_three_steps_and_exports_are_pefts(self):
        # At this rate one step leaves what the adapters begin with.
        self.train("still", {"lr": 1e-30, "weight_decay": 0}, 1)
        initial = self.tensors("still", 1, "model")
        rows = self.train("run", ADAMW, STEPS)
        model = self.peft_model(initial)
        moments = self.peft_steps(model, rows)
        self.assertNotEqual(rows[0]["loss"], rows[-1]["loss"])
        trained = self.tensors("run", STEPS, "model")
        self.assertEqual(trained.keys(), self.adapters(model).keys())
        self.compare_all("gradients' means", self.tensors("run", STEPS, "optimizer"), moments)
        self.compare_all("adapters", trained, self.adapters(model))

        expected = self.logits(model)
        self.trainer("checkpoint", "export", "run", "adapters", "--format=peft")
        opened = PeftModel.from_pretrained(
            AutoModelForCausalLM.from_pretrained(self.folder / "lm"), self.folder / "adapters")
        for name, parameter in opened.named_parameters():
            if "lora_" in name:
                ours = name.removeprefix("base_model.model.transformer.").replace(".default", "")
                self.assertTrue(torch.equal(parameter, trained[ours]), name)
        self.trainer("checkpoint", "export", "run", "merged")
        merged = AutoModelForCausalLM.from_pretrained(self.folder / "merged")
        for label, other in (("adapters in peft", opened), ("merged in transformers", merged)):
            worst = self.require_close(label, self.logits(other), expected)
            print(f"{label}: logits differ by {worst:.1e}")


if __name__ == "__main__":
    runs.main()
