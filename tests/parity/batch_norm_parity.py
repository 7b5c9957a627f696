# SPDX-License-Identifier: Apache-2.0
"""Synchronized batch normalization in DDP and FULL_SHARD, against torch.nn.SyncBatchNorm in Python's DDP, in fp64."""

import json
import os
import subprocess
import sys
import unittest

from tests.ports import free_port

PROBE, PEER = sys.argv.pop(1), sys.argv.pop(1)
RANKS = 2
TOLERANCE = 1e-10
# By step and rank: even, uneven, ranks without a sample or with one, and an uneven last step.
SAMPLES = [[4, 4], [3, 2], [4, 0], [0, 3], [4, 1], [1, 1], [4, 4], [5, 2]]


def run(program):
    """What rank 0 prints."""
    environment = os.environ | {"WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
                                "MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    processes = [subprocess.Popen([*program, json.dumps(SAMPLES)], text=True, stdout=subprocess.PIPE,
                                  env=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
                 for rank in range(RANKS)]
    printed = [process.communicate(timeout=240)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * RANKS, printed
    return json.loads(printed[0])


class BatchNormParityTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.expected = run([sys.executable, PEER])

    def compare(self, strategy):
        found = run([PROBE, strategy])
        self.assertEqual(found["tensors"].keys(), self.expected["tensors"].keys())
        rows = {"losses": (found["losses"], self.expected["losses"])}
        rows |= {name: (found["tensors"][name], self.expected["tensors"][name]) for name in found["tensors"]}
        for name, (here, there) in rows.items():
            with self.subTest(name):
                self.assertEqual(len(here), len(there))
                most = max(abs(a - b) for a, b in zip(here, there))
                self.assertLessEqual(most, TOLERANCE)

    def test_ddp(self):
        self.assertGreater(abs(self.expected["losses"][0] - self.expected["losses"][-1]), 0.01, "it moves")
        self.compare("ddp")

    def test_full_shard(self):
        self.compare("full_shard")


if __name__ == "__main__":
    unittest.main()
