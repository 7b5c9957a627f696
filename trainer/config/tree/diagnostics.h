// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/node.h"

namespace phalanx::config {

/// One mistake in a config.
struct Diagnostic {
  Origin origin;
  std::string path;     ///< Dotted path, such as "optimizer.betas[1]"; empty: no one field.
  std::string message;  ///< What was found, what is allowed, what to do.
};

/// More mistakes than this in one config are not worth finding.
inline constexpr std::size_t kMaxMistakes = 200;

/// Collects every mistake in a config, so that the user sees all of them at once.
class Diagnostics {
 public:
  /// Adds a mistake, unless one with the same place and path is known: what follows from a first
  /// mistake is not reported on top of it. Throws UserError with all of them at kMaxMistakes.
  void add(Origin origin, std::string path, std::string message);

  /// Adds something that is allowed, but can hardly be meant: an option without effect, a name
  /// that is no longer used. Warnings stop nothing.
  void warn(Origin origin, std::string path, std::string message);

  const std::vector<Diagnostic>& all() const { return all_; }
  const std::vector<Diagnostic>& warnings() const { return warnings_; }
  bool empty() const { return all_.empty(); }

  /// All mistakes in the order of their places, each with the line it is on and a caret. Lines that
  /// are quoted are cut to `width` characters around the caret; 0: they are not.
  std::string text(std::size_t width = 0) const;

  /// Throws ConfigError when there is any mistake.
  void throw_if_any() const;

 private:
  std::vector<Diagnostic> all_;
  std::vector<Diagnostic> warnings_;
};

/// Everything that is wrong with a config.
class ConfigError : public UserError {
 public:
  /// `mistakes` holds at least one.
  explicit ConfigError(Diagnostics mistakes);
  const Diagnostics& mistakes() const { return mistakes_; }

 private:
  Diagnostics mistakes_;
};

/// One mistake as it is printed: "file:line:column: path: message", the line, and a caret. A width
/// as in Diagnostics::text.
std::string to_string(const Diagnostic& diagnostic, std::size_t width = 0);

}  // namespace phalanx::config
