# SPDX-License-Identifier: Apache-2.0
"""The trainer ddp_with_remote_embedding, beside the trainer supervised."""

from tests.end_to_end import runs

REMOTE = ("name=ddp_with_remote_embedding",)
# Sums of squares over ranks have another order than over one: without a clip nothing depends on them.
UNCLIPPED = ("training.clip_grad_norm=null",)
# No dropout: what a sample meets does not depend on which rank draws for it.
PLAIN = ("model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0", "training.max_steps=20")
LLAMA = """\
  name: llama
  vocab_size: 256
  hidden_size: 16
  intermediate_size: 32
  num_hidden_layers: 2
  num_attention_heads: 2
  max_position_embeddings: 16
"""


class RemoteTest(runs.RunTest):

    def train(self, exp_dir, ranks, *more, **options):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", f"launcher.processes={ranks}", *PLAIN, *more, **options)

    def assert_close(self, one, other, relative):
        rows, others = self.losses(one), self.losses(other)
        self.assertEqual([row[:2] for row in rows], [row[:2] for row in others])
        for (_, _, loss), (_, _, expected) in zip(rows, others):
            self.assertAlmostEqual(loss, expected, delta=relative * expected)


class Gpt2Test(RemoteTest):
    """Its head is tied to the token embedding, which travels whole; positions travel as rows."""

    def test_one_rank_that_trains_computes_as_one_process(self):
        self.train("alone", 1, *UNCLIPPED)
        told = self.train("remote", 2, *REMOTE, *UNCLIPPED).stdout
        self.assertIn("wte on rank 1 (whole), wpe on rank 1 (by rows); 1 rank trains", told)
        self.assertIn("8 samples = 1 rank x 2 micro-batches of 4", told)
        self.assertEqual(self.losses("remote"), self.losses("alone"))

    def test_two_ranks_that_train_compute_as_ddp(self):
        self.train("ddp", 2, *UNCLIPPED)
        self.train("remote", 3, *REMOTE, *UNCLIPPED)
        self.train("servers", 4, *REMOTE, *UNCLIPPED, "parallel.servers=2")
        # Sums over two ranks have two terms: no order to differ in.
        self.assertEqual(self.losses("remote"), self.losses("ddp"))
        self.assertEqual(self.losses("servers"), self.losses("ddp"))

    def test_clipped_updates_differ_in_their_last_bits(self):
        self.train("ddp", 2)
        self.train("remote", 3, *REMOTE)
        self.assert_close("remote", "ddp", 1e-5)

    def test_a_table_may_stay_where_the_model_is(self):
        self.train("alone", 1, *UNCLIPPED)
        told = self.train("remote", 2, *REMOTE, *UNCLIPPED, "parallel.tables=[wpe]").stdout
        self.assertIn("remote embeddings: wpe on rank 1 (by rows)", told)
        self.assertEqual(self.losses("remote"), self.losses("alone"))

    def test_averages_are_validated_and_kept(self):
        averages = ("averages.method=ema", "averages.decay=0.5", "training.max_steps=20")
        self.train("alone", 1, *UNCLIPPED, *averages)
        self.train("remote", 2, *REMOTE, *UNCLIPPED, *averages)
        self.assertIn("validate", {phase for phase, _, _ in self.losses("remote")})
        self.assertEqual(self.losses("remote"), self.losses("alone"))

    def test_a_run_goes_on_as_if_it_had_not_ended(self):
        horizon = "lr_scheduler.decay_steps=20"
        self.train("whole", 3, *REMOTE, horizon)
        for ranks, servers in ((3, 1), (2, 1), (4, 2)):
            run = f"run_{ranks}"
            self.train(run, 3, *REMOTE, "training.max_steps=10", horizon)
            # A step keeps its samples: one rank that trains makes more micro-batches of them than two.
            self.train(run, ranks, *REMOTE, f"parallel.servers={servers}", horizon,
                       "training.gradient_accumulation_steps=null")
        self.assertEqual(self.losses("run_3"), self.losses("whole"))
        # Other ranks sum the gradients and their norm in another order.
        self.assert_close("run_2", "whole", 1e-5)
        self.assert_close("run_4", "whole", 1e-5)

    def test_one_rank_needs_no_server(self):
        self.train("remote", 1, *REMOTE)
        self.train("plain", 1)
        self.assertEqual(self.losses("remote"), self.losses("plain"))

    def test_mistakes_are_told_before_the_ranks_start(self):
        for told, ranks, argument in (
            ("parallel.servers is 2, and there are 2 ranks: servers do not train, give 1 at most", 2,
             "parallel.servers=2"),
            ("parallel.tables: the model has no table 'wtf'; there are: wte, wpe", 2, "parallel.tables=[wpe,wtf]"),
            ("parallel.servers: there are 3 servers for 2 tables (wte, wpe)", 4, "parallel.servers=3"),
            ("strategy: the trainer ddp_with_remote_embedding has the last ranks hold the", 2, "strategy=ddp"),
            ("parallel.use_fsdp: the trainer ddp_with_remote_embedding has the last", 2, "parallel.use_fsdp=false"),
            ("parallel.ddp: the trainer ddp_with_remote_embedding has the last", 2, "parallel.ddp.bucket_cap_mb=5"),
            ("parallel.updates: the trainer ddp_with_remote_embedding has each", 2, "parallel.updates=synchronous"),
        ):
            errors = self.train("run", ranks, *REMOTE, argument, code=2).stderr
            self.assertIn(told, errors)
            self.assertEqual(errors.count("error:"), 1, errors)
            self.assertFalse((self.folder / "run").exists())


class LlamaTest(RemoteTest):
    """Its token embedding travels as rows."""

    config = runs.CONFIG[:runs.CONFIG.index("  name: gpt2")] + LLAMA + runs.CONFIG[runs.CONFIG.index("optimizer:"):]

    def train(self, exp_dir, ranks, *more, **options):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", f"launcher.processes={ranks}", "training.max_steps=20",
                            *more, **options)

    def test_rows_alone_travel(self):
        self.train("alone", 1, *UNCLIPPED)
        told = self.train("remote", 2, *REMOTE, *UNCLIPPED).stdout
        self.assertIn("embed_tokens on rank 1 (by rows)", told)
        self.assertEqual(self.losses("remote"), self.losses("alone"))

    def test_a_tied_head_has_the_whole_table_travel(self):
        tied = "model.tie_word_embeddings=true"
        self.train("alone", 1, *UNCLIPPED, tied)
        told = self.train("remote", 2, *REMOTE, *UNCLIPPED, tied).stdout
        self.assertIn("embed_tokens on rank 1 (whole)", told)
        self.assertEqual(self.losses("remote"), self.losses("alone"))


if __name__ == "__main__":
    runs.main()
