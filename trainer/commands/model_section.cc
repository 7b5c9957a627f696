// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/model_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

// A file must not make the config read this machine's environment.
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

}  // namespace

config::Node resolved_model(config::Node section, Arguments overrides) {
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
    if (entry.hugging_face().model_type == model_type) return name;
    types.push_back(entry.hugging_face().model_type);
  }
  throw UserError(fmt::format("there is no model of the model_type '{}'; there are: {}", model_type,
                              types.empty() ? "none" : fmt::format("{}", fmt::join(types, ", "))));
}

std::vector<ShardedTensorView> tensors_of_model(const config::Node& section) {
  std::shared_ptr<ModelBase> model;
  const auto never_drawn =
      DeferredInit::record([&] { model = models().at(section.find("name")->text).make(section); });
  return model_views(*model);
}

}  // namespace phalanx
