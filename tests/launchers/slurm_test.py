# SPDX-License-Identifier: Apache-2.0
"""The real binary under srun and sbatch of a real Slurm, with two virtual nodes."""

import os
import pathlib
import random
import sys

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest, require
from tests.launchers.slurm_cluster import SlurmCluster
from tests.ports import free_port

PROBE = pathlib.Path(sys.argv[2]).resolve()


class SlurmTest(LauncherTest):

    def setUp(self):
        super().setUp()
        self.cluster = SlurmCluster()
        self.addCleanup(self.cluster.stop)

    def srun(self, *arguments, code=0, env=None):
        return self.launch("srun", "--immediate=20", "-K", *arguments, code=code,
                           env={**self.cluster.environment, **(env or {})})

    def on_nodes(self):
        """The names of virtual nodes stand for no address: they are on this host."""
        return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}

    def test_a_task_is_a_rank(self):
        expected = self.expected(2)
        output = self.srun("-u", "-N1", "-n2", runs.TRAINER, "tiny.yaml", "exp_dir=one_node")
        self.assertEqual(output.count("next: "), 1, output)
        self.assert_plain(output)
        self.assertEqual(self.losses("one_node"), expected)
        start, = self.starts("one_node")
        self.assertEqual((start["launcher"], start["world_size"]), ("slurm", 2))
        self.srun("-N2", "-n2", runs.TRAINER, "tiny.yaml", "exp_dir=two_nodes", env=self.on_nodes())
        self.assertEqual(self.losses("two_nodes"), expected)

    def test_a_task_of_a_node_starts_the_nodes_ranks(self):
        expected = self.expected(4)
        self.srun("-N2", "-n2", "--ntasks-per-node=1", runs.TRAINER, "tiny.yaml", "exp_dir=nodes",
                  "launcher.processes=2", env=self.on_nodes())
        self.assertEqual(self.losses("nodes"), expected)
        start, = self.starts("nodes")
        self.assertEqual((start["launcher"], start["world_size"]), ("slurm", 4))

    def test_one_task_is_alone(self):
        expected = self.expected(2)
        self.srun("-N1", "-n1", runs.TRAINER, "tiny.yaml", "exp_dir=alone", "launcher.processes=2")
        self.assertEqual(self.losses("alone"), expected)
        self.assertEqual(self.starts("alone")[0]["launcher"], "local")

    def test_contradictions_are_told(self):
        output = self.srun("-N1", "-n2", runs.TRAINER, "tiny.yaml", "exp_dir=no", code=None, env={"WORLD_SIZE": "3"})
        self.assertIn("WORLD_SIZE is 3, but srun has started 2 tasks", output)
        output = self.srun("-N1", "-n2", runs.TRAINER, "tiny.yaml", "exp_dir=no", code=None,
                           env={"RANK": "0", "WORLD_SIZE": "2", **self.on_nodes()})
        self.assertIn("RANK is 0, but srun has started this process as task 1 of 2 (SLURM_PROCID)", output)
        self.assertFalse((self.folder / "no").exists())

    def test_a_requeued_job_goes_on(self):
        expected = self.expected(2)
        script = self.write("job.sh", "#!/bin/bash\n"
                            f"srun -K -N1 -n2 {runs.TRAINER} tiny.yaml exp_name=job checkpoint.save_every_n_steps=1\n")
        job = self.cluster_run("sbatch", "--parsable", "-N1", "-n2", "--requeue", "--open-mode=append",
                               "--output=job.log", str(script)).strip()
        log = self.folder / "job.log"
        self.cluster.wait_for(lambda: log.exists() and "step 7/" in log.read_text(), "step 7")
        self.cluster_run("scontrol", "requeue", job)
        # Slurm holds a requeued job back for two minutes.
        self.cluster.wait_for(lambda: "PENDING" in self.cluster_run("squeue", "-h", "-j", job, "-o", "%T"), "the requeue")
        self.cluster_run("scontrol", "update", f"JobId={job}", "StartTime=now")
        self.cluster.wait_for(lambda: not self.cluster_run("squeue", "-h", "-j", job).strip(), "the job's end")
        self.assertEqual(self.losses("runs/job/run_0")[-5:], expected[-5:], log.read_text())
        self.assertEqual([start["restart"] for start in self.starts("runs/job/run_0")], [0, 1])
        self.assertFalse((self.folder / "runs/job/run_1").exists())

    def test_a_submitted_run_is_put_into_the_queue_again_before_its_limit(self):
        fields = ["training.max_steps=400", "validation.every_n_steps=100", "checkpoint.save_every_n_steps=400"]
        expected = self.expected(2, *fields)
        printed = self.launch(runs.TRAINER, "launch", "slurm", "tiny.yaml", *fields, "exp_name=job",
                              "--ntasks-per-node=2", "--job-name=job", "--time=10", env=self.cluster.environment)
        job = printed.split()[-1]
        log = self.folder / f"job-{job}.log"
        self.cluster.wait_for(lambda: log.exists() and "step 7/" in log.read_text(), "step 7")
        self.cluster_run("scancel", "--signal=USR2", "--batch", job)  # As Slurm does ahead of the limit.
        self.cluster.wait_for(lambda: "PENDING" in self.cluster_run("squeue", "-h", "-j", job, "-o", "%T"), "the requeue")
        self.cluster_run("scontrol", "update", f"JobId={job}", "StartTime=now")
        self.cluster.wait_for(lambda: not self.cluster_run("squeue", "-h", "-j", job).strip(), "the job's end")
        self.assertEqual(self.losses("runs/job/run_0"), expected, log.read_text())
        self.assertEqual([start["restart"] for start in self.starts("runs/job/run_0")], [0, 1])

    def test_a_mistake_submits_nothing(self):
        for arguments, message in [
            (["tiny.yaml", "training.max_stepps=4"], "training.max_stepps"),
            (["tiny.yaml", "--time=1 hour"], "--time='1 hour': a value for Slurm"),
            (["tiny.yaml", "--gpus-per-node=all"], "--ntasks-per-node is missing"),
            (["tiny.yaml", "--setup=nowhere"], "there is no file 'nowhere'"),
        ]:
            with self.subTest(arguments):
                self.assertIn(message, self.launch(runs.TRAINER, "launch", "slurm", *arguments, code=2,
                                                   env=self.cluster.environment))
        self.assertEqual(self.cluster_run("squeue", "-h"), "")

    def cluster_run(self, *command):
        output, _ = self.start_launcher(*command, env=self.cluster.environment).communicate(timeout=runs.TIMEOUT_SECONDS)
        return output

    def test_lists_of_nodes_are_those_of_scontrol(self):
        chosen = random.Random(7)
        lists = ["n1", "n[1-3]", "a,b", "n[1,3-5,10]", "n[08-11]", "r[1-2]n[0-1]", "r[0-1]n[2,4],m"]
        for _ in range(40):
            names = []
            for _ in range(chosen.randrange(1, 4)):
                first = chosen.randrange(0, 120)
                width = chosen.choice([1, 2, 3, 4])
                last = first + chosen.randrange(0, 6)
                names.append(f"{chosen.choice('abc')}{chosen.choice(['', '-'])}[{first:0{width}d}-{last:0{width}d}]")
            lists.append(",".join(names))
        for nodes in lists:
            with self.subTest(nodes):
                theirs = self.cluster_run("scontrol", "show", "hostnames", nodes)
                self.assertEqual(self.launch(PROBE, nodes), theirs)


