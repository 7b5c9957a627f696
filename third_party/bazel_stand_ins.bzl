# SPDX-License-Identifier: Apache-2.0
"""Small repositories that stand in for two that Debian's Bazel asks for and does not ship.

`rules_cc`: Debian's package is too new for Debian's own Bazel; the native rules are all we use.
`remote_coverage_tools`: every `bazel test` resolves it, though only `bazel coverage` runs it.
"""

_CC_DEFS = """\
cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
fdo_prefetch_hints = native.fdo_prefetch_hints
fdo_profile = native.fdo_profile
objc_import = native.objc_import
objc_library = native.objc_library
"""

_CC_FLAGS_SUPPLIER = """\
def _cc_flags_supplier(ctx):
    return [platform_common.TemplateVariableInfo({})]

cc_flags_supplier = rule(implementation = _cc_flags_supplier)
"""

_COMPILER_FLAG = """\
def _compiler_flag(ctx):
    return [config_common.FeatureFlagInfo(value = "gcc")]

compiler_flag = rule(implementation = _compiler_flag)
"""

_COVERAGE_BUILD = """\
package(default_visibility = ["//visibility:public"])

filegroup(name = "coverage_report_generator")

filegroup(name = "coverage_output_generator")
"""

def _rules_cc_impl(repository_ctx):
    repository_ctx.file("BUILD")
    repository_ctx.file("cc/BUILD")
    repository_ctx.file("cc/defs.bzl", _CC_DEFS)
    repository_ctx.file("cc/compiler_flag.bzl", _COMPILER_FLAG)
    repository_ctx.file("cc/cc_flags_supplier.bzl", _CC_FLAGS_SUPPLIER)

rules_cc_stand_in = repository_rule(
    implementation = _rules_cc_impl,
    doc = "Re-exports the native C++ rules under rules_cc's labels.",
)

def _remote_coverage_tools_impl(repository_ctx):
    repository_ctx.file("BUILD", _COVERAGE_BUILD)
    repository_ctx.file("tools/BUILD", _COVERAGE_BUILD)

remote_coverage_tools_stand_in = repository_rule(
    implementation = _remote_coverage_tools_impl,
    doc = "Empty coverage tools; coverage is taken with `--config=coverage` and gcov instead.",
)
