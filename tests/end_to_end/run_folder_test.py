# SPDX-License-Identifier: Apache-2.0
"""A run's folder: its config repeats the run, its starts are told, and nobody else writes there."""

import hashlib
import json
import os
import re
import resource
import select
import signal
import socket

from tests.end_to_end import runs

ENDLESS = ("training.max_steps=1000000", "lr_scheduler.decay_steps=40")
FILES = ("model.safetensors", "optimizer.safetensors", "rng.safetensors")


class RunFolderTest(runs.RunTest):

    def weights(self, exp_dir, step=40):
        """A digest of all that a checkpoint holds of model, optimizer and random numbers."""
        folder = self.folder / exp_dir / f"checkpoints/step-{step:08d}"
        return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES]

    def starts(self, exp_dir):
        return [json.loads(line)
                for line in (self.folder / exp_dir / "starts.jsonl").read_text().splitlines()]

    def start_and_train(self, *arguments, **options):
        """A run that has begun, or gone on, to train."""
        process = self.start(*arguments, **options)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return self.read_until(process, r"step \d+/")

    def read_until(self, process, pattern):
        for line in process.stdout:
            if re.search(pattern, line):
                return process
        self.fail("it has ended: " + process.stderr.read())

    def stop(self, process, number=signal.SIGTERM):
        process.send_signal(number)
        return process.communicate(timeout=runs.TIMEOUT_SECONDS)

    def test_the_config_that_is_kept_repeats_the_run_bit_for_bit(self):
        for ranks in (1, 2):
            name = f"of_{ranks}"
            first, second = (f"runs/{name}/run_{number}" for number in range(2))
            self.trainer("tiny.yaml", f"exp_name={name}", f"launcher.processes={ranks}",
                         "model.n_layer=1", "optimizer.lr=3e-3", "training.seed=5",
                         "training.max_steps=12")
            before = self.files()
            config = self.folder / first / "config.yaml"
            text = config.read_text()
            self.trainer(str(config))
            self.assertEqual(self.losses(second), self.losses(first))
            self.assertEqual(self.weights(second, 12), self.weights(first, 12))
            self.assertEqual(config.read_text(), text)
            self.assertEqual([path for path in self.files() if not path.startswith(second)], before)
        # The copy's copy is still the same, carried elsewhere too.
        self.write("elsewhere.yaml", (self.folder / second / "config.yaml").read_text())
        self.trainer("elsewhere.yaml", "exp_dir=third")
        self.assertEqual(self.weights("third", 12), self.weights(first, 12))

    def test_its_first_lines_say_how_it_is_used(self):
        self.trainer("tiny.yaml", "exp_name='a, b'", "training.max_steps=2")
        config = (self.folder / "runs/a, b/run_0/config.yaml").read_text().splitlines()
        repeats, continues = (line.split(":", 1)[1].strip() for line in config[1:3])
        for command, starts in ((continues, 2), (repeats, 2)):
            runs.subprocess.run(["sh", "-c", command.replace("trainer", str(runs.TRAINER), 1)],
                                cwd=self.folder, check=True, capture_output=True)
            self.assertEqual(len(self.starts("runs/a, b/run_0")), starts)
        self.assertEqual(self.weights("runs/a, b/run_1", 2), self.weights("runs/a, b/run_0", 2))

    def test_what_refers_to_the_folder_is_not_the_old_runs(self):
        self.write("a.txt", runs.TEXT)
        self.write("b.txt", runs.TEXT)
        self.trainer("tiny.yaml", "exp_dir=a", "task.data.path=${exp_dir}.txt",
                     "training.max_steps=5")
        (self.folder / "a.txt").unlink()
        self.trainer("a/config.yaml", "exp_dir=b")
        self.assertEqual(self.losses("b"), self.losses("a"))
        self.assertIn("a.txt", self.trainer("a/config.yaml", "exp_dir=a", code=2).stderr)

    def test_starts_are_told_and_a_torn_line_does_no_harm(self):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "NCCL_TOKEN": "do not tell",
                       "WIDTH": "32", "USER": "somebody"}
        first = ("tiny.yaml", "exp_dir=run", "model.n_embd=${oc.env:WIDTH}", "training.max_steps=7",
                 "lr_scheduler.decay_steps=40")
        self.trainer(*first, env=environment)
        log = self.folder / "run/starts.jsonl"
        (start,) = self.starts("run")
        self.assertEqual(start["command"], [str(runs.TRAINER), *first])
        self.assertEqual(start["folder"], str(self.folder))
        self.assertEqual(start["host"], socket.gethostname())
        self.assertEqual((start["step"], start["changed"], start["restart"]), (0, [], 0))
        self.assertEqual((start["launcher"], start["world_size"]), ("local", 1))
        self.assertEqual(start["ranks"], [{"host": socket.gethostname(), "device": "cpu"}])
        self.assertEqual(start["environment"]["OMP_NUM_THREADS"], "1")
        self.assertEqual(start["environment"]["WIDTH"], "32")
        self.assertIn("2.11.0", start["versions"]["libtorch"])
        self.assertNotIn("do not tell", log.read_text())
        self.assertNotIn("somebody", log.read_text())
        with log.open("a") as file:
            file.write('{"time": "20')  # as a power cut may leave it
        self.trainer("run/config.yaml", "exp_dir=run", "launcher.processes=2",
                     "training.gradient_accumulation_steps=1", "training.max_steps=9")
        whole, torn, last = log.read_text().splitlines()
        self.assertEqual((json.loads(whole), torn), (start, '{"time": "20'))
        last = json.loads(last)
        self.assertEqual((last["step"], last["world_size"]), (7, 2))
        self.assertEqual({change["field"]: (change["before"], change["after"], change["written"])
                          for change in last["changed"]},
                         {"training.max_steps": (7, 9, "command line"),
                          "training.gradient_accumulation_steps": (2, 1, "command line"),
                          "launcher.processes": (1, 2, "command line")})

    def test_a_second_process_is_kept_out_as_long_as_the_first_lives(self):
        endless = ("tiny.yaml", "exp_dir=run", "launcher.processes=2", *ENDLESS)
        process = self.start_and_train(*endless)
        error = self.trainer(*endless, code=2).stderr
        self.assertIn(f"run is being trained by process {runs.children(process.pid)[0]} on "
                      f"{socket.gethostname()}", error)
        self.assertIsNone(process.poll())
        self.assertEqual(len(self.starts("run")), 1)
        # A launcher that is killed, and its ranks with it, keeps nobody out.
        self.stop(process, signal.SIGKILL)
        process = self.start_and_train(*endless)
        output, errors = self.stop(process)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, output + errors)
        self.assertEqual(len(self.starts("run")), 2)

    def test_a_job_that_is_requeued_waits_for_its_earlier_attempt(self):
        # As where a node was cut off: what runs there notices it later than Slurm.
        attempts = [{**os.environ, "SLURM_JOB_ID": "7", "SLURM_RESTART_COUNT": str(count)} for count in range(2)]
        for exp_dir in ("runs/job/run_0", "given"):
            with self.subTest(exp_dir):
                arguments = ("exp_name=job",) if exp_dir.startswith("runs/") else (f"exp_dir={exp_dir}",)
                earlier = self.start_and_train("tiny.yaml", *ENDLESS, *arguments, env=attempts[0])
                late = self.trainer("tiny.yaml", *ENDLESS, *arguments, "parallel.timeout=1s", env=attempts[1], code=2)
                self.assertIn(f"{exp_dir} is being trained by process {earlier.pid} on ", late.stderr)
                later = self.start("tiny.yaml", *ENDLESS, *arguments, env=attempts[1])
                self.addCleanup(later.communicate)
                self.addCleanup(later.kill)
                self.read_until(later, f"waiting for the end of an earlier attempt of slurm 7, process {earlier.pid} on "
                                       f"{socket.gethostname()}, which still trains in {exp_dir}")
                self.stop(earlier)
                self.read_until(later, r"resumed +after step")
                self.stop(later)
                self.assertEqual([(start["restart"], start["job_restarts"]) for start in self.starts(exp_dir)],
                                 [(0, 0), (1, 1)])
        self.assertFalse((self.folder / "runs/job/run_1").exists())

    def test_of_two_that_start_at_once_one_gets_the_folder(self):
        both = [self.start("tiny.yaml", "exp_dir=run", *ENDLESS) for _ in range(2)]
        for process in both:
            self.addCleanup(process.communicate)
            self.addCleanup(process.kill)
        ended, _, _ = select.select([os.pidfd_open(process.pid) for process in both], [], [],
                                    runs.TIMEOUT_SECONDS)
        self.assertEqual(len(ended), 1)
        loser, winner = sorted(both, key=lambda process: process.poll() is None)
        self.assertEqual(loser.returncode, 2)
        self.assertIn(f"being trained by process {winner.pid} on", loser.stderr.read())
        self.stop(winner)
        self.assertEqual(winner.returncode, 128 + signal.SIGTERM)
        self.assertEqual([start["pid"] for start in self.starts("run")], [winner.pid])

    def test_a_refusal_starts_no_rank(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2")
        before = self.files()
        for change, message in (("model.n_embd=32", "model.n_embd: was 16, now 32 (command line)"),
                                ("training.batch_size=3", "training.batch_size to one that fits: 4, 2, 1")):
            process = self.trainer("tiny.yaml", "exp_dir=run", change, "launcher.processes=2",
                                   code=2)
            self.assertIn(message, process.stderr)
            self.assertNotIn("rank 0", process.stderr)  # as all that a rank says begins
        self.assertEqual(self.files(), before)

    def test_a_resume_that_does_not_fit_leaves_the_runs_config(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2")
        config = self.folder / "run/config.yaml"
        text = config.read_text()
        for ranks in ("1", "2"):
            for change in ("++model.n_layer=3", "++optimizer=sgd"):
                self.trainer(str(config), "exp_dir=run", "training.max_steps=4", change,
                             "training.batch_size=" + ("4" if ranks == "1" else "2"),
                             f"launcher.processes={ranks}", code=2)
                self.assertEqual(config.read_text(), text, change)
        self.trainer(str(config), "exp_dir=run", "training.max_steps=4")
        self.assertIn("max_steps: 4", config.read_text())
        self.assertEqual([start["step"] for start in self.starts("run")], [0, 2, 2, 2, 2, 2])

    def test_of_ranks_that_others_start_rank_0_refuses_for_all(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2")
        errors = self.trainer("tiny.yaml", "exp_dir=run", "model.n_embd=32", code=2,
                              env={**os.environ, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0",
                                   "LOCAL_WORLD_SIZE": "1"}).stderr
        self.assertEqual(errors.count("model.n_embd: was 16, now 32"), 1)

    def test_a_full_disk_is_told_by_the_file_and_the_run_can_begin_later(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        error = self.trainer("tiny.yaml", "exp_dir=run", code=2, preexec_fn=limit).stderr
        self.assertIn("run/starts.jsonl", error)
        self.assertEqual((self.folder / "run/starts.jsonl").read_text(), "")
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2")
        self.assertEqual(len(self.starts("run")), 1)


if __name__ == "__main__":
    runs.main()
