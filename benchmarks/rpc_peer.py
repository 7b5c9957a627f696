# SPDX-License-Identifier: Apache-2.0
"""Python's side of benchmarks/rpc: the same calls and training by torch.distributed.rpc."""

import argparse
import json
import os
import time

import torch
import torch.distributed.autograd as dist_autograd
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp
from torch.nn.functional import linear, mse_loss

WIDTH, ROWS, RATE = 512, 32, 0.01
SMALL_ELEMENTS, MIDDLE_ELEMENTS, LARGE_ELEMENTS = 8, 1 << 18, 16 << 20  # to 1 MiB and 64 MiB
UNDER_WAY = 16  # asynchronous calls at a time
LARGE_SHARE = 20  # of the calls go with 1 MiB, and of these with 64 MiB

# The server's.
weight = torch.zeros(WIDTH, WIDTH, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=RATE)


def same(values):
    return values


def take(_):
    return None


@torch.no_grad()
def reset():
    weight.copy_(torch.arange(WIDTH * WIDTH, dtype=torch.float32).mul(0.1).sin().mul(0.01).view_as(weight))


def layer(batch):
    return linear(batch, weight)


def push(gradient):
    weight.grad = gradient
    optimizer.step()
    weight.grad = None


def step(context):
    push(dist_autograd.get_gradients(context)[weight])


def pull():
    return weight.detach()


# The trainer's.
def batch_of(number):
    places = torch.arange(ROWS * WIDTH, dtype=torch.float32).mul(0.01).add(number)
    return places.sin().view(ROWS, WIDTH), places.cos().view(ROWS, WIDTH)


def train_through_calls(number):
    batch, target = batch_of(number)
    with dist_autograd.context() as context:
        loss = mse_loss(rpc.rpc_sync("worker1", layer, (batch,)), target)
        dist_autograd.backward(context, [loss])
        rpc.rpc_sync("worker1", step, (context,))
    return loss.item()


def train_by_pulls(number):
    batch, target = batch_of(number)
    own = rpc.rpc_sync("worker1", pull).requires_grad_()
    loss = mse_loss(linear(batch, own), target)
    loss.backward()
    rpc.rpc_sync("worker1", push, (own.grad,))
    return loss.item()


def rate_of(count, action):
    """How many there were in a second, after a tenth of them that does not count; and what the last one gave."""
    before = count // 10 + 1
    for number in range(before):
        action(number)
    begin = time.perf_counter()
    for number in range(before, before + count):
        result = action(number)
    return count / (time.perf_counter() - begin), result


def measure(calls, steps):
    def exchange(function, elements, count):
        tensor = torch.ones(elements)
        return rate_of(count, lambda _: rpc.rpc_sync("worker1", function, (tensor,)))[0]

    def several(_):
        tensor = torch.ones(SMALL_ELEMENTS)
        torch.futures.wait_all([rpc.rpc_async("worker1", same, (tensor,)) for _ in range(UNDER_WAY)])

    def train(way):
        rpc.rpc_sync("worker1", reset)
        return rate_of(steps, way)

    middle = calls // LARGE_SHARE + 1
    rates = {
        "call": exchange(same, SMALL_ELEMENTS, calls),
        "async_call": UNDER_WAY * rate_of(calls // UNDER_WAY + 1, several)[0],
        "ping_pong_1_mib": exchange(same, MIDDLE_ELEMENTS, middle),
        "send_64_mib": exchange(take, LARGE_ELEMENTS, middle // LARGE_SHARE + 1),
    }
    losses = {}
    for name, way in (("step", train_through_calls), ("pull_and_push", train_by_pulls)):
        rates[name], losses[name] = train(way)
    print(json.dumps({"rates": rates, "losses": losses}))


def run(rank, arguments):
    torch.set_num_threads(1)
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{arguments.port}",
                                              _transports=arguments.transports, _channels=arguments.channels)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=2, rpc_backend_options=options)
    if rank == 0:
        measure(arguments.calls, arguments.steps)
    rpc.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("calls", type=int)
    parser.add_argument("steps", type=int)
    for what in ("transports", "channels"):
        parser.add_argument(f"--{what}", type=lambda names: names.split(","), help="TensorPipe's; none: all that there are")
    os.environ.setdefault("TP_SOCKET_IFNAME", "lo")
    mp.spawn(run, (parser.parse_args(),), nprocs=2)


if __name__ == "__main__":
    main()
