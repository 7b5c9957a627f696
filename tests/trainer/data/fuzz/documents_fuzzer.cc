// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>
#include <vector>

#include "tests/fuzz/promise.h"
#include "tests/fuzz/target.h"
#include "tests/trainer/data/fuzz/use.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/base/utf8_repair.h"
#include "trainer/data/text/document_reader.h"
#include "trainer/data/text/encode_documents.h"
#include "trainer/data/text/learn_characters.h"

using namespace phalanx;

namespace {

namespace fs = std::filesystem;

/// All documents from a place on. Where there are more than one batch, those behind the first must
/// be what another reader finds from there on.
std::vector<Document> read_all(const fs::path& file, DocumentUnit unit,
                               DocumentReader::Position from) {
  DocumentReader reader({file}, unit, from);
  std::vector<Document> all = reader.next(20);
  if (all.empty()) return all;
  const std::vector<Document> rest = read_all(file, unit, reader.position());
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

void require_same(const std::vector<Document>& found, const std::vector<Document>& expected) {
  fuzzing::require(found.size() == expected.size(), "a reader goes on where another one stopped");
  for (std::size_t i = 0; i < found.size(); ++i) {
    fuzzing::require(found[i].text == expected[i].text && found[i].offset == expected[i].offset,
                     "a reader goes on with the same documents");
  }
}

}  // namespace

/// The input is a byte that says what a document is, and a file, perhaps packed.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  if (size == 0) return 0;
  const bool is_json = data[0] % 2 == 1;
  const auto unit = static_cast<DocumentUnit>(data[0] / 2 % 3);
  const fs::path file = folder / (is_json ? "a.jsonl" : "a.txt");
  fuzzing::write_bytes(file, fuzzing::text_of(data + 1, size - 1));
  try {
    const std::vector<Document> documents = DocumentReader({file}, unit, {}).next(1 << 30);
    if (documents.size() < 50) require_same(read_all(file, unit, {}), documents);
    for (const Document& document : documents) text_of(document, file, "text");
    const std::string characters = learn_characters({file}, "text");
    fuzzing::require(well_formed_length(characters) == characters.size(), "characters are UTF-8");
  } catch (const UserError& error) {
    fuzzing::require(*error.what() != '\0', "an error says what is wrong");
  }
  return 0;
}
