# SPDX-License-Identifier: Apache-2.0
"""A checkpoint of several ranks and hosts opens without us, by what docs/checkpoint_format.md says."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors.torch import load_file

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from read_checkpoint import read_checkpoint

SAVE_EXAMPLE = os.path.abspath(sys.argv.pop())


class Reader(unittest.TestCase):
    def save(self, ranks, hosts):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        subprocess.run([SAVE_EXAMPLE, folder.name, str(ranks), str(hosts)], check=True)
        return pathlib.Path(folder.name) / "step-00000007"

    def test_a_stranger_reads_all_tensors(self):
        for ranks, hosts in ((1, 1), (2, 1), (3, 2), (4, 4)):
            folder = self.save(ranks, hosts)
            manifest, parts = read_checkpoint(folder)
            self.assertEqual(manifest["state"]["step"], 7)
            self.assertEqual(manifest["world_size"], ranks)
            count = 0
            for part in ("model", "optimizer"):
                for name, tensor in parts[part].items():
                    expected = torch.arange(tensor.numel(), dtype=torch.float32).reshape(tensor.shape)
                    self.assertTrue(torch.equal(tensor, expected), name)
                    count += 1
            self.assertEqual(count, 7)
            self.assertEqual(parts["optimizer"]["matrix.m"].shape, (6, 8))
            self.assertEqual(manifest["format_version"], 2 if ranks == 1 else 3)
            for rank in range(ranks):
                state = parts["rng"][f"rank_{rank}.cpu"]
                self.assertTrue(torch.equal(state, torch.full((16,), rank, dtype=torch.uint8)))
            print(f"{ranks} ranks on {hosts} hosts: {count} tensors, {len(manifest['files'])} files")

    def test_the_model_is_a_plain_sharded_safetensors_model(self):
        folder = self.save(4, 2)
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        total = 0
        for name, file in index["weight_map"].items():
            tensor = load_file(folder / file)[name]
            self.assertTrue(torch.equal(tensor.flatten(), torch.arange(tensor.numel(), dtype=torch.float32)))
            total += tensor.nbytes
        self.assertEqual(set(index["weight_map"]), {"cut", "same", "buffer", "matrix"})
        self.assertEqual(index["metadata"]["total_size"], total)


if __name__ == "__main__":
    unittest.main()
