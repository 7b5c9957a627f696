#include "trainer/commands/columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/config/wrap.h"

namespace phalanx {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kDeepIndent = 6;  // of what stands below
constexpr std::size_t kLeastRoom = 24;  // of the right column

std::string blanks(std::size_t count) { return std::string(count, ' '); }

}  // namespace

std::string two_columns(std::span<const Row> rows, const TextStyle& style) {
  std::size_t longest = 0;
  for (const auto& [left, right] : rows) longest = std::max(longest, left.size());
  std::size_t start = kIndent + longest + kIndent;
  const bool below = style.width > 0 && start + kLeastRoom > style.width;
  if (below) start = kDeepIndent;

  std::string text;
  for (const auto& [left, right] : rows) {
    std::string line = blanks(kIndent) + left;
    if (!right.empty()) line += below ? "\n" + blanks(start) : blanks(start - line.size());
    line += right;
    text += (style.width > 0 ? config::wrap(line, style.width, start) : line) + "\n";
  }
  return text;
}

}  // namespace phalanx
