// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/text_form.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "trainer/data/text/text_stream.h"

namespace phalanx {
namespace {

constexpr std::string_view kJsonSpace = " \t\r\n";

std::filesystem::path extension_of(const std::filesystem::path& path) {
  std::filesystem::path name = path.filename();
  if (name.extension() == ".gz" || name.extension() == ".zst") name.replace_extension();
  return name.extension();
}

std::string_view without_space(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kJsonSpace), text.size()));
}

// Whether it begins as an array of objects, or of nothing, does.
bool begins_array(const std::filesystem::path& path) {
  std::array<char, 4096> begin{};
  const size_t count = open_text(path)->read(begin);
  const std::string_view text = without_space({begin.data(), count});
  if (!text.starts_with('[')) return false;
  const std::string_view first = without_space(text.substr(1));
  return first.starts_with('{') || first.starts_with(']');
}

}  // namespace

bool is_json_lines(const std::filesystem::path& path) { return extension_of(path) == ".jsonl"; }

bool has_table_name(const std::filesystem::path& path) {
  const std::filesystem::path extension = extension_of(path);
  return extension == ".csv" || extension == ".tsv";
}

bool has_json_name(const std::filesystem::path& path) { return extension_of(path) == ".json"; }

TextForm form_of(const std::filesystem::path& path) {
  if (is_json_lines(path)) return TextForm::json_lines;
  return has_json_name(path) && begins_array(path) ? TextForm::json_array : TextForm::plain;
}

}  // namespace phalanx
