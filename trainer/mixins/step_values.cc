// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/step_values.h"

#include <ATen/ops/item.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace phalanx {
namespace {

// What records of steps have in every run, or in some: the keys of docs/metrics.md.
constexpr std::array<std::string_view, 17> kTaken{
    "step",         "epoch",         "samples",
    "tokens",       "phase",         "elapsed",
    "time",         "loss",          "lr",
    "grad_norm",    "skipped",       "loss_scale",
    "nonfinite",    "skipped_steps", "tokens_per_second",
    "step_seconds", "data_seconds"};

template <class Names>
bool has(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

[[noreturn]] void refuse(std::string_view section, std::string_view name, std::string_view why) {
  throw std::logic_error(fmt::format("the mixin '{}' cannot add '{}' to the record of a step: {}",
                                     section, name, why));
}

double number(const StepValues::Value& value) {
  const auto* tensor = std::get_if<at::Tensor>(&value);
  return tensor != nullptr ? tensor->item().toDouble() : std::get<double>(value);
}

}  // namespace

void StepValues::add(std::string_view section, int64_t step, std::string name, Value value) {
  if (name.empty() || name.find_first_of(" \t\n") != std::string::npos) {
    refuse(section, name, "write a name without blanks");
  }
  if (!ended_ || *ended_ == step) {
    refuse(section, name,
           "no step is going on, or its record is made; call log_value in on_after_backward or an "
           "earlier hook of the step");
  }
  if (has(kTaken, name) || has(reserved_, name)) {
    refuse(section, name, "records have a value of that name; choose another one");
  }
  if (auto* tensor = std::get_if<at::Tensor>(&value)) {
    if (!tensor->defined() || tensor->numel() != 1) {
      refuse(section, name, "it is no tensor of one element");
    }
    *tensor = tensor->detach();
  }
  const auto known = std::ranges::find(added_, name, &Added::name);
  if (known == added_.end()) {
    added_.push_back(
        {.section = std::string(section), .name = std::move(name), .value = std::move(value)});
    return;
  }
  if (known->section != section) {
    refuse(section, name,
           fmt::format("the mixin '{}' adds a value of that name; choose another one",
                       known->section));
  }
  known->value = std::move(value);
}

void StepValues::append_to(std::vector<std::pair<std::string, FieldValue>>& fields) const {
  for (const Added& added : added_) {
    const bool is_taken =
        std::ranges::any_of(fields, [&](const auto& field) { return field.first == added.name; });
    if (is_taken) {
      refuse(added.section, added.name, "the task logs a value of that name; choose another one");
    }
    fields.emplace_back(added.name, number(added.value));
  }
}

void StepValues::end(int64_t step) {
  added_.clear();
  ended_ = step;
}

}  // namespace phalanx
