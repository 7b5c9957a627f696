// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/learn_characters.h"

#include <set>
#include <string_view>

#include "trainer/base/user_error.h"
#include "trainer/base/utf8.h"
#include "trainer/base/utf8_repair.h"
#include "trainer/data/text/document_reader.h"
#include "trainer/data/text/text_stream.h"

namespace phalanx {
namespace {

constexpr size_t kBatchBytes = size_t{1} << 20;

void add_characters(const std::string& text, std::set<std::string>& characters) {
  for (std::string_view rest = text; !rest.empty();) {
    const size_t length = character_length(rest);
    characters.emplace(rest.substr(0, length));
    rest.remove_prefix(length);
  }
}

void add_json(const std::filesystem::path& file, const std::string& field,
              OnBrokenDocument on_broken, std::set<std::string>& characters) {
  DocumentReader reader({file}, DocumentUnit::line, {});
  while (true) {
    const std::vector<Document> documents = reader.next(kBatchBytes);
    if (documents.empty()) break;
    for (const Document& document : documents) {
      try {
        add_characters(repaired_utf8(text_of(document, file, field).text), characters);
      } catch (const BrokenDocument&) {
        if (on_broken == OnBrokenDocument::stop) throw;
      }
    }
  }
}

void add_plain(const std::filesystem::path& file, std::set<std::string>& characters) {
  const auto stream = open_text(file);
  std::string text;
  std::string part(kBatchBytes, '\0');
  while (const size_t count = stream->read(part)) {
    text.append(part, 0, count);
    const size_t whole = text.size() - unfinished_length(text);
    add_characters(repaired_utf8(std::string_view(text).substr(0, whole)), characters);
    text.erase(0, whole);
  }
  add_characters(repaired_utf8(text), characters);
}

}  // namespace

std::string learn_characters(const FileList& files, const std::string& field,
                             OnBrokenDocument on_broken) {
  std::set<std::string> characters;
  for (const std::filesystem::path file : files) {
    if (form_of(file) == TextForm::plain) {
      add_plain(file, characters);
    } else {
      add_json(file, field, on_broken, characters);
    }
  }
  if (characters.empty()) throw UserError("the texts have no characters");
  std::string all;
  for (const std::string& character : characters) all += character;
  return all;
}

}  // namespace phalanx
