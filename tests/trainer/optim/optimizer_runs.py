# SPDX-License-Identifier: Apache-2.0
"""Runs of our optimizers (run_optimizer.cc) and of Python's, on the same parameters and gradients."""

import dataclasses
import json
import math
import subprocess

import numpy
import torch

STEPS = 50


@dataclasses.dataclass
class Data:
    """What a run begins with and is given: `rates` and the others have an entry a step."""
    shapes: list
    parameters: list
    rates: list
    present: list  # which parameters have a gradient
    gradients: list


def draw(shapes, dtype, missing=()):
    """Random numbers; the parameters at the positions `missing` have no gradient in every third step."""
    generator = torch.Generator().manual_seed(7)

    def tensors():
        return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]

    return Data(shapes=shapes, parameters=tensors(), rates=[0.05 / (1 + step) for step in range(STEPS)],
                present=[[i not in missing or step % 3 != 0 for i in range(len(shapes))] for step in range(STEPS)],
                gradients=[tensors() for _ in range(STEPS)])


def ours(binary, cases, data):
    """The parameters after every step, of every case (NAME, CONFIG)."""
    dtype = data.parameters[0].dtype
    given = b"".join(p.numpy().tobytes() for p in data.parameters)
    for rate, there, grads in zip(data.rates, data.present, data.gradients):
        given += numpy.float64(rate).tobytes() + bytes(there) + b"".join(g.numpy().tobytes() for g in grads)
    arguments = [binary, "double" if dtype == torch.float64 else "float", str(STEPS),
                 ",".join("x".join(map(str, shape)) for shape in data.shapes)]
    for name, config in cases:
        arguments += [name, json.dumps(config)]
    printed = subprocess.run(arguments, input=given, check=True, stdout=subprocess.PIPE).stdout
    sizes = [math.prod(shape) for shape in data.shapes]
    flat = torch.frombuffer(bytearray(printed), dtype=dtype)
    return [[[part.view(shape) for part, shape in zip(row.split(sizes), data.shapes)] for row in case]
            for case in flat.view(len(cases), STEPS, sum(sizes))]


def same(rate):
    """For `python`: the step's rate itself."""
    return rate


def python(make, data):
    """The same of Python's: `make(weights)` gives optimizers, each with what it makes of a step's rate."""
    weights = [torch.nn.Parameter(p.clone()) for p in data.parameters]
    optimizers = make(weights)
    history = []
    for rate, there, grads in zip(data.rates, data.present, data.gradients):
        for weight, has, grad in zip(weights, there, grads):
            weight.grad = grad.clone() if has else None
        for optimizer, rate_of in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate_of(rate)
            optimizer.step()
        history.append([w.detach().clone() for w in weights])
    return history


def require_equal(what, actual, expected):
    """To the last bit."""
    for step, (mine, theirs) in enumerate(zip(actual, expected, strict=True), 1):
        for i, (a, e) in enumerate(zip(mine, theirs, strict=True)):
            if not torch.equal(a, e):
                raise SystemExit(f"{what}: parameter {i} {list(a.shape)} differs at step {step} by "
                                 f"{(a - e).abs().max().item():.3e}")
    print(f"{what}: bitwise equal, last sum {expected[-1][0].sum().item():.17g}")
