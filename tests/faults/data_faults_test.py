# SPDX-License-Identifier: Apache-2.0
"""Broken data through the real binary: what is said, the exit code, and that nothing is written where it is
refused at the start."""

import contextlib
import gzip
import os
import random
import signal
import struct
import subprocess
import time

from tests.end_to_end import runs

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dogs", "0123456789"]


def some_text(size, seed=1):
    """A text of about `size` bytes that packing does not make tiny."""
    draw = random.Random(seed)
    return " ".join(draw.choices(WORDS, k=size // 5))[:size]


def tokens(count, beyond=None):
    """So many tokens of 16 bits below 256; the one at `beyond` is 300."""
    numbers = [i * 7 % 256 for i in range(count)]
    if beyond is not None:
        numbers[beyond] = 300
    return struct.pack(f"<{count}H", *numbers)


def llmc(count=500, promised=None, magic=20240520, version=1, beyond=None):
    header = struct.pack("<3i", magic, version, count if promised is None else promised)
    return header.ljust(1024, b"\0") + tokens(count, beyond)


def index(lengths=(200, 300), magic=b"MMIDIDX\0\0", version=1, dtype=8):
    """An index with one document for each sequence."""
    pointers = [2 * sum(lengths[:i]) for i in range(len(lengths))]
    return b"".join([magic, struct.pack("<QBQQ", version, dtype, len(lengths), len(lengths) + 1),
                     struct.pack(f"<{len(lengths)}i", *lengths), struct.pack(f"<{len(pointers)}q", *pointers),
                     struct.pack(f"<{len(lengths) + 1}q", *range(len(lengths) + 1))])


def zstd(text, kinds=(0, 0, 0)):
    """A frame of Zstandard in blocks that are not packed (RFC 8878); 3 is a kind of block that there is not."""
    frame, size = b"\x28\xb5\x2f\xfd\x00\x58", len(text) // len(kinds)
    for number, kind in enumerate(kinds):
        header = size << 3 | kind << 1 | (number == len(kinds) - 1)
        frame += header.to_bytes(3, "little") + text[number * size:(number + 1) * size]
    return frame


TEXT = some_text(200_001).encode()
GZIP = gzip.compress(TEXT, 1)
LINES = '{"text": "one"}\n{"text": "two"}\n'


def damaged(packed):
    middle = len(packed) // 2
    return packed[:middle] + bytes(byte ^ 0x55 for byte in packed[middle:middle + 100]) + packed[middle + 100:]


def text_source(name):
    return f"{{name: text, files: [{name}], tokenizer: bytes, cache: cache}}"


def source(name, *files):
    return f"{{name: {name}, files: [{', '.join(files)}]}}"


FEW = ("training.max_steps=2", "validation.every_n_steps=null")
FILES = "task.data.source.files"
MEGATRON = {"set.bin": tokens(500), "set.idx": index()}
SHARDS = {f"train_{number:06}.bin": llmc() for number in (0, 1, 3)}

# What is broken; the file, a text; what the message holds, of the source `text` and of the command `tokenize`.
TEXTS = [
    ("gzip, broken", {"a.txt.gz": damaged(GZIP)}, ["a.txt.gz' is broken at byte", "get the file again"]),
    ("gzip, cut off", {"a.txt.gz": GZIP[:-20]}, ["a.txt.gz' is cut off at byte", "get the file again"]),
    ("Zstandard, broken", {"a.txt.zst": zstd(TEXT, (0, 3, 0))}, ["a.txt.zst' is broken at byte", "again"]),
    ("Zstandard, cut off", {"a.txt.zst": zstd(TEXT)[:-20]}, ["a.txt.zst' is cut off at byte", "again"]),
    ("JSONL, a broken line", {"a.jsonl": LINES + '{"text": "thr\n'}, ["a.jsonl', line 3", "is no JSON"]),
    ("JSONL, a broken line of gzip", {"a.jsonl.gz": gzip.compress((LINES + "[\n").encode())},
     ["a.jsonl.gz', line 3", "is no JSON"]),
    ("JSONL, no such field", {"a.jsonl": LINES + '{"body": "three"}\n'},
     ["a.jsonl', line 3", "has no field 'text'", "--field"]),
    ("JSONL, a field that is no text", {"a.jsonl": LINES + '{"text": 3}\n'},
     ["a.jsonl', line 3", "has no text in the field 'text'"]),
    ("no such file", {}, ["'a.none'", "no file"]),
]

# The same of tokens, and the source.
SOURCES = [
    ("llmc, cut off", {"a.bin": llmc(500, promised=600)}, source("llmc", "a.bin"),
     [FILES, "a.bin'", "has 2024 bytes", "names 600 tokens, which need 2224", "cut off"]),
    ("llmc, empty", {"a.bin": b""}, source("llmc", "a.bin"), [FILES, "a.bin'", "too short for the header", "again"]),
    ("llmc, empty among others", {"a.bin": llmc(), "b.bin": b""}, source("llmc", "'*.bin'"),
     [FILES, "b.bin'", "too short for the header"]),
    ("llmc, shorter than its header", {"a.bin": llmc()[:100]}, source("llmc", "a.bin"),
     [FILES, "a.bin'", "too short for the header"]),
    ("llmc, other magic", {"a.bin": llmc(magic=7)}, source("llmc", "a.bin"), [FILES, "a.bin'", "begins with 7 and 1"]),
    ("llmc, unknown version", {"a.bin": llmc(version=9)}, source("llmc", "a.bin"),
     [FILES, "a.bin'", "begins with 20240520 and 9, not with 20240520 and 1"]),
    ("llmc, more tokens than there can be", {"a.bin": llmc(500, promised=2**31 - 1)}, source("llmc", "a.bin"),
     ["names 2147483647 tokens"]),
    ("llmc, fewer than none", {"a.bin": llmc(500, promised=-1)}, source("llmc", "a.bin"), ["names -1 tokens"]),
    ("llmc, a folder that tokenize made", {"set/train_000000.bin": llmc(), "set/tokens.json": "{}"},
     source("llmc", "set"), [FILES, "'set' was made by `trainer tokenize`", "'set/train_*.bin'", "'set/val_*.bin'"]),
    ("nanogpt, half a token", {"a.bin": tokens(500)[:-1]}, source("nanogpt", "a.bin"),
     [FILES, "a.bin'", "has 999 bytes", "no multiple of the 2"]),
    ("nanogpt, empty", {"a.bin": b""}, source("nanogpt", "a.bin"), [FILES, "a.bin'", "is empty"]),
    ("nanogpt, a file of llm.c", {"a.bin": llmc()}, source("nanogpt", "a.bin"), [FILES, "name this source 'llmc'"]),
    ("megatron, other magic", {**MEGATRON, "set.idx": index(magic=b"MMIDIDY\0\0")}, source("megatron", "set"),
     [FILES, "set.idx'", "does not begin with MMIDIDX"]),
    ("megatron, other version", {**MEGATRON, "set.idx": index(version=2)}, source("megatron", "set"),
     [FILES, "set.idx'", "version 2", "version 1 is read"]),
    ("megatron, tokens of no integer", {**MEGATRON, "set.idx": index(dtype=6)}, source("megatron", "set"),
     [FILES, "set.idx'", "type 6"]),
    ("megatron, index cut off", {**MEGATRON, "set.idx": index()[:-9]}, source("megatron", "set"),
     [FILES, "set.idx'", "is cut off", "2 sequences and 3 places"]),
    ("megatron, empty index", {**MEGATRON, "set.idx": b""}, source("megatron", "set"), [FILES, "set.idx'"]),
    ("megatron, index of fewer tokens", {**MEGATRON, "set.idx": index((200, 299))}, source("megatron", "set"),
     [FILES, "set.bin'", "has 1000 bytes", "ends at byte 998"]),
    ("megatron, index of more tokens", {**MEGATRON, "set.idx": index((200, 301))}, source("megatron", "set"),
     [FILES, "set.bin'", "has 1000 bytes", "ends at byte 1002"]),
    ("megatron, no .bin", {"set.idx": index()}, source("megatron", "set"), [FILES, "set.bin'", "No such file"]),
    ("megatron, no .idx", {"set.bin": tokens(500)}, source("megatron", "set.bin"), [FILES, "set.idx'", "No such file"]),
    ("a file of a list is missing", SHARDS, source("llmc", "train_000000.bin", "train_000002.bin"),
     [FILES, "train_000002.bin'", "no file"]),
    ("a pattern matches nothing", SHARDS, source("llmc", "'val_*.bin'"), [FILES, "'val_*.bin' matches no file"]),
    ("a shard is missing", SHARDS, source("llmc", "'train_*.bin'"), [FILES, "train_000002.bin'", "is missing"]),
    ("a shard of a folder is missing", {f"set/{name}": content for name, content in SHARDS.items()},
     source("llmc", "set"), [FILES, "set/train_000002.bin'", "is missing"]),
]


class DataTest(runs.RunTest):

    def prepare(self, files, data, more=""):
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.write("run.yaml", self.config.replace("path: text.txt",
                                                   f"source: {data}, validation_fraction: 0{more}"))

    def says(self, process, fragments):
        print(process.stderr, flush=True)
        for fragment in fragments:
            self.assertIn(fragment, process.stderr)


class DataFaults(DataTest):

    @contextlib.contextmanager
    def row(self, name):
        """One of a table, in a folder of its own."""
        with self.subTest(name):
            self.doCleanups()
            self.setUp()
            yield

    def refused(self, fragments, *arguments):
        """Before the start: nothing is there that was not, but what text was made into."""
        before = self.outcome()
        self.says(self.trainer(*arguments, code=2), fragments)
        self.assertEqual(self.outcome(), before)

    def outcome(self):
        return [name for name in self.files() if not name.startswith(("cache", "tokens.part"))]

    def test_broken_tokens_are_refused_before_the_start(self):
        for name, files, data, fragments in SOURCES:
            with self.row(name):
                self.prepare(files, data)
                self.refused(fragments, "run.yaml", *FEW)

    def test_broken_texts_are_refused_before_the_start(self):
        for name, files, fragments in TEXTS:
            with self.row(name):
                text = next(iter(files), "a.none")
                self.prepare(files, text_source(text))
                self.refused(["task.data.source", *fragments], "run.yaml", *FEW)
                self.refused(fragments, "tokenize", text, "--tokenizer=bytes", "--output=tokens")

    def test_an_output_that_cannot_be_made_is_refused(self):
        self.write("taken", "")
        self.refused(["cannot create the folder", "taken", "choose another path"],
                     "tokenize", "text.txt", "--tokenizer=bytes", "--output=taken/tokens")

    def test_a_lost_file_is_seen_by_what_the_folder_says(self):
        for lost in ("train_000000.bin", "train_000001.bin", "train_000002.bin"):
            with self.row(lost):
                size = (self.folder / "text.txt").stat().st_size
                self.trainer("tokenize", "text.txt", "--tokenizer=bytes", "--output=tokens", f"--file-tokens={size // 3 + 1}")
                self.trainer("data", "inspect", "tokens")
                (self.folder / "tokens" / lost).unlink()
                self.assertIn("missing", self.trainer("data", "inspect", "tokens", code=1).stdout)
                self.prepare({}, source("llmc", "'tokens/train_*.bin'"))
                self.refused([FILES, f"{lost}' is missing"], "run.yaml", *FEW)

    def test_a_token_beyond_the_vocabulary_ends_the_run(self):
        for name, content in (("llmc", llmc(beyond=123)), ("nanogpt", tokens(500, beyond=123))):
            self.prepare({"a.bin": content}, source(name, "a.bin"))
            process = self.trainer("run.yaml", f"exp_dir={name}", "training.max_steps=null",
                                   "training.max_epochs=1", code=1)
            self.says(process, ["a.bin', token 123 is 300", "only tokens below 256", "not of its tokenizer"])

    def test_a_token_beyond_the_vocabulary_ends_an_evaluation(self):
        self.prepare({"a.bin": tokens(500), "b.bin": tokens(500, beyond=123)}, source("nanogpt", "a.bin"))
        self.trainer("run.yaml", "exp_dir=run", *FEW)
        self.trainer("evaluate", "run", "a.bin")
        process = self.trainer("evaluate", "run", "a.bin", "b.bin", code=1)
        self.says(process, ["b.bin', token 123 is 300", "only tokens below 256"])

    def test_a_tokenizer_beyond_the_vocabulary_is_refused(self):
        characters = "\n" + "".join(map(chr, range(0x400, 0x400 + 300)))
        self.prepare({"a.bin": tokens(500), "characters/characters.txt": characters}, source("nanogpt", "a.bin"),
                     ", tokenizer: characters")
        self.refused(["vocab_size", "301", "256"], "run.yaml", *FEW)

    def test_a_file_that_shrinks_ends_the_run(self):
        self.prepare({"a.bin": tokens(5000)}, source("nanogpt", "a.bin"))
        process = self.start("run.yaml", "exp_dir=run", "training.max_steps=1000000")
        self.addCleanup(process.kill)
        log = self.folder / "run/logs/metrics.jsonl"
        self.wait(lambda: log.exists() and log.stat().st_size > 0, process)
        os.truncate(self.folder / "a.bin", 100)
        _, error = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        print(error)
        self.assertEqual(process.returncode, 1, error)
        self.assertIn("a.bin' shrank from 10000 to 100 bytes while it was in use", error)

    def wait(self, condition, process):
        while not condition():
            self.assertIsNone(process.poll(), "it has ended too early")
            time.sleep(0.001)

    def test_a_text_that_changes_while_it_is_read_is_refused(self):
        self.write("a.txt", some_text(1_000_000) * 40)
        command = ("tokenize", "a.txt", "--tokenizer=bytes", "--output=tokens", "--threads=1")
        process = self.start(*command)
        self.addCleanup(process.kill)
        self.wait((self.folder / "tokens.part/train_000000.bin").exists, process)
        process.send_signal(signal.SIGSTOP)
        with (self.folder / "a.txt").open("a") as file:
            file.write("more")
        process.send_signal(signal.SIGCONT)
        _, error = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 2, error)
        self.assertIn("a.txt' changed while it was read: start again", error)
        self.assertFalse((self.folder / "tokens").exists())
        self.trainer(*command)
        self.assertEqual((self.folder / "tokens/train_000000.bin").stat().st_size, 1024 + 2 * 40_000_004)

    def test_a_cache_that_lost_tokens_is_filled_again(self):
        self.prepare({"a.txt": TEXT}, text_source("a.txt"))
        self.trainer("run.yaml", "exp_dir=0", *FEW)
        made = next(self.folder.glob("cache/*/train_000000.bin"))
        whole = made.read_bytes()
        damages = (lambda: os.truncate(made, 1000), made.unlink, lambda: os.truncate(made.parent / "tokens.json", 9))
        for number, damage in enumerate(damages):
            damage()
            self.trainer("run.yaml", f"exp_dir={number + 1}", *FEW)
            self.assertEqual(made.read_bytes(), whole)
            self.assertEqual(self.losses(str(number + 1)), self.losses("0"))


class SmallDisks(DataTest):
    """Commands in a mount namespace of their own, where `room` is a disk of 1 MiB."""

    def shell(self, script):
        """Runs a script there; gives what its commands print, one exit code after the other."""
        command = f"mount -t tmpfs -o size=1m none room || exit 77\n{script}"
        (self.folder / "room").mkdir()
        result = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command],
                                cwd=self.folder, capture_output=True, text=True, timeout=runs.TIMEOUT_SECONDS,
                                env={**os.environ, "TRAINER": str(runs.TRAINER)}, check=False)
        if result.returncode == 77 or "unshare" in result.stderr:
            print(f"SKIPPED: this machine lets no test mount a disk: {result.stderr}", flush=True)
            self.skipTest("no disk can be mounted here")
        print(result.stderr)
        return result

    def test_a_full_disk_under_the_output_ends_tokenize_and_room_lets_it_go_on(self):
        self.write("a.txt", some_text(3_000_000))
        command = '"$TRAINER" tokenize a.txt --tokenizer=bytes --output='
        result = self.shell(f"""{command}room/tokens; echo $?; ls room
            mount -o remount,size=64m none room
            {command}room/tokens > /dev/null; echo $?; cp -r room/tokens again""")
        self.assertEqual(result.stdout.split(), ["1", "tokens.part", "0"])
        self.assertRegex(result.stderr, r"tokens\.part/train_000000\.bin': No space left on device; free some space")
        self.trainer("tokenize", "a.txt", "--tokenizer=bytes", "--output=whole")
        for file in (self.folder / "whole").iterdir():
            self.assertEqual((self.folder / "again" / file.name).read_bytes(), file.read_bytes())

    def test_a_full_disk_under_the_cache_ends_the_run_and_room_lets_it_go_on(self):
        self.prepare({"a.txt": some_text(3_000_000)}, text_source("a.txt").replace("cache: cache", "cache: room/cache"))
        command = '"$TRAINER" run.yaml ' + " ".join(FEW)
        result = self.shell(f"""{command} exp_dir=first > /dev/null; echo $?; ls -d first
            mount -o remount,size=64m none room
            {command} exp_dir=second > /dev/null; echo $?""")
        self.assertEqual(result.stdout.split(), ["1", "0"])
        self.assertRegex(result.stderr, r"train_000000\.bin': No space left on device; free some space")
        self.trainer("run.yaml", "exp_dir=third", *FEW)
        self.assertEqual(self.losses("second"), self.losses("third"))

    def test_a_cache_that_is_read_only_is_refused_unless_it_has_the_tokens(self):
        self.prepare({"a.txt": TEXT}, text_source("a.txt").replace("cache: cache", "cache: room/cache"))
        command = '"$TRAINER" run.yaml ' + " ".join(FEW)
        result = self.shell(f"""mount -o remount,ro none room
            {command} exp_dir=first > /dev/null; echo $?; ls -d first
            mount -o remount,rw none room
            {command} exp_dir=second > /dev/null; echo $?
            mount -o remount,ro none room
            {command} exp_dir=third > /dev/null; echo $?
            cp a.txt b.txt; mv b.txt a.txt
            {command} exp_dir=fourth > /dev/null; echo $?""")
        self.assertEqual(result.stdout.split(), ["2", "0", "0", "0"])
        self.assertRegex(result.stderr, "task.data.source: cannot create the folder .*room/cache.*read-only.*"
                                        "task.data.source.cache names the folder")


if __name__ == "__main__":
    runs.main()
