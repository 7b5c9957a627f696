# SPDX-License-Identifier: Apache-2.0
"""50 steps of Muon are bitwise those of torch.optim.Muon and, of vectors, of torch.optim.AdamW."""

import sys

import torch

from tests.trainer.optim import optimizer_runs

# What AdamW moves with its weight decay and without: run_optimizer has the first decay, and the last not. Between
# them matrices: wide, tall, square, a single row, a column.
SHAPES = [(13,), (24, 40), (40, 24), (32, 32), (1, 19), (19, 1), (17,)]
LR = 0.05
ADAMW = {"adamw_lr": 0.002, "adamw_betas": [0.8, 0.95], "adamw_eps": 1e-6}
CASES = [
    {},
    {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.3},
    {"nesterov": False, "momentum": 0.8, "ns_steps": 3, "adamw_weight_decay": 0.4},
    {"ns_coefficients": [3.0, -3.2, 1.2], "eps": 1e-3, "weight_decay": 0.0},
]


def muon(config, weights):
    options = {"weight_decay": 0.1, **config}
    decay = options.pop("adamw_weight_decay", 0.01)
    if "ns_coefficients" in options:
        options["ns_coefficients"] = tuple(options["ns_coefficients"])
    vectors = [{"params": [weights[0]], "weight_decay": decay}, {"params": [weights[-1]], "weight_decay": 0.0}]
    return [
        (torch.optim.Muon([w for w in weights if w.ndim == 2], **options), optimizer_runs.same),
        (torch.optim.AdamW(vectors, betas=tuple(ADAMW["adamw_betas"]), eps=ADAMW["adamw_eps"], fused=True),
         lambda rate: ADAMW["adamw_lr"] * (rate / LR)),
    ]


def main():
    torch.set_num_threads(1)
    for dtype in (torch.float32, torch.float64):
        for missing in ((), (0, 1, 3)):
            data = optimizer_runs.draw(SHAPES, dtype, missing)
            cases = [("muon", {"lr": LR, **ADAMW, **case}) for case in CASES]
            for case, actual in zip(CASES, optimizer_runs.ours(sys.argv[1], cases, data), strict=True):
                expected = optimizer_runs.python(lambda weights, case=case: muon(case, weights), data)
                optimizer_runs.require_equal(
                    f"muon {case} {dtype}{' with gradients missing' if missing else ''}", actual, expected)


if __name__ == "__main__":
    main()
