// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/print.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "trainer/base/joined.h"
#include "trainer/base/utf8.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx::config {

namespace {

/// Characters that readers of YAML 1.1 refuse or take for line ends, beside those of ASCII, and
/// what to write for them.
struct Unsafe {
  std::string_view character;
  const char* escape;
};
constexpr std::array kUnsafe = {Unsafe{"\u2028", "\\u2028"}, Unsafe{"\u2029", "\\u2029"},
                                Unsafe{"\uFEFF", "\\ufeff"}, Unsafe{"\uFFFE", "\\ufffe"},
                                Unsafe{"\uFFFF", "\\uffff"}};

constexpr char kHex[] = "0123456789abcdef";

/// Whether a text needs no quotes anywhere: letters, digits and a few signs that mean nothing to
/// YAML, and not a word or number of any version of it.
bool is_safe(std::string_view text) {
  const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (text.empty() || !(letter(text[0]) || text[0] == '_' || text[0] == '/')) return false;
  const auto allowed = [&](char c) {
    return letter(c) || std::string_view("_/.+-").find(c) != std::string_view::npos;
  };
  if (!std::all_of(text.begin(), text.end(), allowed)) return false;
  if (core_type(Node::plain(std::string(text))) != ScalarType::string) return false;
  const auto number_like = [](char c) {
    return std::string_view("0123456789abcdefxoABCDEFXO_.+-").find(c) != std::string_view::npos;
  };
  const bool may_be_number = std::isdigit(static_cast<unsigned char>(text[0])) != 0 &&
                             std::all_of(text.begin(), text.end(), number_like);
  if (may_be_number) return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array kWords = {"true", "false", "yes", "no", "on", "off", "y", "n", "null"};
  return std::find(kWords.begin(), kWords.end(), lower) == kWords.end();
}

/// Puts before each `${` the backslashes that keep it, and those before it, from being read.
std::string escape_interpolation(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "${") {
      const std::size_t before = result.find_last_not_of('\\');
      const std::size_t backslashes =
          result.size() - (before == std::string::npos ? 0 : before + 1);
      result.append(backslashes + 1, '\\');
    }
    result += text[i];
  }
  return result;
}

/// "\u0085"
std::string escaped(unsigned char control) {
  return std::string("\\u00") + kHex[control >> 4] + kHex[control & 15];
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    const std::string_view rest = text.substr(i);
    const auto unsafe = std::find_if(kUnsafe.begin(), kUnsafe.end(), [rest](const Unsafe& known) {
      return rest.starts_with(known.character);
    });
    if (unsafe != kUnsafe.end()) {
      result += unsafe->escape;
      i += unsafe->character.size() - 1;
    } else if (rest.size() > 1 && byte == 0xC2 && static_cast<unsigned char>(rest[1]) < 0xA0) {
      result += escaped(static_cast<unsigned char>(rest[1]));  // of C1
      ++i;
    } else if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      result += escaped(byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string print_text(std::string_view text) {
  return is_safe(text) ? std::string(text) : quoted(text);
}

std::string print_scalar(const Node& node, const PrintOptions& options) {
  const ScalarType type = core_type(node);
  if (node.is_missing() || type != ScalarType::string) return node.text;
  return print_text(options.escape_interpolation ? escape_interpolation(node.text) : node.text);
}

bool holds_map(const Node& node) {
  return node.is_map() || std::any_of(node.items.begin(), node.items.end(), holds_map);
}

bool is_block(const Node& node) {
  return (node.is_map() && !node.entries.empty()) || (node.is_list() && holds_map(node));
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  void print_block(const Node& node, const std::string& indent) {
    for (const Entry& entry : node.entries) {
      text_ += indent + print_text(entry.key) + ":";
      print_value(entry.value, indent);
    }
    for (const Node& item : node.items) {
      text_ += indent + "-";
      print_value(item, indent);
    }
  }

  void print_line(const Node& node) {
    text_ += print_inline(node, options_);
    print_origin(node);
    text_ += "\n";
  }

  std::string take() { return std::move(text_); }

 private:
  void print_value(const Node& value, const std::string& indent) {
    if (is_block(value)) {
      text_ += "\n";
      print_block(value, indent + "  ");
    } else {
      text_ += " ";
      print_line(value);
    }
  }

  void print_origin(const Node& node) {
    const bool shown = node.origin.source || options_.mark_defaults;
    if (options_.with_origins && shown) text_ += "  # " + single_line(node.origin.text());
  }

  const PrintOptions& options_;
  std::string text_;
};

std::string json_scalar(const Node& node) {
  switch (core_type(node)) {
    case ScalarType::boolean:
      return node.text;
    case ScalarType::integer:
      return std::to_string(*parse_integer(node.text).value);
    case ScalarType::real: {
      const std::string text = print_real(*parse_real(node.text).value);
      const bool finite = text.find_first_of("in") == std::string::npos;
      return finite ? text : quoted(text);
    }
    default:
      return quoted(node.text);
  }
}

}  // namespace

std::string print_inline(const Node& node, const PrintOptions& options) {
  if (node.is_null()) return "null";
  if (node.is_scalar()) return print_scalar(node, options);
  const auto item_text = [&](const Node& item) { return print_inline(item, options); };
  const auto entry_text = [&](const Entry& entry) {
    return print_text(entry.key) + ": " + print_inline(entry.value, options);
  };
  return node.is_list() ? "[" + joined(node.items, ", ", item_text) + "]"
                        : "{" + joined(node.entries, ", ", entry_text) + "}";
}

std::string print(const Node& node, const PrintOptions& options) {
  Printer printer(options);
  if (is_block(node)) {
    printer.print_block(node, "");
  } else {
    printer.print_line(node);
  }
  return printer.take();
}

std::string to_json(const Node& node) {
  if (node.is_null()) return "null";
  if (node.is_scalar()) return json_scalar(node);
  const auto entry_text = [](const Entry& entry) {
    return quoted(entry.key) + ": " + to_json(entry.value);
  };
  return node.is_list() ? "[" + joined(node.items, ", ", to_json) + "]"
                        : "{" + joined(node.entries, ", ", entry_text) + "}";
}

}  // namespace phalanx::config
