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
from torch.nn.functional import embedding, linear, mse_loss

WIDTH, ROWS, RATE = 512, 32, 0.01
SMALL_ELEMENTS, MIDDLE_ELEMENTS, LARGE_ELEMENTS = 8, 1 << 18, 16 << 20  # to 1 MiB and 64 MiB
UNDER_WAY = 16  # asynchronous calls at a time
LARGE_SHARE = 20  # of the calls go with 1 MiB, and of these with 64 MiB
LAYERS, LAYER_WIDTH, MICRO_BATCHES = 8, 256, 8  # of both stages
WORDS, WORD_WIDTH, WORDS_OF_SAMPLE = 10000, 64, 8  # of the table that is looked up
TABLE_RATE = 20.0  # of its rows, and of what lies above them: their gradients are small


def first_values(number, rows, width):
    return torch.arange(rows * width, dtype=torch.float32).mul(0.1).add(number).sin().mul(0.02).view(rows, width)


# The server's.
weight = torch.zeros(WIDTH, WIDTH, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=RATE)
last_layers, words = [], []  # where they are trained


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


def apply(layers, hidden):
    for layer_weight in layers:
        hidden = hidden + linear(hidden, layer_weight).tanh()
    return hidden


def stage(numbers):
    return [first_values(number, LAYER_WIDTH, LAYER_WIDTH).requires_grad_() for number in numbers]


def make_last_stage():
    last_layers[:] = stage(range(LAYERS // 2, LAYERS))


def loss_of_last_stage(number, hidden):
    return mse_loss(apply(last_layers, hidden), places(number, LAYER_WIDTH).cos())


def make_table():
    words[:] = [first_values(1, WORDS, WORD_WIDTH).mul(10).requires_grad_()]


def look_up(numbers):
    return embedding(numbers, words[0])


def descend(context, parameters, rate):
    for parameter, gradient in dist_autograd.get_gradients(context).items():
        if any(parameter is each for each in parameters):
            parameter.detach().add_(gradient, alpha=-rate)


def descend_last_stage(context):
    descend(context, last_layers, RATE)


def descend_table(context):
    descend(context, words, TABLE_RATE)


# The trainer's.
def places(number, width):
    return torch.arange(ROWS * width, dtype=torch.float32).mul(0.01).add(number).view(ROWS, width)


def batch_of(number):
    at = places(number, WIDTH)
    return at.sin(), at.cos()


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


def by_stages():
    """As in PyTorch's tutorial of pipelines over RPC: micro-batches go on without waiting, then back all at once."""
    rpc.rpc_sync("worker1", make_last_stage)
    layers = stage(range(LAYERS // 2))

    def train(number):
        with dist_autograd.context() as context:
            losses = []
            for i in range(number * MICRO_BATCHES, (number + 1) * MICRO_BATCHES):
                hidden = apply(layers, places(i, LAYER_WIDTH).sin())
                losses.append(rpc.rpc_async("worker1", loss_of_last_stage, (i, hidden)))
            loss = sum(each / MICRO_BATCHES for each in torch.futures.wait_all(losses))
            dist_autograd.backward(context, [loss])
            elsewhere = rpc.rpc_async("worker1", descend_last_stage, (context,))
            descend(context, layers, RATE)
            elsewhere.wait()
        return loss.item()

    return train


def with_remote_table():
    rpc.rpc_sync("worker1", make_table)
    own = first_values(0, WORD_WIDTH, WORD_WIDTH).mul(10).requires_grad_()

    def train(number):
        ids = torch.arange(ROWS * WORDS_OF_SAMPLE).mul(7).add(13 * number).remainder(WORDS).view(ROWS, WORDS_OF_SAMPLE)
        with dist_autograd.context() as context:
            rows = rpc.rpc_sync("worker1", look_up, (ids,)).mean(1)
            loss = mse_loss(linear(rows, own), places(number, WORD_WIDTH).cos())
            dist_autograd.backward(context, [loss])
            elsewhere = rpc.rpc_async("worker1", descend_table, (context,))
            descend(context, [own], TABLE_RATE)
            elsewhere.wait()
        return loss.item()

    return train


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
    for name, way in (("stages", by_stages), ("remote_table", with_remote_table)):
        rates[name], losses[name] = rate_of(steps, way())
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
