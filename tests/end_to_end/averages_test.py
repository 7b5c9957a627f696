# SPDX-License-Identifier: Apache-2.0
"""Averages of weights: what validates, evaluates, predicts, writes and exports them."""

import json
import struct

from tests.end_to_end import runs

EMA = ["averages.method=ema", "averages.decay=0.8", "optimizer.lr=0.01"]
STEPS = ["training.max_steps=20"]
SHARDED = ["launcher.processes=2", "training.batch_size=2", "parallel.use_fsdp=true",
           "parallel.sharding_strategy=FULL_SHARD"]


def tensors_of(path):
    """The bytes of each tensor of a safetensors file."""
    data = path.read_bytes()
    length, = struct.unpack_from("<Q", data)
    body = data[8 + length:]
    return {name: body[slice(*entry["data_offsets"])]
            for name, entry in json.loads(data[8:8 + length]).items() if name != "__metadata__"}


def sliced_tensors(checkpoint, part):
    """The bytes of each tensor of a part, put together from what the ranks have written."""
    tensors = {}
    for entry in json.loads((checkpoint / "manifest.json").read_text())["tensors"]:
        if entry["part"] != part:
            continue
        tensors[entry["name"]] = b""
        for piece in entry["slices"]:
            size = (piece["end"] - piece["begin"]) * {"F32": 4}[entry["dtype"]]
            data = (checkpoint / piece["file"]).read_bytes()
            tensors[entry["name"]] += data[piece["offset"]:piece["offset"] + size]
    return tensors


