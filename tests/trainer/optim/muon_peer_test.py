# SPDX-License-Identifier: Apache-2.0
"""50 steps of Muon are bitwise those of torch.optim.Muon and, of vectors, of torch.optim.AdamW."""

import json
import subprocess
import sys

import numpy
import torch

RUN_OPTIMIZER = sys.argv[1]
STEPS = 50
# Wide, tall, square, a single row, a column, and what AdamW moves.
SHAPES = [(24, 40), (40, 24), (32, 32), (1, 19), (19, 1), (17,)]
ADAMW = {"adamw_lr": 0.002, "adamw_betas": [0.8, 0.95], "adamw_eps": 1e-6}
CASES = [
    {},
    {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.3},
    {"nesterov": False, "momentum": 0.8, "ns_steps": 3},
    {"ns_coefficients": [3.0, -3.2, 1.2], "eps": 1e-3, "weight_decay": 0.0},
]


def draw(dtype, skip_some):
    """Parameters, learning rates, which gradients there are, and gradients."""
    generator = torch.Generator().manual_seed(11)

    def tensors():
        return [torch.randn(shape, generator=generator, dtype=dtype) for shape in SHAPES]

    rates = [0.05 / (1 + step) for step in range(STEPS)]
    present = [[not (skip_some and i in (1, 3) and step % 3 == 0) for i in range(len(SHAPES))]
               for step in range(STEPS)]
    return tensors(), rates, present, [tensors() for _ in range(STEPS)]


def ours(dtype, data):
    parameters, rates, present, gradients = data
    given = b"".join(p.numpy().tobytes() for p in parameters)
    for rate, there, grads in zip(rates, present, gradients):
        given += numpy.float64(rate).tobytes() + bytes(there) + b"".join(g.numpy().tobytes() for g in grads)
    arguments = [RUN_OPTIMIZER, "double" if dtype == torch.float64 else "float", str(STEPS),
                 ",".join("x".join(map(str, shape)) for shape in SHAPES)]
    for case in CASES:
        arguments += ["muon", json.dumps({"lr": 0.05, **ADAMW, **case})]
    printed = subprocess.run(arguments, input=given, check=True, stdout=subprocess.PIPE).stdout
    sizes = [torch.Size(shape).numel() for shape in SHAPES]
    flat = torch.frombuffer(bytearray(printed), dtype=dtype)
    return [[[part.view(shape) for part, shape in zip(row.split(sizes), SHAPES)] for row in case]
            for case in flat.view(len(CASES), STEPS, sum(sizes))]


def python(case, data):
    parameters, rates, present, gradients = data
    weights = [torch.nn.Parameter(p.clone()) for p in parameters]
    options = dict(case)
    if "ns_coefficients" in options:
        options["ns_coefficients"] = tuple(options["ns_coefficients"])
    muon = torch.optim.Muon([w for w in weights if w.ndim == 2], **{"weight_decay": 0.1, **options})
    adamw = torch.optim.AdamW([w for w in weights if w.ndim != 2], betas=tuple(ADAMW["adamw_betas"]),
                              eps=ADAMW["adamw_eps"], weight_decay=0.0, fused=True)
    history = []
    for rate, there, grads in zip(rates, present, gradients):
        for weight, has, grad in zip(weights, there, grads):
            weight.grad = grad.clone() if has else None
        muon.param_groups[0]["lr"] = rate
        adamw.param_groups[0]["lr"] = ADAMW["adamw_lr"] * (rate / 0.05)
        muon.step()
        adamw.step()
        history.append([w.detach().clone() for w in weights])
    return history


def check(dtype, skip_some):
    data = draw(dtype, skip_some)
    for case, actual in zip(CASES, ours(dtype, data), strict=True):
        what = f"muon {case} {dtype}{' with gradients missing' if skip_some else ''}"
        expected = python(case, data)
        for step, (mine, theirs) in enumerate(zip(actual, expected, strict=True), 1):
            for shape, a, e in zip(SHAPES, mine, theirs, strict=True):
                if not torch.equal(a, e):
                    raise SystemExit(f"{what}: {shape} differs at step {step} by "
                                     f"{(a - e).abs().max().item():.3e}")
        print(f"{what}: bitwise equal, last sum {expected[-1][0].sum().item():.17g}")


def main():
    torch.set_num_threads(1)
    for dtype in (torch.float32, torch.float64):
        for skip_some in (False, True):
            check(dtype, skip_some)


if __name__ == "__main__":
    main()
