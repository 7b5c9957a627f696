# SPDX-License-Identifier: Apache-2.0
"""50 steps of each optimizer are bitwise those of Python's, of its fused one where it has one, on the
same gradients."""

import json
import subprocess
import sys

import numpy
import torch

RUN_OPTIMIZER = sys.argv[1]
STEPS = 50
SIZES = [1000, 17, 4096]  # The first decays; more and less than one vector register.
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


def draw(dtype, skip_some):
    """Parameters, learning rates, which gradients there are, and gradients."""
    generator = torch.Generator().manual_seed(7)
    parameters = [torch.randn(size, generator=generator, dtype=dtype) for size in SIZES]
    rates = [0.05 / (1 + step) for step in range(STEPS)]
    present = [[not (skip_some and i == 1 and step % 3 == 0) for i in range(len(SIZES))]
               for step in range(STEPS)]
    gradients = [[torch.randn(size, generator=generator, dtype=dtype) for size in SIZES]
                 for _ in range(STEPS)]
    return parameters, rates, present, gradients


def ours(cases, dtype, data):
    """The parameters after every step, of every case."""
    parameters, rates, present, gradients = data
    given = b"".join(p.numpy().tobytes() for p in parameters)
    for rate, there, grads in zip(rates, present, gradients):
        given += numpy.float64(rate).tobytes() + bytes(there)
        given += b"".join(g.numpy().tobytes() for g in grads)
    arguments = [RUN_OPTIMIZER, "double" if dtype == torch.float64 else "float", str(STEPS),
                 ",".join(map(str, SIZES))]
    for name, config in cases:
        arguments += [name, json.dumps(config)]
    printed = subprocess.run(arguments, input=given, check=True, stdout=subprocess.PIPE).stdout
    flat = torch.frombuffer(bytearray(printed), dtype=dtype)
    return [[row.split(SIZES) for row in case] for case in flat.view(len(cases), STEPS, sum(SIZES))]


def python(name, config, data):
    parameters, rates, present, gradients = data
    weights = [torch.nn.Parameter(p.clone()) for p in parameters]
    decay = config.get("weight_decay", 0.01 if name == "adamw" else 0.0)
    groups = [{"params": weights[:1], "weight_decay": decay},
              {"params": weights[1:], "weight_decay": 0.0}]
    fused = {} if name == "rmsprop" else {"fused": True}
    optimizer = CLASSES[name](groups, **fused, **config)
    history = []
    for rate, there, grads in zip(rates, present, gradients):
        for weight, has, grad in zip(weights, there, grads):
            weight.grad = grad.clone() if has else None
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        history.append([w.detach().clone() for w in weights])
    return history


def compare(what, actual, expected):
    for step, (mine, theirs) in enumerate(zip(actual, expected, strict=True), 1):
        for i, (a, e) in enumerate(zip(mine, theirs, strict=True)):
            if not torch.equal(a, e):
                raise SystemExit(f"{what}: parameter {i} differs at step {step} by "
                                 f"{(a - e).abs().max().item():.3e}")
    print(f"{what}: bitwise equal, last sum {expected[-1][0].sum().item():.17g}")


def check(cases, dtype, skip_some):
    data = draw(dtype, skip_some)
    for (name, config), actual in zip(cases, ours(cases, dtype, data), strict=True):
        what = f"{name} {config} {dtype}{' with gradients missing' if skip_some else ''}"
        compare(what, actual, python(name, config, data))


def main():
    torch.set_num_threads(1)
    for dtype in (torch.float32, torch.float64):
        check(CASES, dtype, skip_some=False)
        # Python's fused SGD cannot start a momentum later than others.
        check([case for case in CASES if case[0] != "sgd"], dtype, skip_some=True)


if __name__ == "__main__":
    main()
