# SPDX-License-Identifier: Apache-2.0
"""How gpu_checklist's runner tells the ends of items apart, and how it reads NVIDIA's tools."""

import contextlib
import io
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

MODULES = pathlib.Path(sys.argv[1]).absolute().parent
SCRIPT = MODULES.parent / "gpu_checklist.sh"
sys.path.insert(0, str(MODULES))
del sys.argv[1:]

import host  # noqa: E402
import kit  # noqa: E402
import kernels  # noqa: E402
import races  # noqa: E402
import speed  # noqa: E402
from outcome import MISSING, Ended, classify, largest  # noqa: E402
from runner import Item, Report, Runner, Summary  # noqa: E402

PATIENCE_SECONDS = 60


def python(code):
    return [sys.executable, "-c", code]


def forever(folder):
    """A process that has started another and waits for it."""
    return python("import os, pathlib, subprocess\n"
                  "child = subprocess.Popen(['sleep', 'infinity'])\n"
                  f"pathlib.Path({str(folder / 'new')!r}).write_text(f'{{os.getpid()}} {{child.pid}}')\n"
                  f"os.rename({str(folder / 'new')!r}, {str(folder / 'pids')!r})\n"
                  "child.wait()")


def two_ranks_of(folder, program):
    """An item's process that runs a program as two ranks, as the items of two ranks do."""
    (folder / "kit/bin").mkdir(parents=True)
    (folder / "packages/torch").mkdir(parents=True)
    (folder / "packages/torch/__init__.py").touch()
    trainer = folder / "kit/bin/trainer"
    trainer.write_text(program)
    trainer.chmod(0o755)
    return python(f"import sys; sys.path[:0] = [{str(MODULES)!r}, {str(folder / 'packages')!r}]\n"
                  "from pathlib import Path\nimport two_ranks\nfrom kit import Kit\n"
                  f"folder = Path({str(folder)!r})\n"
                  "kit = Kit(folder, folder / 'kit', folder / 'work', folder / 'out')\n"
                  "two_ranks.train_two(kit, folder / 'work/ranks', {})")


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class RunnerTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.work, self.out = self.folder / "work", self.folder / "out"
        self.work.mkdir()
        self.out.mkdir()

    def run_items(self, commands, seconds=PATIENCE_SECONDS, limits=None, groups=None):
        """The rows of items that are these commands, as they are on the disk."""
        items = [Item(name, "", (limits or {}).get(name, PATIENCE_SECONDS), None) for name in commands]
        summary = Summary(self.out)
        with contextlib.redirect_stdout(io.StringIO()):
            Runner(lambda item: commands[item.name], self.work, summary, seconds, groups or {}).run(items)
            summary.close()
        rows = [json.loads(line) for line in (self.out / "summary.jsonl").read_text().splitlines()]
        return {row["item"]: row for row in rows}

    def test_kinds_of_ends(self):
        report = f"import sys; sys.path.insert(0, {sys.path[0]!r}); from runner import Report; import pathlib\n"
        rows = self.run_items({
            "a.segfault": python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"),
            "a.aborted": python("import os; print('watchdog'); os.abort()"),
            "a.memory": python("raise RuntimeError('CUDA out of memory. Tried to allocate 2 GiB')"),
            "a.library": python("raise ImportError('libx.so: cannot open shared object file: No such file')"),
            "a.failed": python("raise SystemExit('wrong')"),
            "a.silent": python(""),
            "a.passed": python(report + f"Report(pathlib.Path({str(self.work / 'a.passed.json')!r})).end('pass')"),
        })
        self.assertEqual({name: row["result"] for name, row in rows.items()}, {
            "a.segfault": "crash(SIGSEGV)", "a.aborted": "crash(SIGABRT)", "a.memory": "out-of-memory",
            "a.library": "missing", "a.failed": "fail", "a.silent": "fail", "a.passed": "pass"})
        self.assertEqual(rows["a.failed"]["log"], ["wrong"])
        self.assertEqual(rows["a.aborted"]["reason"], "watchdog")
        self.assertIn("==== a.failed: fail\nwrong", (self.out / "log.txt").read_text())

    def test_exit_codes_of_the_trainer(self):
        self.assertEqual(classify(128 + signal.SIGTERM, ""), "crash(SIGTERM)")
        self.assertEqual(classify(127, "sh: ncu: command not found"), "missing")
        self.assertEqual(classify(2, "error: there is no GPU"), "fail")
        self.assertEqual(classify(-signal.SIGKILL, ""), "crash(SIGKILL)")

    def test_a_hang_ends_with_all_its_processes_and_keeps_what_was_found(self):
        Report(self.work / "a.hangs.json").note(losses_differ_by=0.5)
        rows = self.run_items({"a.hangs": forever(self.folder)}, limits={"a.hangs": 10})
        self.assertEqual(rows["a.hangs"]["result"], "timeout")
        self.assertEqual(rows["a.hangs"]["reason"], "ended after 10 s")
        self.assertEqual(rows["a.hangs"]["figures"], {"losses_differ_by": 0.5})
        pids = (self.folder / "pids").read_text().split()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(map(is_alive, pids)) and time.monotonic() < deadline:
            os.sched_yield()
        self.assertEqual([pid for pid in pids if is_alive(pid)], [])

    def test_a_hang_comes_back_with_what_its_ranks_have_written_and_where_they_are(self):
        where = "import time\ndef gathers():\n    time.sleep(1000)\ngathers()"
        program = ("#!/bin/sh\necho rank $RANK waits\n"
                   "if [ $RANK = 0 ]; then trap '' ABRT; exec sleep infinity; fi\n"  # deaf
                   f"exec {sys.executable} -c '{where}'\n")
        row = self.run_items({"a.hangs": two_ranks_of(self.folder, program)}, limits={"a.hangs": 10})["a.hangs"]
        self.assertEqual(row["result"], "timeout")
        self.assertIn("[0] rank 0 waits", row["log"])
        self.assertIn("[1] rank 1 waits", row["log"])
        self.assertTrue([line for line in row["log"] if line.startswith("[1]") and line.endswith("in gathers")], row)

    def test_a_group_that_hangs_leaves_the_others_their_time(self):
        rows = self.run_items({"a.1": forever(self.folder), "a.2": python(""), "b.1": python("")}, groups={"a": 6})
        self.assertEqual(rows["a.1"]["result"], "timeout")
        self.assertEqual((rows["a.2"]["result"], rows["a.2"]["reason"]), ("skip", "the time of the group a was over"))
        self.assertEqual(rows["b.1"]["result"], "fail")
        self.assertIn("1 fail, 1 skip, 1 timeout", (self.out / "table.txt").read_text())


