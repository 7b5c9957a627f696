# SPDX-License-Identifier: Apache-2.0
"""The schedule plateau is torch's ReduceLROnPlateau, over random values: the same bits after each.

Torch leaves out reductions by less than its eps, 1e-8 of a learning rate; ours has none, so eps is 0 here.
"""

import json
import random
import subprocess
import sys

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

PRINT_PLATEAU = sys.argv[1]
CASES = 300
VALUES = 60


def draw(random_numbers):
    """A config of ours, the arguments of torch's, and values: a falling line with noise, repeats and, at times, no
    numbers."""
    shared = {"mode": random_numbers.choice(["min", "max"]), "factor": random_numbers.choice([0.0, 0.1, 0.5, 0.9]),
              "patience": random_numbers.randrange(5), "threshold": random_numbers.choice([0.0, 1e-4, 0.05]),
              "threshold_mode": random_numbers.choice(["rel", "abs"]), "cooldown": random_numbers.randrange(4)}
    low = random_numbers.choice([0.0, 0.01, 0.2])
    noise = random_numbers.choice([0.01, 0.3])
    values = []
    for n in range(VALUES):
        value = (1 - n / VALUES) ** 4 + noise * random_numbers.gauss(0, 1)
        value = random_numbers.choice([value, value, round(value, 1)])
        if random_numbers.random() < 0.02:
            value = random_numbers.choice([float("nan"), float("inf"), float("-inf")])
        values.append(-value if shared["mode"] == "max" else value)
    return shared | {"min_lr_ratio": low}, shared | {"min_lr": low, "eps": 0.0}, values


def python(arguments, values):
    """The learning rate behind each value, for a base of 1."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = ReduceLROnPlateau(optimizer, **arguments)
    rates = []
    for value in values:
        schedule.step(value)
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


def main():
    random_numbers = random.Random(7)
    drawn = [draw(random_numbers) for _ in range(CASES)]
    lines = [f"{json.dumps(config)}\n{' '.join(map(str, values))}\n" for config, _, values in drawn]
    printed = subprocess.run([PRINT_PLATEAU], input="".join(lines), text=True, check=True,
                             stdout=subprocess.PIPE).stdout.splitlines()
    assert len(printed) == CASES
    falls = 0
    for line, (config, arguments, values) in zip(printed, drawn, strict=True):
        ours, theirs = [float(rate) for rate in line.split()], python(arguments, values)
        assert ours == theirs, f"{config}\n{values}\nours {ours}\ntheirs {theirs}"
        falls += len(set(theirs)) - 1
    assert falls > CASES, "the rates fall"
    print(f"{CASES} sequences of {VALUES} values, {falls} falls: the same bits")


if __name__ == "__main__":
    main()
