# SPDX-License-Identifier: Apache-2.0
"""What the comparisons with transformers share: its parameters in AdamW's groups, and differences."""

import torch
from torch import nn
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
    """RMSNorm in the dtype of the states; transformers' classes compute it in float32."""
    return self.weight * (states * torch.rsqrt(states.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))
