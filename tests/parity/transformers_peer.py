# SPDX-License-Identifier: Apache-2.0
"""What the comparisons with transformers share: its parameters in AdamW's groups, and differences."""

import contextlib
import math
from unittest import mock

import torch
from torch import nn
from transformers.models.llama.modeling_llama import LlamaRMSNorm, LlamaRotaryEmbedding
from transformers.models.qwen2.modeling_qwen2 import Qwen2RMSNorm, Qwen2RotaryEmbedding
from transformers.models.t5.modeling_t5 import T5LayerNorm
from transformers.utils import logging

WEIGHT_DECAY = 0.01


def be_quiet_on_one_thread():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)


def groups(model, weight_decay=WEIGHT_DECAY):
    """The trainer's: norms, biases and embeddings do not decay."""
    embeddings = {m.weight for m in model.modules() if isinstance(m, nn.Embedding)}
    kept = [p for p in model.parameters() if p.dim() < 2 or p in embeddings]
    decayed = [p for p in model.parameters() if p.dim() >= 2 and p not in embeddings]
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": kept, "weight_decay": 0}]


def move_norms_and_biases(model):
    """No norm's weight is 1 afterwards, no bias 0: one that is left out shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))


def relative_difference(found, expected):
    """The largest of a tensor's elements, relative to the tensor's largest element."""
    assert found.shape == expected.shape, (found.shape, expected.shape)
    difference = (found.double() - expected.double()).abs().max()
    largest = expected.double().abs().max()
    return (difference / largest).item() if largest > 0 else difference.item()


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
def computing_in(dtype):
    """transformers computes these norms and rotary angles in float32 whatever the dtype: for float64 they
    are replaced."""
    with contextlib.ExitStack() as stack:
        if dtype == torch.float64:
            for norm in (LlamaRMSNorm, Qwen2RMSNorm, T5LayerNorm):
                stack.enter_context(mock.patch.object(norm, "forward", exact_norm))
            for rotation in (LlamaRotaryEmbedding, Qwen2RotaryEmbedding):
                stack.enter_context(mock.patch.object(rotation, "forward", exact_rotation))
        yield
