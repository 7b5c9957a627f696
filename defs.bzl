# SPDX-License-Identifier: Apache-2.0
"""A trainer of one's own, and folders whose files register themselves; here or in a user's workspace."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def trainer_binary(name, deps = [], **kwargs):
    """A trainer that holds all that comes with Phalanx and the libraries in deps.

    The linker keeps every object of these libraries, referenced or not, so that the classes they
    register are found at run time; what the libraries depend on in turn links as usual.

    Args:
      name: of the binary.
      deps: cc_library targets with tasks, models, mixins, compositions, ...
      **kwargs: passed on to cc_binary.
    """
    whole = name + "_whole"
    _whole_libraries(
        name = whole,
        deps = deps,
        tags = ["manual"],
        testonly = kwargs.get("testonly"),
        visibility = ["//visibility:private"],
    )
    native.cc_binary(
        name = name,
        deps = [":" + whole, Label("//trainer:main"), Label("//trainer:registered")],
        **kwargs
    )

def registered_libraries(deps, name = "all", folder = "", visibility = None):
    """A library for each folder and each .cc file of a folder, and one that gathers them.

    Adding a class that registers itself is then adding its file. One that needs other libraries gets
    a BUILD file in its folder, which takes it out of this package, and a line in //trainer:registered.

    Args:
      deps: what each of them may use.
      name: of the library that gathers them; it is public.
      folder: where they are, in this package; "" for the package's own.
      visibility: of the single libraries.
    """
    below = folder + "/" if folder else ""
    files = [path[len(below):] for path in native.glob([below + "*.cc", below + "*/*.cc"])]

    # A folder is one library, whatever its files; a dict keeps the first of equal names.
    singles = {(path.split("/")[0] if "/" in path else path[:-len(".cc")]): None for path in files}.keys()
    for single in singles:
        native.cc_library(
            name = single,
            srcs = native.glob([below + single + ".cc", below + single + "/*.cc"]),
            hdrs = native.glob([below + single + ".h", below + single + "/*.h"]),
            visibility = visibility,
            deps = deps,
            # Nothing calls them by name: without this the linker drops them, registration and all.
            alwayslink = True,
        )
    native.cc_library(
        name = name,
        visibility = ["//visibility:public"],
        deps = [":" + single for single in singles],
    )

def _whole_libraries_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    direct = [dep.label for dep in ctx.attr.deps]
    merged = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])

    # The same archives once more, to be taken whole, in front of the usual ones: the linker then takes
    # nothing from those, and what they depend on keeps its order.
    whole = [
        cc_common.create_library_to_link(
            actions = ctx.actions,
            alwayslink = True,
            cc_toolchain = toolchain,
            feature_configuration = features,
            pic_static_library = library.pic_static_library,
            static_library = library.static_library,
        )
        for linker_input in merged.linking_context.linker_inputs.to_list()
        if linker_input.owner in direct
        for library in linker_input.libraries
        if (library.static_library or library.pic_static_library) and not library.alwayslink
    ]
    return [CcInfo(
        compilation_context = merged.compilation_context,
        linking_context = cc_common.create_linking_context(linker_inputs = depset(
            [cc_common.create_linker_input(owner = ctx.label, libraries = depset(whole))],
            order = "topological",
            transitive = [merged.linking_context.linker_inputs],
        )),
    )]

_whole_libraries = rule(
    implementation = _whole_libraries_impl,
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
