# SPDX-License-Identifier: Apache-2.0
"""Where the pinned Python packages are installed, for the repository rules that read them."""

# A change of any of these fetches the repository anew.
SITE_PACKAGES_ENVIRONMENT = ["HOME", "PHALANX_TORCH", "XDG_CACHE_HOME"]

def site_packages(repository_ctx, name, lock):
    """Installs the packages of a lock file once per user, if they are not there yet.

    Args:
      repository_ctx: of a rule with the label attribute `_installer`.
      name: which set: "torch", "sentencepiece" or "peers".
      lock: the label of its lock file.

    Returns:
      The absolute path of the folder to use as site-packages.
    """
    repository_ctx.path(Label("//third_party/python:installer.py"))  # A part of the other.
    repository_ctx.report_progress("installing the pinned packages of %s (minutes, once)" % name)
    result = repository_ctx.execute(
        [
            "/usr/bin/python3",
            repository_ctx.path(repository_ctx.attr._installer),
            name,
            repository_ctx.path(lock),
        ],
        timeout = 3600,
    )
    if result.return_code != 0:
        fail("%s is not set up:\n%s" % (name, result.stderr))
    return result.stdout.strip()
