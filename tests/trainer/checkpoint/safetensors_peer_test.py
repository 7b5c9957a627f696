# SPDX-License-Identifier: Apache-2.0
"""Our safetensors files and the Python package's are the same bytes, and each refuses the same."""

import os
import struct
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

REWRITE = os.path.abspath(sys.argv.pop())

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64,
    torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
]


def rewrite(source, target):
    return subprocess.run([REWRITE, source, target], capture_output=True, text=True)


def one_of_each():
    generator = torch.Generator().manual_seed(1)
    tensors = {}
    for dtype in DTYPES:
        values = torch.randint(0, 100, (3, 5), generator=generator)
        tensors[f"z.{dtype}"] = values.to(dtype)
        tensors[f"a.{dtype}"] = values[:2].to(dtype, copy=True)
    tensors["scalar"] = torch.tensor(1.5)
    tensors["empty"] = torch.empty(0, 7, dtype=torch.float16)
    tensors["naïve \"名\"\\\t\x01"] = torch.arange(3)
    tensors["special"] = torch.tensor([float("nan"), float("inf"), -0.0])
    return tensors


class SafetensorsPeer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.theirs = os.path.join(folder.name, "theirs.safetensors")
        self.ours = os.path.join(folder.name, "ours.safetensors")

    def test_the_bytes_are_the_same(self):
        for tensors in (one_of_each(), {}, {"w": torch.ones(1000, 333)}):
            save_file(tensors, self.theirs, metadata={"format": "pt"})
            self.assertEqual(rewrite(self.theirs, self.ours).returncode, 0)
            with open(self.theirs, "rb") as theirs, open(self.ours, "rb") as ours:
                expected, got = theirs.read(), ours.read()
            self.assertEqual(expected, got)
            print(f"{len(tensors)} tensors, {len(got)} bytes: equal")
            os.remove(self.ours)

    def test_they_read_ours(self):
        tensors = one_of_each()
        save_file(tensors, self.theirs, metadata={"format": "pt"})
        self.assertEqual(rewrite(self.theirs, self.ours).returncode, 0)
        read = load_file(self.ours)
        self.assertEqual(read.keys(), tensors.keys())
        for name, tensor in tensors.items():
            self.assertEqual(read[name].dtype, tensor.dtype)
            self.assertEqual(read[name].shape, tensor.shape)
            self.assertTrue(torch.equal(read[name].nan_to_num(), tensor.nan_to_num()), name)
        with safe_open(self.ours, framework="pt") as file:
            self.assertEqual(file.metadata(), {"format": "pt"})

    def test_both_refuse_the_same(self):
        entry = '{"dtype":"F32","shape":[4],"data_offsets":[0,16]}'
        headers = {
            "a hole": entry.replace("[0,16]", "[4,16]").replace("[4],", "[3],"),
            "shape and offsets differ": entry.replace("[4],", "[3],"),
            "an unknown dtype": entry.replace("F32", "F31"),
            "reversed offsets": entry.replace("[0,16]", "[16,0]"),
            "an overflowing shape": entry.replace("[4],", "[4294967296,4294967296,4294967296],"),
            "offsets beyond the data": entry.replace("[0,16]", "[0,32]").replace("[4],", "[8],"),
            "data beyond the offsets": entry.replace("[0,16]", "[0,8]").replace("[4],", "[2],"),
        }
        sound = b'{"w":' + entry.encode() + b"}"
        files = {"nothing": b"", "half a length": b"1234", "a huge length": b"\xff" * 8,
                 "a length beyond the file": struct.pack("<Q", 100) + b"{}",
                 "no JSON": struct.pack("<Q", 4) + b"nope",
                 "a cut header": struct.pack("<Q", len(sound) - 10) + sound[:-10] + bytes(16),
                 "invalid UTF-8": struct.pack("<Q", len(sound)) + sound.replace(b"w", b"\xc3") + bytes(16)}
        for label, text in headers.items():
            header = ('{"w":' + text + "}").encode()
            files[label] = struct.pack("<Q", len(header)) + header + bytes(16)
        for label, content in files.items():
            with open(self.theirs, "wb") as file:
                file.write(content)
            with self.assertRaises(SafetensorError, msg=label) as refusal:
                load_file(self.theirs)
            ours = rewrite(self.theirs, self.ours)
            self.assertEqual(ours.returncode, 1, label)
            self.assertFalse(os.path.exists(self.ours))
            print(f"{label}: '{refusal.exception}' / '{ours.stderr.strip()}'")


if __name__ == "__main__":
    unittest.main()
