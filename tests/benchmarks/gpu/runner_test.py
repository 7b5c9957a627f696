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

import failures  # noqa: E402
import findings  # noqa: E402
import host  # noqa: E402
import kit  # noqa: E402
import kernels  # noqa: E402
import models  # noqa: E402
import races  # noqa: E402
import speed  # noqa: E402
import writing  # noqa: E402
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

    def run_items(self, commands, seconds=PATIENCE_SECONDS, limits=None, groups=None, jobs=1):
        """The rows of items that are these commands, as they are on the disk. Those named `alone.` run alone."""
        items = [Item(name, "", (limits or {}).get(name, PATIENCE_SECONDS), None, name.startswith("alone."))
                 for name in commands]
        summary = Summary(self.out)
        with contextlib.redirect_stdout(io.StringIO()):
            Runner(lambda item: commands[item.name], self.work, summary, seconds, groups or {},
                   jobs).run(items)
            summary.close(items)
        rows = [json.loads(line) for line in (self.out / "summary.jsonl").read_text().splitlines()]
        return {row["item"]: row for row in rows}

    def assert_they_end(self, pids):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(map(is_alive, pids)) and time.monotonic() < deadline:
            os.sched_yield()
        self.assertEqual([pid for pid in pids if is_alive(pid)], [])

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
        self.assert_they_end((self.folder / "pids").read_text().split())

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


    def meets(self, own, other):
        """Ends once the other one has begun too."""
        return python("import os, pathlib, time\n"
                      f"folder = pathlib.Path({str(self.folder)!r})\n"
                      f"(folder / {own!r}).touch()\n"
                      f"while not (folder / {other!r}).exists(): os.sched_yield()\n"
                      "print('met')")

    def test_items_run_side_by_side_and_those_that_measure_time_alone(self):
        begins = "import os, pathlib, sys, time; folder = pathlib.Path(sys.argv[1])\n"
        alone = begins + ("print('others' if any(folder.glob('*.runs')) else 'alone')\n"
                          "(folder / 'x.runs').touch(); os.unlink(folder / 'x.runs')")
        other = begins + ("(folder / 'other.runs').touch(); (folder / 'began').touch()\n"
                          "while not (folder / 'a').exists(): os.sched_yield()\n"
                          "os.unlink(folder / 'other.runs')")
        rows = self.run_items({
            "alone.1": [*python(alone), str(self.folder)],
            "b.slow": [*python(other), str(self.folder)],
            "b.a": self.meets("a", "b"),
            "b.b": self.meets("b", "a"),
            "alone.2": [*python(alone), str(self.folder)],
        }, jobs=3)
        self.assertEqual([rows[name]["log"] for name in ("b.a", "b.b", "alone.1", "alone.2")],
                         [["met"], ["met"], ["alone"], ["alone"]])
        self.assertEqual(list(rows)[3:], ["alone.1", "alone.2"])

    def test_items_that_end_first_have_the_first_lines(self):
        rows = self.run_items({"a.hangs": forever(self.folder), "a.ends": python("")}, limits={"a.hangs": 8}, jobs=2)
        self.assertEqual(list(rows), ["a.ends", "a.hangs"])
        self.assertEqual([rows[name]["result"] for name in rows], ["fail", "timeout"])
        lines = (self.out / "table.txt").read_text().splitlines()
        self.assertEqual([line.split()[1] for line in lines[2:4]], ["a.hangs", "a.ends"])

    def test_items_at_once_take_their_share_of_their_groups_time(self):
        began = time.monotonic()
        rows = self.run_items({"a.1": forever(self.folder), "a.2": forever(self.folder), "a.3": python("")},
                              groups={"a": 7}, jobs=2)
        self.assertLess(time.monotonic() - began, 7 + 10)
        self.assertEqual({name: rows[name]["result"] for name in rows},
                         {"a.1": "timeout", "a.2": "timeout", "a.3": "skip"})
        self.assertEqual(rows["a.1"]["reason"], "ended after 7 s")


    def test_a_signal_ends_what_runs_and_leaves_the_table(self):
        commands = {"a.ends": python(""), "a.hangs": forever(self.folder), "a.waits": python("")}
        code = (f"import sys; sys.path.insert(0, {str(MODULES)!r})\n"
                "import argparse, pathlib, checklist\nfrom runner import Item, Runner\n"
                f"commands, folder = {commands!r}, pathlib.Path({str(self.folder)!r})\n"
                "checklist.Runner = lambda _, *rest: Runner(lambda item: commands[item.name], *rest)\n"
                "options = argparse.Namespace(out=folder / 'out', kit=None, dry_run=True, seconds=60, jobs=1)\n"
                "checklist.run_all(options, [Item(name, '', 60, None) for name in commands])")
        process = subprocess.Popen(python(code), stdout=subprocess.DEVNULL)
        while not (self.folder / "pids").exists():
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.terminate()
        self.assertEqual(process.wait(PATIENCE_SECONDS), 128 + signal.SIGTERM)
        lines = (self.out / "table.txt").read_text().splitlines()
        self.assertEqual([line.split()[1] for line in lines[2:-2]], ["a.ends"])
        self.assert_they_end((self.folder / "pids").read_text().split())


class KeptTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def start(self, compute):
        """A process that wants the value, and prints it."""
        code = (f"import os, pathlib, sys, time; sys.path.insert(0, {str(MODULES)!r}); from kit import kept\n"
                f"folder = pathlib.Path({str(self.folder)!r})\n{compute}\n"
                "print(kept(folder / 'value.json', compute))")
        return subprocess.Popen(python(code), stdout=subprocess.PIPE, text=True)

    def test_a_value_is_computed_once(self):
        compute = ("def compute():\n    with open(folder / 'computed', 'a') as file: print(file=file)\n"
                   "    time.sleep(0.1)\n    return list(range(1000))")
        processes = [self.start(compute) for _ in range(4)]
        values = [process.communicate(timeout=PATIENCE_SECONDS)[0] for process in processes]
        self.assertEqual(set(values), {str(list(range(1000))) + "\n"})
        self.assertEqual((self.folder / "computed").read_text(), "\n")

    def test_one_that_is_ended_lets_the_next_compute(self):
        hangs = self.start("def compute():\n    (folder / 'began').touch()\n    time.sleep(1000)")
        while not (self.folder / "began").exists():
            self.assertIsNone(hangs.poll())
        waits = self.start("def compute(): return 1")
        hangs.kill()
        hangs.communicate()
        self.assertEqual(waits.communicate(timeout=PATIENCE_SECONDS)[0], "1\n")


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


