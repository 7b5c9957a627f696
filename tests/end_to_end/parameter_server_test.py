# SPDX-License-Identifier: Apache-2.0
"""The trainer parameter_server, beside the trainer supervised."""

import json
import os
import random
import shutil
import signal
import time

from tests.end_to_end import runs
from tests.long import is_long, tell_sample

SEED = int(os.environ.get("PHALANX_FAULT_SEED", time.time_ns()))
LONG_ROUNDS = 50
SECONDS_TO_NOTICE = 20  # far above what it takes, far below the timeouts of calls
# No dropout: what a sample meets does not depend on which rank draws for it.
PLAIN = ("model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0", "training.max_steps=20")
SERVED = ("name=parameter_server",)
LLAMA = ("{name: llama, vocab_size: 256, hidden_size: 16, intermediate_size: 32, num_hidden_layers: 2, "
         "num_attention_heads: 2, max_position_embeddings: 16}")


class ParameterServerTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.random = random.Random(SEED)
        print(f"PHALANX_FAULT_SEED={SEED}")

    def rounds(self):
        return LONG_ROUNDS if is_long() else 2

    def train(self, exp_dir, *more, **options):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", "launcher.processes=2", *PLAIN, *more, **options)

    def assert_close(self, one, other, relative):
        rows, others = self.losses(one), self.losses(other)
        self.assertEqual([row[:2] for row in rows], [row[:2] for row in others])
        for (_, _, loss), (_, _, expected) in zip(rows, others):
            self.assertAlmostEqual(loss, expected, delta=relative * expected)

    def test_synchronous_updates_are_those_of_ddp_and_of_one_rank(self):
        self.train("ddp", "training.clip_grad_norm=null")
        self.trainer("tiny.yaml", "exp_dir=alone", "training.batch_size=8", *PLAIN, "training.clip_grad_norm=null")
        for servers in (1, 2):
            self.train(f"served_{servers}", *SERVED, f"parallel.servers={servers}", "training.clip_grad_norm=null")
            # Sums over two ranks have two terms: no order to differ in.
            self.assertEqual(self.losses(f"served_{servers}"), self.losses("ddp"))
            self.assert_close(f"served_{servers}", "alone", 1e-5)
        self.train("clipped", *SERVED, "parallel.servers=2")
        self.train("clipped_ddp")
        self.assert_close("clipped", "clipped_ddp", 1e-5)

    def test_a_run_goes_on_as_if_it_had_not_ended(self):
        horizon = "lr_scheduler.decay_steps=20"
        self.train("whole", *SERVED, "parallel.servers=2", horizon)
        for servers in (1, 2):
            self.train(f"run_{servers}", *SERVED, "parallel.servers=2", "training.max_steps=10", horizon)
            self.train(f"run_{servers}", *SERVED, f"parallel.servers={servers}", horizon)
        self.assertEqual(self.losses("run_2"), self.losses("whole"))
        # Another number of servers sums the norm of the gradients in another order.
        self.assert_close("run_1", "whole", 1e-5)

    def test_adapters_are_trained_and_resumed(self):
        self.trainer("tiny.yaml", "exp_dir=base", *PLAIN, "training.max_steps=3")
        self.trainer("checkpoint", "export", "base", "hf")
        lora = (*SERVED, "checkpoint.load_from=hf", "use_double_weight_precision=true", "training.max_steps=6",
                "lora={target_modules: [c_attn, mlp.c_proj], r: 4, lora_alpha: 16}", "lr_scheduler.decay_steps=20")
        self.trainer("tiny.yaml", "exp_dir=alone", "training.batch_size=8", *PLAIN, *lora)
        for servers in (1, 2):
            served = (*lora, f"parallel.servers={servers}")
            self.train(f"served_{servers}", *served)
            self.assert_close(f"served_{servers}", "alone", 1e-7)
            self.train(f"cut_{servers}", *served, "training.max_steps=3")
            self.train(f"cut_{servers}", *served)
            # The first part has validated at its end.
            found = [row for row in self.losses(f"cut_{servers}") if row[:2] != ("validate", 3)]
            self.assertEqual(found, self.losses(f"served_{servers}"))
        told = json.loads(self.trainer("evaluate", "served_2", "--json").stdout)["loss"]
        self.assertEqual(told, [row["loss"] for row in self.rows("served_2") if row["phase"] == "validate"][-1])

    def test_gradients_of_embeddings_may_travel_as_rows(self):
        model = (f"model={LLAMA}", "training.clip_grad_norm=null")
        self.trainer("tiny.yaml", "exp_dir=ddp", "launcher.processes=2", "training.max_steps=20", *model)
        told = self.trainer("tiny.yaml", "exp_dir=sparse", "launcher.processes=2", "training.max_steps=20", *model, *SERVED,
                            "parallel.sparse_embeddings=true").stdout
        self.assertIn("sparse gradients: embed_tokens", told)
        self.assert_close("sparse", "ddp", 1e-5)

    def test_sparse_gradients_need_an_embedding_that_is_only_looked_up(self):
        tied = LLAMA.replace("}", ", tie_word_embeddings: true}")
        told = self.trainer("tiny.yaml", "launcher.processes=2", f"model={tied}", *SERVED, "exp_dir=run",
                            "parallel.sparse_embeddings=true", code=2).stderr
        self.assertIn("parallel.sparse_embeddings: the model has no trained embedding that is only looked up", told)
        self.assertFalse((self.folder / "run").exists())

    def test_asynchronous_updates_learn(self):
        self.train("run", *SERVED, "parallel.updates=asynchronous", "optimizer.lr=1e-2", "training.max_steps=40")
        losses = [loss for phase, _, loss in self.losses("run") if phase == "train"]
        self.assertLess(losses[-1], 0.8 * losses[0])

    def test_one_rank_needs_no_server(self):
        self.trainer("tiny.yaml", "exp_dir=served", *PLAIN, *SERVED)
        self.trainer("tiny.yaml", "exp_dir=plain", *PLAIN)
        self.assertEqual(self.losses("served"), self.losses("plain"))

    def test_more_servers_than_ranks_are_refused(self):
        told = self.train("run", *SERVED, "parallel.servers=3", code=2).stderr
        self.assertIn("parallel.servers is 3, and there are 2 ranks", told)

    def test_keys_of_other_trainers_are_refused_with_the_reason(self):
        instead = "the trainer parameter_server spreads gradients and weights by its servers, and not by DDP or FSDP"
        for argument, key in (("strategy=fsdp", "strategy"), ("strategy=ddp", "strategy"), ("parallel=ddp", "parallel"),
                              ("parallel.use_fsdp=true", "parallel.use_fsdp"),
                              ("parallel.sharding_strategy=FULL_SHARD", "parallel.sharding_strategy"),
                              ("parallel.ddp.static_graph=true", "parallel.ddp")):
            told = " ".join(self.train("run", *SERVED, argument, code=2).stderr.split())
            self.assertIn(f" {key}: {instead}; leave it out, or choose name: supervised", told)
        # Another trainer's word for a field that this one lacks does not lead to that field alone.
        told = " ".join(self.train("run", *SERVED, "fsdp_config.backward_prefetch=true", code=2).stderr.split())
        self.assertIn("is here: parallel.fsdp.backward_prefetch", told)
        self.assertIn("this trainer has no parallel.fsdp.backward_prefetch: leave it out", told)
        self.assertFalse((self.folder / "run").exists())

    def end_one(self, number, process, ranks):
        """Sends the signal to a rank. Returns the rank, the seconds until all ranks have ended, and the error output."""
        victim = self.random.randrange(len(ranks))
        os.kill(ranks[victim], number)
        began = time.monotonic()
        _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, errors)
        self.assertEqual(errors.count("error:"), 1, errors)
        shutil.rmtree(self.folder / "run")
        return victim, time.monotonic() - began, errors

    def start_and_train(self, *more):
        """A server and two trainers, at a moment of their first steps."""
        steps = self.random.randint(2, 12)
        process = self.start("tiny.yaml", "launcher.processes=3", *SERVED, "exp_dir=run",
                             "checkpoint.save_every_n_steps=null", *more)
        for line in process.stdout:
            if f"step {steps}/" in line:
                break
        time.sleep(self.random.uniform(0, 0.05))
        return process, runs.children(process.pid)

    def test_a_killed_server_or_trainer_is_named(self):
        tell_sample(self.rounds(), LONG_ROUNDS, "kills")
        slowest = 0
        for _ in range(self.rounds()):
            victim, seconds, errors = self.end_one(signal.SIGKILL, *self.start_and_train())
            self.assertIn(f"error: rank {victim} was killed by signal 9", errors)
            self.assertLess(seconds, SECONDS_TO_NOTICE)
            slowest = max(slowest, seconds)
        print(f"all were down within {slowest:.1f} s")

    def test_a_stopped_server_or_trainer_is_named_at_the_timeout(self):
        tell_sample(self.rounds(), LONG_ROUNDS, "stops")
        for _ in range(self.rounds()):
            victim, _, errors = self.end_one(signal.SIGSTOP, *self.start_and_train("parallel.timeout=3s"))
            self.assertIn(f"error: rank {victim}: gave no sign of life on ", errors)


if __name__ == "__main__":
    runs.main()
