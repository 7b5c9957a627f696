# SPDX-License-Identifier: Apache-2.0
"""The one binary runs as a copied file with an emptied environment: on a machine that has that
torch wheel and a glibc, and nothing else."""

import pathlib
import re
import shutil
import subprocess

from tests.end_to_end import runs

# What every machine has: the C library's parts, and the compiler's runtime that LibTorch needs too.
SYSTEM = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1",
          "libstdc++.so.6", "ld-linux-x86-64.so.2"}
WHEEL = {"libtorch_cpu.so", "libc10.so"}


class CopiedBinaryTest(runs.RunTest):

    def test_it_needs_only_the_wheel_and_the_c_library(self):
        dynamic = subprocess.run(["readelf", "-d", runs.TRAINER], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
        self.assertLessEqual(needed, SYSTEM | WHEEL)
        self.assertLessEqual(WHEEL, needed)

    def test_it_trains_from_a_copied_file_with_an_emptied_environment(self):
        binary = shutil.copy(pathlib.Path(runs.TRAINER).resolve(), self.folder / "copied")
        subprocess.run([binary, "tiny.yaml", "training.max_steps=3", "exp_dir=run"],
                       cwd=self.folder, env={}, check=True, stdin=subprocess.DEVNULL,
                       timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(self.rows("run")[-1]["step"], 3)

    def test_what_needs_cuda_is_in_the_file_and_answers(self):
        binary = shutil.copy(pathlib.Path(runs.TRAINER).resolve(), self.folder / "copied")
        result = subprocess.run([binary, "tiny.yaml", "training.max_steps=3", "exp_dir=run",
                                 "parallel.device=cuda"], cwd=self.folder, env={}, check=False,
                                text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, timeout=runs.TIMEOUT_SECONDS)
        if any(re.fullmatch(r"nvidia\d+", file.name) for file in pathlib.Path("/dev").iterdir()):
            self.assertEqual(result.returncode, 0, result.stderr)
            return
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, "error: there is no GPU to compute on: .*NVIDIA")
        self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    runs.main()
