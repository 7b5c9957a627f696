# SPDX-License-Identifier: Apache-2.0
"""Token files as their owners write them, read by the registered sources.

The writers follow llm.c's dev/data/data_common.py, nanoGPT's data/openwebtext/prepare.py, and
Megatron-LM's megatron/core/datasets/indexed_dataset.py.
"""

import json
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy

PRINT_TOKENS = sys.argv.pop(1)
MEGATRON_CODES = {numpy.uint8: 1, numpy.int8: 2, numpy.int16: 3, numpy.int32: 4, numpy.int64: 5, numpy.uint16: 8}


def write_llmc(path, tokens, model):
    magic, version, dtype = {"gpt-2": (20240520, 1, numpy.uint16), "llama-3": (20240801, 7, numpy.uint32)}[model]
    header = numpy.zeros(256, dtype=numpy.int32)
    header[:3] = magic, version, len(tokens)
    with open(path, "wb") as file:
        file.write(header.tobytes())
        file.write(numpy.array(tokens, dtype=dtype).tobytes())


def write_nanogpt(path, documents):
    tokens = numpy.concatenate([numpy.append(document, 50256) for document in documents])
    array = numpy.memmap(path, dtype=numpy.uint16, mode="w+", shape=(len(tokens),))
    array[:] = tokens
    array.flush()
    return tokens


def write_megatron(prefix, documents, dtype):
    """`documents` are lists of sequences."""
    sequences = [sequence for document in documents for sequence in document]
    Path(f"{prefix}.bin").write_bytes(b"".join(s.astype(dtype).tobytes(order="C") for s in sequences))
    lengths = [len(sequence) for sequence in sequences]
    pointers = numpy.cumsum([0, *lengths[:-1]]) * numpy.dtype(dtype).itemsize
    places = numpy.cumsum([0, *(len(document) for document in documents)])
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\x00\x00")
        file.write(struct.pack("<Q", 1))
        file.write(struct.pack("<B", MEGATRON_CODES[dtype]))
        file.write(struct.pack("<Q", len(sequences)))
        file.write(struct.pack("<Q", len(places)))
        file.write(numpy.array(lengths, dtype=numpy.int32).tobytes(order="C"))
        file.write(numpy.array(pointers, dtype=numpy.int64).tobytes(order="C"))
        file.write(numpy.array(places, dtype=numpy.int64).tobytes(order="C"))


def begins(documents):
    """Where documents that follow each other begin; empty ones begin nowhere."""
    lengths = [len(document) for document in documents]
    ends = numpy.cumsum(lengths)
    return [int(end) - length for end, length in zip(ends, lengths) if length > 0]


class TokenSources(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.random = numpy.random.default_rng(1)

    def documents(self, count, limit):
        return [self.random.integers(0, limit, self.random.integers(1, 400)) for _ in range(count)]

    def expect(self, source, path, tokens, places):
        config = json.dumps({"files": [str(path)]})
        output = subprocess.run([PRINT_TOKENS, source, config], check=True, capture_output=True, text=True).stdout
        read, found = ([int(word) for word in line.split()] for line in output.splitlines())
        self.assertEqual(read, [int(token) for token in tokens])
        self.assertEqual(found, places)

    def test_llmc(self):
        for model, end, limit in (("gpt-2", 50256, 50256), ("llama-3", 128000, 128000)):
            documents = [numpy.insert(document, 0, end) for document in self.documents(40, limit)]
            tokens = numpy.concatenate(documents)
            folder = self.folder / model
            folder.mkdir()
            # Shards are cut where they are full, in the middle of a document.
            for number, shard in enumerate(numpy.array_split(tokens, 3)):
                write_llmc(folder / f"fineweb_train_{number:06d}.bin", shard, model)
            self.expect("llmc", folder, tokens, begins(documents))

    def test_nanogpt(self):
        documents = self.documents(40, 50256)
        tokens = write_nanogpt(self.folder / "train.bin", documents)
        self.expect("nanogpt", self.folder / "train.bin", tokens, begins([numpy.append(d, 0) for d in documents]))

    def test_megatron(self):
        for dtype in MEGATRON_CODES:
            limit = min(numpy.iinfo(dtype).max, 100_000)
            documents = [self.documents(self.random.integers(0, 4), limit) for _ in range(20)]
            prefix = self.folder / numpy.dtype(dtype).name
            write_megatron(prefix, documents, dtype)
            tokens = numpy.concatenate([sequence for document in documents for sequence in document])
            whole = [numpy.concatenate([[], *document]) for document in documents]
            self.expect("megatron", prefix, tokens, begins(whole))


if __name__ == "__main__":
    unittest.main()