class ScriptTest(LauncherTest):

    def script(self, *arguments):
        return self.write("job.sh", self.trainer("launch", "slurm", *arguments, "--dry-run").stdout)

    def test_every_word_reaches_the_trainer_as_it_is(self):
        self.write("it's $(a) config.yaml", self.config)
        words = ["it's $(a) config.yaml", 'exp_name="a b"', "task.sample.prompt='$(date) `x`'"]
        self.write("fake/srun", '#!/bin/sh\nprintf "%s\\0" "$@"\n').chmod(0o755)
        environment = {"PATH": f"{self.folder / 'fake'}:{os.environ['PATH']}"}
        for options in ([], ["--no-requeue"]):
            script = self.script(*words, *options)
            printed = self.launch("bash", script, env=environment).split("\0")
            self.assertEqual(printed[printed.index("train") + 1:-1], words)

    def test_scripts_pass_bash_and_shellcheck(self):
        require("shellcheck")
        self.write("modules.sh", "export MODULES=1\n")
        for options in ([], ["--no-requeue"], ["--nodes=2", "--gpus-per-node=a100:4", "--cpus-per-task=8",
                                               "--setup=modules.sh", "--container=image.sif", "--time=1:00:00"]):
            script = self.script("tiny.yaml", "optimizer.lr=1e-3", *options)
            self.launch("bash", "-n", script)
            self.launch("shellcheck", "--exclude=SC1091", script)  # The set-up file is the user's.


if __name__ == "__main__":
    runs.main()
