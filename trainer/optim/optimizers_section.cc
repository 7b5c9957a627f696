// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/optimizers_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "trainer/config/tree/chosen.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/config/tree/schema.h"
#include "trainer/optim/optimizer_section.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

using config::Declaration;
using config::Field;
using config::Node;

constexpr const char* kOne = "optimizer";
constexpr const char* kSeveral = "optimizers";

/// What one of several says beside the fields of `optimizer`.
struct ShareFields {
  std::optional<std::vector<std::string>> parameters;
  std::optional<config::Chosen> lr_scheduler;
  std::optional<double> clip_grad_norm;

  static void describe(config::Schema<ShareFields>& s) {
    s.field(
        "parameters", &ShareFields::parameters,
        "names of the parameters that it moves; *, ? and [...] stand for letters; null: all that "
        "no other optimizer takes");
    s.field("lr_scheduler", &ShareFields::lr_scheduler,
            "its schedule of the learning rate; null: as the run's lr_scheduler")
        .out_of(registered_choice<LrScheduler>())
        .resume_may_change();
    s.field("clip_grad_norm", &ShareFields::clip_grad_norm,
            "scale its gradients down to this 2-norm, by the norm of its parameters alone; null: "
            "as training.clip_grad_norm")
        .greater_than(0)
        .resume_may_change();
    s.check([](const ShareFields& c) -> std::optional<std::string> {
      if (!c.parameters || !c.parameters->empty()) return std::nullopt;
      return "parameters names none; leave it out to take all that no other optimizer takes";
    });
  }
};

// The fields of a class as `optimizer` has them, and those of a share.
const Declaration* share_declaration(const Declaration* own) {
  if (own == nullptr) return nullptr;
  static std::mutex mutex;
  static std::map<const Declaration*, Declaration> known;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(own, *own);
  if (!is_new) return &found->second;
  const Declaration& share = config::declaration<ShareFields>();
  for (Field field : share.fields()) {
    field.load = nullptr;  // no struct is filled from here
    field.store = nullptr;
    found->second.add_field(std::move(field));
  }
  for (const Declaration::Check& check : share.checks()) found->second.add_check(check);
  return &found->second;
}

bool is_name(const std::string& text) {
  const auto fits = [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
  };
  return !text.empty() && std::islower(static_cast<unsigned char>(text.front())) != 0 &&
         std::ranges::all_of(text, fits);
}

const std::vector<config::Entry>& several(const Node& resolved) {
  static const std::vector<config::Entry> none;
  const Node* sections = resolved.find(kSeveral);
  return sections == nullptr || !sections->is_map() ? none : sections->entries;
}

bool has_value(const Node* node) { return node != nullptr && !node->is_null(); }

// "mine.yaml:3".
std::string place_of(const Node& resolved, std::string_view key) {
  const auto entry = std::ranges::find(resolved.entries, key, &config::Entry::key);
  return entry->key_origin.text();
}

std::string classes() {
  std::string all;
  for (const std::string& name : optimizer_choice().names()) {
    all += (all.empty() ? "" : ", ") + name;
  }
  return all;
}

std::optional<std::string> wrong_number(const Node& resolved) {
  const Node* one = resolved.find(kOne);
  if (one == nullptr) return std::nullopt;  // of a model that is used and not trained
  const bool has_several = !several(resolved).empty();
  if (one->is_null() && !has_several) {
    return fmt::format(
        "optimizer is null, and optimizers names none: give optimizer=NAME; there are: {}",
        classes());
  }
  if (one->is_null() || !has_several) return std::nullopt;
  return fmt::format(
      "optimizer ({}) and optimizers ({}) are both given, and one of the two moves the weights: "
      "remove the other. To keep optimizers write optimizer: null in a file that is laid over the "
      "others, or optimizer=null on the command line; a field of one of several is "
      "optimizers.NAME.FIELD",
      place_of(resolved, kOne), place_of(resolved, kSeveral));
}

