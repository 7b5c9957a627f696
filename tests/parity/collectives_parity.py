# SPDX-License-Identifier: Apache-2.0
"""Every operation of Python's Gloo in one group of two of Python's ranks and two of ours.

All ranks must get what the operation's definition says, whoever serves the store.
"""

import json
import math
import os
import subprocess
import sys
import unittest

from tests.ports import free_port

PROBE, PEER = sys.argv.pop(1), sys.argv.pop(1)
WORLD_SIZE = 4
OURS = (1, 3)

OWN = [[rank + 1, 2 * (rank + 1)] for rank in range(WORLD_SIZE)]
COLUMNS = list(zip(*OWN))


def reduced(function):
    return [function(column) for column in COLUMNS]


def bits(operation):
    values = []
    for first, *others in COLUMNS:
        for other in others:
            first = operation(first, other)
        values.append(first)
    return values


def expected(rank):
    """By the definition of each operation."""
    total = reduced(sum)
    by_name = {
        "all_reduce sum": total,
        "all_reduce avg": [value / WORLD_SIZE for value in total],
        "all_reduce product": reduced(math.prod),
        "all_reduce min": reduced(min),
        "all_reduce max": reduced(max),
        "all_reduce band": bits(lambda a, b: a & b),
        "all_reduce bor": bits(lambda a, b: a | b),
        "all_reduce bxor": bits(lambda a, b: a ^ b),
        "all_reduce of nothing": [],
        "nothing": [],
        "coalesced 0": total,
        "coalesced 1": [6] * 3,
        "broadcast from ours": OWN[1],
        "broadcast from theirs": OWN[2],
        "scatter from 1": [2 * rank, 2 * rank + 1],
        "scatter from 2": [2 * rank, 2 * rank + 1],
        "all_gather": sum(OWN, []),
        "reduce_scatter sum": [4 * i + 6 for i in (2 * rank, 2 * rank + 1)],
        "reduce_scatter max": [i + 3 for i in (2 * rank, 2 * rank + 1)],
        "all_to_all": [10 * other + rank for other in range(WORLD_SIZE)],
        # Rank r's rows for rank k begin behind those for the ranks before it.
        "uneven all_to_all": [100 * other + 2 * sum(range(rank)) + i
                              for other in range(WORLD_SIZE) for i in range(2 * rank)],
        "ring": OWN[(rank - 1) % WORLD_SIZE],
    }  # fmt: skip
    for dtype in ["Float", "Half", "BFloat16", "Int", "Byte", "Char"]:
        by_name[f"all_reduce of {dtype}"] = total
    if rank in (1, 2):
        by_name |= {"reduce": reduced(max), "gather": sum(OWN, [])}
    return by_name


class CollectivesParityTest(unittest.TestCase):

    def results(self, server):
        """By rank; `server` serves the store."""
        port = str(free_port())
        environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo"}
        processes = []
        for rank in range(WORLD_SIZE):
            program = [PROBE] if rank in OURS else [sys.executable, PEER]
            served = "here" if rank == server else "there"
            processes.append(subprocess.Popen([*program, port, str(rank), str(WORLD_SIZE), served], text=True,
                                              stdout=subprocess.PIPE, env=environment))
        printed = [process.communicate(timeout=240)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [0] * WORLD_SIZE)
        return [json.loads(text) for text in printed]

    def compare(self, server):
        for rank, result in enumerate(self.results(server)):
            source, received = result.pop("any source", None), result.pop("any", None)
            if rank in (1, 2):  # ours hears Python's ranks, and Python's ours
                self.assertEqual(source, {1: 0, 2: 3}[rank])
                self.assertEqual(received, OWN[source])
            self.assertEqual(result, expected(rank), f"rank {rank}")

    def test_in_a_store_that_python_serves(self):
        self.compare(server=0)

    def test_in_a_store_of_ours(self):
        self.compare(server=1)


if __name__ == "__main__":
    unittest.main()
