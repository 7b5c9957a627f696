# SPDX-License-Identifier: Apache-2.0
"""A tiny config of the fixed trainer's classes, as tests/end_to_end/runs.py has one of the product's."""

CONFIG = """\
name: supervised
task:
  name: reading
  data: {path: text.txt, sequence_length: 16, loader: {num_workers: 2}}
  sample: {tokens: 8}
model:
  name: tower
  n_layer: 2
  n_head: 2
  n_embd: 16
optimizer: {name: means, lr: 1.0e-3}
lr_scheduler: {name: wave, warmup_steps: 5}
training: {max_steps: 40, batch_size: 4, gradient_accumulation_steps: 2, clip_grad_norm: 1.0}
validation: {every_n_steps: 10, max_batches: 2}
checkpoint: {save_every_n_steps: 5}
logging: {every_n_steps: 1}
"""
