# SPDX-License-Identifier: Apache-2.0
"""@peers: the Python packages that the parity tests compare with, and torch's own Python side."""

load("//third_party/python:site_packages.bzl", "SITE_PACKAGES_ENVIRONMENT", "site_packages")

_BUILD = """\
exports_files(["python_path.txt"], visibility = ["//visibility:public"])
"""

def _python_peers_impl(repository_ctx):
    # The peers first: a site-packages folder of the user's may hold other versions of them.
    folders = [
        site_packages(repository_ctx, "peers", repository_ctx.attr._peers_lock),
        site_packages(repository_ctx, "torch", repository_ctx.attr._torch_lock),
    ]
    repository_ctx.file("python_path.txt", ":".join(folders) + "\n", executable = False)
    repository_ctx.file("BUILD", _BUILD, executable = False)

python_peers = repository_rule(
    implementation = _python_peers_impl,
    environ = SITE_PACKAGES_ENVIRONMENT,
    doc = "python_path.txt holds the PYTHONPATH of a test that runs the peers.",
    attrs = {
        "_installer": attr.label(
            default = Label("//third_party/python:install.py"),
            allow_single_file = True,
        ),
        "_peers_lock": attr.label(
            default = Label("//third_party/peers:requirements.lock"),
            allow_single_file = True,
        ),
        "_torch_lock": attr.label(
            default = Label("//third_party/torch:requirements.lock"),
            allow_single_file = True,
        ),
    },
)
