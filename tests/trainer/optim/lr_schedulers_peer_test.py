# SPDX-License-Identifier: Apache-2.0
"""The schedules are those of torch.optim.lr_scheduler and transformers: factor(n) is Python's value
at index n."""

import json
import subprocess
import sys
import warnings

import torch
from torch.optim import lr_scheduler as lrs
from transformers import get_wsd_schedule

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


    yield from more_cases()


def more_cases():
    """Those that have a class of their own in torch or transformers."""
    warm = {"warmup_steps": WARMUP}
    for power in (1.0, 0.5, 3.0):
        def polynomial(length, power=power):
            return lambda o: lrs.PolynomialLR(o, length, power)

        config = {"power": power}
        yield (f"polynomial of power {power}", "polynomial", config,
               python(polynomial(TOTAL), TOTAL + 10))
        yield (f"polynomial of power {power} after a warm-up", "polynomial", config | warm,
               python(after_warmup(polynomial(TOTAL - WARMUP)), TOTAL))
    yield ("multi_step", "multi_step", {"milestones": [30, 31, 120], "gamma": 0.3},
           python(lambda o: lrs.MultiStepLR(o, [30, 31, 120], 0.3), TOTAL))
    yield ("multi_step after a warm-up", "multi_step", {"milestones": [50, 90]} | warm,
           python(after_warmup(lambda o: lrs.MultiStepLR(o, [50 - WARMUP, 90 - WARMUP])), TOTAL))
    yield ("exponential", "exponential", {"gamma": 0.97},
           python(lambda o: lrs.ExponentialLR(o, 0.97), TOTAL))
    yield ("exponential after a warm-up", "exponential", {"gamma": 0.97} | warm,
           python(after_warmup(lambda o: lrs.ExponentialLR(o, 0.97)), TOTAL))
    for mult in (1, 2, 3):
        def restarts(optimizer, mult=mult):
            return lrs.CosineAnnealingWarmRestarts(optimizer, 13, mult, eta_min=0.1)

        config = {"cycle_steps": 13, "cycle_mult": mult, "min_lr_ratio": 0.1}
        yield (f"restarts, cycles {mult} times as long", "cosine_with_restarts", config,
               python(restarts, TOTAL))
        yield (f"restarts, cycles {mult} times as long, after a warm-up", "cosine_with_restarts",
               config | warm, python(after_warmup(restarts), TOTAL))
    yield from one_cycles()
    yield from plateaus()
    yield from chains()


def one_cycles():
    """Step n has Python's value at index n - 1: index TOTAL is none of its cycle."""
    for config in ({}, {"pct_start": 0.1, "anneal_strategy": "linear"}, {"three_phase": True},
                   {"div_factor": 10.0, "final_div_factor": 100.0},
                   {"pct_start": 0.5, "three_phase": True, "anneal_strategy": "linear"}):
        def one_cycle(optimizer, config=config):
            return lrs.OneCycleLR(optimizer, max_lr=1.0, total_steps=TOTAL, cycle_momentum=False,
                                  **config)

        first = 1 / config.get("div_factor", 25.0)
        yield f"one_cycle {config}", "one_cycle", config, [first] + python(one_cycle, TOTAL - 1)


def plateaus():
    """transformers' WSD; without its warm-up, which begins at min_lr_ratio, where that is not 0."""
    for shape in ("linear", "cosine", "1-sqrt"):
        for low, warmup in ((0.0, WARMUP), (0.1, 0)):
            def wsd(optimizer, shape=shape, low=low, warmup=warmup):
                return get_wsd_schedule(optimizer, num_warmup_steps=warmup, num_decay_steps=60,
                                        num_training_steps=TOTAL, decay_type=shape,
                                        min_lr_ratio=low)

            config = {"warmup_steps": warmup, "cooldown_steps": 60, "decay_type": shape,
                      "min_lr_ratio": low}
            yield f"plateau, {shape} to {low}", "warmup_stable_decay", config, python(wsd, TOTAL)
    # Its defaults.
    yield ("plateau by default", "warmup_stable_decay", {"cooldown_steps": 60},
           python(lambda o: get_wsd_schedule(o, 0, 60, num_training_steps=TOTAL), TOTAL))


def chains():
    """SequentialLR has the next schedule's index 0 at a milestone; ours is the last step of the
    one before, here with the same value."""
    def chain(optimizer):
        return lrs.SequentialLR(optimizer, [
            lrs.LambdaLR(optimizer, lambda n: n / WARMUP),
            lrs.ConstantLR(optimizer, 1.0),
            lrs.CosineAnnealingLR(optimizer, TOTAL - 100, eta_min=0.1)], [WARMUP, 100])

    config = {"schedules": [{"name": "constant", "warmup_steps": WARMUP}, "constant",
                            {"name": "cosine", "min_lr_ratio": 0.1}],
              "milestones": [WARMUP, 100]}
    yield "chain", "chain", config, python(chain, TOTAL)


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
