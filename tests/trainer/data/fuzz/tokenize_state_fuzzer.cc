// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tests/fuzz/promise.h"
#include "tests/fuzz/target.h"
#include "tests/trainer/data/fuzz/use.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/data/text/tokenize.h"
#include "trainer/data/text/tokenize_state.h"
#include "trainer/io/file.h"

using namespace phalanx;

namespace {

namespace fs = std::filesystem;

/// Texts, and a tokenizer for them.
struct Subject {
  Subject() {
    for (const char* name : {"1", "2"}) {
      fuzzing::write_bytes(folder / name, "abc\ncab\n\nbbb");
      options.files.add((folder / name).native());
    }
    options.unit = DocumentUnit::line;
    options.validation_fraction = 0.5;
  }

  TemporaryFolder folder;
  TokenizeOptions options;
  LoadedTokenizer tokenizer = character_tokenizer("abc");
};

/// What a killed process has left, without its state.
void write_work(const fs::path& work, std::size_t bytes) {
  fs::create_directories(work);
  for (const char* part : {"train", "val"}) {
    for (const char* file : {"_000000.bin", "_000000.lengths", "_000001.bin", "_000001.lengths"}) {
      fuzzing::write_bytes(work / (std::string(part) + file), std::string(bytes, '\1'));
    }
  }
}

}  // namespace

/// The input is a byte that says which format is written, one that says how much of it there is
/// already, and the state of state.json.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Subject subject;
  if (size < 2) return 0;
  subject.options.format = static_cast<TokenFileFormat>(data[0] % 3);
  const fs::path output = subject.folder / "tokens";
  const fs::path work = work_folder(output);
  write_work(work, std::size_t{data[1]} * 8);
  const auto texts = states_of(subject.options.files);
  const std::string identity = identity_of(subject.tokenizer, subject.options, texts).dump();
  const std::string state(fuzzing::text_of(data + 2, size - 2));
  fuzzing::write_bytes(work / "state.json",
                       R"({"identity": )" + identity + R"(, "state": )" + state + "}");
  try {
    ByteProgress progress;
    tokenize(subject.tokenizer, subject.options, output, progress);
    fuzzing::require(fs::exists(output / "tokens.json"), "what is made is whole");
    fuzzing::require(!fs::exists(work), "nothing is left behind");
  } catch (const UserError& error) {
    fuzzing::require(*error.what() != '\0', "an error says what is wrong");
  }
  fs::remove_all(output);
  fs::remove_all(work);
  return 0;
}
