# SPDX-License-Identifier: Apache-2.0
"""Tests `trainer checkpoint average`: values, commands that read the result, errors."""

import array
import json
import shutil
import struct

import runs

STEPS = ["training.max_steps=10", "lr_scheduler.decay_steps=40"]
FIRST, SECOND = (f"run/checkpoints/step-{step:08d}" for step in (5, 10))


def read_safetensors(path):
    """(header without metadata, data) of a file."""
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return header, data[8 + length:]


def mean(rows):
    """The mean of float32 values as float32: the sum in float64, from the first on."""
    means = []
    for values in zip(*rows, strict=True):
        total = values[0]
        for value in values[1:]:
            total += value
        means.append(total / len(values))
    return array.array("f", means)


def brain_bytes(values):
    """float32 values as bfloat16, rounded to the nearest, of two to the even one."""
    halves = array.array("H")
    for bits in array.array("I", values.tobytes()):
        halves.append((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return halves.tobytes()


class AverageTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.once(("tiny.yaml", "exp_dir=run", *STEPS))

    def average(self, *arguments, **options):
        return self.trainer("checkpoint", "average", *arguments, **options)

    def refused(self, *arguments, code=2):
        """What an average that fails says; it leaves nothing."""
        before = self.files()
        told = self.average(*arguments, code=code)
        self.assertEqual(told.stdout, "")
        self.assertEqual(self.files(), before)
        return told.stderr

    def tensors(self, folder):
        """{name: (dtype, shape, bytes)} of the model in a folder."""
        header, data = read_safetensors(self.folder / folder / "model.safetensors")
        return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
                for name, entry in header.items()}

    def manifest(self, folder):
        return json.loads((self.folder / folder / "manifest.json").read_text())

    def assert_mean(self, folder, *sources, dtype="F32"):
        """Compares every value with the mean of float32 tensors."""
        written = self.tensors(folder)
        read = [self.tensors(source) for source in sources]
        self.assertEqual(set(written), set(read[0]))
        for name, (kind, shape, data) in written.items():
            self.assertEqual((kind, shape), (dtype, read[0][name][1]), name)
            expected = mean([array.array("f", each[name][2]) for each in read])
            expected = expected.tobytes() if dtype == "F32" else brain_bytes(expected)
            self.assertEqual(data, expected, name)

    def imported(self, name, tensor, dtype, change=0):
        """A checkpoint of the run's model: a tensor gets a type, and its first byte a change."""
        if not (self.folder / "hf").exists():
            self.trainer("checkpoint", "export", "run", "hf")
        shutil.copytree(self.folder / "hf", self.folder / f"hf_{name}")
        path = self.folder / f"hf_{name}/model.safetensors"
        header, data = read_safetensors(path)
        entry = header["transformer." + tensor]
        entry["dtype"] = dtype
        data = bytearray(data)
        data[entry["data_offsets"][0]] ^= change
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        self.trainer("checkpoint", "import", f"hf_{name}", name)

    def test_every_value_is_the_mean(self):
        told = self.average(FIRST, "run", "--output=mean").stdout
        self.assertRegex(told, r"\Astep-00000005 \+ step-00000010 -> \S*/mean: "
                               r"28 tensors, \S+ kB in 1 file\n\Z")
        self.assert_mean("mean", FIRST, SECOND)
        self.assertNotEqual(self.tensors("mean"), self.tensors(FIRST))
        self.assertEqual(sorted(path.name for path in (self.folder / "mean").iterdir()),
                         ["manifest.json", "model.safetensors"])
        self.assertEqual(self.manifest("mean")["config"], self.manifest(FIRST)["config"])
        self.assertEqual(self.manifest("mean")["state"]["step"], 0)
        # The average of three, one of which several ranks have written, in another precision.
        self.trainer("tiny.yaml", "exp_dir=cut", "launcher.processes=2", "parallel=fsdp",
                     "training.batch_size=2", *STEPS)
        self.average(FIRST, SECOND, "cut", "--output", "brain", "--dtype=bf16")
        self.assert_mean("brain", FIRST, SECOND, "cut/checkpoints/step-00000010", dtype="BF16")
        # An average is a checkpoint like others; the precision is the first one's.
        told = self.average("mean", "brain", "--output=deep/er/mean").stdout
        self.assertIn("mean + brain -> ", told)
        self.assertEqual({"F32"}, {dtype for dtype, _, _ in self.tensors("deep/er/mean").values()})
        self.average("brain", "mean", "--output=narrow")
        self.assertEqual({"BF16"}, {dtype for dtype, _, _ in self.tensors("narrow").values()})

    def test_it_is_a_checkpoint_for_all_commands(self):
        self.average(FIRST, SECOND, "--output=mean")
        self.assertIn("mean: whole", self.trainer("checkpoint", "verify", "mean").stdout)
        told = self.trainer("checkpoint", "inspect", "mean", "--tensors", "--config").stdout
        self.assertIn("h.0.attn.c_attn.weight", told)
        self.assertNotIn("exp_avg", told)
        self.trainer("checkpoint", "export", "mean", "out")
        ours = self.tensors("mean")
        self.assertEqual(self.tensors("out"),
                         {"transformer." + name: tensor for name, tensor in ours.items()})
        for exp_dir, source in (("warm", "mean"), ("plain", "out")):
            self.trainer("tiny.yaml", f"exp_dir={exp_dir}", f"checkpoint.load_from={source}",
                         "training.max_steps=1", "lr_scheduler.decay_steps=40")
        self.assertEqual(self.losses("warm"), self.losses("plain"))
        refused = self.trainer("tiny.yaml", "exp_dir=whole", "checkpoint.load_from=mean",
                               "checkpoint.load_model_only=false", code=2)
        self.assertIn("load_model_only", refused.stderr)
        told = self.trainer("evaluate", "mean").stdout
        self.assertRegex(told, r"\Amean \(step 0\)\n  loss ")
        # A run goes on as if one among its checkpoints were not there.
        self.average(FIRST, SECOND, "--output=run/checkpoints/mean")
        self.assertEqual(self.trainer("evaluate", "run/checkpoints/mean").stdout,
                         "run/checkpoints/" + told)
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=15",
                     "lr_scheduler.decay_steps=40")
        self.trainer("checkpoint", "prune", "run", "checkpoint.keep_last=1")
        self.assertIn("run/checkpoints/mean/manifest.json", self.files())
        self.assertNotIn(SECOND, self.files())
        self.assertNotIn("mean", self.trainer("checkpoint", "list", "run").stdout)

    def test_what_has_no_mean_has_to_be_the_same(self):
        for name, dtype, change in (("one", "I32", 0), ("same", "I32", 0), ("other", "I32", 1),
                                    ("real", "F32", 0)):
            self.imported(name, "ln_f.bias", dtype, change)
        self.average("one", "same", "--output=mean")
        self.assertEqual(self.tensors("mean"), self.tensors("one"))
        self.assertEqual(self.tensors("mean")["ln_f.bias"][0], "I32")
        told = self.refused("one", "same", "other", "--output=out")
        self.assertIn("tensor 'ln_f.bias' differs between 'one' and 'other', and values of the "
                      "dtype I32 have no mean", told)
        told = self.refused("one", "real", "--output=out")
        self.assertIn("'real' holds another model than 'one'", told)
        self.assertIn("model tensor 'ln_f.bias' is F32 [16] in the checkpoint, I32 [16] here", told)

    def test_the_tokenizer_of_the_first_goes_along(self):
        self.imported("plain", "ln_f.bias", "F32")
        self.write("hf/vocab.json", "{}")
        self.imported("carrying", "ln_f.bias", "F32")
        self.average("carrying", "plain", "--output=mean")
        self.assertEqual((self.folder / "mean/attachments/vocab.json").read_text(), "{}")
        self.assertIn("mean: whole", self.trainer("checkpoint", "verify", "mean").stdout)
        self.average("plain", "carrying", "--output=without")
        self.assertFalse((self.folder / "without/attachments").exists())

    def test_adapters_of_one_model_are_averaged(self):
        self.trainer("checkpoint", "export", "run", "hf")
        self.trainer("checkpoint", "export", FIRST, "hf_other")
        lora = "lora={target_modules: [c_attn], r: 4, lora_alpha: 16}"
        for exp_dir, base, options in (("lora", "hf", lora), ("beside", "hf_other", lora),
                                       ("scaled", "hf", lora.replace("16", "32"))):
            self.trainer("tiny.yaml", f"exp_dir={exp_dir}", f"checkpoint.load_from={base}", options,
                         *STEPS)
        first, second = (f"lora/checkpoints/step-{step:08d}" for step in (5, 10))
        self.average(first, second, "--output=mean")
        self.assert_mean("mean", first, second)
        self.assertEqual(self.manifest("mean")["base"], self.manifest(first)["base"])
        self.assertIn("28 tensors", self.trainer("checkpoint", "export", "mean", "merged").stdout)
        self.assertIn("'run/checkpoints/step-00000010' holds a whole model, and "
                      "'lora/checkpoints/step-00000010' adapters",
                      self.refused("lora", "run", "--output=out"))
        self.assertIn("trained beside different models",
                      self.refused("lora", "beside", "--output=out"))
        self.assertIn("different lora.lora_alpha", self.refused("lora", "scaled", "--output=out"))

    def test_other_models_are_refused(self):
        for exp_dir, option in (("wide", "model.n_embd=32"), ("low", "model.n_layer=1")):
            self.trainer("tiny.yaml", f"exp_dir={exp_dir}", option, "training.max_steps=1",
                         "lr_scheduler.decay_steps=40")
        told = self.refused(FIRST, SECOND, "wide", "--output=out")
        self.assertIn(f"'wide/checkpoints/step-00000001' holds another model than '{FIRST}'", told)
        self.assertIn("model tensor 'h.0.attn.c_attn.bias' is F32 [96] in the checkpoint, "
                      "F32 [48] here", told)
        self.assertIn("missing model tensor 'h.1.", self.refused("run", "low", "--output=out"))
        self.assertIn("unexpected model tensor 'h.1.", self.refused("low", "run", "--output=out"))

    def test_mistakes_are_refused_and_nothing_is_left(self):
        self.assertIn("B is missing: trainer checkpoint average A B [C ...]",
                      self.refused(FIRST, "--output=out"))
        self.assertIn("A is missing", self.refused("--output=out"))
        self.assertIn("option --output is missing: --output=PATH", self.refused(FIRST, SECOND))
        told = self.refused(FIRST, "run", SECOND + "/", "--output=out")
        self.assertIn(f"'run' and '{SECOND}/' are the same checkpoint", told)
        self.assertIn("are the same checkpoint",
                      self.refused("run", "run/checkpoints", "--output=out"))
        self.assertIn("unknown value of --dtype 'int8'",
                      self.refused(FIRST, SECOND, "--output=out", "--dtype=int8"))
        self.assertIn("'nowhere' does not exist",
                      self.refused(FIRST, "nowhere", "--output=out"))
        self.write("full/notes.txt", "mine")
        self.assertIn("'full' is there already", self.refused(FIRST, SECOND, "--output=full"))
        self.assertIn(f"'{FIRST}' is there already",
                      self.refused(FIRST, SECOND, f"--output={FIRST}"))
        (self.folder / "empty").mkdir()
        self.average(FIRST, SECOND, "--output=empty")
        # What is read is compared with its checksums.
        path = self.folder / SECOND / "model.safetensors"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        self.assertIn("step-00000010/model.safetensors' is damaged",
                      self.refused(FIRST, SECOND, "--output=out", code=1))
        self.assertIn("is damaged", self.refused(SECOND, FIRST, "--output=out", code=1))


if __name__ == "__main__":
    runs.main()
