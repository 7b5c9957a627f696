# SPDX-License-Identifier: Apache-2.0
"""ceilings_probe.py DEVICE SIZE MEGABYTES: prints what a product of SIZE³ and a copy reach, as JSON."""

import json
import statistics
import sys
import time

import torch

ROUNDS, WARM_UP = 10, 3


def median_seconds(work, device):
    times = []
    for _ in range(WARM_UP + ROUNDS):
        began = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return statistics.median(times[WARM_UP:])


def main():
    device, size, megabytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.manual_seed(0)
    left, right = (torch.randn(size, size, device=device).bfloat16() for _ in range(2))  # zeros would be faster
    product = torch.empty_like(left)
    seconds = median_seconds(lambda: torch.mm(left, right, out=product), device)
    source = torch.randint(0, 255, (megabytes << 20,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copying = median_seconds(lambda: target.copy_(source), device)
    print(json.dumps({"product_tflops": round(2 * size**3 / seconds / 1e12, 4),
                      "copy_gigabytes_per_second": round(2 * source.numel() / copying / 1e9, 1)}))


main()
