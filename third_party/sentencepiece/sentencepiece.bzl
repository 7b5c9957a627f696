# SPDX-License-Identifier: Apache-2.0
"""@sentencepiece: Google's library, compiled from the pinned source distribution, which is unpacked once per user."""

load("//third_party/python:site_packages.bzl", "SITE_PACKAGES_ENVIRONMENT", "site_packages")

# Copies and not links: abseil's own BUILD files would make packages of its folders, so they are left out.
_COPY = """
set -e
cd "$1"/sentencepiece-*/sentencepiece
cp -R --parents src third_party/absl third_party/darts_clone third_party/protobuf-lite "$OLDPWD"
find "$OLDPWD" -name 'BUILD*' -delete
"""

def _sentencepiece_impl(repository_ctx):
    folder = site_packages(repository_ctx, "sentencepiece", repository_ctx.attr._lock)
    copied = repository_ctx.execute(["sh", "-c", _COPY, "sh", folder])
    if copied.return_code != 0:
        fail("cannot copy SentencePiece's sources from %s: %s" % (folder, copied.stderr))

    # What its installed form offers, apart from src/, whose other headers have names such as util.h.
    repository_ctx.symlink("src/sentencepiece_processor.h", "include/sentencepiece_processor.h")
    repository_ctx.symlink("src/builtin_pb/sentencepiece_model.pb.h", "include/sentencepiece_model.pb.h")

    # What its own build makes of config.h.in; nothing is read from that folder.
    repository_ctx.file("config/config.h", '#define INSTALL_DATADIR ""\n', executable = False)
    repository_ctx.symlink(repository_ctx.attr._build_file, "BUILD")

sentencepiece = repository_rule(
    implementation = _sentencepiece_impl,
    environ = SITE_PACKAGES_ENVIRONMENT,
    doc = "SentencePiece's sources, with the protobuf-lite and abseil that they bring.",
    attrs = {
        "_build_file": attr.label(
            default = Label("//third_party/sentencepiece:sentencepiece.BUILD"),
            allow_single_file = True,
        ),
        "_installer": attr.label(
            default = Label("//third_party/python:install.py"),
            allow_single_file = True,
        ),
        "_lock": attr.label(
            default = Label("//third_party/sentencepiece:requirements.lock"),
            allow_single_file = True,
        ),
    },
)
