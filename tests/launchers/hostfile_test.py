# SPDX-License-Identifier: Apache-2.0
"""`trainer launch --hostfile`: the first of two hosts starts the launch on the other, by a real ssh."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest, require
from tests.launchers.two_hosts import ADDRESSES, TwoHosts
from tests.long import is_long
from tests.ports import free_port

QUICK = "--rdzv-conf=keep_alive_interval=1,join_timeout=60,close_timeout=5"
LONG = "training.max_steps=100000"


def arguments_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return []


def processes_with(word):
    """Processes with this word among their arguments."""
    pids = [int(path.name) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if str(word) in arguments_of(pid)]
NOT_REACHED = "host 'host-1' is not reached, or the launch there was killed: ssh left with exit code 255"


class Sshd:
    """An sshd on a host of TwoHosts, that lets one key in. `client` is what reaches it."""

    def __init__(self, hosts, host, folder):
        require("sshd", "ssh", "ssh-keygen")
        self.port = free_port()
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True, timeout=20)
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # Debian's package makes it when its own daemon starts.
        options = {"Port": self.port, "ListenAddress": ADDRESSES[host], "HostKey": folder / "host_key",
                   "AuthorizedKeysFile": folder / "user_key.pub", "StrictModes": "no", "UsePAM": "no",
                   "PidFile": "none", "PermitRootLogin": "prohibit-password", "PrintMotd": "no"}
        config = folder / "sshd_config"
        config.write_text("".join(f"{name} {value}\n" for name, value in options.items()))
        self.process = subprocess.Popen(hosts.command(host, shutil.which("sshd"), "-D", "-e", "-f", config),
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        if not line.startswith("Server listening on"):
            self.stop()
            raise AssertionError(line + self.process.stderr.read())
        self.client = " ".join(["ssh", "-F", "none", "-i", str(folder / "user_key"), "-p", str(self.port)] + [
            f"-o{option}" for option in ("BatchMode=yes", "ConnectTimeout=10", "StrictHostKeyChecking=no",
                                         "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")])

    def stop(self):
        """Ends the daemon, and not its connections."""
        self.process.kill()
        self.process.wait()


class HostfileTest(LauncherTest):

    def setUp(self):
        super().setUp()
        self.hosts = TwoHosts(self.folder)
        self.addCleanup(self.hosts.remove)
        for host in (0, 1):  # Each knows the other by its name.
            with (self.folder / f"hosts-{host}").open("a") as names:
                names.write(f"{ADDRESSES[1 - host]} host-{1 - host}\n")
        self.sshd = Sshd(self.hosts, 1, self.folder)
        self.addCleanup(self.sshd.process.stderr.close)
        self.addCleanup(self.sshd.stop)
        self.hostfile("host-0 slots=1", "host-1 slots=1")

    def hostfile(self, *lines):
        return self.write("hosts", "\n".join(["# two hosts", "", *lines]))

    def start_launch(self, *arguments, ssh=None, env=None):
        flags = [f"--hostfile={self.folder}/hosts", f"--ssh={ssh or self.sshd.client}",
                 f"--master-port={free_port()}", QUICK]
        return self.start_launcher(*self.hosts.command(0, runs.TRAINER, "launch", *flags, *arguments), env=env)

    def finish(self, process, code=0):
        output, _ = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, code, output)
        return output

    def ends(self, exp_dir):
        return [json.loads(line) for line in (self.folder / exp_dir / "ends.jsonl").read_text().splitlines()]

    def left_processes(self):
        """Processes of all launches of this test, on any host."""
        return [(pid, arguments_of(pid)) for pid in processes_with(f"--hostfile={self.folder}/hosts") +
                processes_with("--remote-node") if os.readlink(f"/proc/{pid}/cwd") == str(self.folder)]

    def assert_nothing_is_left(self):
        deadline = time.monotonic() + 30
        while left := self.left_processes():
            self.assertLess(time.monotonic(), deadline, left)
            time.sleep(0.05)

    def test_trains_as_ranks_of_one_host(self):
        expected = self.expected(2)
        output = self.finish(self.start_launch("tiny.yaml", "exp_dir=run"))
        self.assertEqual(self.losses("run"), expected)
        start, = self.starts("run")
        self.assertEqual([rank["host"] for rank in start["ranks"]], ["host-0", "host-1"])
        self.assertEqual(output.count("next: "), 1, output)
        self.assertNotIn("[rank 1] [rank 1]", output)
        self.assert_nothing_is_left()

    def test_a_rank_that_fails_is_told_once_and_started_again(self):
        self.hostfile("host-0 slots=2", "host-1")
        fails = 'echo "here $RANK of $WORLD_SIZE"; [ $RANK = 2 ] && echo why >&2 && exit 7; sleep 60'
        output = self.finish(self.start_launch("--max-restarts=1", "--", "sh", "-c", fails), code=7)
        self.assertEqual(output.count("[rank 2] here 2 of 3\n"), 2, output)
        self.assertEqual(output.count("the ranks start again in 1 s: restart 1"), 1, output)
        self.assertEqual(output.count("error: "), 2, output)
        self.assertTrue(output.endswith("error: rank 2: left with exit code 7\n  its last lines:\n    why\n"), output)
        self.assert_nothing_is_left()

    def test_words_and_variables_arrive_literally(self):
        words = ["a b", "it's", "$(echo no)", '"', "`id`", "\\", "", "*", "two\nlines", "--hostfile=no"]
        variables = {"PHALANX_WORDS": "it's $(echo no)", "NCCL_DEBUG": "a  b", "MINE": "$HOME", "OTHERS": "no"}
        program = """[ $RANK = 1 ] || exit 0
