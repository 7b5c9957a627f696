# SPDX-License-Identifier: Apache-2.0
"""The loss in chunks of places, in runs of the real binary: those of the plain loss, within rounding."""

from tests.end_to_end import runs

STEPS = 6
# The same samples and no random numbers, on any ranks. A rank's micro-batch has 4 x 16 places.
ALIKE = (f"training.max_steps={STEPS}", "training.global_batch_size=16",
         "training.gradient_accumulation_steps=null", "model.embd_pdrop=0", "model.attn_pdrop=0",
         "model.resid_pdrop=0", "task.sample.tokens=0")
CHUNKS = "task.loss.chunk=10"
ONE = ("launcher.processes=1",)
DDP = ("launcher.processes=2", "parallel.use_fsdp=false")
FSDP = ("launcher.processes=2", "parallel.use_fsdp=true",
        "parallel.sharding_strategy=FULL_SHARD")


class LossChunkTest(runs.RunTest):

    def train(self, exp_dir, *options):
        self.trainer("tiny.yaml", f"exp_dir={exp_dir}", *ALIKE, *options)
        return self.losses(exp_dir)

    def assert_near(self, found, expected, delta):
        self.assertEqual([row[:2] for row in found], [row[:2] for row in expected])
        for (phase, step, loss), (_, _, other) in zip(found, expected):
            self.assertAlmostEqual(loss, other, delta=delta, msg=f"{phase} {step}")

    def test_trains_as_the_plain_loss(self):
        for name, ranks in (("one", ONE), ("ddp", DDP), ("fsdp", FSDP)):
            with self.subTest(name):
                plain = self.train(f"plain-{name}", *ranks)
                self.assert_near(self.train(name, *ranks, CHUNKS), plain, 2e-5)

    def test_trains_in_bfloat16(self):
        plain = self.train("plain", *ONE, "mixed_precision=bf16")
        sharded = "parallel.fsdp.mixed_precision.param_dtype=bfloat16"
        for name, options in (("one", (*ONE, "mixed_precision=bf16")), ("fsdp", (*FSDP, sharded))):
            with self.subTest(name):
                self.assert_near(self.train(name, *options, CHUNKS), plain, 2e-2)

    def test_leaves_out_places_without_a_target(self):
        documents = "".join("abcdefghij"[:i % 9 + 2] + "\n" for i in range(400))
        (self.folder / "documents.bin").write_bytes(documents.encode("utf-16-le"))
        self.write("tiny.yaml", runs.CONFIG.replace(
            "path: text.txt",
            "source: {name: nanogpt, files: [documents.bin], end_of_text: 10}, documents: padded"))
        self.assert_near(self.train("chunks", *ONE, CHUNKS), self.train("plain", *ONE), 2e-5)

    def test_a_loss_that_is_not_finite_stops_all_ranks(self):
        for name, ranks in (("ddp", DDP), ("fsdp", FSDP)):
            with self.subTest(name):
                process = self.trainer("tiny.yaml", f"exp_dir=stops-{name}", *ALIKE, *ranks, CHUNKS,
                                       "optimizer.lr=1e28", code=1)
                self.assertIn("the loss is nan", process.stderr)


if __name__ == "__main__":
    runs.main()
