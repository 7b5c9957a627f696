# SPDX-License-Identifier: Apache-2.0
"""One of Python's ranks in a group with ours (collectives_probe.cc), operation by operation.

Arguments: the store's port, this rank, the world size, and who serves the store: "here" or "there".
Prints {operation: values} as JSON.
"""

import datetime
import json
import sys

import torch
import torch.distributed as dist

TIMEOUT = datetime.timedelta(seconds=60)
DTYPES = {"Float": torch.float32, "Half": torch.float16, "BFloat16": torch.bfloat16, "Int": torch.int32,
          "Byte": torch.uint8, "Char": torch.int8}


class Peer:

    def __init__(self, group, rank):
        self.group, self.rank, self.results = group, rank, {}

    def note(self, name, tensor):
        self.results[name] = tensor.double().flatten().tolist()

    def own(self, dtype=torch.float64):
        return torch.tensor([self.rank + 1, 2 * (self.rank + 1)]).to(dtype)

    def options(self, kind, **fields):
        options = kind()
        for name, value in fields.items():
            setattr(options, name, value)
        return options

    def all_reduce(self, values, operation=dist.ReduceOp.SUM):
        self.group.allreduce([values], self.options(dist.AllreduceOptions, reduceOp=operation)).wait()
        return values

    def run(self):
        self.reductions()
        self.from_and_to_one()
        self.gathers()
        self.exchanges()
        self.transfers()
        self.of_nothing()
        self.group.barrier().wait()
        self.group.monitored_barrier(TIMEOUT, True)
        return self.results

    def reductions(self):
        for name in ["sum", "avg", "product", "min", "max", "band", "bor", "bxor"]:
            values = self.own(torch.int64 if name[0] == "b" else torch.float64)
            self.note(f"all_reduce {name}", self.all_reduce(values, getattr(dist.ReduceOp, name.upper())))
        for name, dtype in DTYPES.items():
            self.note(f"all_reduce of {name}", self.all_reduce(self.own(dtype)))
        self.note("all_reduce of nothing", self.all_reduce(torch.empty(0)))
        two = [self.own(), torch.full((3,), float(self.rank), dtype=torch.float64)]
        self.group.allreduce_coalesced(two, dist.AllreduceCoalescedOptions()).wait()
        self.note("coalesced 0", two[0])
        self.note("coalesced 1", two[1])

    def from_and_to_one(self):
        for root, whose in [(1, "ours"), (2, "theirs")]:
            word = self.own()
            self.group.broadcast([word], self.options(dist.BroadcastOptions, rootRank=root)).wait()
            self.note(f"broadcast from {whose}", word)
        for root in [1, 2]:
            sum_ = self.own()
            options = self.options(dist.ReduceOptions, rootRank=root, reduceOp=dist.ReduceOp.MAX)
            self.group.reduce([sum_], options).wait()
            if self.rank == root:
                self.note("reduce", sum_)
        for root in [1, 2]:
            parts = [[torch.empty(2, dtype=torch.float64) for _ in range(4)]] if self.rank == root else []
            self.group.gather(parts, [self.own()], self.options(dist.GatherOptions, rootRank=root)).wait()
            if self.rank == root:
                self.note("gather", torch.cat(parts[0]))
        for root in [1, 2]:
            part = torch.empty(2, dtype=torch.float64)
            parts = [list(torch.arange(8.0, dtype=torch.float64).chunk(4))] if self.rank == root else []
            self.group.scatter([part], parts, self.options(dist.ScatterOptions, rootRank=root)).wait()
            self.note(f"scatter from {root}", part)

    def gathers(self):
        whole = torch.empty(8, dtype=torch.float64)
        self.group._allgather_base(whole, self.own()).wait()
        self.note("all_gather", whole)
        for name in ["sum", "max"]:
            part = torch.empty(2, dtype=torch.float64)
            options = self.options(dist.ReduceScatterOptions, reduceOp=getattr(dist.ReduceOp, name.upper()))
            values = torch.arange(8.0, dtype=torch.float64) + self.rank
            self.group._reduce_scatter_base(part, values, options).wait()
            self.note(f"reduce_scatter {name}", part)

    def exchanges(self):
        even = torch.empty(4, dtype=torch.float64)
        self.group.alltoall_base(even, torch.arange(4.0, dtype=torch.float64) + 10 * self.rank, [], []).wait()
        self.note("all_to_all", even)
        uneven = torch.empty(4 * self.rank, 2, dtype=torch.float64)
        values = (torch.arange(12.0, dtype=torch.float64) + 100 * self.rank).view(6, 2)
        self.group.alltoall_base(uneven, values, [self.rank] * 4, [0, 1, 2, 3]).wait()
        self.note("uneven all_to_all", uneven)

    def transfers(self):
        received = torch.empty(2, dtype=torch.float64)
        pending = [self.group.send([self.own()], (self.rank + 1) % 4, 5),
                   self.group.recv([received], (self.rank + 3) % 4, 5)]
        for each in pending:
            each.wait()
        self.note("ring", received)
        if self.rank == 2:
            received = torch.empty(2, dtype=torch.float64)
            work = self.group.recv_anysource([received], 8)
            work.wait()
            self.results["any source"] = work._source_rank()
            self.note("any", received)
        else:
            self.group.send([self.own()], 1, 7).wait()

    def of_nothing(self):
        nothing = torch.empty(0)
        self.group.broadcast([nothing], self.options(dist.BroadcastOptions, rootRank=2)).wait()
        self.group.reduce([nothing], self.options(dist.ReduceOptions, rootRank=1)).wait()
        self.group._allgather_base(torch.empty(0), nothing).wait()
        self.group.alltoall_base(torch.empty(0), nothing, [], []).wait()
        self.note("nothing", nothing)


def main():
    port, rank, world_size, served = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, None, served == "here", TIMEOUT, wait_for_workers=False)
    group = dist.ProcessGroupGloo(dist.PrefixStore("world/group", store), rank, world_size, TIMEOUT)
    print(json.dumps(Peer(group, rank).run()))
    store.set(f"done/{rank}", "")
    if served == "here":
        store.wait([f"done/{each}" for each in range(world_size)], TIMEOUT)


if __name__ == "__main__":
    main()
