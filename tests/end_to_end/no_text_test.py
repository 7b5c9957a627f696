# SPDX-License-Identifier: Apache-2.0
"""Files that are no text, wherever text is read: refused by name before a step, unless a field allows any bytes."""

import bz2
import io
import json
import lzma
import pickle
import random
import sqlite3
import struct
import tarfile
import zipfile

from tests.end_to_end import runs
from tests.long import is_long, tell_sample

WEIGHTS = json.dumps({"w": {"dtype": "F32", "shape": [900], "data_offsets": [0, 3600]}}).encode()
TEXTS = "\n".join(f"{i}: the quick brown fox" for i in range(200))


def archive(kind):
    """A tar or zip archive of a text."""
    file = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("text.txt", TEXTS)
    else:
        with tarfile.open(fileobj=file, mode="w") as packed:
            entry = tarfile.TarInfo("text.txt")
            entry.size = len(TEXTS)
            packed.addfile(entry, io.BytesIO(TEXTS.encode()))
    return file.getvalue()


def database():
    """An SQLite file with texts."""
    with sqlite3.connect(":memory:") as made:
        made.execute("create table texts (text)")
        made.executemany("insert into texts values (?)", [(line,) for line in TEXTS.splitlines()])
        made.commit()
        return made.serialize()


def program():
    """The beginning of our own."""
    with runs.TRAINER.open("rb") as file:
        return file.read(100_000)


