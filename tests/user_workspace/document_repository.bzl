# SPDX-License-Identifier: Apache-2.0
"""document_repository: the workspace that a document shows, as a repository that this one builds.

Its files, BUILD among them, are those of the document word for word. A reader's workspace has Phalanx as a
repository `@phalanx`; here that name is this repository, so that the document's targets are compiled
against what is built already. For the WORKSPACE file of Phalanx alone.
"""

def _document_repository_impl(repository_ctx):
    # A path of a label is watched: a change of either file extracts again.
    extract = repository_ctx.path(repository_ctx.attr._extract)
    document = repository_ctx.path(repository_ctx.attr.document)
    result = repository_ctx.execute(["/usr/bin/python3", extract, document, "."])
    if result.return_code != 0:
        fail("cannot extract the files of %s: %s" % (repository_ctx.attr.document, result.stderr))

    # It names what this repository's WORKSPACE defines already.
    repository_ctx.delete("WORKSPACE")

    # A reader's targets are private; a test here runs them from outside.
    build = repository_ctx.read("BUILD")
    repository_ctx.file("BUILD.bazel", "package(default_visibility = [\"//visibility:public\"])\n\n" + build)

document_repository = repository_rule(
    implementation = _document_repository_impl,
    doc = "Extracts the files that a Markdown document shows: see extract_files.py.",
    attrs = {
        "document": attr.label(mandatory = True, allow_single_file = [".md"]),
        "_extract": attr.label(
            default = Label("//tests/user_workspace:extract_files.py"),
            allow_single_file = True,
        ),
    },
)
