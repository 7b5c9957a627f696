# SPDX-License-Identifier: Apache-2.0
"""The real binary under srun and sbatch of a real Slurm, with two virtual nodes."""

import os
import pathlib
import random
import re
import shlex
import signal
import sys
import time
import unittest

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest, require
from tests.launchers.slurm_cluster import SlurmCluster
from tests.long import is_long
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

    def test_the_next_command_is_an_srun_of_as_many_tasks(self):
        expected = self.expected(2)
        environment = {**self.cluster.environment, **self.on_nodes()}
        process = self.start_launcher("srun", "--immediate=20", "-K", "-N2", "-n2", runs.TRAINER, "tiny.yaml",
                                      "exp_dir=run", env=environment)
        output = self.read_until(process, "step 7/")
        process.send_signal(signal.SIGUSR2)
        output += process.communicate(timeout=runs.TIMEOUT_SECONDS)[0]
        command = re.search("next: (.*)", output)[1]
        self.assertTrue(command.startswith("srun -K --nodes=2 --ntasks=2 --ntasks-per-node=1 "), output)
        self.launch(*shlex.split(command), env=environment)
        self.assertEqual(self.losses("run"), expected)

    def test_one_task_is_alone(self):
        expected = self.expected(2)
        self.srun("-N1", "-n1", runs.TRAINER, "tiny.yaml", "exp_dir=alone", "launcher.processes=2")
        self.assertEqual(self.losses("alone"), expected)
        self.assertEqual(self.starts("alone")[0]["launcher"], "local")

    def test_a_script_without_srun_is_told_of_tasks_that_idle(self):
        script = self.write("job.sh", f"#!/bin/bash\n{runs.TRAINER} tiny.yaml exp_dir=run\n")
        job = self.cluster_run("sbatch", "--parsable", "-N1", "-n2", "--output=job.log", str(script)).strip()
        self.wait_for_end(job)
        output = (self.folder / "job.log").read_text()
        self.assertEqual(output.count("warning: this Slurm job has 2 tasks"), 1, output)
        self.assertIn(f"\n  srun -K {runs.TRAINER} tiny.yaml exp_dir=run\n", output)

    def test_contradictions_are_told(self):
        output = self.srun("-N1", "-n2", runs.TRAINER, "tiny.yaml", "exp_dir=no", code=None, env={"WORLD_SIZE": "3"})
        self.assertIn("WORLD_SIZE is 3, but srun has started 2 tasks", output)
        output = self.srun("-N1", "-n2", runs.TRAINER, "tiny.yaml", "exp_dir=no", code=None,
                           env={"RANK": "0", "WORLD_SIZE": "2", **self.on_nodes()})
        self.assertIn("RANK is 0 and WORLD_SIZE is 2, but srun has started this process as task 1 of 2 ", output)
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
        self.start_again(job)
        self.wait_for_end(job)
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
        self.start_again(job)
        self.wait_for_end(job)
        self.assertEqual(self.losses("runs/job/run_0"), expected, log.read_text())
        self.assertEqual([start["restart"] for start in self.starts("runs/job/run_0")], [0, 1])
        submits = re.search("next: (.*)", log.read_text())[1]
        self.assertIn(" launch slurm --ntasks-per-node=2 --job-name=job --time=10 runs/job/run_0/config.yaml ", submits)

    def test_the_tasks_of_an_array_are_runs(self):
        lines = [["optimizer.lr=2e-3"], ["training.max_steps=200", "task.sample.prompt=\"'$(date)' `x`\""]]
        common = ["tiny.yaml", "validation.every_n_steps=100", "checkpoint.save_every_n_steps=200"]
        for task, words in enumerate(lines):
            self.trainer(*common, *words, f"exp_dir=expected_{task}", "launcher.processes=2")
        self.write("sweep.txt", "# Two runs\n" + "".join(shlex.join(words) + "\n" for words in lines))
        job = self.submit(*common, "exp_name=\"it's $(a)\"", "--array=sweep.txt", "--array-limit=2", "--ntasks-per-node=2",
                          "--rank-logs", "--time=10")
        logs = [self.folder / f"sweep-{job}_1-{rank}.log" for rank in range(2)]
        self.wait_for_text(logs[0], "step 7/")
        # In the last task of an array the job's number is the array's: the other task must not start again.
        self.cluster_run("scancel", "--signal=USR2", "--batch", f"{job}_1")
        self.start_again(f"{job}_1")
        self.wait_for_end(job)
        log = "".join(path.read_text() for path in sorted(self.folder.glob("sweep-*.log")))
        folders = {self.starts(path)[0]["environment"]["SLURM_ARRAY_TASK_ID"]: path
                   for path in (self.folder / "runs/it's $(a)").iterdir()}
        self.assertEqual(sorted(folders), ["0", "1"])
        for task, words in enumerate(lines):
            starts = self.starts(folders[str(task)])
            self.assertEqual(self.losses(folders[str(task)]), self.losses(f"expected_{task}"), log)
            self.assertEqual([start["restart"] for start in starts], [[0], [0, 1]][task])
            self.assertEqual(starts[0]["command"][-len(words):], words)
        self.assertIn("resumed    after", logs[0].read_text())  # behind what it held
        self.assertNotIn("step 7/", logs[1].read_text() + (self.folder / f"sweep-{job}_1.log").read_text())

    def test_a_rank_that_is_stopped_ends_the_job(self):
        job = self.submit("tiny.yaml", "exp_dir=run", "training.max_steps=1000000", "parallel.timeout=2s",
                          "--ntasks-per-node=2", "--job-name=job")
        log = self.folder / f"job-{job}.log"
        self.wait_for_text(log, "step 7/")
        pid, = (int(pid) for pid, *_, rank in self.processes(f"{job}.0") if rank == "1")
        os.kill(pid, signal.SIGSTOP)
        self.wait_for_end(job)
        self.assertIn("rank 1: gave no sign of life", log.read_text())
        self.assertRegex(self.cluster_run("scontrol", "show", "job", job), r"JobState=FAILED (.*\n)*.* ExitCode=1:0")
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())

    @unittest.skipUnless(is_long(), "Slurm's smallest time limit is a minute; --config=long")
    def test_a_time_limit_saves_and_the_job_goes_on(self):
        job = self.submit("tiny.yaml", "exp_dir=run", "training.max_steps=1000000", "logging.every_n_steps=100",
                          "validation.every_n_steps=1000000", "checkpoint.save_every_n_steps=1000000",
                          "--ntasks-per-node=2", "--job-name=job", "--time=1", "--save-before=10")
        log = self.folder / f"job-{job}.log"
        self.wait_for_text(log, "stopped by signal")
        self.start_again(job)
        self.wait_for_text(log, "resumed    after")
        saved = self.starts("run")[1]["step"]
        self.assertGreater(saved, 0)
        self.cluster.wait_for(lambda: self.rows("run")[-1]["step"] > saved + 100, "further steps")
        self.assertNotIn("DUE TO TIME LIMIT", log.read_text())

    @unittest.skipUnless(is_long(), "Slurm looks at its nodes every few seconds; --config=long")
    def test_a_node_that_is_cut_off_is_replaced(self):
        cluster = self.cluster = SlurmCluster(nodes=3, on_hosts=True, options="SlurmdTimeout=15\n")
        self.addCleanup(cluster.stop)
        self.trainer("tiny.yaml", "exp_dir=expected", "launcher.processes=2", "training.max_steps=300")
        job = self.submit("tiny.yaml", "exp_dir=run", "training.max_steps=300", "parallel.timeout=5s", "--nodes=2",
                          "--job-name=job")
        log = self.folder / f"job-{job}.log"
        self.wait_for_text(log, "step 7/")
        cluster.hosts.cut_off("n2")
        self.start_again(job)
        self.wait_for_end(job)
        self.assertIn("rank 1: gave no sign of life", log.read_text())
        self.assertEqual([rank["host"] for rank in self.starts("run")[1]["ranks"]], ["n1", "n3"])
        self.assertEqual(self.losses("run"), self.losses("expected"))

    @unittest.skipUnless(is_long(), "Slurm looks at its nodes every few seconds; --config=long")
    def test_the_first_node_is_cut_off_and_goes_on_for_a_while(self):
        cluster = self.cluster = SlurmCluster(nodes=3, on_hosts=True, options="SlurmdTimeout=15\n")
        self.addCleanup(cluster.stop)
        self.trainer("tiny.yaml", "exp_dir=expected", "launcher.processes=2", "training.max_steps=300")
        job = self.submit("tiny.yaml", "exp_name=run", "training.max_steps=300", "parallel.timeout=90s", "--nodes=2",
                          "--job-name=job")
        log = self.folder / f"job-{job}.log"
        self.wait_for_text(log, "step 7/")
        cluster.hosts.cut_off("n1")  # rank 0's, and that of the job's script
        self.start_again(job)
        self.wait_for_end(job)
        self.assertRegex(log.read_text(), rf"waiting for the end of an earlier attempt of slurm {job}, process \d+ on n1")
        self.assertEqual([rank["host"] for rank in self.starts("runs/run/run_0")[1]["ranks"]], ["n2", "n3"])
        self.assertEqual(self.losses("runs/run/run_0"), self.losses("expected"))

    def test_a_mistake_submits_nothing(self):
        self.write("bad.txt", "optimizer.lr=1e-3 # right\n\ntraining.max_stepps=4\nexp_dir=a\nexp_dir='a\nexp_dir=./a\n")
        self.write("empty.txt", "# nothing\n")
        for arguments, *messages in [
            (["tiny.yaml", "training.max_stepps=4"], "training.max_stepps"),
            (["tiny.yaml", "--time=1 hour"], "--time='1 hour': a value for Slurm"),
            (["tiny.yaml", "--time=2"], "--save-before=120: --time=2 is 120 seconds"),
            (["tiny.yaml", "--gpus-per-node=all"], "--ntasks-per-node is missing"),
            (["tiny.yaml", "--setup=nowhere"], "there is no file 'nowhere'"),
            (["tiny.yaml", "--array=bad.txt"],
             "bad.txt:3: command line, argument 'training.max_stepps=4'", "bad.txt:5: its ' is not closed",
             "bad.txt:6: exp_dir=./a is that of line 4 too"),
            (["--array=bad.txt"], "bad.txt:1: optimizer.lr=1e-3: there is no such file"),
            (["tiny.yaml", "--array=empty.txt"], "'empty.txt' holds no run"),
            (["tiny.yaml", "--array=0-3"], "there is no file '0-3'"),
            (["tiny.yaml", "--array-limit=2"], "--array-limit is for an array"),
            (["tiny.yaml", "--sbatch=--exclude=a --time=1:00"],
             "'--time=1:00': write it as an option of trainer launch slurm"),
            (["tiny.yaml", "--sbatch=--gpus-per-node=4"], "write it as an option of trainer launch slurm"),
        ]:
            with self.subTest(arguments):
                printed = self.launch(runs.TRAINER, "launch", "slurm", *arguments, code=2, env=self.cluster.environment)
                for message in messages:
                    self.assertIn(message, printed)
        self.assertEqual(self.cluster_run("squeue", "-h"), "")

    def submit(self, *arguments):
        """The job's number."""
        return self.launch(runs.TRAINER, "launch", "slurm", *arguments, env=self.cluster.environment).split()[-1]

    def wait_for_text(self, log, text):
        self.cluster.wait_for(lambda: log.exists() and text in log.read_text(), f"{text!r} in {log.name}")

    def start_again(self, job):
        """Once a job is in the queue again, has it start at once: Slurm holds it back for two minutes. Not in the second
        in which it has ended, though: slurmd would take it for the same start, which was called off."""
        self.cluster.wait_for(lambda: "PENDING" in self.cluster_run("squeue", "-h", "-j", job, "-o", "%T"), "the requeue")
        end = int(time.time())
        self.cluster.wait_for(lambda: int(time.time()) > end, "the next second")
        self.cluster_run("scontrol", "update", f"JobId={job}", "StartTime=now")

    def processes(self, step, node="n1"):
        """[process, job, step, local rank, rank] of those of a job, or of a step, on a node."""
        return [line.split() for line in self.cluster_run("scontrol", "listpids", step, node).splitlines()
                if line[0].isdigit()]

    def wait_for_end(self, job):
        self.cluster.wait_for(lambda: not self.cluster_run("squeue", "-h", "-j", job).strip(), "the job's end")

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

    def test_every_word_of_an_array_reaches_the_trainer_as_it_is(self):
        self.write("it's $(a) config.yaml", self.config)
        lines = [["it's $(a) config.yaml", 'exp_name="a b"'], ["tiny.yaml", "task.sample.prompt='$(date) `x` *'"]]
        self.write("runs.txt", "".join(shlex.join(words) + "\n\n" for words in lines))
        self.write("fake/srun", '#!/bin/sh\nprintf "%s\\0" "$@"\n').chmod(0o755)
        environment = {"PATH": f"{self.folder / 'fake'}:{os.environ['PATH']}"}
        for options in ([], ["--no-requeue"]):
            script = self.script("--array=runs.txt", *options)
            for task, words in enumerate(lines):
                printed = self.launch("bash", script, env={**environment, "SLURM_ARRAY_TASK_ID": str(task)}).split("\0")
                self.assertEqual(printed[printed.index("train") + 1:-1], words)
            printed = self.launch("bash", script, env={**environment, "SLURM_ARRAY_TASK_ID": "2"}, code=2)
            self.assertEqual(printed, "there is no run 2\n")

    def test_any_long_option_of_sbatch_goes_into_the_script(self):
        lines = self.script("tiny.yaml", "--sbatch=--exclude=n3 --mail-type=END --exclusive").read_text().splitlines()
        for option in ("--exclude=n3", "--mail-type=END", "--exclusive"):
            self.assertIn(f"#SBATCH {option}", lines[:lines.index("")])

    def test_scripts_pass_bash_and_shellcheck(self):
        require("shellcheck")
        self.write("modules.sh", "export MODULES=1\n")
        self.write("runs.txt", "optimizer.lr=1e-3\nexp_name='\"a b\"' training.seed=1\n")
        for options in ([], ["--no-requeue"], ["--array=runs.txt", "--array-limit=1", "--rank-logs"],
                        ["--nodes=2", "--gpus-per-node=a100:4", "--cpus-per-task=8", "--setup=modules.sh",
                         "--container=image.sif", "--time=1:00:00"]):
            script = self.script("tiny.yaml", "optimizer.lr=1e-3", *options)
            self.launch("bash", "-n", script)
            self.launch("shellcheck", "--exclude=SC1091", script)  # The set-up file is the user's.


if __name__ == "__main__":
    runs.main()
