# SPDX-License-Identifier: Apache-2.0
"""The command tokenize: what it writes, what a model is trained on then, and its errors."""

import functools
import gzip
import hashlib
import json
import random
import re
import shutil
import subprocess
import time

import runs

from tests.end_to_end import byte_bpe
from tests.long import is_long, tell_sample

DOCUMENTS = 6000 if is_long() else 2000
MEGABYTES = 1000 if is_long() else 12
KILLS = 10 if is_long() else 3


def documents(seed):
    """Texts of many lengths; some empty, some with bytes that are no UTF-8 in JSON's escapes."""
    draw = random.Random(seed)
    words = ["the", "quick", "brown", "fox", "jumps", "\u00fcber", "\u4e16\u754c", "\U0001f600", "  ", "\n"]
    for number in range(DOCUMENTS):
        count = draw.choice([0, 3, 30, 300]) if number % 7 else 1500
        yield " ".join(draw.choices(words, k=count))


@functools.cache
def texts():
    """Files of documents by name: made once, as that takes longer than most tests."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in documents(1))
    return {"1.jsonl.gz": gzip.compress(lines.encode(), compresslevel=1), "2.txt": "".join(documents(2)).encode()}


def write_many_texts(folder):
    """MEGABYTES of texts in four files: lines of many lengths that never repeat."""
    draw = random.Random(5)
    for number in range(4):
        with (folder / f"{number}.txt").open("w") as file:
            for _ in range(MEGABYTES // 4):
                digits = draw.randbytes(500_000).hex()
                cuts = sorted(draw.sample(range(len(digits)), 2000))
                file.writelines(digits[begin:end] + "\n" for begin, end in zip([0, *cuts], [*cuts, None]))


def digests(folder):
    """One of every file, by its path there: a gigabyte is compared without being held."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                found[str(path.relative_to(folder))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


