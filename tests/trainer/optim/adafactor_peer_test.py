# SPDX-License-Identifier: Apache-2.0
"""50 steps of Adafactor are bitwise those of torch.optim.Adafactor, of matrices, vectors, and tensors of more
dimensions."""

import sys

import torch

from tests.trainer.optim import optimizer_runs

SHAPES = [(24, 40), (40, 24), (1, 19), (19, 1), (3, 5, 7), (17,), (300,)]
CASES = [
    {},
    {"beta2_decay": -0.5, "d": 2.0, "maximize": True},
    {"eps1": 1e-3, "eps2": 0.1, "weight_decay": 0.3},
]


def adafactor(config, weights):
    """As run_optimizer.cc groups parameters: the first one and matrices decay."""
    options = dict(config)
    decay = options.pop("weight_decay", 0.0)
    eps = (options.pop("eps1", None), options.pop("eps2", 1e-3))
    decays = [w for i, w in enumerate(weights) if i == 0 or w.ndim == 2]
    others = [w for i, w in enumerate(weights) if i != 0 and w.ndim != 2]
    groups = [{"params": decays, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}]
    return [(torch.optim.Adafactor(groups, eps=eps, **options), optimizer_runs.same)]


def main():
    torch.set_num_threads(1)
    for dtype in (torch.float32, torch.float64):
        for missing in ((), (1, 3, 5)):
            data = optimizer_runs.draw(SHAPES, dtype, missing)
            runs = optimizer_runs.ours(sys.argv[1], [("adafactor", case) for case in CASES], data)
            for case, actual in zip(CASES, runs, strict=True):
                expected = optimizer_runs.python(lambda weights, case=case: adafactor(case, weights), data)
                optimizer_runs.require_equal(
                    f"adafactor {case} {dtype}{' with gradients missing' if missing else ''}", actual, expected)


if __name__ == "__main__":
    main()
