# SPDX-License-Identifier: Apache-2.0
"""Python's side of benchmarks/rpc: the same calls by torch.distributed.rpc."""

import json
import os
import statistics
import sys
import time

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

WIDTH = 512
LARGE_ELEMENTS = 16 << 20  # 64 MiB

weight = torch.full((WIDTH, WIDTH), 0.01, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=1e-4)


def same(values):
    return values


def take(_):
    return None


def layer(batch):
    return torch.nn.functional.linear(batch, weight)


def step(context):
    weight.grad = dist_autograd.get_gradients(context)[weight]
    optimizer.step()
    weight.grad = None


def median_ms(count, action):
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        action()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def measure():
    small, large = torch.ones(8), torch.ones(LARGE_ELEMENTS)
    batch = torch.full((32, WIDTH), 0.01)

    def call():
        rpc.rpc_sync("worker1", same, (small,))

    def send():
        rpc.rpc_sync("worker1", take, (large,))

    def train():
        with dist_autograd.context() as context:
            answer = rpc.rpc_sync("worker1", layer, (batch,))
            dist_autograd.backward(context, [answer.square().mean()])
            rpc.rpc_sync("worker1", step, (context,))

    for count, action in ((20, call), (2, send), (20, train)):
        median_ms(count, action)
    print(json.dumps({"call_ms": median_ms(1000, call), "send_64_mib_ms": median_ms(20, send),
                      "step_ms": median_ms(300, train)}))


def run(rank, port):
    torch.set_num_threads(1)
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}")
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2, rpc_backend_options=options)
    if rank == 0:
        measure()
    rpc.shutdown()


if __name__ == "__main__":
    os.environ.setdefault("TP_SOCKET_IFNAME", "lo")
    mp.spawn(run, (int(sys.argv[1]),), nprocs=2)
