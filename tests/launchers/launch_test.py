# SPDX-License-Identifier: Apache-2.0
"""`trainer launch`: the trainer's own launcher, on one host and on two."""

import json
import os
import pathlib
import re
import shlex
import signal
import socket
import time
import unittest

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest
from tests.launchers.two_hosts import ADDRESSES, TwoHosts
from tests.long import is_long
from tests.ports import free_port

# A node that is lost is noticed within three seconds.
QUICK = "--rdzv-conf=keep_alive_interval=1,join_timeout=60,last_call_timeout=1"
SAVES_OFTEN = "checkpoint.save_every_n_steps=1"

SAYS_WHERE_IT_IS = """\
import os
names = ("GROUP_RANK", "RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT")
os.write(1, (" ".join(os.environ[name] for name in names) + "\\n").encode())  # at once: ranks share the screen
"""


def processes_below(pid):
    """All processes that a process has started, and theirs."""
    below = runs.children(pid)
    return below + [each for child in below for each in processes_below(child)]


def who_meets_others(agent):
    """The process of a launch that it has started first, before its ranks."""
    return next(pid for pid in processes_below(agent) if os.getpgid(pid) == pid)


class OwnLauncherTest(LauncherTest):

    def start_agent(self, *arguments, env=None):
        return self.start_launcher(runs.TRAINER, "launch", *arguments, env=env)

    def agent(self, *arguments, code=0, env=None):
        return self.launch(runs.TRAINER, "launch", *arguments, code=code, env=env)

    def finish(self, *agents, code=0):
        outputs = [agent.communicate(timeout=runs.TIMEOUT_SECONDS)[0] for agent in agents]
        self.assertEqual([agent.returncode for agent in agents], [code] * len(agents), "".join(outputs))
        return outputs

    def ends(self, exp_dir):
        return [json.loads(line) for line in (self.folder / exp_dir / "ends.jsonl").read_text().splitlines()]


