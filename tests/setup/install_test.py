# SPDX-License-Identifier: Apache-2.0
"""The wheels' installer with a fake pip: one complete folder or none, and a message that helps."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

INSTALLER = pathlib.Path(sys.argv.pop(1)).resolve()

LOCK = """\
# a comment
torch==2.11.0 --hash=sha256:00
nvidia-nccl==2.28.9 --hash=sha256:11
"""

SOURCES_LOCK = """\
sentencepiece==0.2.2 --hash=sha256:00
setuptools==84.2.1 --hash=sha256:11
"""

# Stands in for pip: writes one file a package, all of them under a folder that they share; a download is an
# archive with what its PYTHONPATH has to read it. With
# FAKE_PIP_STARTED it reports there (a FIFO) that it runs, then does what FAKE_PIP_THEN says: succeed,
# wait to be ended, wait until the file FAKE_PIP_GO is there, or fail with that text.
FAKE_PIP = """
import os, pathlib, shutil, signal, sys, time
arguments = sys.argv[1:]
lock = pathlib.Path(arguments[arguments.index("--requirement") + 1]).read_text()
target = pathlib.Path(arguments[arguments.index("--dest" if arguments[0] == "download" else "--target") + 1])
with open(os.environ["FAKE_PIP_LOG"], "a") as log:
    log.write(lock)
with open(os.environ["FAKE_PIP_LOG"] + ".options", "w") as log:
    log.write("\\n".join(arguments))
if "FAKE_PIP_STARTED" in os.environ and lock.startswith("torch"):
    with open(os.environ["FAKE_PIP_STARTED"], "w") as started:
        started.write("started")
then = os.environ.get("FAKE_PIP_THEN", "succeed")
if then == "wait":
    signal.pause()
elif then == "wait for go":
    while not os.path.exists(os.environ["FAKE_PIP_GO"]):
        time.sleep(0.01)
elif then != "succeed":
    print("ERROR: " + then)
    sys.exit(1)
if arguments[0] == "download":
    tools = os.environ["PYTHONPATH"].split(os.pathsep)[0]
    shutil.make_archive(target / "archive", "gztar", tools)
    sys.exit()
for line in lock.splitlines():
    name = line.split("==")[0]
    (target / "shared").mkdir(parents=True, exist_ok=True)
    (target / "shared" / name).write_text(line)
"""

# Runs the installer with a SIGINT that comes when the first pip runs (a FIFO says so) and the second is due.
SIGNALLED_BETWEEN_PIPS = """
import concurrent.futures, os, runpy, signal, sys
started = sys.argv.pop(1)
submit, calls = concurrent.futures.ThreadPoolExecutor.submit, []
def submit_late(*arguments):
    calls.append(arguments)
    if len(calls) == 2:
        open(started).read()
        os.kill(os.getpid(), signal.SIGINT)
    return submit(*arguments)
concurrent.futures.ThreadPoolExecutor.submit = submit_late
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
PATIENCE_SECONDS = 30