# Its name, how the message calls it, and its bytes.
FILES = [
    ("a.parquet", "is a Parquet file", b"PAR1\x15\x04\x15\x90\x01\x15\x8a\x01" + TEXTS.encode() + b"PAR1"),
    ("a.feather", "is an Arrow file", b"ARROW1\0\0\xff\xff\xff\xff" + TEXTS.encode()),
    ("a.arrow", "is an Arrow stream", b"\xff\xff\xff\xff\x68\1\0\0" + TEXTS.encode()),
    ("a.orc", "is an ORC file", b"ORC\x0a\x03\0\0\0" + TEXTS.encode()),
    ("a.avro", "is an Avro file", b"Obj\1\4\x14avro.codec\x08null" + TEXTS.encode()),
    ("a.db", "is an SQLite database", database()),
    ("a.h5", "is an HDF5 file", b"\x89HDF\r\n\x1a\n" + bytes(4000)),
    ("a.npy", "is a NumPy array", b"\x93NUMPY\1\0v\0{'descr': '<f4'}" + bytes(4000)),
    ("a.safetensors", "is a safetensors file",
     struct.pack("<Q", len(WEIGHTS)) + WEIGHTS + struct.pack("<900f", *range(900))),
    ("a.gguf", "is a GGUF file", b"GGUF\3\0\0\0" + bytes(4000)),
    ("a.pt", "is a zip archive", archive("zip")),
    ("pytorch_model.bin", "is a Python pickle", pickle.dumps(list(range(3000)))),
    ("llmc.bin", "is a file of llm.c's tokens", struct.pack("<256i", 20240520, 1, 900, *[0] * 253) + bytes(1800)),
    ("tokens.bin", "is not text in UTF-8", struct.pack("<2000H", *[i * 7 % 50257 for i in range(2000)])),
    ("a.tar", "is a tar archive", archive("tar")),
    ("a.xz", "is packed by xz", lzma.compress(TEXTS.encode())),
    ("a.bz2", "is packed by bzip2", bz2.compress(TEXTS.encode())),
    ("a.pdf", "is a PDF document", b"%PDF-1.7\n" + TEXTS.encode()),
    ("a.png", "is a PNG picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + random.Random(1).randbytes(4000)),
    ("trainer", "is a program or library", program()),
    ("utf16.txt", "is in UTF-16", TEXTS.encode("utf-16")),
    ("noise", "is not text in UTF-8", random.Random(2).randbytes(9000)),
]


class NoTextTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        for name, _, content in FILES:
            path = self.folder / "files" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        self.write("text.yaml", self.config.replace(
            "path: text.txt", "source: {name: text, files: [files/noise], tokenizer: bytes, cache: cache}"))
        self.once(("tiny.yaml", "exp_dir=run", "training.max_steps=2"))

    def uses(self, file):
        """For each way to read a text: a command line that reads this file, and the argument that allows any bytes."""
        return {
            "path": (["tiny.yaml", f"task.data.path={file}"], "task.data.any_bytes=true"),
            "source": (["text.yaml", f"task.data.source.files=[{file}]"], "task.data.source.any_bytes=true"),
            "tokenize": (["tokenize", file, "--tokenizer=bytes", "--output=tokens"], "--any-bytes"),
            "predict": (["predict", "run", file, "--output=out.jsonl"], "task.data.any_bytes=true"),
        }

    def test_each_is_refused_by_name_wherever_text_is_read(self):
        cases = [(number, name, called, use) for number, (name, called, _) in enumerate(FILES)
                 for use in self.uses(name)]
        # Each file once and each use several times.
        sample = [case for case in cases if is_long() or list(self.uses("")).index(case[3]) == case[0] % 4]
        tell_sample(len(sample), len(cases), "uses of files that are no text")
        for _, name, called, use in sample:
            with self.subTest(name, use=use):
                arguments, allowed_by = self.uses(f"files/{name}")[use]
                told = self.trainer(*arguments, code=2).stderr
                self.assertIn(f"'files/{name}' {called}", " ".join(told.split()))
                self.assertIn("not text in UTF-8", " ".join(told.split()))
                self.assertIn(f"{allowed_by} reads any bytes as they are", " ".join(told.split()))
        self.assertFalse([name for name in self.files() if name.startswith(("runs/", "tokens", "out.jsonl", "cache"))])

    def test_a_models_folder_among_the_texts_is_refused(self):
        model = self.folder / "model"
        self.trainer("checkpoint", "export", "run", "model")
        self.assertTrue((model / "model.safetensors").exists())
        for use in ("path", "tokenize"):
            told = self.trainer(*self.uses("model")[use][0], code=2).stderr
            self.assertIn("model/model.safetensors' is a safetensors file", " ".join(told.split()))

    def test_a_field_allows_any_bytes(self):
        few = ("training.max_steps=2", "validation.every_n_steps=1")
        for use in ("path", "source"):
            arguments, allowed_by = self.uses("files/noise")[use]
            self.trainer(*arguments, allowed_by, f"exp_dir=any_{use}", *few)
        self.trainer("tiny.yaml", "exp_dir=bytes", *few, "~task.data.path",
                     "+task.data.source={name: bytes, files: [files/noise]}")
        out = self.trainer(*self.uses("files/noise")["tokenize"][0], "--any-bytes").stdout
        self.assertIn("tokens: 1 document, 9000 tokens", out)
        lines = b"".join(b"\xc4\xd0" * 5 + b"\n" for _ in range(9))
        (self.folder / "koi8.txt").write_bytes(lines)
        told = self.trainer(*self.uses("koi8.txt")["predict"][0], code=2).stderr
        self.assertIn("iconv", told)
        self.trainer(*self.uses("koi8.txt")["predict"][0], "task.data.any_bytes=true")
        self.assertEqual(len((self.folder / "out.jsonl").read_text().splitlines()), 9)
        # A source that says itself that it takes any bytes.
        self.trainer("predict", "bytes", "koi8.txt", "--output=other.jsonl")

    def test_predict_takes_no_table(self):
        self.write("table.csv", "question,answer\n1 + 1,2\n")
        told = self.trainer(*self.uses("table.csv")["predict"][0], code=2).stderr
        self.assertIn("'table.csv' is a table", " ".join(told.split()))
        self.assertFalse(list(self.folder.glob("out*")))

    def test_a_prompt_is_no_file_of_bytes(self):
        told = self.trainer("generate", "run", "--input=files/a.png", code=2).stderr
        self.assertIn("'files/a.png' is a PNG picture", " ".join(told.split()))


if __name__ == "__main__":
    runs.main()
