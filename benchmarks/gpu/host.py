# SPDX-License-Identifier: Apache-2.0
"""What all other items stand on: libraries in memory, the driver, the packed files."""

import importlib.metadata
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from kit import torch_folder
from outcome import require
from runner import Item

SECONDS = 55
READERS, PIECE = 8, 8 << 20
QUERY = ("name", "driver_version", "memory.total", "compute_cap")


def read(path):
    """Reads a file, for it to be in the page cache; returns its bytes."""
    size = 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(PIECE):
            size += len(piece)
    return size


def page_cache(kit, report):
    """Each later process then loads CUDA's libraries from memory."""
    torch = torch_folder()
    if kit.is_dry:
        files = [torch / "lib/libc10.so"]
    else:
        files = [*torch.glob("lib/*.so*"), *torch.parent.glob("nvidia/**/lib/*.so*")]
    began = time.monotonic()
    with ThreadPoolExecutor(READERS) as readers:
        size = sum(readers.map(read, files))
    report.note(files=len(files), gigabytes=round(size / 1e9, 2), seconds=round(time.monotonic() - began, 1))
    require(size > 0, f"no libraries in {torch}")


def gpu(kit, report):
    tool = kit.tool("nvidia-smi")
    if tool is None:
        report.note(replaced="nvidia-smi")
        return
    print(subprocess.run([tool], stdout=subprocess.PIPE, text=True, check=False).stdout)
    report.note(**gpu_figures(kit.run([tool, f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader"])),
                gpus=kit.gpus)


def gpu_figures(answer):
    """Figures of the first GPU, as nvidia-smi describes it."""
    values = [value.strip() for value in answer.strip().splitlines()[0].split(",")]
    return dict(zip(("gpu", "driver", "memory", "capability"), values, strict=True))


def libraries(kit, report):
    """What the binaries need is there, and it is the torch that they were built with."""
    version = importlib.metadata.version("torch")
    output = kit.run(["ldd", kit.program("trainer")])
    lost = [line.split()[0] for line in output.splitlines() if "not found" in line]
    require(not lost, f"not found: {', '.join(lost)}")
    built_with = re.search(r"^LibTorch (\S+)", kit.run([kit.program("trainer"), "--version"]), re.MULTILINE)[1]
    report.note(torch=version, built_with=built_with)
    require(version.split("+")[0] == built_with, f"torch is {version}, the binaries are for {built_with}")


def text(kit, report):
    require(kit.text.is_file(), f"{kit.text} is not there")
    size = kit.text.stat().st_size
    report.note(bytes=size)
    least = kit.size(1 << 20, 1 << 14)
    require(size >= least, f"{size} bytes of text, of the least {least}")


ITEMS = [
    Item("host.page-cache", "torch's and NVIDIA's libraries read once", 45, page_cache),
    Item("host.gpu", "nvidia-smi answers", 15, gpu),
    Item("host.libraries", "the binaries find their libraries, of the torch they were built with", 20, libraries),
    Item("host.text", "the text to train on is there", 5, text),
]
