# SPDX-License-Identifier: Apache-2.0
"""A model as a Hugging Face folder and back: what the real binary writes, takes and refuses.

That transformers opens what is written, and that what it writes is taken, is compared in
tests/parity/hugging_face_parity.py.
"""

import json
import os
import shutil
import struct

import runs

STEPS = ["training.max_steps=5", "lr_scheduler.decay_steps=40"]


def read_safetensors(path):
    """(header, data) of a file."""
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + length]), data[8 + length:]


def write_safetensors(path, header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class ExportTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.once(("tiny.yaml", "exp_dir=run", *STEPS))
        self.model = self.folder / "run/checkpoints/step-00000005/model.safetensors"

    def export(self, *arguments, **options):
        return self.trainer("checkpoint", "export", "run", *arguments, **options)

    def imports(self, *arguments, **options):
        return self.trainer("checkpoint", "import", *arguments, **options)

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def change(self, folder, **changes):
        """Sets keys of a folder's config.json; those that are None go."""
        path = self.folder / folder / "config.json"
        config = json.loads(path.read_text()) | changes
        path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}))

    def values(self, path):
        """The bytes and the form of each tensor of a file, by its name."""
        header, data = read_safetensors(path)
        header.pop("__metadata__", None)
        return {name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
                for name, entry in header.items()}

    def test_a_folder_of_theirs_is_written(self):
        told = self.export("hf").stdout
        self.assertIn("step-00000005: 28 tensors", told)
        self.assertEqual(sorted(path.name for path in (self.folder / "hf").iterdir()),
                         ["config.json", "model.safetensors"])
        header, _ = read_safetensors(self.folder / "hf/model.safetensors")
        self.assertEqual(header["__metadata__"], {"format": "pt"})
        ours = self.values(self.model)
        self.assertEqual(self.values(self.folder / "hf/model.safetensors"),
                         {"transformer." + name: tensor for name, tensor in ours.items()})
        self.assertEqual(json.loads((self.folder / "hf/config.json").read_text()), {
            "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "torch_dtype": "float32",
            "vocab_size": 256, "n_positions": 16, "n_layer": 2, "n_head": 2, "n_embd": 16,
            "n_inner": None, "embd_pdrop": 0.1, "attn_pdrop": 0.1, "resid_pdrop": 0.1,
            "layer_norm_epsilon": 1e-05, "initializer_range": 0.02,
            "activation_function": "gelu_new", "add_cross_attention": False,
            "reorder_and_upcast_attn": False, "scale_attn_by_inverse_layer_idx": False,
            "scale_attn_weights": True, "tie_word_embeddings": True,
            "bos_token_id": None, "eos_token_id": None})

    def test_there_and_back_it_is_the_same_model(self):
        self.export("deep/er/hf/")
        config = self.imports("deep/er/hf", "back").stdout
        self.assertEqual(self.values(self.folder / "back/model.safetensors"),
                         self.values(self.model))
        self.assertIn("back: whole", self.trainer("checkpoint", "verify", "back").stdout)
        told = self.trainer("checkpoint", "inspect", "back", "--config").stdout
        self.assertIn("28", told)
        self.assertIn('"n_embd":16', told)
        same = self.trainer("checkpoint", "diff", "run", "back").stdout
        self.assertIn("28 are the same bit for bit", same)
        # It can be exported again,
        self.trainer("checkpoint", "export", "back", "again")
        for name in ("config.json", "model.safetensors"):
            self.assertEqual((self.folder / "again" / name).read_bytes(),
                             (self.folder / "deep/er/hf" / name).read_bytes())
        # and what was printed is a config that begins with it.
        self.write("back.yaml", config)
        for exp_dir, begin in (("warm", "checkpoint.load_from=run"), ("imported", "back.yaml")):
            self.trainer("tiny.yaml", begin, f"exp_dir={exp_dir}", "training.max_steps=1",
                         "lr_scheduler.decay_steps=40")
        self.assertEqual(self.losses("imported"), self.losses("warm"))
        refused = self.trainer("tiny.yaml", "back.yaml", "exp_dir=whole",
                               "checkpoint.load_model_only=false", code=2)
        self.assertIn("load_model_only", refused.stderr)

    def test_another_precision_is_asked_for(self):
        self.export("half", "--dtype", "fp16")
        self.export("brain", "--dtype=bf16", "--format=hf")
        for folder, dtype, name in (("half", "F16", "float16"), ("brain", "BF16", "bfloat16")):
            written = self.values(self.folder / folder / "model.safetensors")
            self.assertEqual({dtype}, {tensor[0] for tensor in written.values()})
            config = json.loads((self.folder / folder / "config.json").read_text())
            self.assertEqual(config["torch_dtype"], name)
        # bfloat16 has float32's upper half, so the way back loses nothing more.
        self.imports("brain", "wide", "--dtype=fp32")
        self.trainer("checkpoint", "export", "wide", "narrow", "--dtype=bf16")
        self.assertEqual((self.folder / "narrow/model.safetensors").read_bytes(),
                         (self.folder / "brain/model.safetensors").read_bytes())
        # Overrides count, and a start takes another precision as its own.
        config = self.imports("brain", "kept", "model.attn_pdrop=0.25").stdout
        self.assertIn("attn_pdrop: 0.25", config)
        self.write("kept.yaml", config)
        self.trainer("tiny.yaml", "kept.yaml", "exp_dir=on", *STEPS)

    def test_other_names_and_masks_of_theirs_are_taken(self):
        self.export("hf")
        path = self.folder / "hf/model.safetensors"
        header, data = read_safetensors(path)
        tensors = {name.removeprefix("transformer."): entry for name, entry in header.items()}
        mask = {"dtype": "U8", "shape": [1, 1, 4, 4], "data_offsets": [len(data), len(data) + 16]}
        tensors["h.1.attn.bias"] = mask
        begin, end = tensors["wte.weight"]["data_offsets"]
        head = tensors["wte.weight"] | {"data_offsets": [len(data) + 16, len(data) + 16 + end - begin]}
        extended = data + bytes(16) + data[begin:end]
        write_safetensors(path, tensors | {"lm_head.weight": head}, extended)
        # Their programs take these keys as well.
        self.change("hf", n_head=None, num_attention_heads=2, activation_function="gelu_pytorch_tanh")
        self.imports("hf", "back")
        self.assertEqual(self.values(self.folder / "back/model.safetensors"),
                         self.values(self.model))

        other = extended[:-1] + bytes([extended[-1] ^ 1])
        write_safetensors(path, tensors | {"lm_head.weight": head}, other)
        refused = self.imports("hf", "other", code=2)
        self.assertIn("'wte.weight' and 'lm_head.weight' differ", refused.stderr)
        # The head alone is the embedding.
        del tensors["wte.weight"]
        order = sorted(tensors, key=lambda name: tensors[name].get("data_offsets", [0]))
        whole, place, kept = b"", 0, {}
        for name in order + ["lm_head.weight"]:
            entry = head if name == "lm_head.weight" else tensors[name]
            if name == "__metadata__":
                continue
            part = extended[slice(*entry["data_offsets"])]
            kept[name] = entry | {"data_offsets": [place, place + len(part)]}
            whole, place = whole + part, place + len(part)
        write_safetensors(path, kept, whole)
        self.imports("hf", "alone")
        self.assertEqual(self.values(self.folder / "alone/model.safetensors"),
                         self.values(self.model))

    def test_a_model_that_there_is_not_is_refused_with_those_that_there_are(self):
        self.export("hf")
        self.change("hf", model_type="no_such_model")
        self.assertRegex(self.imports("hf", "back", code=2).stderr,
                         r"no model of the model_type 'no_such_model'; there are: .*\bgpt2\b")

    def test_what_cannot_be_expressed_is_refused_by_its_key(self):
        self.export("hf")
        self.change("hf", activation_function="relu", scale_attn_by_inverse_layer_idx=True)
        refused = self.imports("hf", "back", code=2).stderr
        self.assertIn('activation_function is "relu", and here it is "gelu_new"', refused)
        self.assertIn("scale_attn_by_inverse_layer_idx is true", refused)
        for changes, told in (
            ({"n_layer": 3}, "missing model tensor 'h.2."),
            ({"n_layer": 1}, "unexpected model tensor 'h.1."),
            ({"n_layer": 10**9}, "n_layer is 1000000000, and the files beside it hold 28 tensors"),
            ({"n_embd": 32}, "'h.0.attn.c_attn.bias' is F32 [48] in the checkpoint, F32 [96] here"),
            ({"n_head": 3}, "must be a multiple of n_head"),
            ({"n_embd": "wide"}, "model.n_embd"),
            ({"n_embd": "${oc.env:HOME}"}, "holds '${', which"),
            ({"n_embd": [["${oc.env:HOME}"]]}, "holds '${', which"),
            ({"tie_word_embeddings": False}, "tie_word_embeddings is false"),
        ):
            with self.subTest(changes):
                shutil.rmtree(self.folder / "hf")
                self.export("hf")
                self.change("hf", **changes)
                self.assertIn(told, self.imports("hf", "back", code=2).stderr)
        for text, told in (("{", "no JSON"), ("[" * 100000, "nested too deeply"), ("[]", "model_type"),
                           ('{"n_embd": 1, "n_embd": 2}', "'n_embd' appears twice")):
            (self.folder / "hf/config.json").write_text(text)
            self.assertIn(told, self.imports("hf", "back", code=2).stderr)
        (self.folder / "hf/config.json").unlink()
        self.assertIn("no config.json", self.imports("hf", "back", code=2).stderr)
        (self.folder / "hf/model.safetensors").unlink()
        self.assertIn("neither model.safetensors", self.imports("hf", "back", code=2).stderr)
        self.assertIn("'nowhere' does not exist", self.imports("nowhere", "back", code=2).stderr)
        self.assertEqual(self.names(), ["hf", "run", "text.txt", "tiny.yaml"])

    def test_what_a_killed_command_has_left_goes_with_the_next(self):
        self.write("hf.tmp-99999/model.safetensors", "half")
        self.write("hf.tmp-99999/.phalanx-unfinished", "")
        self.write("hf.tmp-99998/model.safetensors", "somebody's")
        self.export("hf")
        self.assertFalse((self.folder / "hf.tmp-99999").exists())
        self.assertTrue((self.folder / "hf.tmp-99998/model.safetensors").exists())
        self.assertFalse((self.folder / "hf/.phalanx-unfinished").exists())

    def test_nothing_is_written_over_and_nothing_is_left(self):
        self.write("full/notes.txt", "mine")
        self.assertIn("is there already", self.export("full", code=2).stderr)
        self.assertIn("is there already", self.export("tiny.yaml", code=2).stderr)
        self.assertIn("no checkpoint", self.trainer("checkpoint", "export", "full", "out",
                                                    code=2).stderr)
        self.assertIn("--dtype=fp32|bf16|fp16", self.export("out", "--dtype", code=2).stderr)
        self.assertIn("unknown value of --dtype 'int8'",
                      self.export("out", "--dtype=int8", code=2).stderr)
        self.assertIn("unknown value of --format 'hff'; did you mean 'hf'? There are: hf",
                      self.export("out", "--format=hff", code=2).stderr)
        (self.folder / "empty").mkdir()
        self.export("empty")
        data = bytearray(self.model.read_bytes())
        data[-1] ^= 1
        self.model.write_bytes(data)
        self.assertIn("is damaged", self.export("out", code=1).stderr)
        self.assertEqual(self.names(), ["empty", "full", "run", "text.txt", "tiny.yaml"])

    def test_values_beyond_a_precision_are_no_infinities(self):
        self.export("hf")
        path = self.folder / "hf/model.safetensors"
        header, data = read_safetensors(path)
        begin, _ = header["transformer.wpe.weight"]["data_offsets"]
        write_safetensors(path, header, data[:begin] + struct.pack("<f", 1e6) + data[begin + 4:])
        refused = self.imports("hf", "half", "--dtype=fp16", code=2).stderr
        self.assertIn("'transformer.wpe.weight' has values beyond the range of Half", refused)
        self.imports("hf", "brain", "--dtype=bf16")

    def test_shards_of_several_ranks_are_one_model(self):
        self.trainer("tiny.yaml", "exp_dir=cut", "launcher.processes=2", "parallel=fsdp",
                     "training.batch_size=2", *STEPS)
        self.trainer("checkpoint", "export", "cut", "hf")
        ours = self.values(self.folder / "cut/checkpoints/step-00000005/model.safetensors")
        self.assertEqual(self.values(self.folder / "hf/model.safetensors"),
                         {"transformer." + name: tensor for name, tensor in ours.items()})

    def test_links_of_a_cache_of_models_are_followed(self):
        self.export("hf")
        (self.folder / "cache").mkdir()
        for name in ("config.json", "model.safetensors"):
            os.symlink(self.folder / "hf" / name, self.folder / "cache" / name)
        self.imports("cache", "back")
        self.assertEqual(self.values(self.folder / "back/model.safetensors"),
                         self.values(self.model))


if __name__ == "__main__":
    runs.main()
