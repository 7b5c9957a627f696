// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// What is known of an unknown key from elsewhere: what another program's key is called here.
struct KnownWord {
  std::string text;                 ///< The end of a sentence; empty: nobody has such a key.
  bool is_of_place = false;         ///< Known by the section it stands in, not by its name alone.
  std::vector<std::string> fields;  ///< The dotted paths of the fields here; empty: there is none.
};

/// Looks up a key by its dotted path.
using ExplainKey = KnownWord (*)(std::string_view path);

/// A section that is to be filled.
struct SectionContext {
  std::string path;
  std::string what;                ///< How messages call it.
  const Node* defaults = nullptr;  ///< Those of the struct that holds it.
  const Node* name = nullptr;      ///< The class that a choice picked.
  const Choice* choice = nullptr;
};

/// Answers keys that no field has: with the place where they belong, with what another program's
/// word is called here, or with the nearest names.
///
/// The nearer answer wins. A word of another program, which fits letter by letter, goes before a
/// name with other letters. Words in an unknown section do not, where the nearest section has them,
/// or what they are called here, and they are not known by the section they stand in: then the
/// section is mistyped.
class UnknownKeys {
 public:
  /// `whole` declares the config; `explain_key` may be nullptr.
  UnknownKeys(const Declaration& whole, ExplainKey explain_key, Diagnostics& diagnostics)
      : whole_(whole), explain_key_(explain_key), diagnostics_(diagnostics) {}

  /// Reports a key that `declaration`, that of the section, does not have.
  void report(const Declaration& declaration, const Entry& entry,
              const SectionContext& context) const;

 private:
  void report_with(const std::string& hint, const Declaration& declaration, const Entry& entry,
                   const SectionContext& context) const;
  void report_words_within(const Node& section, const std::string& path, const Field* meant) const;
  KnownWord word_at(std::string_view path) const;
  const Field* meant_section(const Declaration& declaration, const Entry& entry,
                             const SectionContext& context) const;
  bool has_only_words(const Node& section, const std::string& path) const;
  std::string hint_for_place(const Declaration& declaration, const std::string& key,
                             const SectionContext& context) const;
  std::string hint_for_name(const Declaration& declaration, const std::string& key) const;

  const Declaration& whole_;
  ExplainKey explain_key_;
  Diagnostics& diagnostics_;
};

}  // namespace phalanx::config
