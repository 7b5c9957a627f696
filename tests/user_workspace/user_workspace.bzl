"""user_workspace_test: what a document tells a user to do, done in a workspace outside the tree."""

def user_workspace_test(name, document):
    """Follows a Markdown document to the letter: see follow_document.sh and extract_files.py.

    Args:
      name: of the test.
      document: the Markdown file.
    """
    native.sh_test(
        name = name,
        # A first build of the trainer as an external repository takes minutes.
        size = "enormous",
        srcs = ["//tests/user_workspace:follow_document.sh"],
        args = [
            "$(location %s)" % document,
            "$(location //tests/user_workspace:extract_files.py)",
            "$(location //:WORKSPACE)",
        ],
        # The trainer stands for all sources: the test runs again when any of them changes.
        data = [
            document,
            "//:WORKSPACE",
            "//:bazelw",
            "//:defs.bzl",
            "//tests/user_workspace:extract_files.py",
            "//trainer:trainer_for_tests",
        ],
        env_inherit = ["HOME", "PHALANX_TORCH", "XDG_CACHE_HOME"],
        tags = ["cpu:2"],
    )
