# SPDX-License-Identifier: Apache-2.0
"""A run that begins with a folder of Hugging Face's libraries, which checkpoint.load_from names.

The folder is written by `checkpoint export`; that transformers writes the same form is compared in
tests/parity/hugging_face_parity.py, which also starts from a folder of its own.
"""

import json
import shutil

from tests.end_to_end import runs

STEPS = ["training.max_steps=5", "lr_scheduler.decay_steps=40"]
FROM = "checkpoint.load_from=hf"
# What a clone without Git LFS has in place of a large file.
LFS_POINTER = """\
version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 548105171
"""
# tiny.yaml without a model.
BARE = runs.CONFIG[:runs.CONFIG.index("model:")] + runs.CONFIG[runs.CONFIG.index("optimizer:"):]


class HuggingFaceStartTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.write("bare.yaml", BARE)
        self.once(("tiny.yaml", "exp_dir=run", *STEPS), ("checkpoint", "export", "run", "hf"))

    def change(self, **changes):
        path = self.folder / "hf/config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    def refused(self, *arguments):
        """The message of a start that is refused before anything is written or launched."""
        before = self.files()
        errors = self.trainer(*arguments, code=2).stderr
        self.assertEqual(self.files(), before)
        return errors

    def test_the_folder_says_what_the_model_is(self):
        self.trainer("bare.yaml", FROM, "exp_dir=from_folder", *STEPS)
        self.trainer("tiny.yaml", "checkpoint.load_from=run", "exp_dir=from_run", *STEPS)
        self.assertEqual(self.losses("from_folder"), self.losses("from_run"))
        config = (self.folder / "from_folder/config.yaml").read_text()
        self.assertRegex(config, r"n_embd: 16 +# hf/config.json")
        # What is kept goes on, and needs the folder no more.
        shutil.rmtree(self.folder / "hf")
        self.trainer("from_folder/config.yaml", "exp_dir=from_folder", "training.max_steps=7")
        self.trainer("evaluate", "from_folder")

    def test_a_run_says_what_its_model_is(self):
        self.trainer("tiny.yaml", "checkpoint.load_from=run", "exp_dir=named", *STEPS)
        for source in ("run", "run/checkpoints", "run@5"):
            self.trainer("bare.yaml", f"checkpoint.load_from={source}", "exp_dir=taken", *STEPS)
            self.assertEqual(self.losses("taken"), self.losses("named"), source)
            shutil.rmtree(self.folder / "taken")
        # A field beside it is the config's own.
        self.trainer("bare.yaml", "checkpoint.load_from=run", "model.resid_pdrop=0.5", "exp_dir=taken", *STEPS)
        config = (self.folder / "taken/config.yaml").read_text()
        self.assertRegex(config, r"n_embd: 16 +# run/checkpoints/step-00000005/manifest.json")
        self.assertRegex(config, r"resid_pdrop: 0.5 +# command line")
        # What is kept goes on, and needs the run no more.
        shutil.rmtree(self.folder / "run")
        self.trainer("taken/config.yaml", "exp_dir=taken", "training.max_steps=7")

    def test_adapters_alone_are_no_model(self):
        self.trainer("bare.yaml", FROM, "lora.target_modules=[c_attn]", "exp_dir=adapters", *STEPS)
        told = self.refused("bare.yaml", "checkpoint.load_from=adapters")
        self.assertIn("adapters/checkpoints/step-00000005' holds adapters alone: merge them", told)

    def test_a_checkpoint_without_a_config_does_not_say_what_its_model_is(self):
        for path in (self.folder / "run/checkpoints").glob("step-*/manifest.json"):
            path.write_text("{}")
        told = self.refused("bare.yaml", "checkpoint.load_from=run")
        self.assertIn("error: checkpoint.load_from (command line): ", told)
        self.assertIn("manifest.json", told)
        self.assertNotIn("a mandatory value is missing", told)

    def test_fields_that_are_set_must_agree_except_where_training_may_choose(self):
        self.trainer("tiny.yaml", FROM, "exp_dir=agreed", "model.attn_pdrop=0", *STEPS)
        self.trainer("bare.yaml", FROM, "exp_dir=named", "model=gpt2", *STEPS)
        told = self.refused("tiny.yaml", FROM, "model.n_layer=3", "model.layer_norm_epsilon=1e-6")
        self.assertIn("model.n_layer is 3 (command line), and there it is 2", told)
        self.assertIn("model.layer_norm_epsilon is ", told)
        self.assertNotIn("n_embd", told)
        told = self.refused("bare.yaml", FROM, "model=gpt2-355m")
        self.assertIn("model.n_embd is 1024 (preset gpt2-355m), and there it is 16", told)

    def test_what_the_folder_lacks_or_has_too_much_is_named(self):
        for changes, told in (({"n_layer": 3}, "missing model tensor 'h.2."),
                              ({"n_layer": 1}, "unexpected model tensor 'h.1."),
                              ({"n_embd": 32}, "is F32 [48] in the checkpoint, F32 [96] here"),
                              ({"activation_function": "relu"}, 'activation_function is "relu"'),
                              ({"model_type": "no_such"}, "no model of the model_type 'no_such'")):
            with self.subTest(changes):
                kept = (self.folder / "hf/config.json").read_text()
                self.change(**changes)
                self.assertIn(told, self.refused("bare.yaml", FROM))
                (self.folder / "hf/config.json").write_text(kept)
        self.change(n_layer=3)
        warned = self.trainer("bare.yaml", FROM, "checkpoint.load_strict=false", "exp_dir=fits",
                              *STEPS).stderr
        self.assertIn("warning: missing model tensor 'h.2.", warned)

    def test_git_lfs_pointers_are_told_from_broken_files(self):
        for name in ("model.safetensors", "config.json", "tokenizer.json"):
            with self.subTest(name):
                path = self.folder / "hf" / name
                kept = path.read_bytes() if path.exists() else None
                path.write_text(LFS_POINTER)
                told = self.refused("bare.yaml", FROM)
                self.assertIn(f"hf/{name}' is a Git LFS pointer, not the file itself, which has 548 MB: "
                              "run `git lfs pull` in its folder", told)
                if kept is None:
                    path.unlink()
                else:
                    path.write_bytes(kept)
        (self.folder / "hf/model.safetensors").rename(self.folder / "hf/model-00001-of-00001.safetensors")
        (self.folder / "hf/model.safetensors.index.json").write_text(LFS_POINTER)
        self.assertIn("hf/model.safetensors.index.json' is a Git LFS pointer",
                      self.refused("bare.yaml", FROM))

    def test_adapters_beside_the_weights_are_refused(self):
        (self.folder / "hf/adapter_config.json").write_text('{"peft_type": "LORA"}')
        for command in (["bare.yaml", FROM], ["checkpoint", "import", "hf", "imported"],
                        ["generate", "hf", "--prompt=a"]):
            with self.subTest(command):
                told = self.refused(*command)
                self.assertIn("'hf' holds adapters of peft (adapter_config.json) beside its weights", told)
                self.assertIn("merge_and_unload()", told)

    def test_quantized_weights_are_refused_by_the_method(self):
        for said, method in (({"quant_method": "gptq", "bits": 4}, "gptq"),
                             ({"load_in_4bit": True}, "bitsandbytes"),
                             ({"bits": 4}, "a method without a name")):
            with self.subTest(method):
                self.change(quantization_config=said)
                told = self.refused("bare.yaml", FROM)
                self.assertIn(f"hf/config.json' says that the weights are quantized: its "
                              f"quantization_config names {method}", told)
                self.assertIn("dequantize()", told)
        self.change(quantization_config=None)
        self.trainer("bare.yaml", FROM, "exp_dir=whole", *STEPS)

    def test_a_source_that_cannot_be_read_is_told_by_its_kind(self):
        self.write("pickled/config.json", "{}")
        self.write("pickled/pytorch_model.bin", "")
        self.write("adapters/adapter_config.json", '{"base_model_name_or_path": "org/base"}')
        self.write("adapters/adapter_model.safetensors", "")
        self.write("hollow/config.json", "{}")
        self.write("model.gguf", "")
        (self.folder / "nothing").mkdir()
        kinds = {
            "gone": "'gone' does not exist",
            "org/name": "'org/name' does not exist: if it names a model of Hugging Face's hub, download it first "
                        "(`hf download org/name --local-dir name`)",
            "pickled": "'pickled' holds weights as a pickle (pytorch_model.bin), which is never read",
            "pickled/pytorch_model.bin": "holds weights as a pickle (pytorch_model.bin)",
            "adapters": "'adapters' holds adapters of peft alone of the model 'org/base'",
            "adapters/adapter_model.safetensors": "holds adapters of peft alone of the model 'org/base'",
            "hollow": "'hollow' has a config.json, but no weights",
            "model.gguf": "holds weights as GGUF",
            "nothing": "there is no checkpoint in 'nothing'",
        }
        for source, message in kinds.items():
            # Without a section model, the file and line that name the source come first.
            text = BARE.replace("{save_every_n_steps: 5}", f"{{load_from: {source}}}")
            self.write("names.yaml", text)
            line = text[:text.index("load_from")].count("\n") + 1
            for arguments, begin in ((["names.yaml"], f"checkpoint.load_from (names.yaml:{line}): "),
                                     (["tiny.yaml", f"checkpoint.load_from={source}"], "")):
                with self.subTest(source, named=bool(begin)):
                    told = self.refused(*arguments)
                    self.assertIn(begin + message if message.startswith(("'", "there")) else message, told)
                    self.assertNotIn("mandatory", told)
        for source in ("org/name", "adapters"):
            for command in (["evaluate", source], ["predict", source, "text.txt", "--output=out"],
                            ["generate", source, "--prompt=a"], ["checkpoint", "list", source],
                            ["checkpoint", "inspect", source], ["checkpoint", "verify", source],
                            ["checkpoint", "diff", source, source], ["checkpoint", "export", source, "out"],
                            ["checkpoint", "average", source, "run", "--output=out"],
                            ["checkpoint", "import", source, "out"]):
                with self.subTest(command):
                    self.assertIn(kinds[source], self.refused(*command))
        self.assertIn("make one of it with `trainer checkpoint import hf DESTINATION`",
                      self.refused("checkpoint", "export", "hf", "out"))

    def test_the_file_of_the_weights_starts_as_its_folder_does(self):
        self.trainer("bare.yaml", FROM, "exp_dir=folder", *STEPS)
        file = "checkpoint.load_from=hf/model.safetensors"
        self.trainer("bare.yaml", file, "exp_dir=file", *STEPS)
        (self.folder / "alone").mkdir()
        shutil.copy(self.folder / "hf/model.safetensors", self.folder / "alone/weights.safetensors")
        alone = "checkpoint.load_from=alone/weights.safetensors"
        self.trainer("tiny.yaml", alone, "exp_dir=alone_run", *STEPS)
        for exp_dir in ("file", "alone_run"):
            self.assertEqual(self.losses(exp_dir), self.losses("folder"), exp_dir)
        self.assertIn("'alone/weights.safetensors' does not say what the model is", self.refused("bare.yaml", alone))
        self.assertIn("model.n_layer is 3", self.refused("tiny.yaml", file, "model.n_layer=3"))

    def test_missing_tensors_are_no_other_sizes(self):
        told = self.refused("tiny.yaml", FROM, "model.n_layer=3", "checkpoint.load_strict=false")
        self.assertIn("model.n_layer is 3", told)
        self.assertIn("with checkpoint.load_strict=false, too: it is for tensors that the folder lacks", told)
        self.trainer("checkpoint", "import", "hf", "imported")
        told = self.trainer("tiny.yaml", "checkpoint.load_from=imported", "model.n_layer=3", "exp_dir=deeper",
                            "checkpoint.load_strict=false", *STEPS)
        self.assertRegex(told.stdout + told.stderr, r"warning: missing model tensor 'h\.\d\.attn\.c_attn\.weight'")

    def test_advice_does_not_lead_in_a_circle(self):
        told = self.trainer("bare.yaml", FROM, "task.data.sequence_length=32", code=2).stderr
        self.assertIn("gpt2: model.n_positions, unless its weights come from checkpoint.load_from", told)
        told = self.refused("bare.yaml", FROM, "task.data.sequence_length=32", "model.n_positions=32")
        self.assertIn("checkpoint.load_from takes them from there, and its weights fit no other sizes", told)
        # No tensor of a Llama has the size of its context.
        self.trainer("bare.yaml", "exp_dir=llama", *STEPS, "model={name: llama, vocab_size: 256, hidden_size: 16, "
                     "intermediate_size: 24, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, "
                     "max_position_embeddings: 16}")
        self.trainer("checkpoint", "export", "llama", "llama_hf")
        longer = ["checkpoint.load_from=llama_hf", "task.data.sequence_length=32"]
        told = self.trainer("bare.yaml", *longer, code=2).stderr
        self.assertIn("llama: model.max_position_embeddings", told)
        self.trainer("bare.yaml", *longer, "model.max_position_embeddings=32", "exp_dir=longer", *STEPS)

    def test_each_rank_reads_its_part(self):
        arguments = ["model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0", *STEPS]
        self.trainer("bare.yaml", FROM, "exp_dir=one", *arguments)
        self.trainer("bare.yaml", FROM, "exp_dir=two", "launcher.processes=2", "parallel=fsdp",
                     "training.batch_size=2", *arguments)
        for one, two in zip(self.losses("one"), self.losses("two")):
            self.assertAlmostEqual(one[2], two[2], delta=1e-5)

    def test_its_tokenizer_is_told_of(self):
        (self.folder / "hf/vocab.json").write_text("{}")
        told = self.trainer("bare.yaml", FROM, "exp_dir=bytes", *STEPS).stdout
        self.assertIn("note: 'hf' holds a tokenizer", told)
        self.assertIn("set task.data.tokenizer=hf", told)


if __name__ == "__main__":
    runs.main()
