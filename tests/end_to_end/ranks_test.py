# SPDX-License-Identifier: Apache-2.0
"""Several ranks of the real binary on this host: one run, one folder, the same steps."""

import json
import os
import pathlib
import struct

from tests.end_to_end import runs
from tests.ports import free_port

# No dropout: what a sample meets does not depend on which rank draws for it.
PLAIN = ("model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0")


def ranks(number):
    return f"launcher.processes={number}"


def listening_addresses(pid):
    """Local addresses, as hexadecimal texts, of the TCP sockets on which a process listens."""
    inodes = set()
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{entry}")
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[len("socket:["):-1])
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:  # LISTEN
                addresses.append(fields[1].split(":")[0])
    return addresses


def is_loopback(address):
    words = struct.unpack(f"<{len(address) // 8}I", bytes.fromhex(address))
    if len(words) == 1:
        return struct.pack(">I", int(address, 16))[3] == 127
    mapped = int(address[24:], 16)
    return address == "0" * 24 + "01000000" or (
        address[16:24].upper() == "FFFF0000" and mapped & 0xFF == 127)


class RanksTest(runs.RunTest):

    def train_losses(self, exp_dir):
        return [loss for phase, _, loss in self.losses(exp_dir) if phase == "train"]

    def manifest(self, exp_dir, step=40):
        path = self.folder / exp_dir / f"checkpoints/step-{step:08d}/manifest.json"
        return json.loads(path.read_text())

    def assert_close(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertLessEqual(abs(one - other), 1e-5 * abs(other))

    def test_one_run_whatever_the_number_of_ranks(self):
        # 136 samples: the epoch's last steps are ragged, with ranks that have nothing.
        for number, batch in ((1, 12), (2, 6), (3, 4)):
            self.trainer("tiny.yaml", *PLAIN, f"exp_dir=of_{number}", ranks(number),
                         f"training.batch_size={batch}",
                         "training.gradient_accumulation_steps=1")
        for number in (2, 3):
            self.assert_close(self.train_losses(f"of_{number}"), self.train_losses("of_1"))
            rows = [row for row in self.rows(f"of_{number}") if row["phase"] == "train"]
            self.assertEqual([row["samples"] for row in rows],
                             [row["samples"] for row in self.rows("of_1")
                              if row["phase"] == "train"])

    def test_rank_0_writes_and_every_rank_has_its_log(self):
        output = self.trainer("tiny.yaml", "exp_dir=run", ranks(2)).stdout
        self.assertEqual(output.count("next: "), 1)
        self.assertRegex(output, r"ranks +2, 2 on this host")
        logs = self.folder / "run/logs"
        self.assertEqual(len(list(logs.glob("events.out.tfevents.*"))), 1)
        self.assertEqual([row["step"] for row in self.rows("run") if row["phase"] == "train"],
                         list(range(1, 41)))
        self.assertIn("step 40: ", (logs / "rank_1.log").read_text())
        self.assertIn("next: ", (logs / "rank_0.log").read_text())
        manifest = self.manifest("run")
        self.assertEqual(manifest["world_size"], 2)
        self.assertEqual(sorted(tensor["name"] for tensor in manifest["tensors"]
                                if tensor["part"] == "rng"), ["rank_0.cpu", "rank_1.cpu"])

    def test_a_resume_on_as_many_ranks_repeats_every_bit(self):
        # With three ranks and more, the sum of gradients depends on the buckets in which they are reduced.
        three = ("tiny.yaml", ranks(3), "lr_scheduler.decay_steps=40")
        self.trainer(*three, "exp_dir=whole")
        self.trainer(*three, "exp_dir=parts", "training.max_steps=1")
        self.trainer(*three, "exp_dir=parts", "training.max_steps=13")
        self.trainer(*three, "exp_dir=parts")
        self.assertEqual(self.train_losses("parts"), self.train_losses("whole"))

    def test_a_resume_on_another_number_keeps_the_global_batches(self):
        common = ["tiny.yaml", *PLAIN, "training.gradient_accumulation_steps=null",
                  "training.batch_size=4", "lr_scheduler.decay_steps=40"]
        self.trainer(*common, "exp_dir=two", ranks(2))
        self.trainer(*common, "exp_dir=then_one", ranks(2), "training.max_steps=13")
        self.trainer(*common, "exp_dir=then_one", ranks(1))
        self.assert_close(self.train_losses("then_one"), self.train_losses("two"))
        samples = [row["samples"] for row in self.rows("then_one") if row["phase"] == "train"]
        self.assertEqual(samples, [row["samples"] for row in self.rows("two")
                                   if row["phase"] == "train"])

        error = self.trainer(*common, "exp_dir=then_one", ranks(3), "training.max_steps=45",
                             code=2).stderr
        self.assertIn("which 3 ranks cannot share evenly", error)
        error = self.trainer(*common, "exp_dir=then_one", ranks(4), "training.max_steps=45",
                             code=2).stderr
        self.assertIn("Set training.batch_size to one that fits: 2, 1", error)

    def test_a_mistake_that_all_ranks_find_is_told_once(self):
        before = self.files()
        process = self.trainer("tiny.yaml", ranks(3), "task.data.path=nowhere", code=2)
        self.assertEqual(process.stderr.count("nowhere"), 1, process.stderr)
        self.assertNotIn("rank", process.stderr)
        self.assertEqual(self.files(), before)

    def test_what_cannot_be_is_refused(self):
        for override, message in (
                ("parallel={use_fsdp: true, fsdp: {mesh: {shard: 2}, shard_group_size: 2}}",
                 "shard_group_size says the same"),
                ("parallel={use_fsdp: true, sharding_strategy: 1, fsdp: {shard_group_size: 2}}",
                 "FULL_SHARD shards over all ranks"),
                ("parallel.ddp.comm_hook=fp16_compres", "fp16_compress")):
            self.assertIn(message, self.trainer("tiny.yaml", override, code=2).stderr)

    def test_options_without_effect_are_warned_of(self):
        for override in ("parallel.cpu_offload=true", "parallel.sharding_strategy=1"):
            warning = self.trainer("config", "print", "tiny.yaml", override).stderr
            self.assertIn("warning: command line", warning)
            self.assertIn("this has no effect: use_fsdp is false", warning)
        self.assertEqual(self.trainer("config", "print", "tiny.yaml", "parallel=ddp").stderr, "")
        for field, is_warned in (("static_graph", True), ("find_unused_parameters", False)):
            warning = self.trainer("config", "print", "tiny.yaml", "parallel=fsdp",
                                   f"parallel.ddp.{field}=true").stderr
            self.assertEqual("this has no effect: use_fsdp is true" in warning, is_warned, warning)

    def test_evaluation_on_several_ranks_is_that_on_one(self):
        self.trainer("tiny.yaml", "exp_dir=run", "validation.max_batches=null")
        alone = self.trainer("evaluate", "run").stdout.split()
        several = self.trainer("evaluate", "run", ranks(3)).stdout.split()
        self.assertEqual(alone[:3], several[:3])
        self.assertAlmostEqual(float(alone[alone.index("loss") + 1]),
                               float(several[several.index("loss") + 1]), places=5)

    def test_nothing_listens_beyond_loopback(self):
        process = self.start("tiny.yaml", ranks(2), "training.max_steps=1000000",
                             "lr_scheduler.decay_steps=100", "exp_dir=run")
        try:
            for line in process.stdout:  # the group stands: training has begun
                if "step 2/" in line:
                    break
            everyone = [process.pid, *runs.children(process.pid)]
            addresses = [address for pid in everyone for address in listening_addresses(pid)]
        finally:
            process.terminate()
            process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(len(everyone), 3)
        self.assertGreaterEqual(len(addresses), 3)  # the store, and each rank's Gloo
        self.assertEqual([a for a in addresses if not is_loopback(a)], [])
        self.assertEqual(process.returncode, 128 + 15)

    def test_ranks_that_compare_their_collectives_train_alike(self):
        checks = dict(os.environ, PHALANX_CHECK_COLLECTIVES="1")
        for name, way in (("ddp", ()), ("fsdp", ("parallel.use_fsdp=true", "parallel.sharding_strategy=FULL_SHARD"))):
            arguments = ("tiny.yaml", ranks(2), "training.max_steps=10", *way)
            self.trainer(*arguments, f"exp_dir={name}")
            self.trainer(*arguments, f"exp_dir={name}_checked", env=checks)
            self.assertEqual(self.losses(f"{name}_checked"), self.losses(name))
        told = self.trainer(*arguments, "exp_dir=refused", env=checks | {"PHALANX_CHECK_COLLECTIVES": "yes"}, code=2)
        self.assertIn("PHALANX_CHECK_COLLECTIVES is 'yes', but must be 1 or 0", told.stderr)

    def test_a_launcher_environment_starts_no_more(self):
        environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0",
                       "LOCAL_WORLD_SIZE": "1"}
        self.trainer("tiny.yaml", "exp_dir=run", ranks(3), env=environment)
        self.assertEqual(self.manifest("run")["world_size"], 1)
        for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"):  # They follow from the hosts.
            del environment[name]
        self.trainer("tiny.yaml", "exp_dir=other", ranks(3), env=environment)
        self.assertEqual(self.manifest("other")["world_size"], 1)
        del environment["RANK"]
        error = self.trainer("tiny.yaml", "exp_dir=no", env=environment, code=2).stderr
        self.assertIn("the environment variable RANK is not set", error)

    def test_different_configs_are_noticed(self):
        environment = {**os.environ, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        processes = [
            self.start("tiny.yaml", f"optimizer.lr={1 + rank}.0e-3", "exp_dir=run",
                       env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)})
            for rank in range(2)]
        errors = ""
        for process in processes:
            errors += process.communicate(timeout=runs.TIMEOUT_SECONDS)[1]
            self.assertEqual(process.returncode, 2, errors)
        self.assertIn("the config of rank 1 is not that of rank 0", errors)
        self.assertIn("lr: 0.001", errors)
        self.assertIn("lr: 0.002", errors)


if __name__ == "__main__":
    runs.main()
