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

def _libtorch_impl(repository_ctx):
    site = site_packages(repository_ctx, "torch", repository_ctx.attr._lock)
    digest = repository_ctx.execute(["sh", "-c", _HEADER_DIGEST, "sh", site])
    if digest.return_code != 0:
        fail("cannot read LibTorch's version in %s: %s" % (site, digest.stderr))
    include = "include-" + digest.stdout.strip()
    for name in _HEADERS:
        repository_ctx.symlink(site + "/torch/include/" + name, include + "/" + name)
    repository_ctx.template(
        "BUILD",
        repository_ctx.attr._build_file,
        {
            "%{include}": include,
            "%{lib}": site + "/torch/lib",
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
