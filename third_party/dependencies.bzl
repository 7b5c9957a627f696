# SPDX-License-Identifier: Apache-2.0
"""Everything that Phalanx needs from outside, for its own WORKSPACE and for a user's.

A user's WORKSPACE names this repository `phalanx` and calls `phalanx_dependencies()`; a repository
that the user has already defined under one of these names is left alone.
"""

load("//third_party:bazel_stand_ins.bzl", "remote_coverage_tools_stand_in", "rules_cc_stand_in")
load("//third_party:debian_library.bzl", "debian_library")
load("//third_party/peers:peers.bzl", "python_peers")
load("//third_party/sentencepiece:sentencepiece.bzl", "sentencepiece")
load("//third_party/torch:torch.bzl", "libtorch")

_LIB = "/usr/lib/x86_64-linux-gnu/"

def _unless_defined(rule, name, **kwargs):
    if name not in native.existing_rules():
        rule(name = name, **kwargs)

def phalanx_dependencies():
    """Declares every external repository; nothing is fetched until a target needs it."""

    # Bazel's own needs, which Debian installs beside it.
    _unless_defined(native.local_repository, "rules_java", path = "/usr/share/bazel/rules/java")
    _unless_defined(native.local_repository, "rules_proto", path = "/usr/share/bazel/rules/proto")
    _unless_defined(native.local_repository, "platforms", path = "/usr/share/bazel/tools/platforms")
    _unless_defined(native.local_repository, "bazel_skylib", path = "/usr/share/bazel/tools/skylib")
    _unless_defined(rules_cc_stand_in, "rules_cc")
    _unless_defined(remote_coverage_tools_stand_in, "remote_coverage_tools")

    # Libraries: LibTorch from its wheels, SentencePiece from its sources, the others from Debian packages, all of
    # these static.
    _unless_defined(libtorch, "torch")
    _unless_defined(sentencepiece, "sentencepiece")
    _unless_defined(
        debian_library,
        "yaml_cpp",
        package = "libyaml-cpp-dev",
        build_file = Label("//third_party:yaml_cpp.BUILD"),
        links = {
            "include/yaml-cpp": "/usr/include/yaml-cpp",
            "lib/libyaml-cpp.a": _LIB + "libyaml-cpp.a",
        },
    )
    _unless_defined(
        debian_library,
        "fmt",
        package = "libfmt-dev",
        build_file = Label("//third_party:fmt.BUILD"),
        links = {"include/fmt": "/usr/include/fmt"},
        sources = [Label("//third_party:fmt.cc")],
    )
    _unless_defined(
        debian_library,
        "nlohmann_json",
        package = "nlohmann-json3-dev",
        build_file = Label("//third_party:nlohmann_json.BUILD"),
        links = {"include/nlohmann": "/usr/include/nlohmann"},
    )
    _unless_defined(
        debian_library,
        "xxhash",
        package = "libxxhash-dev",
        build_file = Label("//third_party:xxhash.BUILD"),
        links = {"include/xxhash.h": "/usr/include/xxhash.h"},
    )
    _unless_defined(
        debian_library,
        "hwloc",
        package = "libhwloc-dev",
        build_file = Label("//third_party:hwloc.BUILD"),
        links = {
            "include/hwloc": "/usr/include/hwloc",
            "include/hwloc.h": "/usr/include/hwloc.h",
            "lib/libhwloc.a": _LIB + "libhwloc.a",
        },
        sources = [Label("//third_party:hwloc_without_udev.cc")],
    )
    _unless_defined(
        debian_library,
        "pcre2",
        package = "libpcre2-dev",
        build_file = Label("//third_party:pcre2.BUILD"),
        links = {
            "include/pcre2.h": "/usr/include/pcre2.h",
            "lib/libpcre2-8.a": _LIB + "libpcre2-8.a",
        },
    )
    _unless_defined(
        debian_library,
        "utf8proc",
        package = "libutf8proc-dev",
        build_file = Label("//third_party:utf8proc.BUILD"),
        links = {
            "include/utf8proc.h": "/usr/include/utf8proc.h",
            "lib/libutf8proc.a": _LIB + "libutf8proc.a",
        },
    )
    _unless_defined(
        debian_library,
        "openssl",
        package = "libssl-dev",
        build_file = Label("//third_party:openssl.BUILD"),
        links = {
            "include/openssl": "/usr/include/openssl",
            "lib/libcrypto.a": _LIB + "libcrypto.a",
        },
    )
    _unless_defined(
        debian_library,
        "zlib",
        package = "zlib1g-dev",
        build_file = Label("//third_party:zlib.BUILD"),
        links = {
            "include/zconf.h": "/usr/include/zconf.h",
            "include/zlib.h": "/usr/include/zlib.h",
            "lib/libz.a": _LIB + "libz.a",
        },
    )
    _unless_defined(
        debian_library,
        "zstd",
        package = "libzstd-dev",
        build_file = Label("//third_party:zstd.BUILD"),
        links = {
            "include/zstd.h": "/usr/include/zstd.h",
            "lib/libzstd.a": _LIB + "libzstd.a",
        },
    )
    _unless_defined(
        debian_library,
        "gtest",
        package = "libgtest-dev libgmock-dev",
        build_file = Label("//third_party:gtest.BUILD"),
        links = {
            "include/gtest": "/usr/include/gtest",
            "include/gmock": "/usr/include/gmock",
            "lib/libgtest.a": _LIB + "libgtest.a",
            "lib/libgmock.a": _LIB + "libgmock.a",
            "lib/libgmock_main.a": _LIB + "libgmock_main.a",
        },
    )

    # What the parity tests compare with; fetched only by tests.
    _unless_defined(python_peers, "peers")