class Tokenize(runs.RunTest):

    def setUp(self):
        super().setUp()
        (self.folder / "texts").mkdir()
        for name, contents in texts().items():
            (self.folder / "texts" / name).write_bytes(contents)

    def command(self, output, *more):
        return [runs.TRAINER, "tokenize", "texts", "--tokenizer=bytes", f"--output={output}",
                "--val-fraction=0.1", f"--file-tokens={50 * DOCUMENTS}", *more]

    def tokenize(self, output, *more):
        result = subprocess.run(self.command(output, *more), cwd=self.folder, capture_output=True, text=True,
                                timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def contents(self, output):
        folder = self.folder / output
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def test_any_number_of_threads_writes_the_same(self):
        for name in ("llmc", "nanogpt", "megatron"):
            with self.subTest(format=name):
                self.tokenize(f"{name}-1", f"--format={name}", "--threads=1")
                self.tokenize(f"{name}-3", f"--format={name}", "--threads=3")
                self.assertGreater(len(self.contents(f"{name}-1")), 10)
                self.assertEqual(self.contents(f"{name}-1"), self.contents(f"{name}-3"))

    def test_its_tokens_train_a_model(self):
        self.tokenize("tokens", "--format=nanogpt")
        self.write("tokens.yaml", self.config.replace(
            "path: text.txt",
            "source: {name: nanogpt, files: ['tokens/train_*.bin'], end_of_text: null}, "
            "validation_source: {name: nanogpt, files: ['tokens/val_*.bin'], end_of_text: null}"))
        result = subprocess.run([runs.TRAINER, "tokens.yaml", "training.max_steps=4"], cwd=self.folder,
                                capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("perplexity", result.stdout)
        self.assertIn("there is no tokenizer", result.stdout + result.stderr)

    def test_text_is_tokenized_before_the_first_step(self):
        self.write("characters/characters.txt", "".join(sorted(set("".join(documents(2))))))
        self.write("text.yaml", self.config.replace(
            "path: text.txt", "source: {name: text, files: [texts/2.txt], tokenizer: characters, cache: cache}")
            + "launcher: {processes: 2}\n")
        command = [runs.TRAINER, "text.yaml", "training.max_steps=4"]
        for text_is_there in (True, False):
            result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("perplexity", result.stdout)
            self.assertEqual(len(list(self.folder.glob("cache/*/tokens.json"))), 1)
            if text_is_there:
                made = next(self.folder.glob("cache/*/train_000000.bin")).stat().st_mtime_ns
        self.assertEqual(next(self.folder.glob("cache/*/train_000000.bin")).stat().st_mtime_ns, made)

    def test_killed_at_any_moment_it_goes_on(self):
        tell_sample(MEGABYTES, 1000, "megabytes of text")
        (self.folder / "many").mkdir()
        write_many_texts(self.folder / "many")
        self.write("digits/characters.txt", "0123456789abcdef")
        # One thread: so it takes long enough to be killed behind a state, which is saved every two seconds.
        command = [runs.TRAINER, "tokenize", "many", "--tokenizer=digits", "--document=line", "--val-fraction=0.1",
                   "--file-tokens=30000000", "--threads=1"]
        begin = time.monotonic()
        subprocess.run([*command, "--output=whole"], cwd=self.folder, check=True, capture_output=True, timeout=1000)
        seconds = time.monotonic() - begin
        draw = random.Random(17)
        killed = gone_on = 0
        # A kill may come behind the end, too: what is whole is not made again.
        while killed < KILLS and not (self.folder / "parts").exists():
            gone_on += (self.folder / "parts.part/state.json").exists()
            process = self.start(*command[1:], "--output=parts")
            try:
                process.communicate(timeout=draw.uniform(0, 1.5 * seconds / KILLS))
                self.assertEqual(process.returncode, 0)
                break
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                killed += 1
        print(f"{killed} kills, {gone_on} of them with a state, of {seconds:.0f} s of work", flush=True)
        if not (self.folder / "parts").exists():
            subprocess.run([*command, "--output=parts"], cwd=self.folder, check=True, capture_output=True, timeout=1000)
        # On a machine that grows quicker meanwhile the work is done before all kills.
        self.assertGreaterEqual(killed, KILLS // 2)
        if is_long():
            self.assertGreaterEqual(gone_on, killed // 2)
        self.assertEqual(digests(self.folder / "parts"), digests(self.folder / "whole"))

    def test_it_says_what_it_made(self):
        out = self.tokenize("tokens", "--document=paragraph")
        self.assertRegex(out, r"tokens: \d+ documents, \d+ tokens, 0\.\d\d characters a token")
        self.assertRegex(out, r"for validation: \d+ documents")
        self.assertRegex(out, r"without text, left out: \d+ documents")
        description = json.loads((self.folder / "tokens/tokens.json").read_text())
        self.assertEqual(description["vocabulary_size"], 256)
        self.assertIsNone(description["end_of_text"])

    def test_it_counts_as_inspect_does(self):
        self.write("tokenizer/tokenizer.json", byte_bpe.tokenizer_json())
        for options in ("--val-fraction=0.3",), ():
            shutil.rmtree(self.folder / "counted", ignore_errors=True)
            out = self.trainer("tokenize", "texts", "--tokenizer=tokenizer", "--output=counted", "--document=paragraph",
                               *options).stdout
            said = re.findall(r"for (?:training|validation): (\d+) documents, (\d+) tokens with those of end-of-text",
                              out)
            seen = re.findall(r"(\d+) tokens in (\d+) documents", self.trainer("data", "inspect", "counted").stdout)
            self.assertEqual([(tokens, documents) for documents, tokens in said], seen)
            self.assertEqual(len(seen), 1 + len(options))

    def test_it_counts_what_the_tokenizer_does_not_know(self):
        words = {"<unk>": 0, "the": 1, "fox": 2}
        self.write("words/tokenizer.json", json.dumps(
            {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"},
             "decoder": None, "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"}}))
        self.write("some.txt", "the fox and the dog")
        self.assertIn("unknown to the tokenizer (<unk>): 2 of the tokens, 40%\n",
                      self.run_tokenize("some.txt", "--tokenizer=words", "--output=some").stdout)
        self.assertEqual(json.loads((self.folder / "some/tokens.json").read_text())["unknown_tokens"], 2)
        self.write("all.txt", "the fox")
        self.assertNotIn("unknown", self.run_tokenize("all.txt", "--tokenizer=words", "--output=all").stdout)

    def test_texts_without_a_token_are_refused(self):
        self.write("empty.txt", "")
        self.write("broken.jsonl", '{"text": ""}\n{}\n')
        for text, told in (("empty.txt", "0 of their documents are empty, and 0 are broken"),
                           ("broken.jsonl", "1 of their documents are empty, and 1 are broken")):
            refused = self.run_tokenize(text, "--tokenizer=bytes", "--output=x", "--on-error=skip", code=2).stderr
            self.assertIn("the texts give no token: " + told, " ".join(refused.split()))
            self.assertFalse((self.folder / "x").exists())
            self.assertFalse((self.folder / "x.part").exists())

    def test_one_file_of_a_set_is_inspected_as_the_set_is(self):
        self.write("tokenizer/tokenizer.json", byte_bpe.tokenizer_json())
        self.run_tokenize("texts", "--tokenizer=tokenizer", "--output=set", "--document=paragraph",
                          "--format=nanogpt")
        whole = self.trainer("data", "inspect", "set").stdout
        self.assertRegex(whole, r"nanogpt, \d+ tokens in \d+ documents")
        file = "set/train_000000.bin"
        self.assertEqual(self.trainer("data", "inspect", file).stdout, whole.replace("set/train_*.bin", file))

    def test_it_refuses_mistakes_before_it_writes(self):
        self.write("short.jsonl", '{"body": "a"}\n')
        cases = [
            (["texts", "--output=x"], "option --tokenizer is missing"),
            (["texts", "--tokenizer=bytes"], "option --output is missing"),
            (["nowhere", "--tokenizer=bytes", "--output=x"], "'nowhere'"),
            (["texts", "--tokenizer=nowhere", "--output=x"], "'nowhere'"),
            (["texts", "--tokenizer=texts", "--output=x"], "is no tokenizer"),
            (["texts", "--tokenizer=bytes", "--output=texts"], "is no empty folder"),
            (["texts", "--tokenizer=bytes", "--output=x", "--val-fraction=1"], "--val-fraction"),
            (["texts", "--tokenizer=bytes", "--output=x", "--val-fraction=nan"], "--val-fraction"),
            (["texts", "--tokenizer=bytes", "--output=x", "--format=npz"], "npz"),
            ([], "INPUT is missing"),
        ]
        for arguments, message in cases:
            with self.subTest(arguments=arguments):
                result = subprocess.run([runs.TRAINER, "tokenize", *arguments], cwd=self.folder, capture_output=True,
                                        text=True, timeout=120)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(message, result.stderr)
                self.assertFalse((self.folder / "x").exists())
                self.assertFalse((self.folder / "x.part").exists())

    def test_broken_texts_keep_what_is_done(self):
        packed = (self.folder / "texts/1.jsonl.gz").read_bytes()
        self.write("cut/1.txt", "a whole text")
        (self.folder / "cut/2.jsonl.gz").write_bytes(packed[:len(packed) // 2])
        command = [runs.TRAINER, "tokenize", "cut", "--tokenizer=bytes", "--output=x"]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 2)
        self.assertIn("2.jsonl.gz' is cut off at byte", result.stderr)
        self.write("pointer/1.jsonl", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9000\n")
        told = self.trainer("tokenize", "pointer", "--tokenizer=bytes", "--output=y", code=2).stderr
        self.assertIn("1.jsonl' is a Git LFS pointer, not the file itself, which has 9.00 kB", told)
        self.assertFalse((self.folder / "x").exists())
        self.assertTrue((self.folder / "x.part").exists())

    def run_tokenize(self, *arguments, code=0):
        result = subprocess.run([runs.TRAINER, "tokenize", *arguments], cwd=self.folder, capture_output=True,
                                text=True, timeout=120)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_earlier_work_of_other_inputs_is_thrown_away_on_request_alone(self):
        self.write("more/1.txt", "a" * 3_000_000)
        self.write("more/2.jsonl", "no JSON\n")
        command = ["more", "--tokenizer=bytes", "--output=x"]
        self.run_tokenize(*command, code=2)
        self.run_tokenize(*command, code=2)
        self.write("tokenizer/tokenizer.json", byte_bpe.tokenizer_json())
        refused = self.run_tokenize("more", "--tokenizer=tokenizer", "--output=x", code=2).stderr
        self.assertIn("x.part' holds earlier work of other inputs or options (--tokenizer)", refused)
        self.assertNotIn("going on", refused)
        self.write("more/2.jsonl", '{"text": "b"}\n')
        refused = self.run_tokenize(*command, code=2).stderr
        self.assertIn("x.part' holds earlier work of other inputs or options (the texts)", refused)
        self.assertIn("--restart", refused)
        self.assertNotIn("going on", refused)
        self.assertTrue((self.folder / "x.part/train_000000.bin").exists())
        self.assertIn("2 documents", self.run_tokenize(*command, "--restart").stdout)

    def test_what_is_broken_is_left_out_on_request(self):
        lines = ['{"text": "a"}', '{"text": null}', "{", '{"text": null}', '{"body": "b"}', '{"text": "c"}']
        self.write("broken.jsonl", "\n".join(lines) + "\n")
        command = ["broken.jsonl", "--tokenizer=bytes", "--output=x"]
        stopped = self.run_tokenize(*command, code=2).stderr
        self.assertIn("broken.jsonl', line 2", stopped)
        self.assertNotIn("json.exception", self.run_tokenize(*command, "--on-error=stop", code=2).stderr)
        result = self.run_tokenize(*command, "--on-error=skip")
        self.assertIn("left out: 'broken.jsonl', line 3, byte 29: the line is no JSON: line 1, column 2",
                      result.stderr)
        self.assertEqual(result.stderr.count("left out: "), 3)
        self.assertNotIn("json.exception", result.stderr)
        self.assertIn("broken, left out: 4 documents: no JSON object (1); no field 'text' (1); "
                      "no text in the field 'text' (2)", result.stdout)
        self.assertIn("x: 2 documents, 2 tokens", result.stdout)

    def test_an_array_of_objects_is_read_as_lines_are(self):
        texts = list(documents(3))
        (self.folder / "a.json").write_text(json.dumps([{"text": text} for text in texts], indent=1))
        (self.folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        for name in ("json", "jsonl"):
            self.run_tokenize(f"a.{name}", "--tokenizer=bytes", f"--output={name}")
        self.assertEqual(self.contents("json"), self.contents("jsonl"))
        self.write("object.json", '{"text": "a"}')
        self.assertIn("no array of objects: 1 .json file",
                      self.run_tokenize("object.json", "--tokenizer=bytes", "--output=x").stdout)

    def test_inspection_says_that_no_end_of_text_tells_documents_apart(self):
        self.tokenize("tokens")
        for source in ("tokens", "tokens/train_*.bin"):
            result = subprocess.run([runs.TRAINER, "data", "inspect", source, "--tokenizer=bytes"], cwd=self.folder,
                                    capture_output=True, text=True, timeout=120, check=True)
            self.assertIn("documents cannot be told apart: the tokenizer has no end-of-text token", result.stdout)
            self.assertNotIn("0 documents", result.stdout)


if __name__ == "__main__":
    runs.main()
