# SPDX-License-Identifier: Apache-2.0
"""Compares T5 with transformers' T5ForConditionalGeneration: logits, loss, gradients, three steps of
AdamW, and folders that go there and come back.

A difference is the largest one of a tensor's elements, relative to the tensor's largest element.
transformers' T5LayerNorm computes in float32 whatever the dtype: for float64 it is replaced by the
same in float64.
"""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from unittest import mock

PROBE = str(Path(sys.argv.pop()).resolve())

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import T5Config, T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5LayerNorm
from transformers.utils import logging

from tests.end_to_end import runs
from tests.long import is_long, tell_sample

LIMITS = {torch.float32: 2e-5, torch.float64: 1e-10, torch.bfloat16: None}
V1_1 = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
COMMON = {"dropout_rate": 0, "decoder_start_token_id": 0}
TINY = {"vocab_size": 97, "d_model": 48, "d_kv": 12, "d_ff": 80, "num_layers": 3, "num_decoder_layers": 2,
        "num_heads": 4, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 11}


def width(d_model, d_kv, d_ff, num_heads, **options):
    """A preset's, with one block a half."""
    return {"vocab_size": 1024, "d_model": d_model, "d_kv": d_kv, "d_ff": d_ff, "num_layers": 1,
            "num_heads": num_heads} | options


PRESETS = {"small": width(512, 64, 2048, 8), "v1.1-base": width(768, 64, 2048, 12, **V1_1)}
LARGE_PRESETS = {
    "base": width(768, 64, 3072, 12), "large": width(1024, 64, 4096, 16), "3b": width(1024, 128, 16384, 32),
    "v1.1-small": width(512, 64, 1024, 6, **V1_1), "v1.1-large": width(1024, 64, 2816, 16, **V1_1),
    "v1.1-xl": width(2048, 64, 5120, 32, **V1_1),
}


def theirs(options, dtype=torch.float32, attention="sdpa"):
    """A random model; one of v1.1 has a head of its own, as files of it do. No norm's weight is 1."""
    torch.manual_seed(1)
    config = T5Config(**COMMON | options)
    config._attn_implementation = attention
    model = T5ForConditionalGeneration(config)
    if not config.scale_decoder_outputs:
        model.lm_head.weight = nn.Parameter(torch.randn_like(model.shared.weight))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model.to(dtype).train()


def some_batch(config, length=16):
    """Three pairs, of which two end with padding."""
    torch.manual_seed(2)
    inputs = torch.randint(config.vocab_size, (3, length))
    targets = torch.randint(config.vocab_size, (3, length - 4))
    mask = torch.ones_like(inputs)
    mask[1, -5:] = mask[2, -1:] = 0
    targets[1, -3:] = targets[2, -6:] = -100
    return {"inputs": inputs, "mask": mask, "targets": targets}


def loss_and_logits(model, batch):
    result = model(input_ids=batch["inputs"], attention_mask=batch["mask"], labels=batch["targets"],
                   use_cache=False)
    return result.loss, result.logits


def groups(model):
    """Norms and embeddings do not decay."""
    kept = {m.weight for m in model.modules() if isinstance(m, (nn.Embedding, T5LayerNorm))}
    decayed = [p for p in model.parameters() if p not in kept]
    return [{"params": decayed, "weight_decay": 0.01}, {"params": list(kept), "weight_decay": 0}]


def expected_results(model, batch):
    loss, logits = loss_and_logits(model, batch)
    loss.backward()
    results = {"logits": logits.detach(), "loss": loss.detach()}
    for name, parameter in model.named_parameters():
        results["gradient." + name] = parameter.grad.clone()
    # Queries begin so small that larger steps would replace them, rounding and all.
    optimizer = torch.optim.AdamW(groups(model), lr=1e-4, eps=1e-5, fused=True)
    for _ in range(3):
        optimizer.zero_grad()
        loss_and_logits(model, batch)[0].backward()
        optimizer.step()
    return results | {"weight." + n: p.detach() for n, p in model.named_parameters()}


def exact_norm(self, states):
    scale = torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
    return self.weight * (states * scale)


def relative_difference(found, expected):
    assert found.shape == expected.shape, (found.shape, expected.shape)
    difference = (found.double() - expected.double()).abs().max() / expected.double().abs().max()
    return difference.item()


