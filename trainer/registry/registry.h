// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/config/tree/chosen.h"
#include "trainer/config/tree/no_fields.h"

namespace phalanx {

struct HuggingFaceModel;

/// Where a name was registered.
struct Registration {
  std::string name;
  std::string file;
  int line = 0;
};

/// The names of one kind ("task", "optimizer"), whatever they stand for. Filled before main,
/// where nothing may throw: a name registered twice is kept aside and reported by main.
class NameTable {
 public:
  explicit NameTable(std::string kind);
  NameTable(const NameTable&) = delete;  // `all` points at it
  NameTable& operator=(const NameTable&) = delete;

  /// Notes the name; false when it is taken already.
  bool add(Registration registration);

  const std::string& kind() const { return kind_; }
  /// All names, sorted.
  std::vector<std::string> names() const;
  /// Place of `name` in order of registration. Throws UserError naming what there is, nearest
  /// first, when it is unknown.
  size_t index_of(std::string_view name) const;
  /// Whether `name` is registered.
  bool contains(std::string_view name) const;
  const std::deque<Registration>& registrations() const { return registrations_; }

  /// One message for every name registered twice, over all kinds, naming both files.
  static std::vector<std::string> double_registrations();
  /// All tables, in order of creation.
  static const std::vector<const NameTable*>& all();

 private:
  std::string kind_;
  std::deque<Registration> registrations_;
};

/// Everything a registered class of one kind offers before it is built.
template <class Product>
struct ClassEntry {
  const config::Declaration* (*declaration)() = nullptr;
  std::shared_ptr<Product> (*make)(const config::Node& section) = nullptr;
  std::shared_ptr<Product> (*make_default)() = nullptr;
  std::vector<std::string_view> interfaces;  ///< Models: what they can drive.
  std::string_view required_interface;       ///< Tasks: what they need of a model; else empty.
  /// Tasks: all values that a validation may give; empty where they do not say.
  std::vector<std::string_view> metric_names;
  /// Tasks: whether they declare metrics (AnyTask::declare_metrics).
  bool declares_metrics = false;
  /// Tasks: whether they derive figures from losses (AnyTask::metrics).
  bool derives_figures = false;
  /// Tasks: whether they own modules beside the model (AnyTask::build_modules).
  bool has_modules = false;
  /// Models: what they are in Hugging Face's libraries; nullptr for one that does not say.
  const HuggingFaceModel& (*hugging_face)() = nullptr;
};

/// Specialise per kind: the word used in configs, messages and `trainer list`.
template <class Product>
struct RegistryKind;

/// Whether a task overrides what AnyTask leaves empty.
template <class Class, class Product>
inline constexpr bool kDeclaresMetrics = requires {
  &Product::declare_metrics;
  requires !std::is_same_v<decltype(&Class::declare_metrics), decltype(&Product::declare_metrics)>;
};

/// The same; a method that is not public, or has overloads, counts as overridden.
template <class Class, class Product>
inline constexpr bool kDerivesFigures = !requires {
  requires std::is_same_v<decltype(&Class::metrics), decltype(&Product::metrics)>;
};

/// The same; false for what is no task.
template <class Class, class Product>
inline constexpr bool kHasModules = requires {
  &Product::build_modules;
}
&&!requires {
  requires std::is_same_v<decltype(&Class::build_modules), decltype(&Product::build_modules)>;
};

/// The classes of one kind by name. `Class` has a `Config` struct with `describe` and is
/// constructed from it; who registers one with fields includes trainer/config/tree/schema.h.
template <class Product>
class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  template <class Class>
  bool add(const char* name, const char* file, int line) {
    static_assert(
        std::is_same_v<typename Class::Config, config::NoFields> ||
            requires { sizeof(config::Schema<typename Class::Config>); },
        "include trainer/config/tree/schema.h where a class is registered");
    if (!table_.add({name, file, line})) return false;
    ClassEntry<Product> entry;
    entry.declaration = +[] { return &config::declaration<typename Class::Config>(); };
    entry.make = +[](const config::Node& section) -> std::shared_ptr<Product> {
      return std::make_shared<Class>(config::read<typename Class::Config>(section));
    };
    entry.make_default = +[]() -> std::shared_ptr<Product> {
      using Config = typename Class::Config;
      return std::make_shared<Class>(config::read_defaults<Config>());
    };
    if constexpr (requires { Class::interfaces(); }) entry.interfaces = Class::interfaces();
    if constexpr (requires { Class::required_interface(); }) {
      entry.required_interface = Class::required_interface();
    }
    if constexpr (requires { Class::metric_names(); }) entry.metric_names = Class::metric_names();
    entry.declares_metrics = kDeclaresMetrics<Class, Product>;
    entry.derives_figures = kDerivesFigures<Class, Product>;
    entry.has_modules = kHasModules<Class, Product>;
    if constexpr (requires { Class::hugging_face(); }) entry.hugging_face = &Class::hugging_face;
    entries_.push_back(std::move(entry));
    return true;
  }

  const NameTable& table() const { return table_; }

  /// The class that a config has chosen, or that a default names. Throws UserError for an unknown
  /// name.
  std::shared_ptr<Product> make(const config::Chosen& chosen) const {
    const auto& entry = at(chosen.name());
    return chosen.is_resolved() ? entry.make(chosen.section()) : entry.make_default();
  }

  /// Throws UserError for an unknown name.
  const ClassEntry<Product>& at(std::string_view name) const {
    return entries_[table_.index_of(name)];
  }

 private:
  Registry() : table_(std::string(RegistryKind<Product>::kName)) {}

  NameTable table_;
  std::deque<ClassEntry<Product>> entries_;
};

}  // namespace phalanx

#define PHALANX_CONCATENATE_(a, b) a##b
#define PHALANX_CONCATENATE(a, b) PHALANX_CONCATENATE_(a, b)

/// Registers a class of the kind that `Product` stands for. Variadic, so that commas in template
/// arguments pass.
#define PHALANX_REGISTER(Product, name, ...)                                                 \
  [[maybe_unused]] static const bool PHALANX_CONCATENATE(phalanx_registered_, __COUNTER__) = \
      ::phalanx::Registry<Product>::instance().add<__VA_ARGS__>(name, __FILE__, __LINE__)
