// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/argument.h"

#include <algorithm>
#include <cctype>

#include "trainer/config/tree/node.h"

namespace phalanx::config {

namespace {

bool consists_of(std::string_view text, std::string_view signs) {
  return std::all_of(text.begin(), text.end(), [signs](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || signs.find(c) != signs.npos;
  });
}

/// Quoted as overrides have it: a backslash stands for itself, but before a quote or `${` each two
/// are one, and an odd one takes the meaning away.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  std::size_t backslashes = 0;  // that stand before this character
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool has_meaning = text[i] == '"' || text.substr(i, 2) == "${";
    if (has_meaning) result.append(backslashes + 1, '\\');
    backslashes = text[i] == '\\' ? backslashes + 1 : 0;
    result += text[i];
  }
  return result.append(backslashes, '\\') + "\"";
}

}  // namespace

std::string argument(std::string_view key, std::string_view text) {
  const bool is_plain = !text.empty() && consists_of(text, "_-./+=") &&
                        core_type(Node::plain(std::string(text))) == ScalarType::string &&
                        text != "null";
  return shell_word(std::string(key) + "=" + (is_plain ? std::string(text) : quoted(text)));
}

std::string shell_word(std::string_view text) {
  if (!text.empty() && consists_of(text, "_-./+=:,@%")) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace phalanx::config
