# SPDX-License-Identifier: Apache-2.0
"""@torch: LibTorch from the pinned wheels, installed once per user, or from PHALANX_TORCH."""

load("//third_party/python:site_packages.bzl", "SITE_PACKAGES_ENVIRONMENT", "site_packages")

# The wheel's include folder also carries fmt, protobuf and pybind11, which would shadow others'.
_HEADERS = ["ATen", "c10", "caffe2", "torch"]

# The headers are declared to Bazel as a search path only (9,000 files would cost 15 s a start), so
# it is this name that tells two installs' headers apart in the cache key of every compilation.
_HEADER_DIGEST = """
record=$(echo "$1"/torch-*.dist-info/RECORD)
{ cat "$1/torch/version.py"; test ! -f "$record" || grep '^torch/include/' "$record" | sort; } |
  sha256sum | cut -c1-12
"""

# crt and cccl are no dependencies of torch's wheel, so an install of one's own may lack them.
_CUDA_HEADERS = {
    "nvidia/cu13/include/cuda_runtime_api.h": "nvidia-cuda-runtime==13.0.96",
    "nvidia/cu13/include/crt/host_defines.h": "nvidia-cuda-crt==13.0.88",
    "nvidia/cu13/include/cccl/nv/target": "nvidia-cuda-cccl==13.0.85",
    "nvidia/nccl/include/nccl.h": "nvidia-nccl-cu13==2.28.9",
}

def _require_cuda_headers(repository_ctx, site):
    missing = [
        wheel
        for header, wheel in _CUDA_HEADERS.items()
        if not repository_ctx.path(site + "/" + header).exists
    ]
    if missing:
        fail("CUDA's headers are not in %s: pip install --no-deps --target %s %s, or unset PHALANX_TORCH" %
             (site, site, " ".join(missing)))

def _libtorch_impl(repository_ctx):
    site = site_packages(repository_ctx, "torch", repository_ctx.attr._lock)
    digest = repository_ctx.execute(["sh", "-c", _HEADER_DIGEST, "sh", site])
    if digest.return_code != 0:
        fail("cannot read LibTorch's version in %s: %s" % (site, digest.stderr))
    include = "include-" + digest.stdout.strip()
    for name in _HEADERS:
        repository_ctx.symlink(site + "/torch/include/" + name, include + "/" + name)
    _require_cuda_headers(repository_ctx, site)
    repository_ctx.symlink(site + "/nvidia/cu13/include", include + "-cuda")
    repository_ctx.symlink(site + "/nvidia/nccl/include", include + "-nccl")
    repository_ctx.template(
        "BUILD",
        repository_ctx.attr._build_file,
        {
            "%{cuda_include}": include + "-cuda",
            "%{include}": include,
            "%{lib}": site + "/torch/lib",
            "%{nccl_include}": include + "-nccl",
        },
        executable = False,
    )

libtorch = repository_rule(
    implementation = _libtorch_impl,
    environ = SITE_PACKAGES_ENVIRONMENT,
    doc = "LibTorch's headers by symlink, its shared objects by absolute path.",
    attrs = {
        "_build_file": attr.label(
            default = Label("//third_party/torch:libtorch.BUILD"),
            allow_single_file = True,
        ),
        "_installer": attr.label(
            default = Label("//third_party/python:install.py"),
            allow_single_file = True,
        ),
        "_lock": attr.label(
            default = Label("//third_party/torch:requirements.lock"),
            allow_single_file = True,
        ),
    },
)
