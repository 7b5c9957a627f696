#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Installs a set of pinned packages into the per-user cache, once, and prints where it is.

    install.py NAME LOCK

NAME is "torch", "sentencepiece" or "peers", LOCK its requirements file with one `name==version --hash=...` a
line. Any Python 3 with pip installs "torch", which C++ uses, and "sentencepiece", which is C++ in source;
"peers" are for tests in Python, which run them with the same interpreter, so it must be 3.11, for which the
wheels are.
The last line on standard output is the folder to use as site-packages; progress goes to standard
error. PHALANX_TORCH=/path/to/site-packages replaces the install of "torch".

Exit codes: 0 the folder is there; 1 the install failed and left nothing behind; 2 the user has to
do something first (free disk space, another PHALANX_TORCH, ...).
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

from installer import PYTHON, Installer, SetUpError, StopSignals, say

# Measured peak of an install: the unpacked wheels and the largest downloads in flight.
NEEDED_GIGABYTES = {"torch": 5.0, "peers": 0.5, "sentencepiece": 0.2}


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
        if existing and name == "peers":
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
