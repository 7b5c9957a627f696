# SPDX-License-Identifier: Apache-2.0
"""The schedules are those of torch.optim.lr_scheduler: factor(n) is Python's value at index n."""

import json
import subprocess
import sys
import warnings

import torch
from torch.optim import lr_scheduler as lrs

PRINT_FACTORS = sys.argv[1]
TOTAL = 200
WARMUP = 20
TOLERANCE = 1e-12


def python(make, steps):
    """The learning rates at indices 1 to steps, for a base of 1."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = make(optimizer)
    rates = []
    for _ in range(steps):
        optimizer.step()
        schedule.step()
        rates.append(schedule.get_last_lr()[0])
    return rates


def after_warmup(make_decay):
    """A line from 0 at index 0 to 1 at index WARMUP, the decay from there on."""
    def make(optimizer):
        up = lrs.LambdaLR(optimizer, lambda n: n / WARMUP)
        return lrs.SequentialLR(optimizer, [up, make_decay(optimizer)], [WARMUP])
    return make


def cases():
    """Each case: its name, the schedule, its config, and Python's rates."""
    warm = {"warmup_steps": WARMUP}
    yield "constant", "constant", {}, python(lambda o: lrs.ConstantLR(o, 1.0), TOTAL)
    yield ("warm-up as LambdaLR", "constant", warm,
           python(lambda o: lrs.LambdaLR(o, lambda n: min(1, n / WARMUP)), TOTAL))
    # LinearLR cannot start at 0: its index n is our step n + 1.
    yield ("warm-up as LinearLR", "constant", warm,
           [1 / WARMUP] + python(lambda o: lrs.LinearLR(o, 1 / WARMUP, 1.0, WARMUP - 1), TOTAL))
    yield ("inverse square root as LambdaLR", "inverse_sqrt", warm,
           python(lambda o: lrs.LambdaLR(o, lambda n: min(n / WARMUP, (WARMUP / max(n, 1)) ** 0.5)),
                  5 * TOTAL))
    for low in (0.0, 0.1):
        def linear(length):
            return lambda o: lrs.LinearLR(o, 1.0, low, length)

        def cosine(length):
            return lambda o: lrs.CosineAnnealingLR(o, length, eta_min=low)

        for name, decay in (("linear", linear), ("cosine", cosine)):
            config = {"min_lr_ratio": low}
            yield f"{name} to {low}", name, config, python(decay(TOTAL), TOTAL)
            yield (f"{name} to {low} after a warm-up", name, config | warm,
                   python(after_warmup(decay(TOTAL - WARMUP)), TOTAL))


def main():
    warnings.simplefilter("ignore")  # SequentialLR calls its own deprecated argument.
    asked = list(cases())
    questions = "".join(f"{name} {len(rates)} {json.dumps(config)}\n"
                        for _, name, config, rates in asked)
    printed = subprocess.run([PRINT_FACTORS, str(TOTAL)], input=questions, text=True, check=True,
                             stdout=subprocess.PIPE).stdout.splitlines()
    for (what, _, _, expected), line in zip(asked, printed, strict=True):
        actual = [float(factor) for factor in line.split()]
        worst = max(abs(a - e) for a, e in zip(actual, expected, strict=True))
        print(f"{what}: {len(actual)} steps, largest difference {worst:.2e}")
        if not worst <= TOLERANCE:
            raise SystemExit(f"{what}: more than {TOLERANCE}")


if __name__ == "__main__":
    main()
