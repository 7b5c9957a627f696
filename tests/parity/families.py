# SPDX-License-Identifier: Apache-2.0
"""Tiny random models of transformers, and data for each that the trainer and transformers read alike.

An epoch is one batch of all samples, so the order of samples changes nothing but rounding.
"""

import dataclasses
import json

import torch
from transformers import (
    GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration,
)  # fmt: skip

from tests.end_to_end import runs

LENGTH, SAMPLES = 16, 4
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
    """Makes a model. `prefix` stands before our names in transformers' names."""

    make: object
    prefix: str
    is_causal: bool = True

    def random_model(self):
        torch.manual_seed(2)
        model = self.make()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
        return model

    def write_data(self, test):
        """Into the folder of a RunTest. Returns the task's section, and the batch as transformers' arguments
        and `targets`."""
        return text_task(test) if self.is_causal else pairs_task(test)


FAMILIES = {
    "gpt2": Family(gpt2, "transformer."),
    "llama": Family(llama, "model."),
    "t5": Family(t5, "", is_causal=False),
}


def text_task(test):
    text = runs.TEXT[:LENGTH * SAMPLES + 1]
    test.write("text", text)
    tokens = torch.tensor(list(text.encode()))
    data = {"path": "text", "sequence_length": LENGTH, "validation_fraction": 0}
    task = {"name": "language_modeling", "sample": {"tokens": 0}, "data": data}
    return task, {"input_ids": tokens[:-1].view(SAMPLES, LENGTH), "targets": tokens[1:].view(SAMPLES, LENGTH)}


def pairs_task(test):
    """All inputs are equally long, and so are all targets: nothing is padded."""
    texts = [(runs.TEXT[40 * i:40 * i + 11], runs.TEXT[40 * i + 20:40 * i + 27]) for i in range(SAMPLES)]
    test.write("pairs.jsonl", "".join(json.dumps({"q": q, "a": a}) + "\n" for q, a in texts))
    pairs = {"files": ["pairs.jsonl"], "input": "{q}", "target": "{a}", "validation_fraction": 0}
    data = {"pairs": pairs, "tokenizer": "bytes", "end_of_text": END, "input_length": 12, "target_length": 8}
    inputs, labels = (torch.tensor([[*text.encode(), END] for text in side]) for side in zip(*texts))
    batch = {"input_ids": inputs, "labels": labels, "targets": labels}
    return {"name": "sequence_to_sequence", "data": data}, batch


def logits_of(model, batch):
    return model(**{name: tensor for name, tensor in batch.items() if name != "targets"}).logits


def loss_of(model, batch):
    return torch.nn.functional.cross_entropy(logits_of(model, batch).flatten(0, 1), batch["targets"].flatten())
