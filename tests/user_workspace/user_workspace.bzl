# SPDX-License-Identifier: Apache-2.0
"""user_workspace_test: what a document tells a user to do, done in a workspace outside the tree."""

def user_workspace_test(name, document, programs):
    """Follows a Markdown document to the letter: see follow_document.sh and extract_files.py.

    NAME_test takes the programs that the document builds from here, where its files are compiled against
    what is built already. NAME_workspace_test is what a reader does, with a Bazel of its own that takes
    Phalanx from the user's cache; it is run with --config=long only.

    Args:
      name: of the tests, without "_test".
      document: the Markdown file.
      programs: what its commands build, in its document_repository.
    """
    native.sh_test(
        name = name + "_test",
        size = "small",
        srcs = ["//tests/user_workspace:follow_document.sh"],
        args = [
            "$(location %s)" % document,
            "$(location //tests/user_workspace:extract_files.py)",
            "$(location //:bazelw)",
            "$(location //tests/user_workspace:built_bazelw.sh)",
        ] + ["$(location %s)" % program for program in programs],
        data = [
            document,
            "//:bazelw",
            "//tests/user_workspace:built_bazelw.sh",
            "//tests/user_workspace:extract_files.py",
        ] + programs,
    )
    workspace_test(name, document)

def workspace_test(name, document, **kwargs):
    """NAME_workspace_test: follows a Markdown document with Bazel, in a workspace outside the tree.

    Args:
      name: of the test, without "_workspace_test".
      document: the Markdown file.
      **kwargs: passed on to sh_test.
    """
    native.sh_test(
        name = name + "_workspace_test",
        # It reads all of Phalanx, and links a trainer.
        size = "large",
        srcs = ["//tests/user_workspace:follow_document.sh"],
        args = [
            "$(location %s)" % document,
            "$(location //tests/user_workspace:extract_files.py)",
            "$(location //:bazelw)",
        ],
        # The trainer stands for all sources: the test runs again when any of them changes.
        data = [
            document,
            "//:.bazelrc",
            "//:WORKSPACE",
            "//:bazelw",
            "//:defs.bzl",
            "//tests/user_workspace:extract_files.py",
            "//tools:debian_packages.sh",
            "//tools:own_folder.sh",
            "//trainer:trainer_for_tests",
        ],
        env_inherit = ["HOME", "PHALANX_TORCH", "XDG_CACHE_HOME"],
        tags = [
            "cpu:2",
            "only_long",
        ],
        **kwargs
    )
