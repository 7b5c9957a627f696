// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/data/source_files.h"
#include "trainer/data/stored_tokens.h"
#include "trainer/data/token_source.h"
#include "trainer/data/tokens_of_files.h"

namespace phalanx {
namespace {

constexpr int64_t kHeaderBytes = 256 * sizeof(int32_t);

// What a file's header names: dev/data/data_common.py of llm.c.
struct Version {
  int32_t magic;
  int32_t number;
  TokenType type;
  int64_t end_of_text;  // of the tokenizer that it is written with
};
constexpr std::array kVersions = {
    Version{20240520, 1, TokenType::uint16, 50256},   // GPT-2
    Version{20240801, 7, TokenType::uint32, 128000},  // Llama 3
};

/// The token files of llm.c, both versions: a header, then tokens; each document behind an
/// end-of-text token, and cut where a file ends.
class Llmc : public TokenSource {
 public:
  struct Config {
    std::vector<std::filesystem::path> files;
    std::optional<int64_t> end_of_text;

    static void describe(config::Schema<Config>& s) {
      s.field("files", &Config::files, "files, folders (with all files below them), glob patterns")
          .mandatory()
          .resume_may_change();
      s.field(
           "end_of_text", &Config::end_of_text,
           "the token that each document begins with; auto: 50256 (GPT-2) in files of version 1, "
           "128000 (Llama 3) in files of version 7")
          .at_least(0)
          .null_is("auto");
    }
  };

  explicit Llmc(Config config) : config_(std::move(config)) {}

  std::shared_ptr<const TokenSet> open(const std::string& field) const override {
    return open_files(field + ".files", config_.files,
                      [&](const DataFile& file) { return layout_of(field, file); });
  }

 private:
  TokenLayout layout_of(const std::string& field, const DataFile& file) const {
    const auto fail = [&](const std::string& problem) {
      throw UserError(fmt::format("{}.files: '{}' {}", field, file.path().string(), problem));
    };
    std::array<int32_t, 3> header{};
    if (file.size() < kHeaderBytes) {
      fail("is too short for the header of a token file of llm.c: get the file again");
    }
    std::array<unsigned char, sizeof header> bytes{};
    file.read(0, bytes);
    std::memcpy(header.data(), bytes.data(), sizeof header);
    const auto [magic, number, count] = header;
    const Version* version = nullptr;
    for (const Version& known : kVersions) {
      if (known.magic == magic && known.number == number) version = &known;
    }
    if (version == nullptr) {
      fail(
          fmt::format("is no token file of llm.c that is known: it begins with {} and {}, not with "
                      "20240520 and 1 or 20240801 and 7",
                      magic, number));
    }
    const int64_t needed = kHeaderBytes + count * bytes_of(version->type);
    if (count < 0 || static_cast<int64_t>(file.size()) != needed) {
      fail(
          fmt::format("has {} bytes, but its header names {} tokens, which need {}: it is cut off "
                      "or broken: get the file again",
                      file.size(), count, needed));
    }
    return {.type = version->type,
            .offset = kHeaderBytes,
            .ends = DocumentEnds{.end_of_text = config_.end_of_text.value_or(version->end_of_text),
                                 .is_first = true}};
  }

  Config config_;
};

REGISTER_TOKEN_SOURCE("llmc", Llmc);

}  // namespace
}  // namespace phalanx
