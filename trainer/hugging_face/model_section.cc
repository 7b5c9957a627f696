// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/model_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "trainer/api/model_base.h"
#include "trainer/api/parameters.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/interpolate.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/memory/deferred_init.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

const Registry<ModelBase>& models() { return Registry<ModelBase>::instance(); }

}  // namespace

void require_literal(const config::Node& node, const std::string& key) {
  if (config::has_interpolation(node)) {
    throw UserError(
        fmt::format("'{}' cannot be used: its {} holds '${{', which stands for another "
                    "value in a config",
                    node.origin.text(), key));
  }
  for (const auto& [name, origin, value] : node.entries) require_literal(value, name);
  for (const auto& item : node.items) require_literal(item, key);
}

config::Node resolved_model(config::Node section, std::span<const std::string> overrides) {
  static const config::Declaration declaration = [] {
    config::Declaration declaration;
    declaration.add_choice(models().table().kind(), registered_choice<ModelBase>());
    return declaration;
  }();
  require_literal(section, "section");
  const std::string& key = models().table().kind();
  config::Node tree = config::Node::map();
  tree.set(key, std::move(section));
  config::Diagnostics diagnostics;
  for (const auto& override : overrides) config::apply_override(tree, override, diagnostics);
  config::Node resolved = config::resolve(declaration, std::move(tree), diagnostics);
  diagnostics.throw_if_any();
  return std::move(*resolved.find(key));
}

const HuggingFaceModel& hugging_face_model(const std::string& name) {
  const auto& entry = models().at(name);
  if (entry.hugging_face != nullptr) return entry.hugging_face();
  throw UserError(
      fmt::format("the model '{}' does not say what it is in Hugging Face's libraries: give its "
                  "class a hugging_face() (docs/checkpoints.md)",
                  name));
}

std::string model_of_type(const std::string& model_type) {
  std::vector<std::string> types;
  for (const auto& name : models().table().names()) {
    const auto& entry = models().at(name);
    if (entry.hugging_face == nullptr) continue;
    const HuggingFaceModel& table = entry.hugging_face();
    types.push_back(table.model_type);
    types.insert(types.end(), table.other_model_types.begin(), table.other_model_types.end());
    if (std::find(types.begin(), types.end(), model_type) != types.end()) return name;
  }
  throw UserError(fmt::format("there is no model of the model_type '{}'; there are: {}", model_type,
                              types.empty() ? "none" : fmt::format("{}", fmt::join(types, ", "))));
}

ModelWithoutValues model_without_values(const config::Node& section) {
  ModelWithoutValues made;
  made.deferred = DeferredInit::record(
      [&] { made.model = models().at(section.find("name")->text).make(section); });
  return made;
}

std::vector<ShardedTensorView> tensors_of_model(const config::Node& section) {
  return model_views(*model_without_values(section).model);
}

}  // namespace phalanx