class OneNodeTest(OwnLauncherTest):

    def test_trains_as_ranks_that_the_trainer_starts_itself(self):
        expected = self.expected(2)
        port = str(free_port())
        self.write("with_launcher.yaml", "include: tiny.yaml\nlauncher: {processes: 4}\n")
        for name, flags in {
                "standalone": ["--standalone", "--nproc_per_node=2"],
                "static": ["--nproc-per-node", "2", "--master-addr=127.0.0.1", f"--master_port={port}"],
                "c10d": ["--nproc-per-node=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{free_port()}"]}.items():
            with self.subTest(name):
                output = self.agent(*flags, "with_launcher.yaml", f"exp_dir={name}")
                self.assertEqual(self.losses(name), expected)
                self.assertEqual(output.count("next: "), 1, output)
                self.assertNotIn("warning", output)
                start, = self.starts(name)
                self.assertEqual((start["launcher"], start["world_size"], start["restart"]), ("launch", 2, 0))
                end, = self.ends(name)
                self.assertEqual((end["exit_code"], end["step"]), (0, 40))

    def test_an_override_of_the_launcher_is_refused_before_anything_is_written(self):
        output = self.agent("tiny.yaml", "exp_dir=run", "launcher.processes=2", code=2)
        self.assertIn("write --nproc-per-node=2 instead", " ".join(output.split()))
        self.assertFalse((self.folder / "run").exists())

    def test_a_killed_rank_costs_a_restart_and_no_loss_differs(self):
        expected = self.expected(2)
        process = self.start_agent("--nproc-per-node=2", "--max-restarts=1", "tiny.yaml", SAVES_OFTEN)
        output = self.read_until(process, "step 7/")
        ranks = [pid for pid in runs.children(process.pid) if os.getpgid(pid) == pid]
        os.kill(ranks[-1], signal.SIGKILL)
        output += self.finish(process)[0]
        self.assertIn("error: rank 1 was killed by signal 9", output)
        self.assertIn("the ranks start again in 1 s: restart 1", output)
        self.assertRegex(output, r"resumed +after step \d+")
        folder, = (self.folder / "runs").glob("*/run_*")
        self.assertEqual(self.losses(folder), expected)
        first, second = self.starts(folder)
        self.assertEqual((first["restart"], second["restart"]), (0, 1))
        killed, finished = self.ends(folder)
        self.assertEqual((killed["rank"], killed["signal"], finished["exit_code"]), (1, 9, 0))

    def test_a_full_disk_ends_with_the_command_that_goes_on(self):
        (self.folder / "room").mkdir()
        script = """mount -t tmpfs -o size=2m none room || exit 77
            : > out.txt  # The shell in the background makes it whenever it gets to run.
            "$TRAINER" launch --nproc-per-node=2 --max-restarts=3 tiny.yaml exp_dir=room/run training.max_steps=1000000 \\
                checkpoint.save_every_n_steps=5 checkpoint.keep_last=1 validation.every_n_steps=null >> out.txt 2>&1 &
            until grep -q 'step 7/' out.txt || ! kill -0 $! 2> /dev/null; do sleep 0.05; done
            dd if=/dev/zero of=room/fill bs=1k 2> /dev/null
            wait $!; echo $?"""
        output = self.launch("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, code=None,
                             env={"TRAINER": str(runs.TRAINER)})
        if "77" in output.split() or "unshare" in output:
            self.skipTest(f"no disk can be mounted here: {output}")
        told = (self.folder / "out.txt").read_text()
        self.assertEqual(output.split(), ["1"], told)
        self.assertIn("the ranks start again in 1 s: restart 1", told)
        self.assertIn("No space left on device", told)
        self.assertIn("\nnext: ", told)
        self.assertIn(" launch --nproc-per-node=2 --max-restarts=3 room/run/config.yaml exp_dir=room/run\n", told)

    def test_ranks_run_on_the_cores_that_they_are_bound_to(self):
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            self.skipTest("one core: there is nothing to bind ranks to")
        cores = cores[:2]
        on_two_cores = ["taskset", "--cpu-list", ",".join(map(str, cores)), runs.TRAINER]
        expected = self.expected(2)
        screens = {
            "auto": self.launch(*on_two_cores, "tiny.yaml", "launcher.processes=2", "exp_dir=auto"),
            "exclusive": self.launch(*on_two_cores, "launch", "--nproc-per-node=2", "--numa-binding=exclusive",
                                     "tiny.yaml", "exp_dir=exclusive")}
        self.assertRegex(screens["auto"], r"cores +rank 0 on \S+: 2 cores of NUMA node")
        self.assertRegex(screens["exclusive"], rf"cores +rank 0 on {cores[0]}: 1 core of NUMA node \d")
        for name in screens:
            self.assertEqual(self.losses(name), expected)
        program = ["python3", "-c", "import os; os.write(1, f'{sorted(os.sched_getaffinity(0))}\\n'.encode())"]
        for binding, expected in {"exclusive": [[cores[0]], [cores[1]]], "none": [cores, cores]}.items():
            output = self.launch(*on_two_cores, "launch", "--nproc-per-node=2", f"--numa-binding={binding}", "--",
                                 *program)
            self.assertEqual(sorted(output.replace("[rank 1] ", "").splitlines()), sorted(map(str, expected)))
        for words in (["tiny.yaml", "exp_dir=three"], ["--", *program]):
            output = self.launch(*on_two_cores, "launch", "--nproc-per-node=3", "--numa-binding=exclusive", *words,
                                 code=2)
            self.assertRegex(output, "numa_binding exclusive: 3 ranks of this host share cores .* start at most 2")
        self.assertFalse((self.folder / "three").exists())

    def test_ranks_have_threads_by_the_cores_that_they_are_bound_to(self):
        # hwloc makes the host up: two ranks share eight cores, a cache has two of them.
        host = ["env", "-u", "OMP_NUM_THREADS", "HWLOC_SYNTHETIC=pack:1 [numa] l3:4 core:2 pu:1"]
        by_cache = "parallel.numa_binding=core-complex"
        launch = ["launch", "--nproc-per-node=2"]
        says = ["--", "sh", "-c", "echo $OMP_NUM_THREADS"]
        unbound, bound = (self.launch(*host, runs.TRAINER, *launch, f"--numa-binding={binding}", *says)
                          for binding in ("none", "core-complex"))
        if sorted(unbound.replace("[rank 1] ", "").split()) != ["4", "4"]:
            self.skipTest(f"a quota leaves fewer threads than the host has cores: {unbound}")
        self.assertEqual(sorted(bound.replace("[rank 1] ", "").split()), ["2", "2"])
        for words in (["tiny.yaml", "launcher.processes=2"], [*launch, "tiny.yaml"],
                      [*launch, "--", runs.TRAINER, "tiny.yaml"]):
            output = self.launch(*host, runs.TRAINER, *words, by_cache, "training.max_steps=1")
            self.assertIn("2 on this host; 2 threads each", output)
            self.assertNotIn("OMP_NUM_THREADS", output)
        output = self.launch(*host, "OMP_NUM_THREADS=3", runs.TRAINER, "tiny.yaml", "launcher.processes=2", by_cache,
                             "training.max_steps=1")
        self.assertIn("2 on this host; 3 threads each", output)
        for rank in range(2):
            self.assertRegex(output, rf"warning: rank {rank}: a rank of 3 threads \(OMP_NUM_THREADS\) has cores \S+: 2")

    def test_a_failure_that_stays_ends_the_run_with_its_words(self):
        output = self.agent("--nproc-per-node=2", "--max-restarts=1", "tiny.yaml", "exp_dir=run", SAVES_OFTEN,
                            "optimizer.lr=1.0e28", code=1)
        self.assertEqual(output.count("the ranks start again"), 1, output)
        self.assertRegex(output, r"error: (rank \d: )?step \d+: the loss is")
        self.assertEqual([end["exit_code"] for end in self.ends("run")], [1, 1])

    def test_a_mistake_of_the_user_is_told_before_a_rank_starts_and_never_tried_again(self):
        for arguments, message in [
                (["tiny.yaml", "optimizer.lr=fast"], "optimizer.lr"),
                (["none.yaml"], "none.yaml"),
                (["--nnodes=2", "tiny.yaml"], "option --master-addr is missing"),
                (["--nproc-per-node=3", "tiny.yaml", "--redirects=7"], "--redirects='7'"),
                (["tiny.yaml", "--", "true"], "'tiny.yaml' stands before `--`"),
                (["--max-restarts=3", "--", "no-such-program"], "there is no program 'no-such-program' in PATH"),
                (["--master-addr=no-such-host", "tiny.yaml"], "no-such-host"),
        ]:
            with self.subTest(message):
                output = self.agent(*arguments, code=2)
                self.assertIn(message, output)
                self.assertNotIn("start again", output)
        self.assertEqual(self.files(), ["text.txt", "tiny.yaml"])

    def test_sigterm_saves_and_the_run_goes_on_from_there(self):
        expected = self.expected(2)
        process = self.start_agent("--nproc-per-node=2", "--max-restarts=3", "tiny.yaml", "exp_dir=run",
                                   "checkpoint.save_every_n_steps=null")
        self.read_until(process, "step 7/")
        process.send_signal(signal.SIGTERM)
        self.finish(process, code=128 + signal.SIGTERM)
        stopped, = self.ends("run")
        self.assertEqual((stopped["signal"], stopped["saved"]), (signal.SIGTERM, True))
        self.agent("--nproc-per-node=2", "tiny.yaml", "exp_dir=run")
        self.assertEqual(self.losses("run"), expected)

    def test_nothing_outlives_an_agent_that_is_killed(self):
        process = self.start_agent("--nproc-per-node=2", "tiny.yaml", "training.max_steps=100000")
        self.read_until(process, "step 2/")
        below = processes_below(process.pid)
        self.assertEqual(len([pid for pid in below if os.getpgid(pid) == pid]), 3)  # two ranks, and who meets others
        process.kill()
        process.communicate(timeout=runs.TIMEOUT_SECONDS)
        deadline = time.monotonic() + 30
        while any(pathlib.Path(f"/proc/{pid}").exists() for pid in below):
            self.assertLess(time.monotonic(), deadline, "they still live")
            time.sleep(0.05)

    def test_a_launch_whose_own_process_dies_says_so_and_saves(self):
        process = self.start_agent("--nproc-per-node=2", "tiny.yaml", "exp_dir=run", "training.max_steps=100000",
                                   "checkpoint.save_every_n_steps=null")
        output = self.read_until(process, "step 7/")
        os.kill(who_meets_others(process.pid), signal.SIGKILL)
        output += self.finish(process, code=1)[0]
        cause = "its process that serves the ranks' store and meets the other nodes was killed by signal 9 (Killed)"
        self.assertIn(f"error: this launch is cut off: {cause}", " ".join(output.split()))
        self.assertRegex(output, r"(?m)^stopped at step \d+ .*: this launch is cut off: its process")
        self.assertEqual(output.count("next: "), 1, output)
        end, = self.ends("run")
        self.assertIn(cause, end["error"])
        self.assertEqual((end["exit_code"], end["saved"]), (1, True))

    def test_two_launches_of_one_host_do_not_meet(self):
        self.finish(*(self.start_agent("--nproc-per-node=2", "tiny.yaml", f"exp_dir={name}") for name in "ab"))
        self.assertEqual(self.losses("a"), self.losses("b"))


