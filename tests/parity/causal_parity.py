# SPDX-License-Identifier: Apache-2.0
"""Compares GPT-2, Llama and Qwen2 with transformers: logits, loss, gradients, three steps of AdamW,
documents kept apart in a sequence, and folders that go there and come back.

A difference is the largest one of a tensor's elements, relative to the tensor's largest element.
transformers computes norms and rotary angles in float32 whatever the dtype: for float64 they are
replaced by the same in float64.
"""

import contextlib
import json
import math
import subprocess
import sys
from pathlib import Path
from unittest import mock

PROBE = str(Path(sys.argv.pop()).resolve())

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, Qwen2Config
from transformers.models.llama.modeling_llama import LlamaRMSNorm, LlamaRotaryEmbedding
from transformers.models.qwen2.modeling_qwen2 import Qwen2RMSNorm, Qwen2RotaryEmbedding
from transformers.utils import logging

from tests.end_to_end import runs
from tests.long import is_long, tell_sample

LIMITS = {torch.float32: 1e-5, torch.float64: 1e-10, torch.bfloat16: None}
NO_DROPOUT = {"embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0, "bos_token_id": None, "eos_token_id": None}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8}
SMALL = {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
TINY = {
    "gpt2": GPT2Config(vocab_size=97, n_positions=32, n_embd=48, n_layer=3, n_head=4, n_inner=80, **NO_DROPOUT),
    "llama": LlamaConfig(**SMALL),
    "llama 3": LlamaConfig(**SMALL, rope_parameters=LLAMA3, tie_word_embeddings=True),
    "llama with biases": LlamaConfig(**SMALL, attention_bias=True, mlp_bias=True, head_dim=8),
    "qwen2": Qwen2Config(**SMALL, tie_word_embeddings=True),
}


def width(kind, **sizes):
    """A preset's, with one block and fewer tokens."""
    return kind(vocab_size=1024, **{"n_layer" if kind is GPT2Config else "num_hidden_layers": 1}, **sizes)


def gpt2_width(n_embd, n_head):
    return width(GPT2Config, n_embd=n_embd, n_head=n_head, **NO_DROPOUT)


WIDTHS = {
    "gpt2-124m": gpt2_width(768, 12),
    "qwen2-0.5b": width(Qwen2Config, hidden_size=896, intermediate_size=4864, num_attention_heads=14,
                        num_key_value_heads=2, rope_parameters={"rope_type": "default", "rope_theta": 1e6},
                        tie_word_embeddings=True),
}
LARGE_WIDTHS = {
    "gpt2-355m": gpt2_width(1024, 16), "gpt2-774m": gpt2_width(1280, 20), "gpt2-1558m": gpt2_width(1600, 25),
    "llama-3.2-1b": width(LlamaConfig, hidden_size=2048, intermediate_size=8192, num_key_value_heads=8,
                          rms_norm_eps=1e-5, tie_word_embeddings=True, max_position_embeddings=131072,
                          rope_parameters=LLAMA3 | {"factor": 32.0, "original_max_position_embeddings": 8192}),
    "llama-3.1-8b": width(LlamaConfig, intermediate_size=14336, num_key_value_heads=8, rms_norm_eps=1e-5,
                          max_position_embeddings=131072,
                          rope_parameters=LLAMA3 | {"original_max_position_embeddings": 8192}),
}


def theirs(config, dtype=torch.float32, attention="sdpa"):
    """A random model; no norm's weight is 1, no bias 0."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.to(dtype).train()


def shifted(tokens):
    """Targets: each place's next token, and none for the last."""
    return F.pad(tokens[:, 1:], (0, 1), value=-100)


def some_batch(config, length=16):
    torch.manual_seed(2)
    tokens = torch.randint(config.vocab_size, (3, length))
    return {"tokens": tokens, "targets": shifted(tokens)}


def logits_of(model, tokens):
    return model(input_ids=tokens, use_cache=False).logits


def logits_by_document(model, batch):
    """Each document through the model alone."""
    rows = []
    for tokens, positions in zip(batch["tokens"], batch["positions"]):
        begins = [i for i, place in enumerate(positions.tolist()) if place == 0] + [len(tokens)]
        rows.append(torch.cat([logits_of(model, tokens[None, a:b])[0] for a, b in zip(begins, begins[1:])]))
    return torch.stack(rows)


def loss_and_logits(model, batch):
    logits = logits_by_document(model, batch) if "positions" in batch else logits_of(model, batch["tokens"])
    exact = logits.float() if logits.dtype == torch.bfloat16 else logits
    return F.cross_entropy(exact.flatten(0, 1), batch["targets"].flatten()), logits


def groups(model):
    """Norms, biases and embeddings do not decay."""
    embeddings = {m.weight for m in model.modules() if isinstance(m, nn.Embedding)}
    kept = [p for p in model.parameters() if p.dim() < 2 or p in embeddings]
    decayed = [p for p in model.parameters() if p.dim() >= 2 and p not in embeddings]
    return [{"params": decayed, "weight_decay": 0.01}, {"params": kept, "weight_decay": 0}]


def expected_results(model, batch):
    loss, logits = loss_and_logits(model, batch)
    loss.backward()
    results = {"logits": logits.detach(), "loss": loss.detach()}
    for name, parameter in model.named_parameters():
        results["gradient." + name] = parameter.grad.clone()
    optimizer = torch.optim.AdamW(groups(model), lr=1e-3, eps=1e-5, fused=True)
    for _ in range(3):
        optimizer.zero_grad()
        loss_and_logits(model, batch)[0].backward()
        optimizer.step()
    return results | {"weight." + n: p.detach() for n, p in model.named_parameters()}


def exact_norm(self, states):
    return self.weight * (states * torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def exact_rotation(self, states, position_ids):
    """In float64, with Llama 3.1's scaling as its authors published it."""
    rope = self.config.rope_parameters
    dim = getattr(self.config, "head_dim", None) or self.config.hidden_size // self.config.num_attention_heads
    frequencies = 1 / rope["rope_theta"] ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if rope["rope_type"] == "llama3":
        turns = rope["original_max_position_embeddings"] * frequencies / (2 * math.pi)
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        smooth = ((turns - low) / (high - low)).clamp(0, 1)
        frequencies = (1 - smooth) * frequencies / rope["factor"] + smooth * frequencies
    angles = position_ids[..., None].double() * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


@contextlib.contextmanager
def in_double():
    with contextlib.ExitStack() as stack:
        for norm in (LlamaRMSNorm, Qwen2RMSNorm):
            stack.enter_context(mock.patch.object(norm, "forward", exact_norm))
        for rotation in (LlamaRotaryEmbedding, Qwen2RotaryEmbedding):
            stack.enter_context(mock.patch.object(rotation, "forward", exact_rotation))
        yield


def relative_difference(found, expected):
    assert found.shape == expected.shape, (found.shape, expected.shape)
    largest = expected.double().abs().max()
    return ((found.double() - expected.double()).abs().max() / largest).item()


class CausalParityTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        torch.set_num_threads(1)

    def found_results(self, model, batch):
        config = self.write("probe.json", json.dumps(model.config.to_dict(), default=str))
        weights = {name: p.detach().contiguous() for name, p in model.named_parameters()}
        save_file(weights | batch, self.folder / "input")
        subprocess.run([PROBE, config, self.folder / "input", self.folder / "output"], check=True)
        found = load_file(self.folder / "output")
        (self.folder / "output").unlink()
        return found

    def compare(self, label, config, dtype, batch, attention="sdpa"):
        with in_double() if dtype == torch.float64 else contextlib.nullcontext():
            model = theirs(config, dtype, attention)
            found = self.found_results(model, batch)
            expected = expected_results(model, batch)
        self.assertEqual(found.keys(), expected.keys())
        worst = {}
        differences = {name: relative_difference(found[name], expected[name]) for name in expected
                       if not self.is_nothing(name, expected[name])}
        for name, difference in differences.items():
            kind = name.split(".")[0]
            worst[kind] = max(worst.get(kind, (0, "")), (difference, name))
        print(f"{label} {dtype} {attention}: "
              + ", ".join(f"{k} {d:.1e} ({n})" for k, (d, n) in worst.items()))
        limit = LIMITS[dtype]
        if limit is not None:
            self.assertEqual({n: d for n, d in differences.items() if not d <= limit}, {})

    def is_nothing(self, name, expected):
        """A key's bias moves all scores of a query alike: its gradient is rounding alone."""
        return name.endswith("k_proj.bias") and not name.startswith("weight")

    def test_tiny_models_are_equal(self):
        for label, config in TINY.items():
            for dtype in LIMITS:
                with self.subTest(label, dtype=dtype):
                    self.compare(label, config, dtype, some_batch(config))

    def test_documents_are_equal_to_separate_sequences(self):
        for label in ("gpt2", "llama 3"):
            batch = some_batch(TINY[label])
            batch["positions"] = torch.tensor([[*range(16)], [*range(5), *range(11)],
                                               [*range(1), *range(9), *range(6)]])
            last = batch["positions"].roll(-1, 1) == 0
            batch["targets"] = batch["targets"].masked_fill(last, -100)
            for dtype in (torch.float32, torch.float64):
                with self.subTest(label, dtype=dtype):
                    self.compare(label + " by document", TINY[label], dtype, batch)

    def test_the_widths_of_presets_are_equal(self):
        widths = WIDTHS | LARGE_WIDTHS if is_long() else WIDTHS
        tell_sample(len(widths), len(WIDTHS | LARGE_WIDTHS), "presets")
        for label, config in widths.items():
            with self.subTest(label):
                self.compare(label, config, torch.float32, some_batch(config))

    def test_folders_go_there_and_back(self):
        for label, config in TINY.items():
            for options in ({}, {"max_shard_size": "40KB"}):
                with self.subTest(label, **options):
                    self.round_trip(theirs(config), label.replace(" ", "_") + "".join(options), options)

    def round_trip(self, model, name, options):
        """Of what they saved; our export opens there as the same model."""
        model.save_pretrained(self.folder / name, **options)
        self.assertEqual((self.folder / name / "model.safetensors.index.json").exists(), bool(options))
        self.trainer("checkpoint", "import", name, name + "_ours")
        self.trainer("checkpoint", "export", name + "_ours", name + "_back")
        again, told = AutoModelForCausalLM.from_pretrained(self.folder / (name + "_back"),
                                                           output_loading_info=True)
        self.assertFalse(any(told[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), told)
        self.assertIs(type(again), type(model))
        expected = dict(model.named_parameters())
        found = dict(again.named_parameters())
        self.assertEqual(found.keys(), expected.keys())
        for key, parameter in expected.items():
            self.assertTrue(torch.equal(found[key], parameter), key)
        batch = some_batch(model.config)
        with torch.no_grad():
            self.assertTrue(torch.equal(logits_of(again.eval(), batch["tokens"]),
                                        logits_of(model.eval(), batch["tokens"])))


if __name__ == "__main__":
    runs.main()
