# SPDX-License-Identifier: Apache-2.0
"""The trainer pipeline, beside the trainer supervised on one rank."""

import json
import os
import signal

from tests.end_to_end import runs, text_pairs

# No dropout: each stage draws for itself.
PLAIN = ("model.n_layer=3", "model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0",
         "training.gradient_accumulation_steps=8", "training.batch_size=2", "training.max_steps=20",
         "lr_scheduler.decay_steps=20")  # a run that goes on keeps its schedule
DROPOUT = "model.resid_pdrop=0.1"
STAGED = ("name=pipeline",)
LLAMA = ("model={name: llama, vocab_size: 256, hidden_size: 32, intermediate_size: 48, num_hidden_layers: 3, "
         "num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 32}")
OF_LLAMA = (LLAMA, "training.gradient_accumulation_steps=4", "training.batch_size=2", "training.max_steps=6",
            "use_double_weight_precision=true")

T5 = """\
name: pipeline
task: {name: sequence_to_sequence, data: {tokenizer: bytes, end_of_text: 9, input_length: 64, target_length: 16,
       pairs: {files: [pairs.jsonl], input: "{document}", target: "{summary}", validation_fraction: 0}}}
model: {name: t5, vocab_size: 262, d_model: 16, d_kv: 8, d_ff: 32, num_layers: 2, num_heads: 2}
optimizer: {name: adamw, lr: 1.0e-3}
training: {max_steps: 1, batch_size: 2}
"""

# Overrides that go with no pipeline, and what the error holds.
MISTAKES = (
    (("strategy=fsdp",), "strategy: the trainer pipeline divides the model into stages, one a rank"),
    (("parallel.use_fsdp=true",), "parallel.use_fsdp: the trainer pipeline divides the model into stages"),
    (("parallel.ddp.static_graph=true",), "parallel.ddp: the trainer pipeline divides the model into stages"),
    (("parallel.fsdp.limit_all_gathers=true",), "parallel.fsdp: the trainer pipeline divides the model into stages"),
    (("parallel.sync_batchnorm=true",), "parallel.sync_batchnorm: the trainer pipeline leaves buffers as they are"),
    (("parallel.data_parallel.devices=[0,1]",), "parallel.data_parallel: the trainer pipeline has one device a rank"),
    (("parallel.device=cuda",), "parallel.device: the trainer pipeline computes on CPUs"),
    (("parallel.servers=2",), "divides the model into stages, and has no servers; leave it out, or choose name: "
                              "parameter_server or ddp_with_remote_embedding"),
    (("parallel.updates=asynchronous",), "parallel.updates: the trainer pipeline divides the model into stages, and has"),
    (("parallel.stages=2",), "parallel.stages: unknown key"),
    (("parallel.timeout=0",), "parallel.timeout"),
    (("training.gradient_accumulation_steps=0",), "training.gradient_accumulation_steps"),
    (("launcher.processes=4",), "4 stages of a model of 3 units. Start fewer ranks (launcher.processes)"),
    (("launcher.processes=2", "model.n_layer=1"), "2 stages of a model of 1 unit. Start fewer ranks"),
)


