// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace phalanx {

/// What a text file holds.
enum class TextForm {
  plain,       ///< Text.
  json_lines,  ///< Lines, each a JSON object: its name ends with .jsonl, perhaps packed.
  json_array,  ///< One JSON array of objects: its name ends with .json, and so it begins.
};

/// Looks into a file if its name ends with .json, perhaps packed. Throws as open_text.
TextForm form_of(const std::filesystem::path& path);

/// Whether a file's lines are JSON objects.
bool is_json_lines(const std::filesystem::path& path);

/// Whether a file's name ends with .csv or .tsv, perhaps packed: a table of values.
bool has_table_name(const std::filesystem::path& path);

/// How to write a table as JSONL.
inline constexpr const char* kTableAsJsonLines =
    "write it as JSONL, in Python: pandas.read_csv(FILE).to_json('NAME.jsonl', orient='records', "
    "lines=True)";

/// Whether a file's name ends with .json, perhaps packed.
bool has_json_name(const std::filesystem::path& path);

}  // namespace phalanx
