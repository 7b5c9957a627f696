# SPDX-License-Identifier: Apache-2.0
"""batch_norm_probe's training with torch.nn.SyncBatchNorm in Python's DistributedDataParallel: one rank, on Gloo.

SyncBatchNorm takes GPUs alone: its five operations exist for nothing else. They stand here for CPUs, after what
PyTorch's kernels compute; modules, autograd function and collectives are Python's.

The environment says which rank (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT). Argument: the samples of each step and
rank, as JSON. Rank 0 prints the losses, and parameters and buffers after the last step.
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

LEARNING_RATE = 0.1
CHANNELS, PLACES = 3, 4


def values(tensor):
    """The dimensions of a channel's values."""
    return [dimension for dimension in range(tensor.dim()) if dimension != 1]


def over(tensor, channels):
    return channels.view([-1 if dimension == 1 else 1 for dimension in range(tensor.dim())])


def batch_norm_stats(tensor, eps):
    variance, mean = torch.var_mean(tensor, values(tensor), correction=0)
    return mean, (variance + eps).rsqrt()


def batch_norm_gather_stats_with_counts(tensor, means, inverses, running_mean, running_var, momentum, eps, counts):
    counts = counts.view(-1, 1)
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    variances = inverses**-2 - eps
    square = ((variances + (means - mean) ** 2) * counts).sum(0)
    if running_mean is not None:
        running_mean.lerp_(mean, momentum)
        running_var.lerp_(square / (total - 1), momentum)
    return mean, (square / total + eps).rsqrt()


def batch_norm_elemt(tensor, weight, bias, mean, inverse, eps):
    return (tensor - over(tensor, mean)) * over(tensor, inverse * weight) + over(tensor, bias)


def batch_norm_backward_reduce(gradient, tensor, mean, inverse, weight, *needs):
    sum_dy = gradient.sum(values(tensor))
    sum_dy_xmu = (gradient * (tensor - over(tensor, mean))).sum(values(tensor))
    return sum_dy, sum_dy_xmu, sum_dy_xmu * inverse, sum_dy


def batch_norm_backward_elemt(gradient, tensor, mean, inverse, weight, sum_dy, sum_dy_xmu, counts):
    total = counts.sum()
    distance = tensor - over(tensor, mean)
    return (gradient - over(tensor, sum_dy / total)
            - distance * over(tensor, inverse**2 * sum_dy_xmu / total)) * over(tensor, inverse * weight)


def work_on_cpus():
    for operation in (batch_norm_stats, batch_norm_gather_stats_with_counts, batch_norm_elemt,
                      batch_norm_backward_reduce, batch_norm_backward_elemt):
        setattr(torch, operation.__name__, operation)
    # One of the devices that SyncBatchNorm takes.
    torch._C._get_privateuse1_backend_name = lambda: "cpu"


def wave(shape, phase):
    return torch.sin(torch.arange(torch.Size(shape).numel(), dtype=torch.float64) * 0.37 + phase).view(shape)


class Block(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(CHANNELS * PLACES, 6)
        self.norm = torch.nn.BatchNorm1d(6)

    def forward(self, tensor):
        return torch.tanh(self.norm(self.linear(tensor)))


class Net(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.outer = torch.nn.BatchNorm1d(CHANNELS, momentum=None)
        self.block = Block()
        self.last = torch.nn.Linear(6, 2)
        self.double()
        with torch.no_grad():
            for phase, parameter in enumerate(self.parameters()):
                parameter.copy_(wave(parameter.shape, phase))

    def forward(self, tensor):
        return self.last(self.block(self.outer(tensor).flatten(1)))


def main():
    samples = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    work_on_cpus()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    net = Net()
    ddp = DistributedDataParallel(net)
    torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)  # now, as DDP takes one on GPUs alone, too
    losses = []
    for step, by_rank in enumerate(samples):
        begin, total = sum(by_rank[:rank]), sum(by_rank)
        part = wave((total, CHANNELS, PLACES), step)[begin:begin + by_rank[rank]]
        loss = ddp(part).square().sum() / total
        (loss * dist.get_world_size()).backward()
        of_all = loss.detach().clone()
        dist.all_reduce(of_all)
        losses.append(of_all.item())
        with torch.no_grad():
            for parameter in net.parameters():
                parameter -= LEARNING_RATE * parameter.grad
                parameter.grad = None
    if rank == 0:
        tensors = {name: tensor.double().flatten().tolist() for name, tensor in net.state_dict().items()}
        print(json.dumps({"losses": losses, "tensors": tensors}), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # as in ddp_peer.py


if __name__ == "__main__":
    main()
