# SPDX-License-Identifier: Apache-2.0
"""One install of a set of pinned packages, by several pips at a time (install.py says which sets)."""

import concurrent.futures
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

# Packages one pip installs: one where they are large, several where pip's start would take longest.
PACKAGES_PER_PIP = {"torch": 1, "peers": 8, "sentencepiece": 2}
PARALLEL_PIPS = 3
PROGRESS_SECONDS = 5.0
POLL_SECONDS = 0.1
# Pinned as source distributions for want of wheels: pure Python, built with Debian's setuptools.
WITHOUT_WHEEL = "antlr4-python3-runtime,rouge_score"
# The set whose source distribution is unpacked and not built: Bazel compiles its C++. The other packages of
# its lock are what pip needs to read its metadata; Debian's setuptools is too old for that.
SOURCES = "sentencepiece"
PYTHON = (3, 11)  # of the pinned wheels
# What the pip of another Python needs to take them; not with a source distribution among them.
PIP_OPTIONS = {"torch": ["--implementation=cp", "--python-version=%d.%d" % PYTHON, "--abi=cp%d%d" % PYTHON],
               "peers": [], "sentencepiece": []}
COMMON_OPTIONS = ["--require-hashes", "--no-deps", "--no-cache-dir", "--no-build-isolation",
                  "--disable-pip-version-check", "--progress-bar=off", "--quiet"]


class SetUpError(Exception):
    """Ends the program with one message and an exit code."""

    def __init__(self, message, exit_code=1):
        super().__init__(message)
        self.exit_code = exit_code


class StopSignals:
    """SIGINT, SIGTERM and SIGHUP: an error in the main thread at once or, where they are held, at the next check.

    An error in the midst of starting threads, or of waiting for them, would leave some that nobody ends.
    """

    def __init__(self):
        self._number = None
        self._held = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number, _frame):
        self._number = number
        if not self._held:
            self.check()

    def check(self):
        if self._number:
            raise SetUpError(f"interrupted by {signal.Signals(self._number).name}; nothing is left behind, run the "
                             "same command again.", 128 + self._number)

    @contextlib.contextmanager
    def held(self):
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()


def say(message):
    print(f"phalanx: {message}", file=sys.stderr, flush=True)


class Installer:
    """One install into a temporary folder: several pips at a time, each into a folder of its own."""

    def __init__(self, name, requirements, folder, stop):
        self._name = name
        self._requirements = requirements
        self._folder = folder
        self._stop = stop
        self._site = folder / "site"
        self._done = 0
        self._running = []
        self._processes = set()
        self._mutex = threading.Lock()
        self._cancelled = threading.Event()

    def run(self):
        """Fills the site folder; raises SetUpError after stopping every pip."""
        self._site.mkdir()
        started = time.monotonic()
        batch = PACKAGES_PER_PIP[self._name]
        with self._stop.held(), concurrent.futures.ThreadPoolExecutor(PARALLEL_PIPS) as pool:
            jobs = []
            try:
                for index in range(0, len(self._requirements), batch):
                    jobs.append(pool.submit(self._install, index, self._requirements[index:index + batch]))
                self._wait(jobs, started)
            except BaseException:
                self._cancel(jobs)
                raise
        return self._site

    def _wait(self, jobs, started):
        pending = set(jobs)
        said = started
        while pending:
            finished, pending = concurrent.futures.wait(
                pending, POLL_SECONDS, concurrent.futures.FIRST_EXCEPTION)
            self._stop.check()
            for job in finished:
                job.result()
            if pending and time.monotonic() - said >= PROGRESS_SECONDS:
                said = time.monotonic()
                with self._mutex:
                    done, running = self._done, "; ".join(self._running)
                say(f"{self._name}: {done} of {len(self._requirements)} packages after "
                    f"{time.monotonic() - started:.0f} s, {_size(self._folder) / 1e9:.1f} GB so far; "
                    f"now {running}")

    def _cancel(self, jobs):
        self._cancelled.set()
        for job in jobs:
            job.cancel()
        with self._mutex:
            for process in self._processes:
                process.terminate()

    def _install(self, index, requirements):
        """Downloads, verifies and unpacks packages with one pip, then moves them into the site folder."""
        work = self._folder / f"work-{index}"
        target = work / "target"
        (work / "tmp").mkdir(parents=True)
        if self._name == SOURCES:
            self._unpack_sources(work, target, requirements)
        else:
            self._install_wheels(work, target, requirements)
        with self._mutex:
            _merge(target, self._site)
            self._done += len(requirements)
        shutil.rmtree(work)

    def _install_wheels(self, work, target, requirements):
        self._pip(work, requirements, [
            "install", "--no-compile", "--only-binary=:all:", f"--no-binary={WITHOUT_WHEEL}", "--use-pep517",
            "--root-user-action=ignore", "--no-warn-script-location", *PIP_OPTIONS[self._name], "--target", str(target)
        ])

    def _unpack_sources(self, work, target, requirements):
        sources = [line for line in requirements if line.startswith(SOURCES + "==")]
        tools, archives = work / "tools", work / "archives"
        self._install_wheels(work, tools, [line for line in requirements if line not in sources])
        self._pip(work, sources, ["download", "--no-binary=:all:", "--dest", str(archives)], PYTHONPATH=os.pathsep.join(
            filter(None, (str(tools), os.environ.get("PYTHONPATH")))))
        for archive in archives.glob("*"):
            shutil.unpack_archive(archive, target)

    def _pip(self, work, requirements, arguments, **environment):
        lock = work / "requirement.txt"
        lock.write_text("\n".join(requirements) + "\n")
        command = [sys.executable, "-m", "pip", *arguments, *COMMON_OPTIONS, "--requirement", str(lock)]
        self._call(_listed([line.split(" ")[0] for line in requirements]), command, {
            **os.environ, "TMPDIR": str(work / "tmp"), "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", **environment
        })

    def _call(self, packages, command, environment):
        with self._mutex:
            if self._cancelled.is_set():
                return
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self._processes.add(process)
            self._running.append(packages)
        output, _ = process.communicate()
        with self._mutex:
            self._processes.discard(process)
            self._running.remove(packages)
        if process.returncode != 0:
            raise SetUpError(_explain(packages, process.returncode, output))


def _listed(packages):
    """A few names for a message: all of them, or the first and how many more."""
    return packages[0] if len(packages) == 1 else f"{packages[0]} and {len(packages) - 1} more"


def _explain(packages, code, output):
    """One message for a failed pip: the cause that a user can mend, then pip's own last lines."""
    tail = "\n".join(output.strip().splitlines()[-8:])
    if "No space left on device" in output:
        return f"the disk is full while installing {packages}; free some space and try again."
    if "DO NOT MATCH THE HASHES" in output:
        return (f"{packages}: what the package index serves is not what Phalanx pins (the sha256 "
                f"differs); nothing was installed.\n{tail}")
    return f"pip could not install {packages} (exit code {code}):\n{tail}"


def _merge(source, destination):
    """Moves a tree into another; packages share namespace folders such as nvidia/."""
    for entry in sorted(source.iterdir()):
        goal = destination / entry.name
        if entry.is_dir() and goal.is_dir():
            _merge(entry, goal)
        else:
            entry.rename(goal)


def _size(folder):
    """Bytes in a folder that others are writing to."""
    total = 0
    for path, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size
    return total
