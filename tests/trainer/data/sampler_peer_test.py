# SPDX-License-Identifier: Apache-2.0
"""The order of samples is that of torch.randperm and DistributedSampler."""

import subprocess
import sys

import torch
from torch.utils.data import DistributedSampler

PRINT_ORDER = sys.argv[1]


def cases():
    """Each case: its name, what to ask print_order, and Python's answer."""
    for samples in (1, 2, 7, 1000, 100003):
        for seed, epoch in ((0, 0), (1234, 5), (2**40, 1)):
            generator = torch.Generator()
            generator.manual_seed(seed + epoch)
            yield (f"randperm({samples}) seed {seed} epoch {epoch}",
                   (samples, seed, epoch, 1, 0, 1),
                   torch.randperm(samples, generator=generator).tolist())
    for samples, world in ((12, 1), (12, 3), (1000, 8)):
        for shuffle in (True, False):
            for rank in range(world):
                sampler = DistributedSampler(range(samples), world, rank, shuffle, seed=42)
                sampler.set_epoch(3)
                yield (f"DistributedSampler({samples}) rank {rank} of {world} shuffle {shuffle}",
                       (samples, 42, 3, int(shuffle), rank, world), list(sampler))


def main():
    asked = list(cases())
    questions = "".join(" ".join(map(str, question)) + "\n" for _, question, _ in asked)
    printed = subprocess.run([PRINT_ORDER], input=questions, text=True, check=True,
                             stdout=subprocess.PIPE).stdout.splitlines()
    for (what, _, expected), line in zip(asked, printed, strict=True):
        actual = [int(sample) for sample in line.split()]
        if actual != expected:
            raise SystemExit(f"{what}: {actual[:8]}..., but Python has {expected[:8]}...")
        print(f"{what}: {len(actual)} samples equal, {actual[:4]}...")


if __name__ == "__main__":
    main()