printf '<%s>' "$PHALANX_WORDS" "$NCCL_DEBUG" "$MINE" "$OTHERS" "$(pwd)" "$@"
"""
        output = self.finish(self.start_launch("--export=MINE", "--", "sh", "-c", program, "sh", *words, env=variables))
        expected = [variables["PHALANX_WORDS"], "a  b", "$HOME", "", str(self.folder), *words]
        self.assertEqual(output.replace("[rank 1] ", ""), "".join(f"<{word}>" for word in expected) + "\n")

    def test_sigterm_saves_and_ends_both(self):
        process = self.start_launch("tiny.yaml", "exp_dir=run", LONG, "checkpoint.save_every_n_steps=null")
        self.read_until(process, "step 5/")
        process.send_signal(signal.SIGTERM)
        output = self.finish(process, code=128 + signal.SIGTERM)
        self.assertNotIn("error", output)
        end, = self.ends("run")
        self.assertEqual((end["signal"], end["saved"]), (signal.SIGTERM, True))
        self.assert_nothing_is_left()

    def test_a_launch_that_is_killed_leaves_nothing_on_any_host(self):
        process = self.start_launch("tiny.yaml", LONG)
        self.read_until(process, "step 5/")
        self.assertEqual({"--hostfile", "--remote-node"}, {word.split("=")[0] for _, words in self.left_processes()
                                                           for word in words} & {"--hostfile", "--remote-node"})
        process.kill()
        process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assert_nothing_is_left()

    def test_a_killed_ssh_ends_the_run_with_a_checkpoint(self):
        process = self.start_launch("tiny.yaml", "exp_dir=run", LONG, "--max-restarts=3",
                                    "checkpoint.save_every_n_steps=null")
        self.read_until(process, "step 5/")
        ssh, = [pid for pid in processes_with(str(self.folder / "user_key")) if arguments_of(pid)[0] == "ssh"]
        os.kill(ssh, signal.SIGKILL)
        output = self.finish(process, code=1)
        self.assertIn("error: the launch on host 'host-1' is lost: ssh, by which it was started, was killed here by "
                      "signal 9 (Killed)", " ".join(output.split()))
        end, = self.ends("run")
        self.assertEqual((end["exit_code"], end["saved"]), (1, True))
        self.assert_nothing_is_left()

    @unittest.skipUnless(is_long(), "--config=long waits for what a lost host holds up")
    def test_a_host_that_is_cut_off_ends_the_launch_which_waits_for_no_other(self):
        process = self.start_launch("tiny.yaml", "exp_dir=run", LONG, "--max-restarts=3", "parallel.timeout=5s",
                                    ssh=f"{self.sshd.client} -o ServerAliveInterval=1")
        self.read_until(process, "step 5/")
        self.hosts.link(1, "down")
        output = self.finish(process, code=1)
        self.assertIn(f"error: {NOT_REACHED}", " ".join(output.split()))
        self.assert_nothing_is_left()

    def test_a_host_that_does_not_answer_is_named_with_the_words_of_ssh(self):
        self.sshd.stop()
        begin = time.monotonic()
        output = self.finish(self.start_launch("tiny.yaml"), code=1)
        self.assertLess(time.monotonic() - begin, 20)
        told = " ".join(output.split())
        self.assertIn(f"error: {NOT_REACHED}", told)
        self.assertIn(f"its last lines: ssh: connect to host host-1 port {self.sshd.port}: Connection refused", told)
        self.assertEqual(output.count("error: "), 1, output)
        self.assertFalse((self.folder / "runs").exists())
        self.assert_nothing_is_left()

    def test_a_launch_that_cannot_begin_there_ends_all(self):
        output = self.finish(self.start_launch("tiny.yaml", ssh=f"{self.sshd.client} host-1 echo no such trainer >&2; exit 3 #"),
                             code=1)
        self.assertIn("error: the launch on host 'host-1' left with exit code 3 before the run did\n  its last lines:\n"
                      "    no such trainer\n", output)
        self.assert_nothing_is_left()

    def test_a_mistake_is_told_before_anything_is_started(self):
        for lines, flags, message in [
                (["host-0 slots=x"], [], "hosts:3: 'slots=x': write a number of ranks"),
                (["host-1", "host-0"], [], "its first host, 'host-1', is not this one"),
                (["host-0", "host-1"], ["optimizer.lr=fast"], "optimizer.lr")]:
            with self.subTest(message):
                self.hostfile(*lines)
                output = self.finish(self.start_launch("tiny.yaml", *flags, ssh=f"touch {self.folder}/started"), code=2)
                self.assertIn(message, output)
                self.assertFalse((self.folder / "started").exists())


if __name__ == "__main__":
    runs.main()
