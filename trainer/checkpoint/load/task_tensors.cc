// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/task_tensors.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "trainer/api/task_modules.h"
#include "trainer/base/user_error.h"
#include "trainer/checkpoint/load/sources.h"

namespace phalanx {
namespace {

using Modules = std::set<std::string, std::less<>>;

void add_module_of(std::string_view tensor, Modules& modules) {
  if (is_of_task(tensor)) modules.emplace(task_module_of(tensor));
}

Modules modules_of(const Contents& contents) {
  Modules modules;
  for (const ManifestTensor& tensor : contents.tensors) {
    if (tensor.part == kModelPart) add_module_of(tensor.name, modules);
  }
  return modules;
}

Modules modules_of(std::span<const ShardedTensorView> views) {
  Modules modules;
  for (const ShardedTensorView& view : views) add_module_of(view.name, modules);
  return modules;
}

std::vector<std::string> only_in(const Modules& left, const Modules& right) {
  std::vector<std::string> names;
  for (const std::string& name : left) {
    if (!right.contains(name)) names.push_back(std::string(kTaskPrefix) + name);
  }
  return names;
}

bool is_of_other(std::string_view tensor, const Modules& modules) {
  return is_of_task(tensor) && !modules.contains(task_module_of(tensor));
}

}  // namespace

std::vector<std::string> leave_out_unknown_modules(Contents& contents,
                                                   std::span<const ShardedTensorView> views) {
  const Modules here = modules_of(views);
  auto left_out = only_in(modules_of(contents), here);
  std::erase_if(contents.tensors, [&](const ManifestTensor& tensor) {
    return tensor.part == kModelPart && is_of_other(tensor.name, here);
  });
  return left_out;
}

std::vector<std::string> leave_out_absent_modules(std::vector<ShardedTensorView>& views,
                                                  const Contents& contents) {
  const Modules there = modules_of(contents);
  auto left_out = only_in(modules_of(views), there);
  std::erase_if(views,
                [&](const ShardedTensorView& view) { return is_of_other(view.name, there); });
  return left_out;
}

std::vector<std::filesystem::path> sources_of(const TaskModule& module) {
  try {
    return sources_at(*module.load_from);
  } catch (const UserError& error) {
    throw UserError(
        fmt::format("the task's module '{}', load_from: {}", module.name, error.what()));
  }
}

}  // namespace phalanx
