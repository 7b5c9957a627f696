# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of the real binary, and the commands that look at them."""

import hashlib
import json
import re
import shutil
import signal
import subprocess
import time
import unittest

import runs

PLAIN = ["sample=null"]


class CheckpointTest(runs.RunTest):

    def checkpoints(self, exp_dir):
        return sorted(path.name for path in (self.folder / exp_dir / "checkpoints").glob("step-*")
                      if re.fullmatch(r"step-\d{8}", path.name))

    def damage(self, exp_dir, step, name="model.safetensors"):
        path = self.folder / exp_dir / f"checkpoints/step-{step:08d}" / name
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)

    def digest(self, exp_dir, step):
        folder = self.folder / exp_dir / f"checkpoints/step-{step:08d}"
        return [hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted(folder.glob("*.safetensors"))]

    def test_the_commands_tell_of_a_run(self):
        self.trainer("tiny.yaml", "exp_dir=run")
        listed = self.trainer("checkpoint", "list", "run").stdout.splitlines()
        self.assertEqual(len(listed), 4)
        self.assertIn("step-00000040 *", listed[3])
        self.assertIn("loss", listed[3])
        for line in listed[1:]:
            self.assertTrue(line.endswith("committed"), line)

        told = self.trainer("checkpoint", "inspect", "run", "--tensors").stdout
        self.assertIn("step-00000040", told)
        self.assertIn("h.0.attn.c_attn.weight.exp_avg", told)
        self.assertIn("model.safetensors", told)

        verified = self.trainer("checkpoint", "verify", "run").stdout.splitlines()
        self.assertEqual(len(verified), 3)
        self.assertIn("step-00000030: whole", verified[0])

        same = self.trainer("checkpoint", "diff", "run", "run").stdout
        self.assertIn("0 tensors differ", same)
        self.assertRegex(same, r"(?m)^A: step \d+, \d+ samples, 1 rank$")
        other = self.trainer("checkpoint", "diff", "run/checkpoints/step-00000030", "run").stdout
        self.assertIn("wte.weight", other)
        self.assertNotIn(" 0 are the same", same)

        refused = self.trainer("checkpoint", "prune", "run/checkpoints/step-00000040", code=2)
        self.assertIn("is one checkpoint", refused.stderr)
        self.trainer("checkpoint", "prune", "run", "checkpoint.keep_last=1", "--dry-run")
        self.assertEqual(len(self.checkpoints("run")), 3)
        pruned = self.trainer("checkpoint", "prune", "run", "checkpoint.keep_last=1").stdout
        self.assertIn("step-00000030 is removed", pruned)
        self.assertEqual(self.checkpoints("run"), ["step-00000040"])

    def test_the_best_and_any_step_are_named_after_the_run(self):
        # The loss falls: by the highest one the first validation is the best.
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=30", "lr_scheduler.decay_steps=40",
                     "checkpoint.keep_last=2", "checkpoint.keep_best={metric: loss, mode: max}")
        self.assertEqual(self.checkpoints("run"), [f"step-{step:08}" for step in (10, 25, 30)])
        listed = self.trainer("checkpoint", "list", "run").stdout.splitlines()
        self.assertRegex(listed[1], r"step-00000010 best  ")
        self.assertRegex(listed[3], r"step-00000030 \*  ")
        note = "note: step 30 of 'run' is taken, the newest; the best by loss is step 10 ("
        for command in (["evaluate", "run"], ["generate", "run", "--prompt=a", "max_new_tokens=1"],
                        ["checkpoint", "export", "run", "newest"]):
            told = self.trainer(*command)
            self.assertEqual(told.stderr.count(note), 1, told.stderr)
            self.assertIn("): run@best", told.stderr)
        for name, step in (("run@best", 10), ("run/checkpoints@25", 25)):
            for command in (["evaluate", name, "--json"], ["checkpoint", "inspect", name],
                            ["checkpoint", "list", name], ["checkpoint", "verify", name],
                            ["checkpoint", "export", name, f"{step}_hf"]):
                told = self.trainer(*command)
                self.assertIn(f"step-{step:08}", told.stdout)
                self.assertNotIn("note: ", told.stderr)
        self.trainer("checkpoint", "average", "run@best", "run@30", "--output=mean")
        self.assertIn("0 tensors differ",
                      self.trainer("checkpoint", "diff", "run@best", "run/checkpoints/step-00000010").stdout)
        for name in ("run@best", "run/checkpoints/step-00000010"):
            self.trainer("tiny.yaml", f"checkpoint.load_from={name}", f"exp_dir={name[-4:]}", "training.max_steps=1",
                         "lr_scheduler.decay_steps=40")
        self.assertIn("0 tensors differ", self.trainer("checkpoint", "diff", "best", "0010").stdout)
        self.assertIn("'run' has no checkpoint of step 7: its steps are 10, 25, 30",
                      self.trainer("evaluate", "run@7", code=2).stderr)
        # Without a validation there is nothing to be best by.
        self.trainer("tiny.yaml", "exp_dir=bare", "training.max_steps=5", "lr_scheduler.decay_steps=40",
                     "task.data.validation_fraction=0")
        self.assertIn("no checkpoint in 'bare' has the metric 'loss', so none is the best",
                      self.trainer("generate", "bare@best", "--prompt=a", code=2).stderr)

    def test_damage_is_told_by_name(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=10",
                     "lr_scheduler.decay_steps=40")
        self.damage("run", 10)
        verified = self.trainer("checkpoint", "verify", "run", code=1).stdout
        self.assertIn("step-00000005: whole", verified)
        self.assertIn("step-00000010: damaged", verified)
        self.assertIn("model tensor", verified)
        (self.folder / "run/checkpoints/step-00000010/optimizer.safetensors").unlink()
        listed = self.trainer("checkpoint", "list", "run").stdout
        self.assertIn("damaged: cannot open", listed)

    def test_sha256_sums_are_those_of_sha256sum(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=5", "lr_scheduler.decay_steps=40",
                     "checkpoint.sha256=true", "launcher.processes=2", "training.batch_size=2")
        folder = self.folder / "run/checkpoints/step-00000005"
        subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True)
        listed = {line.split()[1] for line in (folder / "SHA256SUMS").read_text().splitlines()}
        self.assertEqual(listed, {path.name for path in folder.glob("*.safetensors")})
        self.trainer("checkpoint", "verify", "run")
        sums = folder / "SHA256SUMS"
        sums.write_text(sums.read_text().replace("0", "1", 1))
        self.assertIn("SHA256SUMS", self.trainer("checkpoint", "verify", "run", code=1).stdout)

    def test_no_good_checkpoint_is_no_new_beginning(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=5",
                     "lr_scheduler.decay_steps=40")
        self.damage("run", 5)
        refused = self.trainer("tiny.yaml", "exp_dir=run", "lr_scheduler.decay_steps=40", code=1)
        self.assertIn("none of the checkpoints can be used", refused.stderr)
        self.assertEqual(self.checkpoints("run"), ["step-00000005"])

    def test_a_run_whose_checkpoints_are_gone_begins_anew_on_request_alone(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=20", "lr_scheduler.decay_steps=40")
        logs = self.folder / "run/logs"
        rows = (logs / "metrics.jsonl").read_text()
        shutil.rmtree(self.folder / "run/checkpoints")
        refused = self.trainer("run/config.yaml", "exp_dir=run", code=2).stderr
        self.assertIn("(ends.jsonl names step-00000020), and none is there", refused)
        self.assertEqual((logs / "metrics.jsonl").read_text(), rows)
        self.trainer("run/config.yaml", "exp_dir=run", "checkpoint.resume=if_any", "training.max_steps=5")
        self.assertEqual((logs / "metrics.replaced.jsonl").read_text(), rows)
        self.assertEqual(self.rows("run")[-1]["step"], 5)

    def test_in_the_background_it_is_the_same_run(self):
        self.trainer("tiny.yaml", "exp_dir=plain", "checkpoint.keep_last=null")
        self.trainer("tiny.yaml", "exp_dir=async", "checkpoint.keep_last=null",
                     "checkpoint.async=true")
        self.assertEqual(self.checkpoints("plain"), self.checkpoints("async"))
        for step in range(5, 45, 5):
            self.assertEqual(self.digest("plain", step), self.digest("async", step))
        self.trainer("tiny.yaml", "exp_dir=ranks", "launcher.processes=2", "training.batch_size=2",
                     "checkpoint.async=true", "checkpoint.save_every_n_steps=1",
                     "checkpoint.while_saving=skip")
        self.trainer("checkpoint", "verify", "ranks")
        self.assertEqual(self.checkpoints("ranks")[-1], "step-00000040")

    def test_the_best_stay(self):
        self.trainer("tiny.yaml", "exp_dir=run", "checkpoint.save_every_n_steps=null",
                     "checkpoint.keep_last=1", "checkpoint.keep_best={metric: loss, mode: max}")
        validated = {row["step"]: row["loss"] for row in self.rows("run")
                     if row["phase"] == "validate"}
        worst = max(validated, key=validated.get)
        self.assertEqual(self.checkpoints("run"), [f"step-{worst:08d}", "step-00000040"])
        refused = self.trainer("tiny.yaml", "exp_dir=other", "checkpoint.keep_best={metric: los}",
                               code=2)
        self.assertIn("it gives loss, perplexity", refused.stderr)
        self.assertFalse((self.folder / "other").exists(), "before launch")
        fields = ["checkpoint.keep_best={metric: eval_loss}"]
        self.assertIn("gives no 'eval_loss'", self.trainer("config", "print", "tiny.yaml", *fields, code=2).stderr)
        # The task may give it, but does not here: known once a validation is rehearsed.
        self.write("tokens.yaml", self.config.replace("path: text.txt", "source: {name: nanogpt, files: [tokens.bin], "
                                                     "end_of_text: null}"))
        (self.folder / "tokens.bin").write_bytes(b"".join(bytes([byte, 0]) for byte in runs.TEXT.encode()))
        late = self.trainer("tokens.yaml", "exp_dir=late", "checkpoint.keep_best={metric: bits_per_byte}", code=2)
        self.assertIn("validation gives no 'bits_per_byte'; it gives loss, perplexity:", late.stderr)
        self.assertNotIn("train ", late.stdout)

    def test_a_new_run_begins_with_what_another_has_learned(self):
        self.trainer("tiny.yaml", "exp_dir=first", "training.max_steps=10",
                     "lr_scheduler.decay_steps=40")
        self.trainer("tiny.yaml", "exp_dir=whole", "lr_scheduler.decay_steps=40")
        forked = ["tiny.yaml", "lr_scheduler.decay_steps=40", "checkpoint.load_from=first"]
        self.trainer(*forked, "exp_dir=fork", "checkpoint.load_model_only=false")
        self.assertEqual(self.losses("fork"), self.losses("whole")[-len(self.losses("fork")):])
        self.assertEqual(self.digest("fork", 40), self.digest("whole", 40))

        warm = self.trainer(*forked, "exp_dir=warm", "training.max_steps=1").stdout
        self.assertRegex(warm, r"\nloaded     first/checkpoints/step-00000010: step 10, 28 tensors taken, 0 left there\n")
        again = self.trainer(*forked, "exp_dir=warm", "training.max_steps=2").stdout
        self.assertIn("\nloaded     warm/checkpoints/step-00000001: step 1, 28 tensors of the model and 84 of the "
                      "optimizer\n", again)
        deeper = self.trainer(*forked, "exp_dir=deeper", "training.max_steps=1", "model.n_layer=3",
                              "checkpoint.load_strict=false").stdout
        self.assertIn("28 tensors taken, 0 left there, 12 missing there and initialised\n", deeper)
        weights = self.trainer("checkpoint", "diff", "first", "warm").stdout
        self.assertIn("step 10", weights)
        self.assertIn("step 2,", weights)
        # A plain file of weights does as well, on two ranks that hold parts, too.
        (self.folder / "plain").mkdir()
        (self.folder / "plain/model.safetensors").write_bytes(
            (self.folder / "first/checkpoints/step-00000010/model.safetensors").read_bytes())
        plain = ["tiny.yaml", "lr_scheduler.decay_steps=40", "checkpoint.load_from=plain",
                 "training.max_steps=1"]
        self.trainer(*plain, "exp_dir=plain_one")
        self.assertEqual(self.digest("plain_one", 1)[0], self.digest("warm", 1)[0])
        self.trainer(*plain, "exp_dir=plain_two", "launcher.processes=2", "parallel=fsdp",
                     "training.batch_size=2")
        refused = self.trainer(*plain, "exp_dir=other", "model.n_embd=32", code=2)
        self.assertIn("is F32 [48] in the checkpoint, F32 [96] here", refused.stderr)
        refused = self.trainer(*plain, "exp_dir=third", "checkpoint.load_model_only=false", code=2)
        self.assertIn("load_model_only", refused.stderr)
        refused = self.trainer("tiny.yaml", "checkpoint.load_from=nowhere", code=2)
        self.assertIn("nowhere", refused.stderr)
        self.assertFalse((self.folder / "runs").exists())

    def has_gone_on_after_a_save(self, exp_dir):
        saved = self.checkpoints(exp_dir)
        return saved and self.rows(exp_dir)[-1]["step"] > int(saved[0][5:])

    def test_sigusr1_saves_and_the_run_goes_on(self):
        for processes in (1, 2):
            exp_dir = f"of_{processes}"
            process = self.start("tiny.yaml", f"exp_dir={exp_dir}", "training.max_steps=1000000",
                                 "lr_scheduler.decay_steps=100", f"launcher.processes={processes}",
                                 "checkpoint.save_every_n_steps=null", "checkpoint.keep_last=null")
            for line in process.stdout:  # the lines of the start are there: training goes on
                if line.startswith("saves"):
                    break
            process.send_signal(signal.SIGUSR1)
            end = time.monotonic() + runs.TIMEOUT_SECONDS
            while not self.has_gone_on_after_a_save(exp_dir):
                self.assertLess(time.monotonic(), end)
                self.assertIsNone(process.poll())
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            output, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
            self.assertEqual(process.returncode, 128 + signal.SIGTERM, errors)
            saved = self.checkpoints(exp_dir)
            self.assertEqual(re.findall("saved step .*", output), [f"saved step {int(saved[0][5:])} (SIGUSR1)"])
            self.assertEqual(len(saved), 2, saved)
            manifest = json.loads((self.folder / exp_dir / "checkpoints" / saved[0]
                                   / "manifest.json").read_text())
            self.assertEqual(manifest["world_size"], processes)


if __name__ == "__main__":
    runs.main()