STEP = """\
========= Use-after-free on allocation of size {size} bytes at 0x48ec1c5400
=========     Address 0x48ec1c5400 is potentially accessed after it is free'd
=========     
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: void at::native::multi_tensor_apply<4, at::native::(anonymous namespace)::FusedAdam<float, \
4> >(std::vector<int>&, float) [clone .isra.0] [0x312930d] in libtorch_cuda.so
=========         Host Frame: at::_ops::_fused_adamw_::redispatch(c10::DispatchKeySet) [0x29eac98] in libtorch_cpu.so
=========         Host Frame: phalanx::(anonymous namespace)::Adam::step(at::Tensor const&) [0x8f26b6] in trainer
=========         Host Frame: phalanx::TrainerBase::update() [0x5dd709] in trainer
=========     
=========     Saved host backtrace up to driver entry point at cudaFreeAsync time
=========         Host Frame: cuMemFreeAsync [0x3a310f] in libcuda.so.1
=========         Host Frame: phalanx::Scaler::judge() const [0x1aa0d3] in trainer
========= 
"""
SANITIZED = "========= COMPUTE-SANITIZER\nrun  here\n" + STEP.format(size="25,408") + STEP.format(size="18,560") + """\
========= Invalid __global__ read of size 4 bytes
=========     at void phalanx::copy_kernel<float>(float const*, int)+0x90
=========     by thread (0,0,0) in block (0,0,0)
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0x136550] in trainer
========= 
========= Use-after-free on allocation of size 64 bytes at 0x48ec1c5400
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: ncclLaunchKernel(ncclComm*, ncclKernelPlan*) [0x9f0] in libnccl.so.2
========= 
========= ERROR SUMMARY: 4 errors
"""


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
        self.assertEqual(findings.errors_in("========= ERROR SUMMARY: 0 errors\n"), 0)
        self.assertEqual(findings.errors_in("========= ERROR SUMMARY: 12 errors (2 shown)\n"), 12)
        self.assertIsNone(findings.errors_in("Device not supported\n"))

    def test_findings_of_compute_sanitizer(self):
        self.assertEqual(findings.findings(SANITIZED), {
            "Use-after-free: at::native::multi_tensor_apply of at::_ops::_fused_adamw_ in phalanx::Adam::step"
            ", freed in phalanx::Scaler::judge": 2,
            "Invalid __global__ read: phalanx::copy_kernel": 1,
            "Use-after-free: ncclLaunchKernel": 1})
        self.assertEqual(findings.findings("step 1\n========= ERROR SUMMARY: 0 errors\n"), {})

    def judged(self, outputs, end=None):
        notes, out = {}, self.enterContext(tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")))
        folder = pathlib.Path(out)
        place = kit.Kit(folder, folder, folder, folder)
        try:
            races.judge(place, unittest.mock.Mock(note=lambda **more: notes.update(more)), "races.x", outputs, end)
        finally:
            self.sanitizer = (folder / findings.SANITIZER).read_text()
        return notes

    def test_what_compute_sanitizer_found_is_the_reason(self):
        with self.assertRaisesRegex(Ended, r"counts \[4, 0\] errors, 2 of them Use-after-free: at::native::multi"):
            self.judged([SANITIZED, "========= ERROR SUMMARY: 0 errors\n"], Ended("fail", "trainer ended with 86"))
        self.assertIn("==== races.x, rank 1: 34 letters", self.sanitizer)
        self.assertIn("FusedAdam", self.sanitizer)
        self.assertEqual(self.judged(["========= ERROR SUMMARY: 0 errors\n"]), {"errors": [0]})
        with self.assertRaisesRegex(Ended, "counts .None. errors"):
            self.judged(["no word of it\n"])
        with self.assertRaisesRegex(Ended, "died"):
            self.judged([""], Ended("crash(SIGSEGV)", "died"))

    def test_a_case_that_differs_from_the_cpu_fails_and_hides_no_other(self):
        losses = {"good": [1.0, 0.5], "far": [1.0, 0.5001], "nan": [1.0, math.nan], "short": [1.0]}
        cases = {name: (lambda place, folder, name=name: {"name": name}) for name in losses}

        def train(folder, config):
            values = losses[config["name"] if config["parallel"]["device"] == "cuda" else "good"]
            return [{"loss": value} for value in values]

        notes = {}
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder, \
                unittest.mock.patch.dict(models.CASES, {"x": cases}), \
                unittest.mock.patch.object(models, "steps", lambda place: 2), \
                self.assertRaisesRegex(Ended, "far: losses differ by 2.0e-04, allowed are 1e-04; nan: .* by nan, .*; short: fail: 1"):
            place = unittest.mock.Mock(work=pathlib.Path(folder), device="cuda", is_dry=False, train=train)
            models.compare("x", place, unittest.mock.Mock(note=lambda **more: notes.update(more)))
        self.assertEqual(notes["good"], 0)

    def test_what_a_rank_says_at_its_end(self):
        log = "run  here\nerror: rank 0: step 5: gone\n  rank 1: gave no sign of life\n"
        said = failures.errors_of(log)
        self.assertEqual(said, ["error: rank 0: step 5: gone", "  rank 1: gave no sign of life"])
        for first in ("[E1127 18:44:05.123456789 ProcessGroupNCCL.cpp:688] watchdog", "[rank0]:[E1127 18:44:05.1 x",
                      "terminate called after throwing"):
            with self.subTest(first):
                log = f"run  here\n[rank 1] note: x\n[W1127 18:44:05.1 x.cpp:1] y\n{first}\nerror: rank 0: gone\n"
                self.assertEqual(failures.errors_of(log), [first, "error: rank 0: gone"])
        self.assertEqual(failures.first_error(["terminate called", "error: x"]), "error: x")
        place, report = unittest.mock.Mock(size=lambda real, dry: real), unittest.mock.Mock()
        found = {"backend": "nccl", "code": 1, "seconds": 3, "said": said, "rows": [], "saved": []}
        failures.judge_loss_of_rank(place, report, found)
        for wrong, reason in (({"code": None}, "still runs 30 s"), ({"code": 0}, "ended with 0"),
                              ({"said": ["error: step 5"]}, "does not name rank 1"),
                              ({"said": ["error: rank 1"]}, "does not name the step")):
            with self.subTest(reason), self.assertRaisesRegex(Ended, reason):
                failures.judge_loss_of_rank(place, report, found | wrong)

    def test_tokens_before_the_first_that_differs(self):
        self.assertEqual(writing.same_tokens([[1, 2, 3, 4], [5, 6, 7, 8]], [[1, 2, 0, 4], [5, 6, 7, 8]]), 0.75)

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
