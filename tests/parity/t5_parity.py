# SPDX-License-Identifier: Apache-2.0
"""Compares T5 with transformers' T5ForConditionalGeneration: logits, loss, gradients, three steps of
AdamW, and folders that go there and come back.

A difference is the largest one of a tensor's elements, relative to the tensor's largest element.
transformers' T5LayerNorm computes in float32 whatever the dtype: for float64 it is replaced by the
same in float64.
"""

import json

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import T5Config, T5ForConditionalGeneration

from tests.end_to_end import runs
from tests.long import is_long, tell_sample
from tests.parity.model_parity import ModelParityTest
from tests.parity.transformers_peer import move_norms_and_biases

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
    """A random model; v1.1's head is not tied, as in its files."""
    torch.manual_seed(1)
    config = T5Config(**COMMON | options)
    config._attn_implementation = attention
    model = T5ForConditionalGeneration(config)
    if not config.scale_decoder_outputs:
        model.lm_head.weight = nn.Parameter(torch.randn_like(model.shared.weight))
    move_norms_and_biases(model)
    return model.to(dtype).train()


def some_batch(config, length=16):
    """Three pairs, of which two end with padding."""
    torch.manual_seed(2)
    inputs = torch.randint(config.vocab_size, (3, length))
    targets = torch.randint(config.vocab_size, (3, length - 4))
    mask = torch.ones_like(inputs)
    mask[1, -5:] = mask[2, -1:] = 0
    targets[1, -3:] = targets[2, -6:] = -100
    outputs = torch.cat([torch.zeros_like(targets[:, :1]), targets[:, :-1]], dim=1)
    return {"inputs": inputs, "mask": mask, "targets": targets, "outputs": outputs.clamp(min=0)}


class T5ParityTest(ModelParityTest):

    # Queries begin so small that larger steps would replace them, rounding and all.
    lr = 1e-4
    limits = {torch.float32: 2e-5, torch.float64: 1e-10, torch.bfloat16: None}

    @staticmethod
    def loss_and_logits(model, batch):
        result = model(input_ids=batch["inputs"], attention_mask=batch["mask"], labels=batch["targets"],
                       use_cache=False)
        return result.loss, result.logits

    def compare_options(self, label, options, dtype, attention="sdpa", compares_steps=True):
        self.compare(f"{label} {attention}", lambda dtype: theirs(options, dtype, attention),
                     some_batch(T5Config(**COMMON | options)), dtype, compares_steps)

    def test_tiny_models_are_equal(self):
        for label, options in (("t5", TINY), ("t5 v1.1", TINY | V1_1)):
            for dtype in self.limits:
                for attention in ("sdpa", "eager"):
                    with self.subTest(label, dtype=dtype, attention=attention):
                        self.compare_options(label, options, dtype, attention)

    def test_the_widths_of_presets_are_equal(self):
        presets = PRESETS | LARGE_PRESETS if is_long() else PRESETS
        tell_sample(len(presets), len(PRESETS | LARGE_PRESETS), "presets")
        for label, options in presets.items():
            with self.subTest(label):
                # v1.1 does not scale the states before its head, so a wide random one has logits in
                # the tens: AdamW's division then shows float32's rounding of the gradients, 2e-6, a
                # hundredfold. Its steps are compared in float64.
                is_scaled = label in ("small", "base", "large", "3b")
                self.compare_options(label, options, torch.float32, compares_steps=is_scaled)
                if not is_scaled:
                    self.compare_options(label, options, torch.float64)

    def round_trip(self, model, change_config=None):
        """Reads the folder that they save; `change_config` edits its config.json first."""
        model.save_pretrained(self.folder / "theirs")
        path = self.folder / "theirs/config.json"
        if change_config is not None:
            config = json.loads(path.read_text())
            change_config(config)
            path.write_text(json.dumps(config))
        self.require_round_trip(model, "theirs", some_batch(model.config))
        saved = load_file(self.folder / "theirs/model.safetensors")
        back = load_file(self.folder / "theirs_back/model.safetensors")
        self.assertEqual(back.keys(), saved.keys())
        for name, tensor in saved.items():
            self.assertTrue(torch.equal(back[name], tensor), name)

    def test_a_folder_goes_there_and_back(self):
        self.round_trip(theirs(TINY))

    # Version 5 of transformers calls the head tied in every config.json that it writes.
    def test_an_untied_head_goes_there_and_back(self):
        self.round_trip(theirs(TINY | V1_1),
                        lambda config: self.assertTrue(config.get("tie_word_embeddings", True)))

    def test_an_old_config_without_a_tied_head_is_taken(self):
        def make_old(config):
            del config["scale_decoder_outputs"]
            config["tie_word_embeddings"] = False

        self.round_trip(theirs(TINY | V1_1), make_old)

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
