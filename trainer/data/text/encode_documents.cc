// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/encode_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "trainer/base/utf8.h"
#include "trainer/base/utf8_repair.h"
#include "trainer/data/text/json_line.h"
#include "trainer/data/text/text_stream.h"

namespace phalanx {
namespace {

constexpr size_t kReadAtOnce = size_t{1} << 18;

JsonLine object_of(const std::string& text) {
  try {
    return read_json_line(text);
  } catch (const UserError& e) {
    throw BrokenDocument("no JSON object", e.what());
  }
}

DocumentText text_of_object(const std::string& text, const std::string& field) {
  const JsonLine read = object_of(text);
  const auto found = read.object.find(field);
  if (found == read.object.end()) {
    throw BrokenDocument(
        fmt::format("no field '{}'", field),
        fmt::format("has no field '{}': name the one with the text (option --field of tokenize, "
                    "config field 'field' of the source)",
                    field));
  }
  if (!found->is_string()) {
    throw BrokenDocument(fmt::format("no text in the field '{}'", field),
                         no_text_in(field, *found));
  }
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

EncodedDocument encode_document(const Tokenizer& tokenizer, const Document& document,
                                const std::filesystem::path& file, const std::string& field) {
  const DocumentText text = text_of(document, file, field);
  EncodedDocument encoded;
  encoded.has_broken_characters = text.has_broken_characters;
  encoded.characters = characters_of(text.text);
  try {
    tokenizer.encode(text.text, SpecialText::ordinary, encoded.tokens);
  } catch (const UserError& e) {
    const bool is_whole = document.begins && document.ends;
    throw BrokenDocument(
        "a text that the tokenizer cannot encode",
        fmt::format("'{}', the {} at byte {}: {}", file.string(),
                    is_whole ? "document" : "part of a document", document.offset, e.what()));
  }
  return encoded;
}

}  // namespace

DocumentText text_of(const Document& document, const std::filesystem::path& file,
                     const std::string& field) {
  const std::string& text = document.text;
  if (document.form == TextForm::plain) {
    return {.text = text, .has_broken_characters = well_formed_length(text) != text.size()};
  }
  const bool is_line = document.form == TextForm::json_lines;
  if (is_line && text.find_first_not_of(" \t\r") == std::string::npos) return {};
  try {
    return text_of_object(text, field);
  } catch (const BrokenDocument& e) {
    throw BrokenDocument(e.kind(), fmt::format("'{}', line {}, byte {}: the {} {}", file.string(),
                                               line_at(file, document.offset), document.offset,
                                               is_line ? "line" : "object", e.what()));
  }
}

std::vector<EncodedDocument> encode_documents(const Tokenizer& tokenizer,
                                              const std::vector<Document>& documents,
                                              const FileList& files, const std::string& field,
                                              OnBrokenDocument on_broken) {
  std::vector<EncodedDocument> encoded;
  encoded.reserve(documents.size());
  for (const Document& document : documents) {
    EncodedDocument result;
    try {
      result = encode_document(tokenizer, document, files[document.file], field);
    } catch (const BrokenDocument& e) {
      if (on_broken == OnBrokenDocument::stop) throw;
      result.problem = e;
    }
    result.begins = document.begins;
    result.ends = document.ends;
    result.begins_plain_json = document.begins_plain_json;
    encoded.push_back(std::move(result));
  }
  return encoded;
}

}  // namespace phalanx