class ProgramTest(OwnLauncherTest):

    def test_the_words_of_a_program_come_through_literally(self):
        words = ["--flag", "a b", "$(echo no)", "it's", "--", ""]
        output = self.agent("--", "printf", "<%s>", *words)
        self.assertEqual(output, "".join(f"<{word}>" for word in words))

    def test_the_exit_code_is_that_of_the_first_failure_with_its_last_lines(self):
        fails = "if [ $RANK = 1 ]; then echo why >&2; {}; fi; sleep 60"
        for how, code in {"exit 7": 7, "exit 2": 2, "kill -9 $$": 137, "kill -15 $$": 143}.items():
            with self.subTest(how):
                output = self.agent("--nproc-per-node=2", "--", "sh", "-c", fails.format(how), code=code)
                self.assertRegex(output, r"error: rank 1.*\n  its last lines:\n    why\n")

    def test_a_program_that_fails_is_started_again(self):
        self.write("where.py", SAYS_WHERE_IT_IS)
        output = self.agent("--nproc-per-node=2", "--max-restarts=1", "--", "sh", "-c",
                            "[ $TORCHELASTIC_RESTART_COUNT$RANK = 01 ] && exit 3; exec python3 where.py")
        self.assertIn("0 0 2 0 1\n", output)
        self.assertIn("[rank 1] 0 1 2 1 1\n", output)

    def test_logs_go_where_they_are_sent(self):
        speaks = "echo out $RANK; echo err $RANK >&2"
        output = self.agent("--nproc-per-node=2", "--log-dir=logs", "--redirects=0:1", "--tee=1:3", "--rdzv-id=job", "--",
                            "sh", "-c", speaks)
        self.assertEqual(sorted(output.splitlines()), ["[rank 1] err 1", "[rank 1] out 1", "err 0"])
        folder, = (self.folder / "logs").glob("job_*")
        files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.log")}
        self.assertEqual(files, {"attempt_0/0/stdout.log": "out 0\n", "attempt_0/1/stdout.log": "out 1\n",
                                 "attempt_0/1/stderr.log": "err 1\n"})
        output = self.agent("--nproc-per-node=3", "--local-ranks-filter=0,2", "--", "sh", "-c", "echo $RANK")
        self.assertEqual(sorted(output.splitlines()), ["0", "[rank 2] 2"])

    def test_ctrl_c_reaches_the_program_and_its_answer_counts(self):
        process = self.start_agent("--nproc-per-node=2", "--max-restarts=3", "--", "sh", "-c",
                                   "trap 'exit 0' INT; echo ready; while :; do sleep 0.1; done")
        for _ in range(2):  # ranks
            self.read_until(process, "ready")
        process.send_signal(signal.SIGINT)
        self.finish(process)
        process = self.start_agent("--", "sh", "-c", "echo ready; exec sleep 60")
        self.read_until(process, "ready")
        process.send_signal(signal.SIGINT)
        self.finish(process, code=128 + signal.SIGINT)


    def test_nohup_keeps_a_launch_whose_terminal_closes(self):
        process = self.start_launcher("nohup", runs.TRAINER, "launch", "--", "sh", "-c", "echo ready; sleep 1; echo done")
        self.read_until(process, "ready")
        process.send_signal(signal.SIGHUP)
        self.assertIn("done\n", self.finish(process)[0])

    def test_what_listens_but_is_no_store_is_told(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            output = self.agent("--nnodes=2", "--node-rank=1", "--master-addr=127.0.0.1", "--rdzv-conf=join_timeout=1",
                                f"--master-port={silent.getsockname()[1]}", "--", "true", code=2)
        self.assertIn("another program listens there, which does not answer as a launch does", output)

    def test_agents_of_one_host_meet_over_ipv6(self):
        self.write("where.py", SAYS_WHERE_IT_IS)
        flags = ["--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=[::1]:{free_port()}", "--", "python3", "where.py"]
        output = "".join(self.finish(*(self.start_agent(*flags) for _ in range(2))))
        self.assertIn("0 0 2 0 0\n", output)
        self.assertIn("1 1 2 0 0\n", output)


class TwoNodesTest(OwnLauncherTest):

    def setUp(self):
        super().setUp()
        self.hosts = TwoHosts(self.folder)
        self.addCleanup(self.hosts.remove)
        self.port = str(free_port())

    def start_node(self, host, *arguments, program=runs.TRAINER):
        return self.start_launcher(*self.hosts.command(host, program, "launch", *arguments))

    def static(self, node):
        return ["--nnodes=2", f"--node-rank={node}", f"--master-addr={ADDRESSES[0]}", f"--master-port={self.port}",
                "--nproc-per-node=2", QUICK]

    def c10d(self, endpoint=ADDRESSES[0]):
        return ["--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint={endpoint}:{self.port}", "--nproc-per-node=2",
                QUICK]

    def kill_node(self, process):
        """As a power cut does: nobody on it can say anything any more."""
        for pid in [process.pid, *processes_below(process.pid)]:
            os.kill(pid, signal.SIGSTOP)  # all at once
        for pid in [*processes_below(process.pid), process.pid]:
            os.kill(pid, signal.SIGKILL)

    def test_train_as_one(self):
        expected = self.expected(4)
        for name, flags in {"static": [self.static(0), self.static(1)],
                            "c10d": [self.c10d(), self.c10d()],
                            # Its own name means loopback to host 0.
                            "own_name": [self.c10d("host-0"), self.c10d()]}.items():
            with self.subTest(name):
                first, second = self.finish(*(self.start_node(host, *flags[host], "tiny.yaml", f"exp_dir={name}")
                                              for host in (0, 1)))
                self.assertEqual(self.losses(name), expected)
                self.assertEqual((first + second).count("next: "), 1)
                start, = self.starts(name)
                self.assertEqual(sorted(rank["host"] for rank in start["ranks"]), ["host-0"] * 2 + ["host-1"] * 2)

    def test_the_next_command_is_the_line_of_each_node(self):
        expected = self.expected(4)
        nodes = [self.start_node(node, *self.static(node), "tiny.yaml", "exp_dir=run") for node in (0, 1)]
        output = self.read_until(nodes[0], "step 7/")
        nodes[0].send_signal(signal.SIGTERM)
        outputs = self.finish(*nodes, code=128 + signal.SIGTERM)
        output += outputs[0]
        self.assertNotIn("next: ", outputs[1])
        told = output[output.index("next: "):]
        self.assertTrue(told.startswith("next: on each node its line\n"), told)
        lines = dict(re.findall(r"^  (node \d): (.*)$", told, re.MULTILINE))
        self.assertEqual(sorted(lines), ["node 0", "node 1"])
        again = [self.start_launcher(*self.hosts.command(node, *shlex.split(lines[f"node {node}"])))
                 for node in (0, 1)]
        self.finish(*again)
        self.assertEqual(self.losses("run"), expected)
        self.assertEqual(self.starts("run")[-1]["world_size"], 4)

    def test_a_node_that_is_killed_is_replaced(self):
        expected = self.expected(4)
        flags = ["--max-restarts=1", "tiny.yaml", SAVES_OFTEN, "parallel.timeout=30s"]
        first, second = (self.start_node(node, *self.static(node), *flags) for node in (0, 1))
        output = self.read_until(first, "step 7/")
        self.kill_node(second)
        output += self.read_until(first, "start again")
        third = self.start_node(1, *self.static(1), *flags)
        output += "".join(self.finish(first, third))
        self.assertRegex(output, r"error: .*rank|gave no sign of life")
        folder, = (self.folder / "runs").glob("*/run_*")
        self.assertEqual(self.losses(folder), expected)
        self.assertEqual([start["restart"] for start in self.starts(folder)], [0, 1])
        self.assertEqual([end["exit_code"] for end in self.ends(folder)], [1, 0])

    @unittest.skipUnless(is_long(), "Sockets of a lost host are waited for; --config=long")
    def test_a_node_that_is_cut_off_leaves_nobody_hanging(self):
        agents = [self.start_node(node, *self.static(node), "tiny.yaml", "training.max_steps=100000") for node in (0, 1)]
        self.read_until(agents[0], "step 5/")
        self.hosts.link(1, "down")
        outputs = self.finish(*agents, code=1)
        self.assertIn("node 1 (host-1) gave no sign of life for 3 s", outputs[0])
        self.assertIn(f"lost the store of the run at {ADDRESSES[0]}:{self.port}", outputs[1])

    @unittest.skipUnless(is_long(), "A lost host is waited for; --config=long, as in elastic_test")
    def test_a_node_that_was_cut_off_joins_again_by_the_same_command(self):
        flags = ["--nnodes=1:2", "--rdzv-backend=c10d", f"--rdzv-endpoint={ADDRESSES[0]}:{self.port}",
                 "--nproc-per-node=1", "--max-restarts=1", QUICK, "tiny.yaml", "exp_dir=run",
                 "training.max_steps=1000000", "training.batch_size=2", "training.gradient_accumulation_steps=null",
                 "training.global_batch_size=8", "validation.every_n_steps=null", "parallel.timeout=10s"]
        first, second = (self.start_node(node, *flags) for node in (0, 1))
        self.read_until(first, "step 7/")
        self.hosts.link(1, "down")
        output, = self.finish(second, code=1)
        self.assertIn("if the others go on, the same command joins them again", " ".join(output.split()))
        self.read_until(first, "start again")
        self.read_until(first, "resumed ")
        self.hosts.link(1, "up")
        second = self.start_node(1, *flags)
        self.read_until(first, "node host-1 joins")
        self.read_until(first, "resumed ")
        first.send_signal(signal.SIGTERM)
        self.finish(first, second, code=128 + signal.SIGTERM)

    def test_a_node_whose_own_process_dies_is_a_lost_node_and_no_signal(self):
        first, second = (self.start_node(node, *self.static(node), "tiny.yaml", "exp_dir=run",
                                         "training.max_steps=100000") for node in (0, 1))
        output = self.read_until(first, "step 5/")
        os.kill(who_meets_others(second.pid), signal.SIGKILL)
        outputs = self.finish(first, second, code=1)
        self.assertIn("error: node 1 (host-1) gave no sign of life for 3 s", " ".join((output + outputs[0]).split()))
        self.assertIn("its process that meets the other nodes was killed by signal 9", " ".join(outputs[1].split()))
        end, = self.ends("run")
        self.assertEqual((end["exit_code"], end["saved"]), (1, True))
        self.assertNotIn("signal", end)

    def test_a_signal_to_one_node_saves_and_ends_the_run_on_both(self):
        agents = [self.start_node(node, *self.static(node), "tiny.yaml", "exp_dir=run", "training.max_steps=100000",
                                  "--max-restarts=3") for node in (0, 1)]
        self.read_until(agents[0], "step 5/")
        agents[1].send_signal(signal.SIGTERM)
        self.finish(*agents, code=128 + signal.SIGTERM)
        end, = self.ends("run")
        self.assertTrue(end["saved"])

    def test_the_first_failure_of_any_node_ends_all_with_its_exit_code(self):
        program = ["--", "sh", "-c", "[ $RANK = 3 ] && echo why >&2 && exit 7; sleep 60"]
        outputs = self.finish(*(self.start_node(node, *self.static(node), *program) for node in (0, 1)), code=7)
        self.assertIn("error: rank 3: left with exit code 7\n  its last lines:\n    why\n", outputs[0])

    def test_the_first_failure_counts_though_other_ranks_of_its_node_end_late(self):
        program = self.write("fails.sh", """case $RANK in
0) echo $$ > pid; mv pid failed; exit 7;;
1) trap 'sleep 2; exit 0' TERM; while true; do sleep 0.1; done;;
*) while [ ! -e failed ] || kill -0 $(cat failed); do sleep 0.1; done; exit 1;;
esac
""")
        outputs = self.finish(*(self.start_node(node, *self.static(node), "--", "sh", program) for node in (0, 1)), code=7)
        self.assertIn("error: rank 0: left with exit code 7", outputs[0])

    def test_ranks_that_make_room_have_not_finished_though_they_leave_with_0(self):
        program = self.write("saves.sh", """echo rank $RANK of $WORLD_SIZE
[ $WORLD_SIZE = 4 ] && exit 0
trap 'exit 0' TERM
while true; do sleep 0.1; done
""")
        flags = [*self.c10d(), "--nnodes=1:2", "--", "sh", program]
        first = self.start_node(0, *flags)
        output = self.read_until(first, "rank 0 of 2")
        second = self.start_node(1, *flags)
        output += "".join(self.finish(first, second))
        for rank in range(4):
            self.assertIn(f"rank {rank} of 4\n", output)

    def test_more_nodes_take_part_when_they_come(self):
        self.write("where.py", SAYS_WHERE_IT_IS)
        flags = [*self.c10d(), "--nnodes=1:2", "--", "sh", "-c", "python3 where.py; if [ $WORLD_SIZE = 2 ]; then exec sleep 60; fi"]
        first = self.start_node(0, *flags)
        output = self.read_until(first, "0 0 2 0 0")
        second = self.start_node(1, *flags)
        output += "".join(self.finish(first, second))
        for place in ("0 0 4 0 1", "[rank 1] 0 1 4 1 1", "[rank 2] 1 2 4 0 1", "[rank 3] 1 3 4 1 1"):
            self.assertIn(f"{place}\n", output)
        self.assertNotIn("error", output)

    def test_nodes_that_do_not_fit_each_other_are_told(self):
        first = self.start_node(0, *self.c10d(), "--rdzv-id=one", "--", "true")
        second = self.start_node(1, *self.c10d(), "--rdzv-id=two", "--", "true")
        output, = self.finish(second, code=2)
        self.assertIn("serves the run 'one', not 'two' (--rdzv-id)", output)
        third = self.start_node(1, *self.c10d(), "--rdzv-id=one", "--node-rank=1", "--", "true")
        output, = self.finish(third, code=2)
        self.assertIn("give --node-rank to all nodes or to none", output)
        other_build = self.folder / "trainer"
        other_build.write_bytes(pathlib.Path(runs.TRAINER).read_bytes() + b"\0")
        other_build.chmod(0o755)
        fourth = self.start_node(1, *self.c10d(), "--rdzv-id=one", "--", "true", program=other_build)
        output, = self.finish(fourth, code=2)
        self.assertRegex(output, r"this is version (\S+, checksum) \w+ of the program, that of host-0 is \1 \w+: start "
                                 "the same on all nodes")
        self.finish(first, self.start_node(1, *self.c10d(), "--rdzv-id=one", "--", "true"))

    def test_an_endpoint_where_nobody_is_is_told(self):
        flags = self.static(1)[:-1] + ["--rdzv-conf=join_timeout=2"]
        output, = self.finish(self.start_node(1, *flags, "tiny.yaml"), code=2)
        self.assertIn(f"found no store of the run at {ADDRESSES[0]}:{self.port} in 2 s", output)
        self.assertNotIn("[E", output)

    def test_loglevel_info_tells_places(self):
        agents = [self.start_launcher(*self.hosts.command(node, runs.TRAINER, "launch", *self.static(node), "--", "true"),
                                      env={"LOGLEVEL": "INFO"}) for node in (0, 1)]
        _, output = self.finish(*agents)
        self.assertIn("node 1 of 2 (host-1) starts ranks 2 to 3 of 4", output)


if __name__ == "__main__":
    runs.main()
