# SPDX-License-Identifier: Apache-2.0
"""50 steps of each optimizer are bitwise those of Python's, of its fused one where it has one, on the
same gradients."""

import sys

import torch

from tests.trainer.optim import optimizer_runs

SHAPES = [(1000,), (17,), (4096,)]  # The first decays; more and less than one vector register.
CLASSES = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
           "adagrad": torch.optim.Adagrad, "rmsprop": torch.optim.RMSprop}
CASES = [
    ("sgd", {}),
    ("sgd", {"weight_decay": 0.1}),
    ("sgd", {"momentum": 0.9}),
    ("sgd", {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1}),
    ("sgd", {"momentum": 0.9, "nesterov": True}),
    ("sgd", {"momentum": 0.9, "maximize": True}),
    ("adam", {}),
    ("adam", {"betas": [0.8, 0.95], "weight_decay": 0.1}),
    ("adam", {"amsgrad": True}),
    ("adamw", {}),
    ("adamw", {"betas": [0.9, 0.95], "eps": 1e-6, "weight_decay": 0.1}),
    ("adamw", {"amsgrad": True, "maximize": True}),
    ("adagrad", {}),
    ("adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "eps": 1e-6}),
    ("adagrad", {"initial_accumulator_value": 0.5, "maximize": True}),
    ("rmsprop", {}),
    ("rmsprop", {"alpha": 0.9, "eps": 1e-6, "weight_decay": 0.1}),
    ("rmsprop", {"momentum": 0.9}),
    ("rmsprop", {"centered": True, "maximize": True, "weight_decay": 0.1}),
    ("rmsprop", {"centered": True, "momentum": 0.5}),
]


def optimizer(name, config, weights):
    """As run_optimizer.cc groups them: the first one decays."""
    decay = config.get("weight_decay", 0.01 if name == "adamw" else 0.0)
    groups = [{"params": weights[:1], "weight_decay": decay}, {"params": weights[1:], "weight_decay": 0.0}]
    fused = {} if name == "rmsprop" else {"fused": True}
    return [(CLASSES[name](groups, **fused, **config), optimizer_runs.same)]


def check(cases, dtype, missing=()):
    data = optimizer_runs.draw(SHAPES, dtype, missing)
    for (name, config), actual in zip(cases, optimizer_runs.ours(sys.argv[1], cases, data), strict=True):
        expected = optimizer_runs.python(
            lambda weights, name=name, config=config: optimizer(name, config, weights), data)
        optimizer_runs.require_equal(
            f"{name} {config} {dtype}{' with gradients missing' if missing else ''}", actual, expected)


def main():
    torch.set_num_threads(1)
    for dtype in (torch.float32, torch.float64):
        check(CASES, dtype)
        # Python's fused SGD cannot start a momentum later than others.
        check([case for case in CASES if case[0] != "sgd"], dtype, missing=(1,))


if __name__ == "__main__":
    main()
