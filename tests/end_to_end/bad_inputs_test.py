# SPDX-License-Identifier: Apache-2.0
"""A table of bad inputs through the real binary: each with its exit code and message, and nothing
left behind."""

import os
import pathlib
import resource
import stat

from tests.end_to_end import runs

# What a clone without Git LFS has in place of a large file.
LFS_POINTER = f"""\
version https://git-lfs.github.com/spec/v1
oid sha256:{'4d7a2146' * 8}
size 3221225472
"""


def with_source(source):
    """The tiny config with a source of tokens in place of its text."""
    return runs.CONFIG.replace("path: text.txt", f"source: {{name: {source}}}")


# name, what is wrong with the folder (files to write; None: remove), arguments, exit code, and what
# the message holds. {config} stands for the tiny config.
TABLE = [
    # The command line.
    ("no arguments", {}, [], 2, ["usage:"]),
    ("unknown option", {}, ["tiny.yaml", "--steps=3"], 2, ["unknown option '--steps'", "key=value"]),
    ("option with one dash", {}, ["tiny.yaml", "-x"], 2, ["unknown option '-x'"]),
    ("misspelt command", {}, ["trian", "tiny.yaml"], 2, ["unknown command 'trian'", "train"]),
    ("config missing", {}, ["missing.yaml"], 2, ["missing.yaml"]),
    ("config is a folder", {}, ["."], 2, ["folder"]),
    ("unknown kind to list", {}, ["list", "optimisers"], 2, ["optimizers"]),
    ("nothing to evaluate", {}, ["evaluate", "nowhere"], 2, ["nowhere"]),
    ("a folder that is no run", {"data/text": "x"}, ["evaluate", "data"], 2, ["data"]),
    # The config file.
    ("empty config", {"bad.yaml": ""}, ["bad.yaml"], 2, ["bad.yaml"]),
    ("not a map", {"bad.yaml": "- a\n"}, ["bad.yaml"], 2, ["bad.yaml", "map"]),
    ("no YAML", {"bad.yaml": "a: [1\n"}, ["bad.yaml"], 2, ["bad.yaml:"]),
    ("no trainer", {"bad.yaml": "task: {name: language_modeling}\n"}, ["bad.yaml"], 2,
     ["name", "supervised"]),
    ("unknown trainer", {}, ["tiny.yaml", "name=no_such_trainer"], 2, ["no_such_trainer", "supervised"]),
    ("unknown key", {"bad.yaml": runs.CONFIG.replace("max_steps", "max_step")}, ["bad.yaml"], 2,
     ["bad.yaml:15:12", "training.max_step", "max_steps"]),
    ("duplicate key", {"bad.yaml": runs.CONFIG + "logging: {}\n"}, ["bad.yaml"], 2,
     ["bad.yaml:19:1", "logging"]),
    ("wrong type", {}, ["tiny.yaml", "model.n_layer=two"], 2, ["model.n_layer", "two", "integer"]),
    ("out of range", {}, ["tiny.yaml", "training.batch_size=0"], 2, ["training.batch_size", ">= 1"]),
    ("yes for a boolean", {}, ["tiny.yaml", "use_double_weight_precision=yes"], 2, ["true"]),
    ("unknown class", {}, ["tiny.yaml", "optimizer.name=no_such_optimizer"], 2,
     ["optimizer", "no_such_optimizer", "adamw"]),
    ("field of another class", {}, ["tiny.yaml", "optimizer.momentum=0.9"], 2,
     ["optimizer.momentum"]),
    ("mandatory field", {"bad.yaml": runs.CONFIG.replace("path: text.txt, ", "")}, ["bad.yaml"], 2,
     ["task.data.path", "training text"]),
    ("two mistakes at once", {}, ["tiny.yaml", "model.n_layer=0", "optimizer.lr=fast"], 2,
     ["model.n_layer", "optimizer.lr"]),
    ("cycle", {}, ["tiny.yaml", "training.seed=${task.sample.seed}",
                   "task.sample.seed=${training.seed}"], 2, ["training.seed", "task.sample.seed"]),
    ("unset variable", {}, ["tiny.yaml", "training.seed=${oc.env:PHALANX_NO_SUCH}"], 2,
     ["PHALANX_NO_SUCH"]),
    ("unknown sink", {}, ["tiny.yaml", "logging.sinks=[jsonl, no_such_sink]"], 2,
     ["no_such_sink", "tensorboard"]),
    ("a sink twice", {}, ["tiny.yaml", "logging.sinks=[jsonl, jsonl]"], 2, ["'jsonl'", "twice"]),
    ("a name that leaves runs", {}, ["tiny.yaml", "exp_name=../elsewhere"], 2,
     ["exp_name", "exp_dir"]),
    # What fits together.
    ("no end", {}, ["tiny.yaml", "training.max_steps=null"], 2, ["max_steps", "max_epochs"]),
    ("heads do not divide", {}, ["tiny.yaml", "model.n_head=3"], 2, ["n_embd", "n_head"]),
    ("vocabulary too small", {}, ["tiny.yaml", "model.vocab_size=100"], 2, ["vocab_size", "256"]),
    ("context too short", {}, ["tiny.yaml", "task.data.sequence_length=17"], 2,
     ["sequence_length", "17", "16"]),
    ("global batch", {}, ["tiny.yaml", "training.global_batch_size=9"], 2,
     ["training.global_batch_size", "9", "4"]),
    ("schedule without an end", {}, ["tiny.yaml", "training.max_steps=null",
                                     "training.max_seconds=5"], 2, ["decay_steps"]),
    # The data.
    ("data missing", {}, ["tiny.yaml", "task.data.path=missing.txt"], 2,
     ["missing.txt", "task.data.path"]),
    ("data empty", {"text.txt": ""}, ["tiny.yaml"], 2, ["text.txt"]),
    ("data shorter than a block", {"text.txt": "short"}, ["tiny.yaml"], 2, ["5 bytes", "17"]),
    ("data is a Git LFS pointer", {"text.txt": LFS_POINTER}, ["tiny.yaml"], 2,
     ["task.data.path", "'text.txt' is a Git LFS pointer, not the file itself, which has 3.22 GB: run "
      "`git lfs pull`"]),
    ("tokens are a Git LFS pointer",
     {"a.bin": LFS_POINTER, "bad.yaml": with_source("nanogpt, files: [a.bin]")}, ["bad.yaml"], 2,
     ["task.data.source.files: 'a.bin' is a Git LFS pointer"]),
    ("an index is a Git LFS pointer",
     {"a.idx": LFS_POINTER, "a.bin": "xy", "bad.yaml": with_source("megatron, files: [a.bin]")},
     ["bad.yaml"], 2, ["task.data.source.files: 'a.idx' is a Git LFS pointer"]),
    ("a tokenizer is a Git LFS pointer",
     {"mine/tokenizer.json": LFS_POINTER,
      "bad.yaml": with_source("text, files: [text.txt], tokenizer: mine")},
     ["bad.yaml"], 2, ["'mine/tokenizer.json' is a Git LFS pointer"]),
    ("glob without a match", {}, ["tiny.yaml", "task.data.path=*.none"], 2, ["*.none"]),
    ("empty folder", {"data/": ""}, ["tiny.yaml", "task.data.path=data"], 2, ["data"]),
    ("batch larger than the data", {}, ["tiny.yaml", "training.batch_size=100000",
                                        "task.data.loader.drop_last=true"], 2, ["samples"]),
    # The folder.
    ("exp_dir is a file", {"taken": "x"}, ["tiny.yaml", "exp_dir=taken"], 2, ["taken"]),
    ("exp_dir below a file", {"taken": "x"}, ["tiny.yaml", "exp_dir=taken/run"], 2, ["taken/run"]),
    ("exp_dir is empty", {}, ["tiny.yaml", "exp_dir="], 2, ["exp_dir is empty"]),
    ("exp_dir holds other files", {"data/text": "x"}, ["tiny.yaml", "exp_dir=data"], 2,
     ["data holds other files than a run's (text)", "exp_dir"]),
    ("exp_dir is where the user's config is", {"config.yaml": runs.CONFIG},
     ["config.yaml", "exp_dir=."], 2, ["holds other files", "config.yaml"]),
    ("exp_dir within a run", {"run/config.yaml": runs.CONFIG, "run/checkpoints/latest": ""},
     ["tiny.yaml", "exp_dir=run/logs/again"], 2,
     ["run/logs/again lies within the folder of another run", "/run;"]),
    ("runs is a file", {"runs": "x"}, ["tiny.yaml"], 2, ["runs/tiny"]),
]


