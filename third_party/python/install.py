#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Installs a set of pinned packages into the per-user cache, once, and prints where it is.

    install.py NAME LOCK

NAME is "torch" or "peers", LOCK its requirements file with one `name==version --hash=...` a line. Any Python 3 with pip installs
"torch", which C++ uses; "peers" are for tests in Python, which run them with the same interpreter, so it must
be 3.11, for which the wheels are.
The last line on standard output is the folder to use as site-packages; progress goes to standard
error. PHALANX_TORCH=/path/to/site-packages replaces the install of "torch".

Exit codes: 0 the folder is there; 1 the install failed and left nothing behind; 2 the user has to
do something first (free disk space, another PHALANX_TORCH, ...).
"""

import concurrent.futures
import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Measured peak of an install: the unpacked wheels and the largest downloads in flight.
NEEDED_GIGABYTES = {"torch": 5.0, "peers": 0.5}
# Packages one pip installs: one where they are large, several where pip's start would take longest.
PACKAGES_PER_PIP = {"torch": 1, "peers": 8}
PARALLEL_PIPS = 3
PROGRESS_SECONDS = 5.0
POLL_SECONDS = 0.1
# Pinned as a source distribution for want of a wheel: pure Python, built with Debian's setuptools.
WITHOUT_WHEEL = "antlr4-python3-runtime"
PYTHON = (3, 11)  # of the pinned wheels
# What the pip of another Python needs to take them; not with a source distribution among them.
PIP_OPTIONS = {"torch": ["--implementation=cp", "--python-version=%d.%d" % PYTHON, "--abi=cp%d%d" % PYTHON],
               "peers": []}


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


def cache_root():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "phalanx"


def read_lock(path):
    """The requirement lines of a lock file, without comments."""
    lines = (line.strip() for line in pathlib.Path(path).read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def folder_name(name, requirements):
    """The set's name, the version of the package of that name, the revision of the whole lock."""
    revision = hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:12]
    return "-".join(filter(None, (name, pinned_version(name, requirements), revision)))


def pinned_version(package, requirements):
    """The version that a lock pins for a package; None without such a package."""
    found = (re.match(rf"{re.escape(package)}==(\S+)", line) for line in requirements)
    return next((match.group(1) for match in found if match), None)


def existing_torch(path, requirements):
    """Checks the install that PHALANX_TORCH names; returns its absolute path."""
    wanted = pinned_version("torch", requirements)
    site = pathlib.Path(path).expanduser()
    if not site.is_absolute():
        raise SetUpError(f"PHALANX_TORCH={path} is not an absolute path: give the full path of a "
                         f"site-packages folder that holds torch {wanted}.", 2)
    version_file = site / "torch" / "version.py"
    if not version_file.is_file():
        raise SetUpError(f"PHALANX_TORCH={path} holds no torch/version.py: it must be the "
                         f"site-packages folder itself, with torch {wanted} in it.", 2)
    text = version_file.read_text()
    version = _assigned(text, "__version__")
    cuda = _assigned(text, "cuda")
    if version.split("+")[0] != wanted or cuda.split(".")[0] != "13":
        raise SetUpError(f"PHALANX_TORCH={path} holds torch {version or '?'} for "
                         f"{'CUDA ' + cuda if cuda else 'no CUDA'}, but Phalanx is built with torch "
                         f"{wanted} for CUDA 13: install that, or unset PHALANX_TORCH.", 2)
    return site


def check_python_side(site):
    """The parity tests also import the torch that PHALANX_TORCH names."""
    if not any((pathlib.Path(site) / "torch").glob("_C.cpython-%d%d-*.so" % PYTHON)):
        raise SetUpError("PHALANX_TORCH=%s holds the torch of another Python than %d.%d, which the tests "
                         "cannot import: unset it for the tests, or set PHALANX_SKIP_PEERS=1."
                         % (site, *PYTHON), 2)


def _assigned(text, variable):
    """The string that version.py assigns to a variable, or an empty one."""
    found = re.search(rf"^{variable}\s*(?::[^=]*)?=\s*'([^']*)'", text, re.MULTILINE)
    return found.group(1) if found else ""


@contextlib.contextmanager
def only_installer(root, name):
    """Holds the cache's lock; waits, and says so, while another process installs."""
    with open(root / f"{name}.lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process is installing {name}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def check_space(root, name):
    free = shutil.disk_usage(root).free / 1e9
    needed = NEEDED_GIGABYTES[name]
    if free < needed:
        raise SetUpError(f"{root} has {free:.1f} GB free, installing {name} needs {needed:.1f} GB: "
                         "free some space, or set XDG_CACHE_HOME to a folder on a larger disk.", 2)


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
        packages = _listed([line.split(" ")[0] for line in requirements])
        work = self._folder / f"work-{index}"
        target = work / "target"
        (work / "tmp").mkdir(parents=True)
        lock = work / "requirement.txt"
        lock.write_text("\n".join(requirements) + "\n")
        command = [
            sys.executable, "-m", "pip", "install", "--require-hashes", "--no-deps", "--no-compile",
            "--no-cache-dir", "--only-binary=:all:", f"--no-binary={WITHOUT_WHEEL}",
            "--use-pep517", "--no-build-isolation", "--disable-pip-version-check",
            "--root-user-action=ignore", "--no-warn-script-location", "--progress-bar=off", "--quiet",
            *PIP_OPTIONS[self._name], "--target", str(target), "--requirement", str(lock)
        ]
        self._call(packages, command, {
            **os.environ, "TMPDIR": str(work / "tmp"), "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"
        })
        with self._mutex:
            _merge(target, self._site)
            self._done += len(requirements)
        shutil.rmtree(work)

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


def install(name, requirements, stop):
    """Returns the complete folder in the cache, installing it first if it is not there."""
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    final = root / folder_name(name, requirements)
    if (final / ".complete").exists():
        return final
    with only_installer(root, name):
        if (final / ".complete").exists():
            return final
        for left_over in root.glob(f"{name}.tmp-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        if final.exists():
            shutil.rmtree(final)
        check_space(root, name)
        with tempfile.TemporaryDirectory(prefix=f"{name}.tmp-", dir=root) as temporary:
            say(f"installing {len(requirements)} pinned packages of {name} into {final}")
            started = time.monotonic()
            site = Installer(name, requirements, pathlib.Path(temporary), stop).run()
            (site / ".complete").touch()
            site.rename(final)
            say(f"{name} is installed ({time.monotonic() - started:.0f} s)")
    return final


def main(arguments):
    stop = StopSignals()
    try:
        name, lock = arguments
        requirements = read_lock(lock)
        if name == "peers" and sys.version_info[:2] != PYTHON:
            raise SetUpError("%s is Python %d.%d; the tests that compare with Python need %d.%d there, for "
                             "which their packages are pinned: set PHALANX_SKIP_PEERS=1 to leave them out."
                             % (sys.executable, *sys.version_info[:2], *PYTHON), 2)
        existing = os.environ.get("PHALANX_TORCH")
        if name == "torch" and existing:
            print(existing_torch(existing, requirements))
            return 0
        if existing:
            check_python_side(existing)
        print(install(name, requirements, stop))
    except SetUpError as error:
        say(str(error))
        return error.exit_code
    except OSError as error:
        say(f"setting up failed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
