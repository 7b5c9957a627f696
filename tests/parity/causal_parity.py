# SPDX-License-Identifier: Apache-2.0
"""Compares GPT-2, Llama and Qwen2 with transformers: logits, loss, gradients, three steps of AdamW,
documents kept apart in a sequence, and folders that go there and come back.

A difference is the largest one of a tensor's elements, relative to the tensor's largest element.
transformers computes norms and rotary angles in float32 whatever the dtype: for float64 they are
replaced by the same in float64.
"""

import torch
from torch.nn import functional as F
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, Qwen2Config

from tests.end_to_end import runs
from tests.long import is_long, tell_sample
from tests.parity.model_parity import ModelParityTest
from tests.parity.transformers_peer import move_norms_and_biases

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


def theirs(config, dtype=torch.float32):
    """A random model."""
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config)
    move_norms_and_biases(model)
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


class CausalParityTest(ModelParityTest):

    limits = {torch.float32: 1e-5, torch.float64: 1e-10, torch.bfloat16: None}

    @staticmethod
    def loss_and_logits(model, batch):
        logits = logits_by_document(model, batch) if "positions" in batch else logits_of(model, batch["tokens"])
        exact = logits.float() if logits.dtype == torch.bfloat16 else logits
        return F.cross_entropy(exact.flatten(0, 1), batch["targets"].flatten()), logits

    @staticmethod
    def is_nothing(name):
        """A key's bias moves all scores of a query alike: its gradient is rounding alone."""
        return name.endswith("k_proj.bias") and not name.startswith("weight")

    def compare_config(self, label, config, batch, dtype):
        self.compare(label, lambda dtype: theirs(config, dtype), batch, dtype)

    def test_tiny_models_are_equal(self):
        for label, config in TINY.items():
            for dtype in self.limits:
                with self.subTest(label, dtype=dtype):
                    self.compare_config(label, config, some_batch(config), dtype)

    def test_documents_are_equal_to_separate_sequences(self):
        for label in ("gpt2", "llama 3"):
            batch = some_batch(TINY[label])
            batch["positions"] = torch.tensor([[*range(16)], [*range(5), *range(11)],
                                               [*range(1), *range(9), *range(6)]])
            last = batch["positions"].roll(-1, 1) == 0
            batch["targets"] = batch["targets"].masked_fill(last, -100)
            for dtype in (torch.float32, torch.float64):
                with self.subTest(label, dtype=dtype):
                    self.compare_config(label + " by document", TINY[label], batch, dtype)

    def test_the_widths_of_presets_are_equal(self):
        widths = WIDTHS | LARGE_WIDTHS if is_long() else WIDTHS
        tell_sample(len(widths), len(WIDTHS | LARGE_WIDTHS), "presets")
        # Theirs composes GPT-2's GELU of powers and tanh: AdamW's division shows its rounding. GPT-2 XL was
        # trained with such a rate.
        self.lr = 1e-4
        for label, config in widths.items():
            with self.subTest(label):
                self.compare_config(label, config, some_batch(config), torch.float32)

    def test_folders_go_there_and_back(self):
        for label, config in TINY.items():
            for options in ({}, {"max_shard_size": "40KB"}):
                with self.subTest(label, **options):
                    folder = label.replace(" ", "_") + "".join(options)
                    model = theirs(config)
                    model.save_pretrained(self.folder / folder, **options)
                    self.assertEqual((self.folder / folder / "model.safetensors.index.json").exists(),
                                     bool(options))
                    self.require_round_trip(model, folder, some_batch(config))


if __name__ == "__main__":
    runs.main()