class CompareTest(unittest.TestCase):

    def test_a_nan_behind_a_number_is_the_largest(self):
        self.assertTrue(math.isnan(largest([0.5, math.nan, 0.25])))
        self.assertEqual(largest([0.5, 2.0, 0.25]), 2.0)

        def losses(*values):
            return [{"loss": value} for value in values]

        self.assertTrue(math.isnan(kit.largest_difference(losses(1.0, math.nan), losses(1.0, 1.0))))
        self.assertEqual(kit.largest_difference(losses(1.0, 3.0), losses(1.0, 2.0)), 0.5)


class GpusTest(unittest.TestCase):

    def count(self, visible=None):
        variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
        others = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder, \
                unittest.mock.patch.dict(os.environ, others | variables, clear=True):
            dev = pathlib.Path(folder)
            for name in ("nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-uvm"):
                (dev / name).touch()
            (dev / "nvidia3").symlink_to("no_such_device")  # cannot be opened, as one of another job
            return kit.count_gpus(dev)

    def test_those_that_a_job_may_use(self):
        self.assertEqual(self.count(), 3)
        for visible, count in (("0", 1), ("2, 0", 2), ("0,1,2,3,4", 3), ("GPU-12ab,GPU-34cd", 2), ("", 0), ("-1", 0),
                               ("NoDevFiles", 0), ("1,-1,2", 1)):
            with self.subTest(visible):
                self.assertEqual(self.count(visible), count)


class PackTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        for name in ("benchmarks/gpu/item.py", "configs/quickstart.yaml", "tests/parity/python_peer.py",
                     "tests/parity/trainer_parity.py", "docs/page.md", "trainer/room/file.h", "trainer/room/file.cc",
                     "trainer/room/part/file.h", "trainer/room/part/file.cc"):
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{name}\n")
        self.script = pathlib.Path(shutil.copy(SCRIPT, self.root / "benchmarks"))
        bazel = self.root / "bazelw"  # builds a program for each label
        bazel.write_text("#!/bin/sh\nshift\nfor label; do\n  path=bazel-bin/${label#//}\n"
                         "  case $path in *:*) path=${path%:*}/${path#*:} ;; *) path=$path/${path##*/} ;; esac\n"
                         "  mkdir -p ${path%/*}\n  cp /bin/true $path\ndone\n")
        bazel.chmod(0o755)

    def test_works_from_any_folder(self):
        process = subprocess.run([self.script, "pack"], cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, check=False)
        self.assertEqual(process.returncode, 0, process.stdout)
        packed = self.root / ".gpu-bin"
        self.assertTrue((packed / "bin/trainer").is_file())
        self.assertTrue((packed / "benchmarks/gpu/item.py").is_file())
        self.assertTrue((packed / "configs/quickstart.yaml").is_file())
        self.assertIn("docs/page.md", (packed / "text").read_text())


NCU = """\
==PROF== Connected to process 7 (/kit/bin/trainer)
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"Section Name","Metric Name","Metric Unit","Metric Value"
"""


def launch(kernel, value, unit="ns"):
    return (f'"0","7","trainer","127.0.0.1","{kernel}","1","7","(1, 1, 1)","(2, 1, 1)","0","9.0","Command line",'
            f'"gpu__time_duration.sum","{unit}","{value}"\n')


class ToolsTest(unittest.TestCase):

    def test_durations_of_ncu(self):
        text = NCU + launch("gemm(int, float)", "1,234.50") + launch("copy", "2", "us") + "==PROF== Disconnected\n"
        found = kernels.durations(text)
        self.assertEqual([name for name, _ in found], ["gemm(int, float)", "copy"])
        self.assertAlmostEqual(found[0][1], 1.2345e-6)
        self.assertAlmostEqual(found[1][1], 2e-6)
        self.assertEqual(kernels.durations("==ERROR== no permission\n"), [])

    def test_one_step_is_from_update_to_update(self):
        step = [("gemm", 2e-3)] * 60 + [("FusedAdamMathFunctor", 1e-3)] * 2
        self.assertEqual(kernels.one_step(step[40:] + step + step[:9]), step)
        self.assertEqual(kernels.one_step(step), step)
        figures = kernels.figures_of(step[40:] + step + step[:9])
        self.assertTrue(figures["is_one_step"])
        self.assertEqual(figures["longest"], [["gemm", 120.0, 60], ["FusedAdamMathFunctor", 2.0, 2]])

    def test_errors_of_compute_sanitizer(self):
        self.assertEqual(races.errors_in("========= ERROR SUMMARY: 0 errors\n"), 0)
        self.assertEqual(races.errors_in("========= ERROR SUMMARY: 12 errors (2 shown)\n"), 12)
        self.assertIsNone(races.errors_in("Device not supported\n"))

    def test_gpu_of_nvidia_smi(self):
        self.assertEqual(host.gpu_figures("NVIDIA H100 80GB HBM3, 580.159.04, 81559 MiB, 9.0\n"),
                         {"gpu": "NVIDIA H100 80GB HBM3", "driver": "580.159.04", "memory": "81559 MiB",
                          "capability": "9.0"})

    def test_memory_of_the_gpu_is_the_most_that_was_seen(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            tool = pathlib.Path(folder) / "nvidia-smi"
            tool.write_text("#!/bin/sh\nprintf '100\\n[N/A]\\n300\\n200\\n'\n")
            tool.chmod(0o755)
            memory = speed.GpuMemory(KitWith(str(tool)))
            memory.join(PATIENCE_SECONDS)
            self.assertEqual(memory.stop(), 300)
        self.assertIsNone(speed.GpuMemory(KitWith(None)).stop())

    def test_figures_of_speed_leave_the_first_steps_out(self):
        case = speed.Case(steps=60, log_every=20)
        rows = [{"step": step, "ended": ended, "loss": 1.0} for step, ended in ((20, 100.0), (40, 102.0), (60, 104.0))]
        figures = speed.figures_of(case, rows, "ended", 5)
        self.assertEqual(figures["tokens_per_second"], 163840)
        self.assertAlmostEqual(figures["tflops"], 140, delta=1)


class KitWith:
    """A kit that has one tool, or does not find it."""

    def __init__(self, path):
        self.path = path

    def tool(self, name):
        if self.path is None:
            raise Ended(MISSING, name)
        return self.path


if __name__ == "__main__":
    unittest.main(verbosity=2)