class InstallTest(unittest.TestCase):

    def setUp(self):
        self._scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.folder = pathlib.Path(self._scratch.name)
        self.cache = self.folder / "cache" / "phalanx"
        self.lock = self.folder / "requirements.lock"
        self.lock.write_text(LOCK)
        self.name = "torch"
        self.log = self.folder / "pip.log"
        pip = self.folder / "fake" / "pip"
        pip.mkdir(parents=True)
        (pip / "__init__.py").touch()
        (pip / "__main__.py").write_text(FAKE_PIP)

    def tearDown(self):
        self._scratch.cleanup()

    def start(self, *prefix, **environment):
        environment = {
            "HOME": str(self.folder), "PATH": "/usr/bin:/bin",
            "XDG_CACHE_HOME": str(self.folder / "cache"), "PYTHONPATH": f"{self.folder}/fake:{INSTALLER.parent}",
            "FAKE_PIP_LOG": str(self.log), **environment
        }
        command = list(prefix) or [sys.executable, str(INSTALLER)]
        process = subprocess.Popen([*command, self.name, str(self.lock)], env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        self.addCleanup(self._end, process)
        return process

    def _end(self, process):
        """Ends what a killed installer left running, and closes its pipes."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.communicate()

    def run_installer(self, *prefix, **environment):
        process = self.start(*prefix, **environment)
        out, err = process.communicate()
        print(f"exit {process.returncode}: {err}")
        return process.returncode, out.strip(), err

    def fifo(self, name):
        os.mkfifo(self.folder / name)
        return str(self.folder / name)

    def assert_nothing_left(self):
        self.assertEqual([path.name for path in self.cache.iterdir()], ["torch.lock"])

    def test_installs_once_and_then_reuses(self):
        code, site, _ = self.run_installer()
        self.assertEqual(code, 0)
        self.assertRegex(site, r"/phalanx/torch-2\.11\.0-[0-9a-f]{12}$")
        self.assertEqual(sorted(os.listdir(site)), [".complete", "shared"])
        self.assertEqual(sorted(os.listdir(site + "/shared")), ["nvidia-nccl", "torch"])
        self.log.unlink()
        self.assertEqual(self.run_installer(), (0, site, ""))
        self.assertFalse(self.log.exists())

    def test_another_lock_gets_another_folder(self):
        _, first, _ = self.run_installer()
        self.lock.write_text(LOCK.replace("sha256:11", "sha256:12"))
        _, second, _ = self.run_installer()
        self.assertNotEqual(first, second)

    def test_an_interrupted_install_leaves_nothing_and_a_retry_works(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            started = self.folder / f"started-{number}"
            process = self.start(FAKE_PIP_STARTED=self.fifo(started.name), FAKE_PIP_THEN="wait")
            started.read_text()
            process.send_signal(number)
            _, err = process.communicate()
            self.assertEqual(process.returncode, 128 + number)
            self.assertIn(f"interrupted by {signal.Signals(number).name}", err)
            self.assert_nothing_left()
        self.assertEqual(self.run_installer()[0], 0)

    def test_a_signal_while_the_pips_are_started_ends_all_of_them(self):
        started = self.fifo("started")
        process = self.start(sys.executable, "-c", SIGNALLED_BETWEEN_PIPS, started, str(INSTALLER),
                             FAKE_PIP_STARTED=started, FAKE_PIP_THEN="wait")
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assertIn("interrupted by SIGINT", err)
        self.assert_nothing_left()

    def test_a_killed_install_is_cleaned_up_by_the_next(self):
        started = pathlib.Path(self.fifo("started"))
        process = self.start(FAKE_PIP_STARTED=str(started), FAKE_PIP_THEN="wait")
        started.read_text()
        process.kill()
        process.wait()
        self.assertTrue(list(self.cache.glob("torch.tmp-*")))
        code, site, _ = self.run_installer()
        self.assertEqual(code, 0)
        self.assertEqual(sorted(path.name for path in self.cache.glob("torch?*")),
                         [pathlib.Path(site).name, "torch.lock"])

    def test_a_full_disk_before_the_install(self):
        full = "import shutil, runpy, sys, types; " \
               "shutil.disk_usage = lambda path: types.SimpleNamespace(free=3e9); " \
               "sys.argv[0] = sys.argv.pop(1); runpy.run_path(sys.argv[0], run_name='__main__')"
        code, _, err = self.run_installer(sys.executable, "-c", full, str(INSTALLER))
        self.assertEqual(code, 2)
        self.assertIn("has 3.0 GB free, installing torch needs 5.0 GB", err)
        self.assertFalse(self.log.exists())
        self.assert_nothing_left()

    def test_a_disk_that_fills_during_the_install(self):
        code, _, err = self.run_installer(FAKE_PIP_THEN="[Errno 28] No space left on device")
        self.assertEqual(code, 1)
        self.assertIn("the disk is full while installing", err)
        self.assert_nothing_left()
        self.assertEqual(self.run_installer()[0], 0)

    def test_a_file_that_is_not_the_pinned_one(self):
        code, _, err = self.run_installer(
            FAKE_PIP_THEN="THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.")
        self.assertEqual(code, 1)
        self.assertIn("is not what Phalanx pins", err)
        self.assert_nothing_left()

    def test_two_installers_at_once(self):
        started, go = self.fifo("started"), self.folder / "go"
        first = self.start(FAKE_PIP_STARTED=started, FAKE_PIP_THEN="wait for go", FAKE_PIP_GO=go)
        pathlib.Path(started).read_text()
        second = self.start()
        self.assertIn("another process is installing torch; waiting", second.stderr.readline())
        go.touch()
        first_out, _ = first.communicate()
        second_out, _ = second.communicate()
        self.assertEqual((first.returncode, second.returncode), (0, 0))
        self.assertEqual(first_out, second_out)
        self.assertEqual(sorted(self.log.read_text().splitlines()), sorted(LOCK.splitlines()[1:]))

    def run_installer_of(self, version):
        """The installer as a Python of that version runs it."""
        pretend = "import runpy, sys; sys.version_info = tuple(map(int, sys.argv.pop(1).split('.'))); " \
                  "sys.argv[0] = sys.argv.pop(1); runpy.run_path(sys.argv[0], run_name='__main__')"
        return self.run_installer(sys.executable, "-c", pretend, version, str(INSTALLER))

    def test_any_python_installs_torch_for_cpp(self):
        code, site, _ = self.run_installer_of("3.13.1")
        self.assertEqual((code, sorted(os.listdir(site + "/shared"))), (0, ["nvidia-nccl", "torch"]))
        options = pathlib.Path(f"{self.log}.options").read_text().splitlines()
        for option in ("--implementation=cp", "--python-version=3.11", "--abi=cp311", "--no-deps"):
            self.assertIn(option, options)

    def test_the_peers_need_the_python_that_runs_them(self):
        self.name = "peers"
        code, _, err = self.run_installer_of("3.13.1")
        self.assertEqual(code, 2)
        self.assertIn("is Python 3.13; the tests that compare with Python need 3.11", err)
        self.assertIn("PHALANX_SKIP_PEERS=1", err)
        self.assertFalse(self.log.exists())
        # With one of theirs they are built too, which pip refuses to do for another Python.
        self.assertEqual(self.run_installer_of("3.11.2")[0], 0)
        self.assertNotIn("--python-version=3.11", pathlib.Path(f"{self.log}.options").read_text())

    def test_sources_are_unpacked_by_any_python_whatever_torch_is_used(self):
        self.name = "sentencepiece"
        self.lock.write_text(SOURCES_LOCK)
        code, site, _ = self.run_installer_of("3.13.1")
        self.assertEqual(code, 0)
        self.assertRegex(site, r"/phalanx/sentencepiece-0\.2\.2-[0-9a-f]{12}$")
        # Nothing but the archive, which the fake made of the packages that are there to read it.
        self.assertEqual(sorted(os.listdir(site)), [".complete", "shared"])
        self.assertEqual(os.listdir(site + "/shared"), ["setuptools"])
        self.assertEqual(self.log.read_text(), "".join(reversed(SOURCES_LOCK.splitlines(keepends=True))))
        options = pathlib.Path(f"{self.log}.options").read_text().splitlines()
        for option in ("download", "--require-hashes", "--no-deps", "--no-binary=:all:", "--no-build-isolation"):
            self.assertIn(option, options)
        self.assertEqual(self.run_installer(PHALANX_TORCH="/usr"), (0, site, ""))

    def existing(self, version, cuda):
        (self.folder / "site" / "torch").mkdir(parents=True)
        (self.folder / "site" / "torch" / "version.py").write_text(
            f"from typing import Optional\n__version__ = '{version}'\n"
            f"cuda: Optional[str] = {cuda!r}\n")
        return str(self.folder / "site")

    def test_an_existing_torch_of_the_right_version_is_used(self):
        site = self.existing("2.11.0+cu130", "13.0")
        self.assertEqual(self.run_installer(PHALANX_TORCH=site), (0, site, ""))
        self.assertFalse(self.cache.exists())

    def test_an_existing_torch_that_does_not_fit_is_refused(self):
        for version, cuda, found in (("2.10.0", "13.0", "torch 2.10.0 for CUDA 13.0"),
                                     ("2.11.0+cu128", "12.8", "torch 2.11.0+cu128 for CUDA 12.8"),
                                     ("2.11.0+cpu", None, "torch 2.11.0+cpu for no CUDA")):
            code, out, err = self.run_installer(PHALANX_TORCH=self.existing(version, cuda))
            shutil.rmtree(self.folder / "site")
            self.assertEqual((code, out), (2, ""))
            self.assertIn(found, err)
            self.assertIn("unset PHALANX_TORCH", err)

    def test_the_tests_need_an_existing_torch_for_their_python(self):
        site = self.existing("2.11.0+cu130", "13.0")
        (self.folder / "site" / "torch" / "_C.cpython-312-x86_64-linux-gnu.so").touch()
        self.name = "peers"
        code, _, err = self.run_installer(PHALANX_TORCH=site)
        self.assertEqual(code, 2)
        self.assertIn("another Python than 3.11", err)
        (self.folder / "site" / "torch" / "_C.cpython-311-x86_64-linux-gnu.so").touch()
        self.assertEqual(self.run_installer(PHALANX_TORCH=site)[0], 0)

    def test_a_path_that_is_no_site_packages_folder_is_refused(self):
        self.assertIn("holds no torch/version.py", self.run_installer(PHALANX_TORCH="/usr")[2])
        self.assertIn("is not an absolute path", self.run_installer(PHALANX_TORCH="site")[2])


if __name__ == "__main__":
    unittest.main()
