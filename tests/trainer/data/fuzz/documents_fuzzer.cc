// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>
#include <string_view>
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

/// Whether a file of Zstandard asks for much memory at its beginning, as `zstd --long` does.
/// Address space alone is taken, but sanitizers take seconds for that.
bool asks_for_much(std::string_view file) {
  if (file.size() < 6 || !file.starts_with("\x28\xb5\x2f\xfd")) return false;
  const auto descriptor = static_cast<unsigned char>(file[4]);
  const bool has_window = (descriptor & 0x20) == 0;
  const int window = static_cast<unsigned char>(file[5]) >> 3;  // Powers of two, in KiB.
  return has_window ? window > 12 : descriptor >= 0x80;
}

/// Another reader, from behind the first documents on, must find those behind them.
void require_goes_on(const fs::path& file, DocumentUnit unit,
                     const std::vector<Document>& documents) {
  DocumentReader first({file}, unit, {});
  const std::size_t done = first.next(20).size();
  const auto rest = DocumentReader({file}, unit, first.position()).next(1 << 30);
  fuzzing::require(done + rest.size() == documents.size(), "a reader goes on where one stopped");
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const Document& expected = documents[done + i];
    fuzzing::require(rest[i].text == expected.text && rest[i].offset == expected.offset,
                     "a reader goes on with the same documents");
  }
}

}  // namespace

/// The input is a byte that says what a document is and how the file is called, and a file, perhaps
/// packed.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  if (size == 0 || asks_for_much(fuzzing::text_of(data + 1, size - 1))) return 0;
  const bool is_json = data[0] % 2 == 1;
  const bool is_array = data[0] >= 0xC0;
  const auto unit = static_cast<DocumentUnit>(data[0] / 2 % 3);
  const fs::path file = folder / (is_array ? "a.json" : is_json ? "a.jsonl" : "a.txt");
  fuzzing::write_bytes(file, fuzzing::text_of(data + 1, size - 1));
  try {
    const std::vector<Document> documents = DocumentReader({file}, unit, {}).next(1 << 30);
    require_goes_on(file, unit, documents);
    for (const Document& document : documents) text_of(document, file, "text");
    const std::string characters = learn_characters({file}, "text");
    fuzzing::require(well_formed_length(characters) == characters.size(), "characters are UTF-8");
  } catch (const UserError& error) {
    fuzzing::require(*error.what() != '\0', "an error says what is wrong");
  }
  return 0;
}
