"""bazelw with fakes for Debian's tools and Bazel: what it installs, what it prints, what it starts; and
which tests Bazel leaves out by the files of options."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BAZELW, PACKAGES, BAZELRC, SKIP_PEERS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
del sys.argv[1:5]

# Every fake writes its name and arguments into the log; some are told how to end.
RECORD = 'echo "$(basename "$0") $*" >>"$FAKE_LOG"\n'
FAKES = {
    "bazel": RECORD,
    "apt-get": RECORD + 'echo "E: the cause"; exit "${FAKE_APT_EXIT:-0}"\n',
    "dpkg-query": 'for name in "${@:4}"; do\n'
                  '  [[ " $FAKE_MISSING " == *" $name "* ]] || echo "installed $name"\n'
                  'done\n',
    "id": 'echo "$FAKE_UID"\n',
    "sudo": '[[ $FAKE_SUDO == yes ]] || exit 1\n' + RECORD + 'shift; exec "$@"\n',
}
FAKE_INSTALLER = """\
import os, sys
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write("install " + sys.argv[1] + "\\n")
print("/where/it/is")
sys.exit(int(os.environ.get("FAKE_INSTALLER_EXIT", "0")))
"""
ADMINISTRATOR_LINE = "apt-get update && apt-get install -y --no-install-recommends g++ libfmt-dev"


class BazelwTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.log = self.folder / "log"
        self.bazelrc = self.folder / "home" / ".cache" / "phalanx" / "bazelrc"
        self._write("checkout/third_party/python/install.py", FAKE_INSTALLER)
        (self.folder / "checkout" / "tools").mkdir()
        self.wrapper = pathlib.Path(shutil.copy(BAZELW, self.folder / "checkout" / "bazelw"))
        shutil.copy(PACKAGES, self.folder / "checkout" / "tools" / "debian_packages.sh")
        for name, text in FAKES.items():
            self._write(f"bin/{name}", "#!/bin/bash\n" + text).chmod(0o755)

    def _write(self, path, text):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def bazelw(self, *arguments, **environment):
        """Runs bazelw as root with nothing missing, unless told otherwise."""
        self.log.write_text("")
        process = subprocess.run(
            [self.wrapper, *arguments], check=False, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, env={
                "HOME": str(self.folder / "home"), "PATH": f"{self.folder}/bin:/usr/bin:/bin",
                "BAZEL": f"{self.folder}/bin/bazel", "FAKE_LOG": str(self.log),
                "FAKE_MISSING": "", "FAKE_UID": "0", "FAKE_SUDO": "no", **environment
            })
        print(f"exit {process.returncode}: {process.stderr}")
        return process.returncode, self.log.read_text().splitlines(), process.stderr

    def bazel_line(self, arguments, bazelrc=None):
        return f"bazel --bazelrc={bazelrc or self.bazelrc} {arguments}".rstrip()

    def test_with_nothing_missing_it_hands_over(self):
        for arguments, wheels in (("build //trainer", ["torch"]),
                                  ("run //trainer -- configs/quickstart.yaml", ["torch"]),
                                  ("--output_base=/o test //...", ["torch", "peers"]),
                                  ("info release", []), ("", [])):
            code, log, err = self.bazelw(*arguments.split())
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(log, [f"install {name}" for name in wheels] +
                             [self.bazel_line(arguments)])

    def test_peers_are_skipped_only_when_asked_and_loudly(self):
        _, log, err = self.bazelw("test", "//...", PHALANX_SKIP_PEERS="1")
        skip = self.folder / "checkout" / "third_party" / "peers" / "skip.bazelrc"
        self.assertEqual(log, ["install torch", self.bazel_line(f"--bazelrc={skip} test //...")])
        self.assertIn("are NOT run", err)

    def test_the_disk_cache_is_the_users(self):
        self.bazelw("info")
        self.assertEqual(self.bazelrc.read_text(),
                         f"build --disk_cache={self.bazelrc.parent}/bazel\n")
        other = self.folder / "other" / "phalanx" / "bazelrc"
        _, log, _ = self.bazelw("info", XDG_CACHE_HOME=str(self.folder / "other"))
        self.assertEqual(log, [self.bazel_line("info", other)])

    def test_it_works_through_a_link_from_another_folder(self):
        link = self.folder / "bin" / "phalanx"
        link.symlink_to(self.wrapper)
        self.wrapper = link
        self.assertEqual(self.bazelw("info")[:2], (0, [self.bazel_line("info")]))

    def test_root_installs_only_what_is_missing(self):
        code, log, err = self.bazelw("info", FAKE_MISSING="g++ libfmt-dev")
        self.assertEqual(code, 0)
        self.assertEqual(log, [
            "apt-get -qq -o Dpkg::Use-Pty=0 update",
            "apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends g++ libfmt-dev",
            self.bazel_line("info")
        ])
        self.assertIn("installing Debian packages: g++ libfmt-dev", err)

    def test_sudo_without_a_password_installs_too(self):
        code, log, _ = self.bazelw("info", FAKE_MISSING="g++", FAKE_UID="1000", FAKE_SUDO="yes")
        self.assertEqual(code, 0)
        self.assertIn("sudo -n env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "
                      "install -y --no-install-recommends g++", log)

    def test_without_rights_it_prints_the_line_for_an_administrator(self):
        code, log, err = self.bazelw("build", FAKE_MISSING="g++ libfmt-dev", FAKE_UID="1000")
        self.assertEqual((code, log), (2, []))
        self.assertEqual(err.splitlines()[-1], ADMINISTRATOR_LINE)

    def test_a_failing_apt_get_ends_it(self):
        code, log, err = self.bazelw("build", FAKE_MISSING="g++", FAKE_APT_EXIT="100")
        self.assertEqual((code, log), (1, ["apt-get -qq -o Dpkg::Use-Pty=0 update"]))
        self.assertIn("E: the cause\nphalanx: apt-get failed", err)

    def test_a_failing_installer_ends_it_with_its_exit_code(self):
        code, log, _ = self.bazelw("test", "//...", FAKE_INSTALLER_EXIT="2")
        self.assertEqual((code, log), (2, ["install torch"]))

    def test_another_system_is_refused(self):
        self._write("bin/uname", "#!/bin/bash\necho aarch64\n").chmod(0o755)
        code, log, err = self.bazelw("build")
        self.assertEqual((code, log), (2, []))
        self.assertIn("no x86-64 Debian", err)


def left_out(*configs, files=(BAZELRC,)):
    """The tags of tests that Bazel leaves out: the last filter counts, and configs come after all files."""
    lines = [line.split() for file in files for line in file.read_text().splitlines() if line]
    filters = [option.partition("=")[2] for command in ("test", *(f"test:{config}" for config in configs))
               for first, *options in lines if first == command
               for option in options if option.startswith("--test_tag_filters=")]
    return set(filter(None, filters[-1].split(",")))


class TestFiltersTest(unittest.TestCase):

    def test_long_tests_run_only_when_asked(self):
        self.assertEqual(left_out(), {"-long"})
        self.assertEqual(left_out("long"), set())

    def test_sanitizers_and_coverage_leave_out_long_tests_too(self):
        for configs in (["sanitizer"], ["coverage"], ["long", "sanitizer"]):
            self.assertEqual(left_out(*configs), {"-peers", "-no_sanitizer", "-long"})

    def test_peers_stay_skipped(self):
        for configs, tags in (([], {"-long"}), (["long"], set()), (["sanitizer"], {"-no_sanitizer", "-long"})):
            self.assertEqual(left_out(*configs, files=(BAZELRC, SKIP_PEERS)), tags | {"-peers"})


if __name__ == "__main__":
    unittest.main()
