// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/encode_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "trainer/base/user_error.h"
#include "trainer/base/utf8.h"
#include "trainer/base/utf8_repair.h"
#include "trainer/data/text/json_line.h"
#include "trainer/data/text/text_stream.h"

namespace phalanx {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 18;

DocumentText text_of_line(const std::string& line, const std::string& field) {
  const JsonLine read = read_json_line(line);
  const auto found = read.object.find(field);
  if (found == read.object.end()) {
    throw UserError(
        fmt::format("has no field '{}': name the one with the text (option --field of tokenize, "
                    "config field 'field' of the source)",
                    field));
  }
  if (!found->is_string()) throw UserError(fmt::format("has no text in the field '{}'", field));
  return {.text = found->get<std::string>(), .has_broken_characters = read.has_broken_characters};
}

// The number of the line that begins at an offset. It is read anew: nobody counts while all is
// well.
int64_t line_at(const std::filesystem::path& file, int64_t offset) {
  const auto stream = open_text(file);
  std::string part(kReadAtOnce, '\0');
  int64_t line = 1;
  while (offset > 0) {
    const auto wanted = std::min<int64_t>(offset, static_cast<int64_t>(part.size()));
    const size_t count = stream->read(std::span(part).first(static_cast<size_t>(wanted)));
    if (count == 0) break;
    line += std::count(part.begin(), part.begin() + static_cast<int64_t>(count), '\n');
    offset -= static_cast<int64_t>(count);
  }
  return line;
}

int64_t characters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); });
}

}  // namespace

DocumentText text_of(const Document& document, const std::filesystem::path& file,
                     const std::string& field) {
  if (!is_json_lines(file)) {
    const std::string& text = document.text;
    return {.text = text, .has_broken_characters = well_formed_length(text) != text.size()};
  }
  if (document.text.find_first_not_of(" \t\r") == std::string::npos) return {};
  try {
    return text_of_line(document.text, field);
  } catch (const UserError& e) {
    throw UserError(fmt::format("'{}', line {}, byte {}: the line {}", file.string(),
                                line_at(file, document.offset), document.offset, e.what()));
  }
}

std::vector<EncodedDocument> encode_documents(const Tokenizer& tokenizer,
                                              const std::vector<Document>& documents,
                                              const std::vector<std::filesystem::path>& files,
                                              const std::string& field) {
  std::vector<EncodedDocument> encoded;
  encoded.reserve(documents.size());
  for (const Document& document : documents) {
    const std::filesystem::path& file = files[document.file];
    const DocumentText text = text_of(document, file, field);
    EncodedDocument& result = encoded.emplace_back();
    result.has_broken_characters = text.has_broken_characters;
    result.characters = characters_of(text.text);
    try {
      tokenizer.encode(text.text, SpecialText::ordinary, result.tokens);
    } catch (const UserError& e) {
      throw UserError(fmt::format("'{}', the document at byte {}: {}", file.string(),
                                  document.offset, e.what()));
    }
  }
  return encoded;
}

}  // namespace phalanx