std::optional<std::string> wrong_entry(const Node& resolved) {
  const std::string* rest = nullptr;
  const Node* clip_value = resolved.find_path("training.clip_grad_value");
  for (const auto& [name, place, section] : several(resolved)) {
    const std::string path = fmt::format("{}.{}", kSeveral, name);
    if (!is_name(name)) {
      return fmt::format(
          "{}: this is not a valid name for an optimizer: use lower-case letters, digits and _, "
          "with a letter first",
          path);
    }
    const Node* chosen = section.find("name");
    if (chosen == nullptr || chosen->is_missing()) {
      return fmt::format("{0}.name is missing: choose an optimizer; there are: {1}", path,
                         classes());
    }
    if (has_value(section.find("clip_grad_norm")) && has_value(clip_value)) {
      return fmt::format(
          "{}.clip_grad_norm and training.clip_grad_value are both set: choose one of the two",
          path);
    }
    if (has_value(section.find("parameters"))) continue;
    if (rest != nullptr) {
      return fmt::format(
          "optimizers.{} and optimizers.{} both leave out `parameters`: one may, and takes what no "
          "other does; name those of the other",
          *rest, name);
    }
    rest = &name;
  }
  return std::nullopt;
}

}  // namespace

void declare_optimizer(Declaration& whole) {
  Field one;
  one.name = kOne;
  config::Choice choice = optimizer_choice();
  choice.meaning = one.meaning = "how the weights move";
  one.type.kind = config::Type::Kind::section;
  one.type.nullable = true;  // beside `optimizers`
  one.type.choice = std::make_shared<const config::Choice>(std::move(choice));
  one.mandatory = true;
  whole.add_field(std::move(one));
}

void declare_optimizers(Declaration& whole) {
  Field field;
  field.name = kSeveral;
  field.meaning =
      "several optimizers instead of optimizer, by names that you choose: each has the fields of "
      "optimizer, and those below";
  config::Choice choice = registered_choice<Optimizer>();
  choice.find = [](std::string_view name) {
    return share_declaration(optimizer_choice().find(name));
  };
  config::Type element;
  element.kind = config::Type::Kind::section;
  element.choice = std::make_shared<const config::Choice>(std::move(choice));
  field.type.kind = config::Type::Kind::map;
  field.type.element.push_back(std::move(element));
  field.default_value = Node::map();
  whole.add_field(std::move(field));
  whole.add_check(wrong_number);
  whole.add_check(wrong_entry);
}

void complete_optimizers(Node& tree) {
  if (several(tree).empty() || tree.find(kOne) != nullptr) return;
  tree.set(kOne, Node::null());
}

std::vector<OptimizerRules> optimizer_rules(const Node& resolved) {
  if (several(resolved).empty()) {
    return {{.rules = parameter_rules(*resolved.find(kOne))}};
  }
  std::vector<OptimizerRules> all;
  for (const auto& entry : several(resolved)) {
    const std::string path = fmt::format("{}.{}", kSeveral, entry.key);
    OptimizerRules& rules = all.emplace_back();
    rules.name = entry.key;
    rules.rules = parameter_rules(entry.value, path);
    const Node* parameters = entry.value.find("parameters");
    if (has_value(parameters)) rules.parameters = patterns_in(*parameters, path + ".parameters");
  }
  return all;
}

const Node& optimizer_section(const Node& resolved, const std::string& name) {
  return name.empty() ? *resolved.find(kOne) : *resolved.find(kSeveral)->find(name);
}

std::string schedule_path(const Node& resolved, const std::string& name) {
  if (name.empty() || !has_value(optimizer_section(resolved, name).find("lr_scheduler"))) {
    return "lr_scheduler";
  }
  return fmt::format("{}.{}.lr_scheduler", kSeveral, name);
}

std::optional<double> own_clip_grad_norm(const Node& section) {
  const Node* norm = section.find("clip_grad_norm");
  if (!has_value(norm)) return std::nullopt;
  return config::parse_real(norm->text).value;
}

}  // namespace phalanx
