// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/tree/binding.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/field_builder.h"
#include "trainer/config/tree/forward.h"
#include "trainer/config/tree/member_count.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/unsupported.h"

namespace phalanx::config {

/// What `static void describe(Schema<T>&)` of a config struct T fills: one line a member.
template <class T>
class Schema {
 public:
  explicit Schema(Declaration& declaration) : declaration_(&declaration) {}

  /// Declares a member: bool, int64_t, double, std::string, an enum (with choices), a path,
  /// std::chrono::milliseconds, another described struct, a Chosen (with out_of), a type with a
  /// Binding, or a std::optional, std::vector or std::map<std::string, ...> of one of these. For
  /// any other type the compiler shows the member, and the type to use.
  template <class Member>
  FieldBuilder<Member> field(std::string name, Member T::*member, std::string meaning) {
    static const T probe{};
    Field field;
    field.name = std::move(name);
    field.meaning = std::move(meaning);
    field.type = detail::type_of<Member>();
    field.load = [member](void* object, const Type& type, const Node& value) {
      detail::from_node(static_cast<T*>(object)->*member, type, value);
    };
    field.store = [member](const void* object, const Type& type) {
      return detail::to_node(static_cast<const T*>(object)->*member, type);
    };
    field.offset = static_cast<std::size_t>(reinterpret_cast<const char*>(&(probe.*member)) -
                                            reinterpret_cast<const char*>(&probe));
    return FieldBuilder<Member>(declaration_->add_field(std::move(field)));
  }
  template <detail::Takes<detail::Instead::real> Member>
  detail::UseDouble field(std::string, Member T::*, std::string) = delete;
  template <detail::Takes<detail::Instead::integer> Member>
  detail::UseStdInt64 field(std::string, Member T::*, std::string) = delete;
  template <detail::Takes<detail::Instead::text> Member>
  detail::UseStdString field(std::string, Member T::*, std::string) = delete;
  template <detail::Takes<detail::Instead::vector> Member>
  detail::UseStdVectorOrStdMapOfStdString field(std::string, Member T::*, std::string) = delete;
  template <detail::Takes<detail::Instead::array_header> Member>
  detail::IncludeTrainerConfigTreeArray field(std::string, Member T::*, std::string) = delete;
  template <detail::Takes<detail::Instead::describe> Member>
  detail::DeclareStaticDescribeInTheMembersType field(std::string, Member T::*,
                                                      std::string) = delete;
  template <detail::Takes<detail::Instead::other> Member>
  detail::UseATypeThatSchemaFieldNames field(std::string, Member T::*, std::string) = delete;

  /// Adds a check across fields: an error text, or nothing. Runs once each field by itself is
  /// right.
  template <std::invocable<const T&> Function>
  void check(Function function) {
    declaration_->add_check([function](const Node& section) -> std::optional<std::string> {
      return function(detail::read_described<T>(section));
    });
  }

  /// Names values of several fields: `section: NAME`, or `{preset: NAME, ...}`. `change` sets them
  /// in an object with the defaults.
  template <std::invocable<T&> Function>
  void preset(std::string name, std::string meaning, Function change) {
    // declaration<T>() is not ready while T is being described.
    declaration_->add_preset(std::move(name), std::move(meaning), [change](const Declaration& own) {
      T value{};
      change(value);
      return own.store(&value);
    });
  }

  /// Says that `fields` (dotted paths from here) have no effect while `applies`: a user who sets
  /// one of them is told the reason ("use_fsdp is false").
  template <std::predicate<const T&> Predicate>
  void ineffective(std::initializer_list<const char*> fields, std::string reason,
                   Predicate applies) {
    declaration_->add_ineffective(
        {{fields.begin(), fields.end()}, std::move(reason), [applies](const Node& section) {
           return applies(detail::read_described<T>(section));
         }});
  }

 private:
  Declaration* declaration_;
};

/// The declaration of a config struct, made once from its `describe`. Throws std::logic_error when
/// the description is wrong: Declaration::finish says how.
template <class T>
const Declaration& declaration() {
  static const Declaration result = [] {
    Declaration made(type_name(typeid(T)));
    Schema<T> schema(made);
    T::describe(schema);
    const T defaults{};
    made.finish(&defaults, member_count<T>());
    return made;
  }();
  return result;
}

/// The struct that a resolved section describes. Throws std::logic_error for one that was not
/// resolved with this struct's declaration.
template <class T>
T read(const Node& resolved_section) {
  return detail::read_described<T>(resolved_section);
}

/// The struct of a section in which nothing is given. Throws UserError where a field has no
/// default.
template <class T>
T read_defaults() {
  return read<T>(declaration<T>().defaults());
}

/// The section that read<T> turns back into `value`.
template <class T>
Node write(const T& value) {
  return declaration<T>().store(&value);
}

}  // namespace phalanx::config
