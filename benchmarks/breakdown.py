# SPDX-License-Identifier: Apache-2.0
"""Where the CPU time of a run's steps goes, by kind, as perf samples it."""

import re
import shutil
import subprocess

# The first that a symbol or its file matches.
KINDS = {
    "matrix products": r"gemm|dnnl|jit_|\[JIT\]|perf-\d+\.map",
    "clearing pages": r"clear_page|folio_zero|clear_huge|page_fault|do_anonymous_page",
    "optimizer": r"fused_(adam|sgd)",
    "attention": r"flash_attention|_scaled_dot",
    "tanh, exp, log": r"Sleef|vml|tanh|softmax|expf|logf",
    "layer and gradient norms": r"[Ll]ayer_?[Nn]orm|norm_kernel|RowwiseMoments",
    "sockets": r"gloo|tcp|skb|sock|_iter|napi|net_|ip_|ep_|epoll|loopback|softirq|\[k\].*copy",
    "copies": r"mem(cpy|move|set)|copy_kernel|fill_kernel|copy_stub",
    "other operators": r"at::native|at::vec|TensorIterator",
    "kernel": r"\[k\]",
}
REST = "the rest: dispatch, autograd, malloc, Phalanx"
SECONDS = 10


def is_available():
    return shutil.which("perf") is not None


def kind_of(line):
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, line)), REST)


def shares(report):
    """The share of each kind in `perf report`'s lines, "12.34%  file  [.] symbol"."""
    found = dict.fromkeys([*KINDS, REST], 0.0)
    for line in report.splitlines():
        percent = re.match(r"\s*([\d.]+)%\s+(.*)", line)
        if percent:
            found[kind_of(percent[2])] += float(percent[1]) / 100
    return found


def record(pids, data):
    """Samples these processes for some seconds."""
    command = ["perf", "record", "-q", "-F", "199", "-o", data, "-p", ",".join(map(str, pids))]
    subprocess.run([*command, "--", "sleep", str(SECONDS)], check=True, capture_output=True)


def of_processes(pids, folder):
    data = folder / "perf.data"
    record(pids, data)
    report = ["perf", "report", "-i", data, "--stdio", "--sort", "dso,symbol"]
    return shares(subprocess.run(report, check=True, capture_output=True, text=True).stdout)
