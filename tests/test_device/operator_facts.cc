// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/operator_facts.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace phalanx::test_device {
namespace {

// They return numbers, but look at no values.
constexpr std::array<std::string_view, 3> kLookAtShapes{
    "aten::_fused_sdp_choice", "aten::is_set_to", "aten::_has_same_storage_numel"};

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

bool holds_tensors(const c10::Argument& result) {
  const c10::TypeKind kind = result.type()->kind();
  return kind == c10::TypeKind::TensorType || kind == c10::TypeKind::ListType ||
         kind == c10::TypeKind::OptionalType;
}

std::optional<std::size_t> argument_of(const c10::Argument& result,
                                       const std::vector<c10::Argument>& arguments) {
  if (!is_written(result)) return {};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* const alias = arguments[i].alias_info();
    if (alias != nullptr && alias->beforeSets() == result.alias_info()->beforeSets()) return i;
  }
  return {};
}

OperatorFacts look_up(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  OperatorFacts facts;
  const std::string& overload = schema.overload_name();
  facts.name = schema.name() + (overload.empty() ? "" : "." + overload);
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    facts.writes.push_back(is_written(argument));
    if (argument.type()->str().find("Generator") != std::string::npos) facts.generator = i;
  }
  facts.is_view = !schema.returns().empty();
  for (const c10::Argument& result : schema.returns()) {
    facts.is_view = facts.is_view && result.alias_info() != nullptr && !is_written(result);
    facts.reads_values = facts.reads_values || !holds_tensors(result);
    facts.returned_argument.push_back(argument_of(result, schema.arguments()));
  }
  facts.reads_values = facts.reads_values || op.hasTag(at::Tag::dynamic_output_shape) ||
                       op.hasTag(at::Tag::data_dependent_output);
  facts.is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  // Those take what masks select, too: only then does the shape depend on values.
  facts.takes_host_indices = schema.name().find("index") != std::string::npos;
  if (facts.takes_host_indices || std::ranges::count(kLookAtShapes, schema.name()) > 0) {
    facts.reads_values = false;
  }
  return facts;
}

}  // namespace

const OperatorFacts& facts_of(const c10::OperatorHandle& op) {
  static std::mutex mutex;
  static std::unordered_map<const void*, std::unique_ptr<const OperatorFacts>> known;
  const std::lock_guard lock(mutex);
  auto& facts = known[&op.schema()];
  if (!facts) facts = std::make_unique<const OperatorFacts>(look_up(op));
  return *facts;
}

}  // namespace phalanx::test_device