class T5ParityTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        torch.set_num_threads(1)

    def found_results(self, model, batch):
        config = self.write("probe.json", json.dumps(model.config.to_dict(), default=str))
        weights = {name: p.detach().contiguous() for name, p in model.named_parameters()}
        outputs = model._shift_right(batch["targets"])
        save_file(weights | batch | {"outputs": outputs}, self.folder / "input")
        subprocess.run([PROBE, config, self.folder / "input", self.folder / "output"], check=True)
        found = load_file(self.folder / "output")
        (self.folder / "output").unlink()
        return found

    def compare(self, label, options, dtype, attention="sdpa", steps=True):
        exact = mock.patch.object(T5LayerNorm, "forward", exact_norm)
        with exact if dtype == torch.float64 else contextlib.nullcontext():
            model = theirs(options, dtype, attention)
            batch = some_batch(model.config)
            found = self.found_results(model, batch)
            expected = expected_results(model, batch)
        self.assertEqual(found.keys(), expected.keys())
        differences = {name: relative_difference(found[name], expected[name]) for name in expected}
        worst = {}
        for name, difference in differences.items():
            kind = name.split(".")[0]
            worst[kind] = max(worst.get(kind, (0, "")), (difference, name))
        print(f"{label} {dtype} {attention}: "
              + ", ".join(f"{k} {d:.1e} ({n})" for k, (d, n) in worst.items()))
        limit = LIMITS[dtype]
        if not steps:
            differences = {n: d for n, d in differences.items() if not n.startswith("weight.")}
        if limit is not None:
            self.assertEqual({n: d for n, d in differences.items() if not d <= limit}, {})

    def test_tiny_models_are_equal(self):
        for label, options in (("t5", TINY), ("t5 v1.1", TINY | V1_1)):
            for dtype in LIMITS:
                for attention in ("sdpa", "eager"):
                    with self.subTest(label, dtype=dtype, attention=attention):
                        self.compare(label, options, dtype, attention)

    def test_the_widths_of_presets_are_equal(self):
        presets = PRESETS | LARGE_PRESETS if is_long() else PRESETS
        tell_sample(len(presets), len(PRESETS | LARGE_PRESETS), "presets")
        for label, options in presets.items():
            with self.subTest(label):
                # v1.1 does not scale the states before its head, so a wide random one has logits in
                # the tens: AdamW's division then shows float32's rounding of the gradients, 2e-6, a
                # hundredfold. Its steps are compared in float64.
                is_scaled = label in ("small", "base", "large", "3b")
                self.compare(label, options, torch.float32, steps=is_scaled)
                if not is_scaled:
                    self.compare(label, options, torch.float64)

    def require_round_trip(self, folder, model):
        """Of what they saved; our export opens there as the same model."""
        self.trainer("checkpoint", "import", folder, "ours")
        self.trainer("checkpoint", "export", "ours", "back")
        saved = load_file(self.folder / folder / "model.safetensors")
        back = load_file(self.folder / "back/model.safetensors")
        self.assertEqual(back.keys(), saved.keys())
        for name, tensor in saved.items():
            self.assertTrue(torch.equal(back[name], tensor), name)
        again, told = T5ForConditionalGeneration.from_pretrained(
            self.folder / "back", output_loading_info=True)
        self.assertFalse(any(told[key] for key in ("missing_keys", "unexpected_keys",
                                                   "mismatched_keys")), told)
        batch = some_batch(model.config)
        with torch.no_grad():
            self.assertTrue(torch.equal(loss_and_logits(again.eval(), batch)[1],
                                        loss_and_logits(model.eval(), batch)[1]))

    def test_a_folder_goes_there_and_back(self):
        model = theirs(TINY)
        model.save_pretrained(self.folder / "theirs")
        self.require_round_trip("theirs", model)

    # Version 5 of transformers calls the head tied in every config.json that it writes.
    def test_a_head_of_its_own_goes_there_and_back(self):
        model = theirs(TINY | V1_1)
        model.save_pretrained(self.folder / "theirs")
        self.assertTrue(json.loads((self.folder / "theirs/config.json").read_text()).get(
            "tie_word_embeddings", True))
        self.require_round_trip("theirs", model)

    def test_an_old_config_without_a_tied_head_is_taken(self):
        model = theirs(TINY | V1_1)
        model.save_pretrained(self.folder / "theirs")
        path = self.folder / "theirs/config.json"
        config = json.loads(path.read_text())
        del config["scale_decoder_outputs"]
        path.write_text(json.dumps(config | {"tie_word_embeddings": False}))
        self.require_round_trip("theirs", model)

    def test_what_ours_cannot_hold_is_refused_by_its_key(self):
        theirs(TINY).save_pretrained(self.folder / "theirs")
        path = self.folder / "theirs/config.json"
        config = json.loads(path.read_text())
        for key, value in (("feed_forward_proj", "gated-silu"), ("eos_token_id", [1, 2]),
                           ("is_encoder_decoder", False), ("d_kv", 13)):
            with self.subTest(key):
                path.write_text(json.dumps(config | {key: value}))
                told = self.trainer("checkpoint", "import", "theirs", "ours", code=2).stderr
                # Another width of heads is told by the tensors that do not fit.
                self.assertIn("SelfAttention.q" if key == "d_kv" else key, told)


if __name__ == "__main__":
    runs.main()
