// SPDX-License-Identifier: Apache-2.0
#include "trainer/registry/registry.h"

#include <algorithm>

#include "trainer/base/nearest.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

// Function-local statics: registrations run before main in no known order.
std::vector<const NameTable*>& tables() {
  static std::vector<const NameTable*> tables;
  return tables;
}

std::vector<std::string>& doubles() {
  static std::vector<std::string> doubles;
  return doubles;
}

}  // namespace

NameTable::NameTable(std::string kind) : kind_(std::move(kind)) { tables().push_back(this); }

bool NameTable::add(Registration registration) {
  const auto same = std::find_if(registrations_.begin(), registrations_.end(),
                                 [&](const auto& r) { return r.name == registration.name; });
  if (same != registrations_.end()) {
    doubles().push_back(kind_ + " '" + registration.name + "' is registered twice: in " +
                        same->file + ":" + std::to_string(same->line) + " and in " +
                        registration.file + ":" + std::to_string(registration.line));
    return false;
  }
  registrations_.push_back(std::move(registration));
  return true;
}

std::vector<std::string> NameTable::names() const {
  std::vector<std::string> names;
  for (const auto& registration : registrations_) names.push_back(registration.name);
  std::sort(names.begin(), names.end());
  return names;
}

bool NameTable::contains(std::string_view name) const {
  return std::any_of(registrations_.begin(), registrations_.end(),
                     [&](const auto& r) { return r.name == name; });
}

size_t NameTable::index_of(std::string_view name) const {
  for (size_t i = 0; i < registrations_.size(); ++i) {
    if (registrations_[i].name == name) return i;
  }
  throw UserError(unknown_name(kind_, name, names()));
}

std::vector<std::string> NameTable::double_registrations() { return doubles(); }

const std::vector<const NameTable*>& NameTable::all() { return tables(); }

}  // namespace phalanx