class BadInputsTest(runs.RunTest):

    def prepare(self, files):
        for name, text in files.items():
            if name.endswith("/"):
                (self.folder / name).mkdir()
            else:
                self.write(name, text)

    def refused(self, arguments, code, fragments):
        before = self.files()
        error = self.trainer(*arguments, code=code)
        text = error.stderr if error.stderr else error.stdout
        for fragment in fragments:
            self.assertIn(fragment, text)
        self.assertEqual(self.files(), before, "something was left behind")
        return text

    def test_table(self):
        for name, files, arguments, code, fragments in TABLE:
            with self.subTest(name):
                self.doCleanups()
                self.setUp()
                self.prepare(files)
                text = self.refused(arguments, code, fragments)
                print(f"--- {name}: trainer {' '.join(arguments)} -> {code}\n{text}", flush=True)

    def test_texts_that_are_a_git_lfs_pointer(self):
        self.write("a.jsonl", LFS_POINTER)
        self.write("bad.yaml", with_source("text, files: [a.jsonl], tokenizer: bytes, cache: tokens"))
        self.assertIn("'a.jsonl' is a Git LFS pointer", self.trainer("bad.yaml", code=2).stderr)
        self.assertFalse((self.folder / "runs").exists())

    def test_unreadable_data(self):
        if os.geteuid() == 0:
            # Root reads everything but what has no bytes to give, such as its own memory map.
            self.refused(["tiny.yaml", "task.data.path=/proc/self/mem"], 2, ["/proc/self/mem"])
            return
        (self.folder / "text.txt").chmod(0)
        self.refused(["tiny.yaml"], 2, ["text.txt", "Permission denied"])

    def test_disk_full(self):
        """No file may grow beyond a limit, as on a full disk: the run fails, saying which file."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        error = self.trainer("tiny.yaml", "exp_dir=run", code=1, preexec_fn=limit).stderr
        self.assertIn("step 5", error)
        self.assertIn("safetensors", error)
        checkpoints = self.folder / "run/checkpoints"
        self.assertEqual([p.name for p in checkpoints.iterdir()], [])
        self.trainer("tiny.yaml", "exp_dir=run")  # with room again it goes on
        print(error)

    def test_folder_that_cannot_be_written(self):
        if os.geteuid() == 0:
            self.refused(["tiny.yaml", "exp_dir=/proc/phalanx"], 2, ["/proc/phalanx"])
            return
        locked = self.folder / "locked"
        locked.mkdir()
        locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
        self.refused(["tiny.yaml", "exp_dir=locked/run"], 2, ["locked/run", "Permission denied"])

    def test_damaged_checkpoint(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=10",
                     "lr_scheduler.decay_steps=40")
        newest = pathlib.Path(self.folder / "run/checkpoints/step-00000010/model.safetensors")
        damaged = bytearray(newest.read_bytes())
        damaged[-1] ^= 1
        newest.write_bytes(damaged)
        process = self.trainer("tiny.yaml", "exp_dir=run", "lr_scheduler.decay_steps=40")
        self.assertIn("step-00000010", process.stderr)
        self.assertIn("after step 5", process.stdout)


if __name__ == "__main__":
    runs.main()
