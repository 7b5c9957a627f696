# SPDX-License-Identifier: Apache-2.0
"""Trains adapters with the trainer and with peft: same model, adapters and batches.

Losses, gradient norms, AdamW's moments and the adapters after three steps are compared; then peft
opens what `checkpoint export --format=peft` writes, and transformers the merged model. A difference
is the largest one of a tensor, relative to its largest value. Every epoch is one batch of all
samples, so the order of samples changes nothing but rounding.
"""

import contextlib
import dataclasses
import json
import shutil
from unittest import mock

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import (
    GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration,
)  # fmt: skip

from transformers.models.t5.modeling_t5 import T5LayerNorm

from tests.end_to_end import runs
from tests.parity.transformers_peer import be_quiet_on_one_thread, exact_norm, relative_difference

EXPORT_LIMIT = 1e-5  # of logits: peft holds adapters in float32
LENGTH, SAMPLES, STEPS = 16, 4, 3
ADAMW = {"lr": 1e-2, "betas": [0.9, 0.95], "eps": 1e-5, "weight_decay": 0.1}
LORA = {"r": 4, "lora_alpha": 16, "lora_dropout": 0.0}
NO_TOKENS = {"bos_token_id": None, "eos_token_id": None}
END = 1


def gpt2():
    return GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=LENGTH, n_embd=24, n_layer=2, n_head=2, embd_pdrop=0,
                                      attn_pdrop=0, resid_pdrop=0, **NO_TOKENS))


def llama():
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=256, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=LENGTH, **NO_TOKENS))


def t5():
    return T5ForConditionalGeneration(T5Config(
        vocab_size=256, d_model=24, d_kv=8, d_ff=40, num_layers=2, num_heads=3, dropout_rate=0,
        decoder_start_token_id=0))


@dataclasses.dataclass(frozen=True)
class Family:
    """A model, what it adapts, and how peft takes it. `prefix` is peft's before our names."""

    make: object
    target_modules: list
    prefix: str
    task_type: str = "CAUSAL_LM"
    fan_in_fan_out: bool = False  # GPT-2's Conv1D
    dtype: torch.dtype = torch.float32
    limit: float = 1e-5


FAMILIES = {
    "gpt2": Family(gpt2, ["c_attn", "mlp.c_proj"], "base_model.model.transformer.", fan_in_fan_out=True),
    "llama": Family(llama, ["q_proj", "v_proj", "down_proj"], "base_model.model.model."),
    # T5's queries begin so small that in float32 the gradients of their adapters are rounding for a part.
    "t5": Family(t5, ["q", "v", "wo"], "base_model.model.", "SEQ_2_SEQ_LM", dtype=torch.float64, limit=1e-10),
}


class LoraParityTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        be_quiet_on_one_thread()

    def use(self, family):
        """Writes its random model and its data."""
        self.family = family
        self.lora = LORA | {"target_modules": family.target_modules}
        torch.manual_seed(2)
        model = family.make()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
        model.save_pretrained(self.folder / "lm")
        if family.task_type == "CAUSAL_LM":
            self.task, self.batch = self.text_task()
        else:
            self.task, self.batch = self.pairs_task()

    def text_task(self):
        text = runs.TEXT[:LENGTH * SAMPLES + 1]
        self.write("text", text)
        tokens = torch.tensor(list(text.encode()))
        data = {"path": "text", "sequence_length": LENGTH, "validation_fraction": 0}
        task = {"name": "language_modeling", "sample": {"tokens": 0}, "data": data}
        return task, {"input_ids": tokens[:-1].view(SAMPLES, LENGTH), "targets": tokens[1:].view(SAMPLES, LENGTH)}

    def pairs_task(self):
        """All inputs are equally long, and so are all targets: nothing is padded."""
        texts = [(runs.TEXT[40 * i:40 * i + 11], runs.TEXT[40 * i + 20:40 * i + 27]) for i in range(SAMPLES)]
        self.write("pairs.jsonl", "".join(json.dumps({"q": q, "a": a}) + "\n" for q, a in texts))
        pairs = {"files": ["pairs.jsonl"], "input": "{q}", "target": "{a}", "validation_fraction": 0}
        data = {"pairs": pairs, "tokenizer": "bytes", "end_of_text": END, "input_length": 12, "target_length": 8}
        inputs, labels = (torch.tensor([[*text.encode(), END] for text in side]) for side in zip(*texts))
        batch = {"input_ids": inputs, "labels": labels, "targets": labels}
        return {"name": "sequence_to_sequence", "data": data}, batch

    def train(self, exp_dir, optimizer, steps):
        self.write("lora.yaml", json.dumps({
            "name": "supervised",
            "exp_dir": exp_dir,
            "use_double_weight_precision": self.family.dtype == torch.float64,
            "task": self.task,
            "lora": self.lora,
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
        config = LoraConfig(task_type=self.family.task_type, fan_in_fan_out=self.family.fan_in_fan_out, **self.lora)
        model = get_peft_model(self.theirs("lm"), config).to(self.family.dtype)
        with torch.no_grad():
            for name, parameter in self.adapters(model).items():
                parameter.copy_(initial[name] if "lora_A" in name else torch.zeros_like(parameter))
        return model.train()

    def theirs(self, folder):
        return type(self.family.make()).from_pretrained(self.folder / folder).to(self.family.dtype)

    def our_name(self, name):
        return name.removeprefix(self.family.prefix).replace(".default", "")

    def adapters(self, model):
        """Trained parameters by our names."""
        return {self.our_name(name): parameter
                for name, parameter in model.named_parameters() if parameter.requires_grad}

    def peft_steps(self, model, rows):
        adapters = self.adapters(model)
        optimizer = torch.optim.AdamW(adapters.values(), **ADAMW)
        for row in rows:
            optimizer.zero_grad()
            logits = self.logits_of(model)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), self.batch["targets"].flatten())
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(adapters.values(), 1000.0)
            optimizer.step()
            for field, value in (("loss", loss), ("grad_norm", norm)):
                self.require_close(f"step {row['step']}, {field}", torch.tensor(row[field], dtype=value.dtype), value.detach())
        return {f"{name}.exp_avg": optimizer.state[parameter]["exp_avg"]
                for name, parameter in adapters.items()}

    def require_close(self, what, found, expected, limit=None):
        worst = relative_difference(found, expected)
        self.assertLessEqual(worst, limit or self.family.limit, what)
        return worst

    def compare_all(self, label, found, expected):
        self.assertTrue(expected)
        worst = max(self.require_close(name, found[name], tensor.detach())
                    for name, tensor in expected.items())
        print(f"{label}: {len(expected)} tensors differ by {worst:.1e} at most, {self.family.limit:.0e} is "
              "rounding")

    def logits_of(self, model):
        return model(**{name: tensor for name, tensor in self.batch.items() if name != "targets"}).logits

    def logits(self, model):
        with torch.no_grad():
            return self.logits_of(model.eval())

    def test_three_steps_and_exports_are_pefts(self):
        for name, family in FAMILIES.items():
            with self.subTest(name):
                self.use(family)
                exact = mock.patch.object(T5LayerNorm, "forward", exact_norm)  # theirs computes in float32
                with exact if family.dtype == torch.float64 else contextlib.nullcontext():
                    self.compare_steps_and_exports()
                for folder in ("lm", "still", "run", "adapters", "merged"):
                    shutil.rmtree(self.folder / folder)

    def compare_steps_and_exports(self):
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
        opened = PeftModel.from_pretrained(self.theirs("lm"), self.folder / "adapters")
        for name, parameter in opened.named_parameters():
            if "lora_" in name:
                self.assertTrue(torch.equal(parameter, trained[self.our_name(name)].to(parameter.dtype)), name)
        self.trainer("checkpoint", "export", "run", "merged")
        for label, other in (("adapters in peft", opened), ("merged in transformers", self.theirs("merged"))):
            worst = self.require_close(label, self.logits(other), expected, EXPORT_LIMIT)
            print(f"{label}: logits differ by {worst:.1e}")


if __name__ == "__main__":
    runs.main()