class AveragesTest(runs.RunTest):

    def train(self, exp_dir, *arguments, **options):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", *STEPS, *arguments, **options)

    def evaluated(self, *arguments):
        told = self.trainer("evaluate", *arguments, "--json").stdout
        return json.loads(told)

    def validated(self, exp_dir):
        return [row["loss"] for row in self.rows(exp_dir) if row["phase"] == "validate"]

    def test_what_validates_and_what_evaluates(self):
        for ranks in ([], SHARDED):
            plain, own, average = (f"{name}{len(ranks)}" for name in ("plain", "own", "average"))
            self.train(plain, "optimizer.lr=0.01", *ranks)
            self.train(own, *EMA, *ranks)
            told = self.train(average, *EMA, "averages.validate=true", *ranks)
            self.assertIn("ema, decay 0.8; after each step; validated", told.stdout)
            self.assertRegex(told.stdout, rf"(?m)^next: .* evaluate {average} --average$")
            self.assertEqual(self.losses(own), self.losses(plain))
            self.assertEqual([row for row in self.losses(average) if row[0] == "train"],
                             [row for row in self.losses(plain) if row[0] == "train"])
            self.assertNotEqual(self.validated(average), self.validated(plain))
            row = self.evaluated(own, "--average")
            self.assertEqual(row["loss"], self.validated(average)[-1])
            self.assertIn("(step 20, average)", row["model"])
            self.assertEqual(self.evaluated(average, "--average")["loss"], self.validated(average)[-1])
            self.assertEqual(self.evaluated(average)["loss"], self.validated(plain)[-1])

    def test_what_uses_the_weights_says_that_there_is_an_average(self):
        self.once(("tiny.yaml", "exp_dir=own", *STEPS, *EMA),
                  ("tiny.yaml", "exp_dir=validated", *STEPS, *EMA, "averages.validate=true"),
                  ("tiny.yaml", "exp_dir=late", *STEPS, *EMA, "averages.validate=true", "averages.start=30"))
        self.write("lines.txt", "the quick fox\n")
        for run, measured in (("own", ""), ("validated", ", which the run's validations measured")):
            note = (f"note: step-00000020 holds the weights and their average{measured}: the weights are used; "
                    "--average takes the average\n")
            for command in (["evaluate", run], ["generate", run, "--prompt=a", "max_new_tokens=1"],
                            ["predict", run, "lines.txt", "--output={}.jsonl"],
                            ["checkpoint", "export", run, "{}"]):
                with self.subTest(command):
                    weights, average = ([word.format(f"{run}_{kind}") for word in command] for kind in "wa")
                    self.assertIn(note, self.trainer(*weights).stderr)
                    self.assertNotIn("takes the average", self.trainer(*average, "--average").stderr)
        self.assertNotIn("note: step-", self.trainer("evaluate", "late").stderr)

    def test_next_is_the_evaluation_that_repeats_the_validation(self):
        told = self.train("own", *EMA).stdout
        self.assertRegex(told, r"(?m)^next: .* evaluate own$")
        told = self.train("late", *EMA, "averages.validate=true", "averages.start=30").stdout
        self.assertRegex(told, r"(?m)^next: .* evaluate late$")

    def test_the_model_that_is_exported_and_used(self):
        self.train("run", *EMA)
        checkpoint = self.folder / "run/checkpoints/step-00000020"
        self.trainer("checkpoint", "export", "run", "weights")
        self.trainer("checkpoint", "export", "run", "average", "--average")
        names = {name: f"transformer.{name}" for name in tensors_of(checkpoint / "averages.safetensors")}
        exported = tensors_of(self.folder / "average/model.safetensors")
        for name, values in tensors_of(checkpoint / "averages.safetensors").items():
            there = exported.get(name, exported.get(names[name]))
            self.assertEqual(there, values, name)
        self.assertNotEqual(exported, tensors_of(self.folder / "weights/model.safetensors"))
        text = self.trainer("generate", "run", "--average", "--prompt=The", "max_new_tokens=8", "temperature=0")
        same = self.trainer("generate", "average", "--tokenizer=bytes", "--prompt=The", "max_new_tokens=8",
                            "temperature=0")
        self.assertEqual(text.stdout, same.stdout)
        self.write("lines.txt", "the quick fox\n7: lazy dogs\n")
        for name, flags in (("of_weights", []), ("of_average", ["--average"])):
            self.trainer("predict", "run", "lines.txt", f"--output={name}.jsonl", *flags)
        self.assertNotEqual((self.folder / "of_weights.jsonl").read_text(),
                            (self.folder / "of_average.jsonl").read_text())

    def test_the_average_of_two_ranks_is_exported(self):
        self.train("run", *EMA, *SHARDED)
        averages = sliced_tensors(self.folder / "run/checkpoints/step-00000020", "averages")
        self.trainer("checkpoint", "export", "run", "average", "--average")
        exported = tensors_of(self.folder / "average/model.safetensors")
        self.assertTrue(averages)
        for name, values in averages.items():
            self.assertEqual(exported.get(name, exported.get(f"transformer.{name}")), values, name)
        self.assertNotEqual(self.evaluated("run", "--average")["loss"], self.evaluated("run")["loss"])

    def test_a_checkpoint_says_what_it_holds(self):
        self.train("run", *EMA)
        told = self.trainer("checkpoint", "inspect", "run").stdout
        self.assertIn("averages.safetensors", told)
        self.assertRegex(told, r'averages +\{"method":"ema","updates":20\}')
        self.trainer("checkpoint", "verify", "run")
        self.train("other", *EMA, "averages.start=10")
        told = self.trainer("checkpoint", "diff", "run", "other").stdout
        self.assertRegex(told, r"averages +wte.weight")
        self.assertIn('values of averages: {"method":"ema","updates":20} | {"method":"ema","updates":11}', told)

    def test_what_has_no_average_says_so(self):
        self.train("plain")
        for command in (["evaluate", "plain"], ["generate", "plain", "--prompt=a"],
                        ["checkpoint", "export", "plain", "exported"]):
            error = self.trainer(*command, "--average", code=2).stderr
            self.assertIn("holds no averages of its weights: a run keeps them with averages.method", error)
        self.trainer("checkpoint", "export", "plain", "exported")
        error = self.trainer("generate", "exported", "--prompt=a", "--average", code=2).stderr
        self.assertIn("holds one model, and no average beside it", error)

    def test_an_average_may_begin_and_end_with_a_resume(self):
        self.train("run", "training.max_steps=8")
        told = self.train("run", "training.max_steps=12", *EMA[:2]).stdout
        self.assertIn("note: step-00000008 holds no state of averages: the run begins it anew at step 8", told)
        told = self.train("run", "training.max_steps=16").stdout
        self.assertIn("note: step-00000012 also holds the state of averages, which this run does not use", told)
        self.assertFalse((self.folder / "run/checkpoints/step-00000016/averages.safetensors").exists())


if __name__ == "__main__":
    runs.main()
