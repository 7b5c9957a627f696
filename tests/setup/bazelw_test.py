# SPDX-License-Identifier: Apache-2.0
"""bazelw with fakes for Debian's tools and Bazel: what it installs, what it prints, what it starts; and
which tests Bazel leaves out by the files of options."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BAZELW, PACKAGES, BAZELRC, SKIP_PEERS, OWN_FOLDER = (pathlib.Path(argument).resolve() for argument in sys.argv[1:6])
del sys.argv[1:6]

# Every fake writes its name and arguments into the log; some are told how to end.
RECORD = 'echo "$(basename "$0") $*" >>"$FAKE_LOG"\n'
FAKES = {
    "bazel": RECORD + 'pwd >"$FAKE_LOG.cwd"; [[ "$*" != *" info bazel-bin" ]] || echo "$FAKE_RESULTS"\n',
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
DEBIAN_12 = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'
FEDORA = 'NAME="Fedora Linux"\nPRETTY_NAME="Fedora Linux 43"\nID=fedora\nVERSION_ID=43\n'
TRIXIE = 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\nVERSION_ID="13"\n'
ADMINISTRATOR_LINE = "apt-get update && apt-get install -y --no-install-recommends g++ libfmt-dev"


class BazelwTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.log = self.folder / "log"
        self.bazelrc = self.folder / "home" / ".cache" / "phalanx" / "bazelrc"
        self._write("checkout/third_party/python/install.py", FAKE_INSTALLER)
        self.wrapper = self.copy_of(BAZELW, "bazelw", {"/usr/bin/bazel": self.folder / "usr/bin/bazel"})
        self.copy_of(PACKAGES, "tools/debian_packages.sh",
                     {"os_release=/etc/os-release": f"os_release={self.folder}/os-release"})
        self.copy_of(OWN_FOLDER, "tools/own_folder.sh", {})
        self._write("os-release", DEBIAN_12)
        self._write("checkout/WORKSPACE", 'workspace(name = "phalanx")\n')
        for name, text in FAKES.items():
            self._write(f"bin/{name}", "#!/bin/bash\n" + text).chmod(0o755)

    def copy_of(self, script, path, places):
        """A copy of a script in the checkout, which looks for the system's files in other places."""
        text = script.read_text()
        for place, other in places.items():
            self.assertIn(place, text)
            text = text.replace(place, str(other))
        copy = self._write(f"checkout/{path}", text)
        shutil.copymode(script, copy)
        return copy

    def _write(self, path, text):
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def bazelw(self, *arguments, folder="checkout", **environment):
        """Runs bazelw as root with nothing missing, unless told otherwise."""
        self.log.write_text("")
        process = subprocess.run(
            [self.wrapper, *arguments], check=False, text=True, cwd=self.folder / folder,
            stdin=subprocess.DEVNULL, capture_output=True, env={
                "HOME": str(self.folder / "home"), "PATH": f"{self.folder}/bin:/usr/bin:/bin",
                "BAZEL": f"{self.folder}/bin/bazel", "FAKE_LOG": str(self.log),
                "FAKE_RESULTS": str(self.folder / "results"),
                "FAKE_MISSING": "", "FAKE_UID": "0", "FAKE_SUDO": "no", **environment
            })
        print(f"exit {process.returncode}: {process.stderr}")
        return process.returncode, self.log.read_text().splitlines(), process.stderr

    def bazel_line(self, arguments, bazelrc=None):
        return f"bazel --bazelrc={bazelrc or self.bazelrc} {arguments}".rstrip()

    def test_with_nothing_missing_it_hands_over(self):
        for arguments, sets in (("build //trainer", ["torch", "sentencepiece"]),
                                ("run //trainer -- configs/quickstart.yaml", ["torch", "sentencepiece"]),
                                ("--output_base=/o test //...", ["torch", "sentencepiece", "peers"]),
                                ("info release", []), ("", [])):
            code, log, err = self.bazelw(*arguments.split())
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(log, [f"install {name}" for name in sets] +
                             [self.bazel_line(arguments)])

    def test_peers_are_skipped_only_when_asked_and_loudly(self):
        _, log, err = self.bazelw("test", "//...", PHALANX_SKIP_PEERS="1")
        skip = self.folder / "checkout" / "third_party" / "peers" / "skip.bazelrc"
        self.assertEqual(log, ["install torch", "install sentencepiece",
                               self.bazel_line(f"--bazelrc={skip} test //...")])
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

    def own(self, command, rest):
        """The line with which Bazel does something for the own folder."""
        return self.bazel_line(f"{command} --override_repository=mine={self.folder}/mine {rest}")

    def test_a_folder_of_ones_own_is_built_in_the_clones_workspace(self):
        self._write("mine/WORKSPACE", 'workspace(name = "mine")\n')
        self._write("mine/sub/BUILD", "")
        installs = ["install torch", "install sentencepiece"]
        link = self.folder / "mine" / "bazel-bin"
        for folder, arguments, line in (
                ("mine", "build -c opt //:trainer :a b -- -//sub:c",
                 self.own("build", "-c opt @mine//:trainer @mine//:a @mine//:b -- -@mine//sub:c")),
                ("mine/sub", "build //... ... :c d @torch//:x",
                 self.own("build", "@mine//... @mine//sub/... @mine//sub:c @mine//sub:d @torch//:x")),
                ("mine", "build sub:c sub/...", self.own("build", "@mine//sub:c @mine//sub/..."))):
            code, log, err = self.bazelw(*arguments.split(), folder=folder)
            self.assertEqual((code, err), (0, ""))
            self.assertEqual(log, [*installs, line, self.bazel_line("info bazel-bin")])
            self.assertEqual(pathlib.Path(f"{self.log}.cwd").read_text().strip(), str(self.folder / "checkout"))
            self.assertEqual(os.readlink(link), str(self.folder / "results/external/mine"))
            link.unlink()
        _, log, _ = self.bazelw("--max_idle_secs=9", "test", "//...", folder="mine")
        self.assertIn(self.own("--max_idle_secs=9 test", "@mine//..."), log)
        _, log, _ = self.bazelw("cquery", "deps(//:a) except @torch//:b", folder="mine")
        self.assertEqual(log[-1], self.own("cquery", "deps(@mine//:a) except @torch//:b"))
        self._write("mine/.bazelrc", "")
        _, log, _ = self.bazelw("build", "//:a", folder="mine")
        self.assertIn(f" --bazelrc={self.folder}/mine/.bazelrc build ", log[2])

    def test_a_program_of_ones_own_runs_where_its_user_stands(self):
        self._write("mine/WORKSPACE", "")
        program = self._write("results/external/mine/sub/show", '#!/bin/bash\necho "$PWD: $*" >&2; exit 3\n')
        program.chmod(0o755)
        code, log, err = self.bazelw("run", "-c", "dbg", "//sub:show", "--", "a.yaml", "--json", "//x", folder="mine")
        self.assertEqual((code, err), (3, f"{self.folder}/mine: a.yaml --json //x\n"))
        self.assertEqual(log[2:], [self.own("build", "-c dbg @mine//sub:show"), self.bazel_line("info bazel-bin")])

    def test_a_workspace_that_loads_phalanx_itself_is_bazels(self):
        self._write("whole/WORKSPACE", 'local_repository(\n    name = "phalanx",\n    path = "x",\n)\n')
        self.assertEqual(self.bazelw("build", "//:a", folder="whole")[1][2:], [self.bazel_line("build //:a")])
        self.assertEqual(pathlib.Path(f"{self.log}.cwd").read_text().strip(), str(self.folder / "whole"))

    def test_a_failing_build_of_ones_own_folder_ends_it_with_its_exit_code(self):
        self._write("mine/WORKSPACE", "")
        self._write("bin/bazel", "#!/bin/bash\nexit 7\n")
        self.assertEqual(self.bazelw("build", "//:a", folder="mine")[0], 7)

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

    def test_another_machine_is_refused(self):
        for machine in ("Linux aarch64", "Darwin x86_64"):
            self._write("bin/uname", f"#!/bin/bash\necho {machine}\n").chmod(0o755)
            for system in (DEBIAN_12, FEDORA):
                self._write("os-release", system)
                code, log, err = self.bazelw("build")
                self.assertEqual((code, log), (2, []))
                self.assertIn(f"this machine is {machine}; Phalanx builds on Linux x86_64 only", err)
                self.assertEqual(len(err.splitlines()), 1)

    def packages(self):
        """Every Debian package that tools/debian_packages.sh lists."""
        lists = '"${build_packages[@]}" "${lint_packages[@]}" "${fuzz_packages[@]}"'
        return subprocess.run(["bash", "-c", f'. "$0"; printf "%s\\n" {lists}', PACKAGES], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.split()

    def test_off_debian_12_it_says_what_is_needed_and_goes_on(self):
        for system, name, user in ((FEDORA, "Fedora Linux 43", "0"), (TRIXIE, "Debian GNU/Linux 13 (trixie)", "1000"),
                                   (None, "an unknown Linux", "0")):
            self._write("os-release", system or "")
            if not system:
                (self.folder / "os-release").unlink()
            code, log, err = self.bazelw("build", "//trainer", FAKE_MISSING="g++ libfmt-dev", FAKE_UID=user)
            self.assertEqual((code, log), (0, ["install torch", "install sentencepiece", self.bazel_line("build //trainer")]))
            self.assertEqual(err.count("phalanx:"), 1)
            self.assertIn(f"phalanx: this is {name}, not Debian 12", err)
            for package in self.packages():
                self.assertRegex(err, rf"(?m)^  {re.escape(package)} +(NOT FOUND: )?\S.*: \S")
            for need in ("Bazel 4.2 or later", "g++ 12 or later", "Python 3.10 or later", "PHALANX_TORCH",
                         "PHALANX_SKIP_PEERS=1"):
                self.assertIn(need, err)

    def test_off_debian_12_it_marks_what_is_not_found(self):
        self._write("os-release", FEDORA)
        self.copy_of(PACKAGES, "tools/debian_packages.sh",
                     {"os_release=/etc/os-release": f"os_release={self.folder}/os-release",
                      "/usr/include/xxhash.h": "/nowhere/xxhash.h", "import pip:": "import no_pip:",
                      "g++: g++ 12": "no-such-g++: g++ 12"})
        err = self.bazelw("info")[2]
        for package in ("libxxhash-dev", "python3-pip", "g++"):
            self.assertRegex(err, rf"(?m)^  {re.escape(package)} +NOT FOUND: ")
        for package in ("bazel-bootstrap", "python3", "ca-certificates"):
            self.assertRegex(err, rf"(?m)^  {package} +(?!NOT FOUND)")

    def test_scripts_that_run_others_say_what_is_needed_once(self):
        self._write("os-release", FEDORA)
        script = ". checkout/tools/debian_packages.sh; explain_other_system\n" \
                 "(require_debian_packages clang-14); checkout/bazelw info; checkout/bazelw version\n"
        self.wrapper = self._write("script", f"#!/bin/bash\ncd {self.folder}; {script}")
        self.wrapper.chmod(0o755)
        code, log, err = self.bazelw()
        self.assertEqual((code, log), (0, [self.bazel_line("info"), self.bazel_line("version")]))
        self.assertEqual(err.count("not Debian 12"), 1)

    def test_it_finds_a_bazel_in_the_path(self):
        # An empty BAZEL is none; /usr/bin/bazel is not there.
        self.assertEqual(self.bazelw("info", BAZEL="")[:2], (0, [self.bazel_line("info")]))
        (self.folder / "bin" / "bazel").rename(self.folder / "bin" / "bazelisk")
        only_fakes = self._write("only", "").parent / "tools-of-the-system"
        only_fakes.mkdir()
        for tool in ("bash", "basename", "cat", "dirname", "env", "grep", "mkdir", "mv", "readlink", "uname"):
            (only_fakes / tool).symlink_to(shutil.which(tool))
        path = f"{self.folder}/bin:{only_fakes}"
        self.assertEqual(self.bazelw("info", BAZEL="", PATH=path)[1],
                         [self.bazel_line("info").replace("bazel", "bazelisk", 1)])
        (self.folder / "bin" / "bazelisk").unlink()
        code, log, err = self.bazelw("info", BAZEL="", PATH=path)
        self.assertEqual((code, log), (2, []))
        self.assertIn("there is no bazel in PATH", err)


def left_out(*configs, files=(BAZELRC,)):
    """The tags of tests that Bazel leaves out: the last filter counts, and configs come after all files."""
    lines = [line.split() for file in files for line in file.read_text().splitlines() if line]
    filters = [option.partition("=")[2] for command in ("test", *(f"test:{config}" for config in configs))
               for first, *options in lines if first == command
               for option in options if option.startswith("--test_tag_filters=")]
    return set(filter(None, filters[-1].split(",")))


class TestFiltersTest(unittest.TestCase):

    def test_long_tests_run_only_when_asked(self):
        self.assertEqual(left_out(), {"-only_long"})
        self.assertEqual(left_out("long"), set())

    def test_sanitizers_and_coverage_leave_out_long_tests_too(self):
        for configs in (["sanitizer"], ["coverage"], ["long", "sanitizer"]):
            self.assertEqual(left_out(*configs), {"-peers", "-no_sanitizer", "-only_long"})

    def test_peers_stay_skipped(self):
        for configs, tags in (([], {"-only_long"}), (["long"], set()), (["sanitizer"], {"-no_sanitizer", "-only_long"})):
            self.assertEqual(left_out(*configs, files=(BAZELRC, SKIP_PEERS)), tags | {"-peers"})


if __name__ == "__main__":
    unittest.main()