class PipelineTest(runs.RunTest):

    def train(self, exp_dir, stages, *more, **options):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", f"launcher.processes={stages}", *STAGED, *PLAIN, *more,
                            **options)

    def assert_close(self, one, other, relative):
        rows, others = self.losses(one), self.losses(other)
        self.assertEqual([row[:2] for row in rows], [row[:2] for row in others])
        for (_, _, loss), (_, _, expected) in zip(rows, others):
            self.assertAlmostEqual(loss, expected, delta=relative * expected)

    def values(self, exp_dir, field):
        return [row[field] for row in self.rows(exp_dir) if field in row]

    def test_stages_compute_what_one_process_does(self):
        double = "use_double_weight_precision=true"
        self.trainer("tiny.yaml", "exp_dir=alone", *PLAIN, double)
        for stages in (2, 3):
            name = f"staged_{stages}"
            told = self.train(name, stages, double).stdout
            self.assertIn(f"pipeline: {stages} stages (1F1B)", told)
            self.assertIn("each 16 samples = 8 micro-batches of 2", told)
            self.assert_close(name, "alone", 1e-7)
            for field in ("samples", "tokens", "lr"):
                self.assertEqual(self.values(name, field), self.values("alone", field), field)
            for norm, expected in zip(self.values(name, "grad_norm"), self.values("alone", "grad_norm"), strict=True):
                self.assertAlmostEqual(norm, expected, delta=1e-7 * expected)

    def test_llama_trains_in_stages(self):
        # Its head is not its embedding, and its blocks get a table of positions beside the hidden states.
        self.trainer("tiny.yaml", "exp_dir=alone", *OF_LLAMA)
        self.trainer("tiny.yaml", "exp_dir=staged", *STAGED, "launcher.processes=3", *OF_LLAMA)
        self.assert_close("staged", "alone", 1e-7)

    def test_one_stage_is_one_process(self):
        self.train("staged", 1)
        self.trainer("tiny.yaml", "exp_dir=alone", *PLAIN)
        self.assertEqual(self.losses("staged"), self.losses("alone"))

    def test_other_optimizers_move_what_each_stage_holds(self):
        # Both know shards: one makes matrices whole, the other sums over them.
        for optimizer in ("muon", "adafactor"):
            with self.subTest(optimizer):
                chosen = (f"optimizer={optimizer}", "training.max_steps=6", "use_double_weight_precision=true")
                self.trainer("tiny.yaml", f"exp_dir={optimizer}_alone", *PLAIN, *chosen)
                self.train(f"{optimizer}_staged", 3, *chosen)
                # Muon's matrices are bfloat16, where a last bit of a gradient may round otherwise.
                self.assert_close(f"{optimizer}_staged", f"{optimizer}_alone", 1e-4)

    def test_lower_precision_goes_on_between_stages(self):
        self.trainer("tiny.yaml", "exp_dir=alone", *PLAIN, "mixed_precision=bf16")
        self.train("staged", 2, "mixed_precision=bf16")
        self.assert_close("staged", "alone", 1e-2)

    def test_activations_that_are_computed_again_are_the_same(self):
        self.train("plain", 2, DROPOUT)
        self.train("again", 2, DROPOUT, "activation_checkpointing.policy=unit")
        self.assertEqual(self.losses("again"), self.losses("plain"))

    def test_averages_of_weights_are_those_of_one_process(self):
        averages = ("averages.method=ema", "averages.decay=0.8", "averages.validate=true",
                    "use_double_weight_precision=true")
        self.trainer("tiny.yaml", "exp_dir=alone", *PLAIN, *averages)
        self.train("staged", 3, *averages)
        self.assert_close("staged", "alone", 1e-7)
        told = [json.loads(self.trainer("evaluate", run, "--json", "--average").stdout)["loss"]
                for run in ("alone", "staged")]
        self.assertAlmostEqual(told[1], told[0], delta=1e-7 * told[0])

    def test_adapters_are_trained_in_stages(self):
        self.trainer("tiny.yaml", "exp_dir=base", *PLAIN, "training.max_steps=3")
        self.trainer("checkpoint", "export", "base", "hf")
        lora = (*PLAIN, "training.max_steps=6", "checkpoint.load_from=hf", "use_double_weight_precision=true",
                "lora={target_modules: [c_attn, mlp.c_proj], r: 4, lora_alpha: 16}")
        self.trainer("tiny.yaml", "exp_dir=alone", *lora)
        self.trainer("tiny.yaml", "exp_dir=staged", *STAGED, "launcher.processes=3", *lora)
        self.assert_close("staged", "alone", 1e-7)
        staged = json.loads(self.trainer("evaluate", "staged", "--json").stdout)["loss"]
        self.assertEqual(staged, [row["loss"] for row in self.rows("staged") if row["phase"] == "validate"][-1])

    def test_bad_steps_stop_the_run_or_are_guarded_on_all_stages(self):
        # The first update makes the weights so large that every later loss is no number.
        told = " ".join(self.train("stops", 2, "optimizer.lr=1e28", code=1).stderr.split())
        self.assertIn("the loss is nan on rank 1", told)
        explodes = ("optimizer.lr=1e28", "guards.max_skips=2")
        ended = self.train("skips", 2, *explodes, "guards.on_nonfinite=skip", code=1)
        self.assertIn("warning: step 2 is skipped, nothing has moved: the loss is nan; samples", ended.stdout)
        self.assertIn("3 of the last 4 steps are bad, and guards.max_skips is 2", ended.stderr)
        ended = self.train("goes_back", 2, *explodes, "guards.on_nonfinite=rollback", "checkpoint.save_every_n_steps=1",
                           code=1)
        self.assertEqual(ended.stdout.count("the run has gone back to the checkpoint of step 1"), 2)
        self.assertEqual([row["step"] for row in self.rows("goes_back") if row["phase"] == "train"], [1])

    def test_a_killed_run_goes_on_from_its_checkpoint(self):
        self.train("whole", 3, DROPOUT)
        process = self.start("tiny.yaml", "exp_dir=run", "launcher.processes=3", *STAGED, *PLAIN, DROPOUT)
        for line in process.stdout:
            if "step 12/" in line:
                break
        os.kill(runs.children(process.pid)[1], signal.SIGKILL)
        process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.train("run", 3, DROPOUT)
        self.assertEqual(self.losses("run"), self.losses("whole"))

    def test_a_run_goes_on_with_other_stages(self):
        self.train("whole", 2)
        for stages, steps in ((2, 6), (3, 13), (1, 20)):
            self.train("run", stages, f"training.max_steps={steps}")
        # Each part has validated at its end.
        found = {row[:2]: row[2] for row in self.losses("run")}
        for phase, step, expected in self.losses("whole"):
            self.assertAlmostEqual(found[phase, step], expected, delta=1e-4 * expected)

    def test_its_checkpoint_is_one_of_the_model(self):
        self.train("run", 3)
        last = [row["loss"] for row in self.rows("run") if row["phase"] == "validate"][-1]
        staged = json.loads(self.trainer("evaluate", "run", "--json").stdout)["loss"]
        self.assertEqual(staged, last)
        alone = json.loads(self.trainer("evaluate", "run", "--json", "launcher.processes=1").stdout)["loss"]
        self.assertAlmostEqual(alone, last, delta=1e-5 * last)
        self.write("lines.txt", "".join(f"{i}: fox {i * i}\n" for i in range(11)))
        for ranks in (1, 3):
            self.trainer("predict", "run", "lines.txt", f"--output={ranks}.jsonl", f"launcher.processes={ranks}")
        self.assertEqual((self.folder / "3.jsonl").read_text(), (self.folder / "1.jsonl").read_text())
        one, three = (self.trainer("generate", "run", "--prompt=1: the", "max_new_tokens=6",
                                   f"launcher.processes={ranks}").stdout for ranks in (1, 3))
        self.assertEqual(three, one)

    def test_what_goes_with_no_pipeline_is_refused_before_anything_is_written(self):
        before = self.files()
        for overrides, text in MISTAKES:
            with self.subTest(overrides):
                told = self.trainer("tiny.yaml", "exp_dir=run", *PLAIN, "launcher.processes=2", *STAGED, *overrides,
                                    code=2).stderr
                self.assertIn(text, " ".join(told.split()))
                self.assertEqual(self.files(), before)

    def test_a_model_without_stages_is_refused_before_anything_is_written(self):
        text_pairs.write_pairs(self.folder / "pairs.jsonl", 8)
        self.write("t5.yaml", T5)
        before = self.files()
        told = self.trainer("t5.yaml", "exp_dir=run", "launcher.processes=2", code=2).stderr
        told = " ".join(told.split())
        self.assertIn("the trainer pipeline makes each rank a stage, and t5 has no stages, as every block of its "
                      "decoder needs the result of the whole encoder: choose name: supervised", told)
        self.assertIn("such as gpt2 or llama", told)
        self.assertEqual(self.files(), before)
        self.trainer("t5.yaml", "exp_dir=alone")

    def test_a_signal_to_one_rank_stops_all_at_one_step(self):
        process = self.start("tiny.yaml", "exp_dir=run", "launcher.processes=2", *STAGED, *PLAIN,
                             "training.max_steps=100000")
        for line in process.stdout:
            if "step 3/" in line:
                break
        os.kill(runs.children(process.pid)[1], signal.SIGUSR2)
        _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 128 + signal.SIGUSR2, errors)


if __name__ == "__main__":
    runs.main()
