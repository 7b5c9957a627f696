# SPDX-License-Identifier: Apache-2.0
"""A repository made of symlinks to what a Debian -dev package installed."""

def _debian_library_impl(repository_ctx):
    for name, target in repository_ctx.attr.links.items():
        path = repository_ctx.path(target)
        if not path.exists:
            fail("%s is missing: ./bazelw installs it on Debian 12 (%s); elsewhere install it, or name its path in %s." %
                 (target, repository_ctx.attr.package, "third_party/dependencies.bzl"))
        repository_ctx.symlink(path, name)
    for source in repository_ctx.attr.sources:
        repository_ctx.symlink(source, source.name)
    repository_ctx.symlink(repository_ctx.attr.build_file, "BUILD")

debian_library = repository_rule(
    implementation = _debian_library_impl,
    local = True,
    doc = "Symlinks headers and static libraries of an installed Debian package.",
    attrs = {
        "package": attr.string(mandatory = True, doc = "What to apt-get install when a file lacks."),
        "build_file": attr.label(mandatory = True, allow_single_file = True),
        "links": attr.string_dict(mandatory = True, doc = "Path in the repository to path on disk."),
        "sources": attr.label_list(allow_files = True, doc = "Files of ours to compile with it."),
    },
)
