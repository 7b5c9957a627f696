// SPDX-License-Identifier: Apache-2.0
// The sources that come with Phalanx: what they read, and how they refuse what is broken.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/data/places.h"
#include "tests/trainer/data/text_folder.h"
#include "tests/trainer/registered.h"
#include "trainer/base/user_error.h"
#include "trainer/data/token_source.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class Number>
std::string stored(std::initializer_list<Number> numbers) {
  std::string bytes;
  for (const Number number : numbers) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);  // NOLINT
  }
  return bytes;
}

std::string llmc_file(int32_t magic, int32_t version, int32_t count, const std::string& tokens) {
  std::string header = stored({magic, version, count});
  header.resize(1024);
  return header + tokens;
}

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);

struct Index {
  uint64_t version = 1;
  uint8_t type = 8;
  std::vector<int32_t> lengths;
  std::vector<int64_t> pointers;
  std::vector<int64_t> documents;

  std::string bytes() const {
    std::string text = std::string(kMagic) + stored({version}) + stored({type}) +
                       stored({uint64_t{lengths.size()}}) + stored({uint64_t{documents.size()}});
    for (const int32_t length : lengths) text += stored({length});
    for (const int64_t pointer : pointers) text += stored({pointer});
    for (const int64_t document : documents) text += stored({document});
    return text;
  }
};

// Three sequences, of which the last two are one document.
Index good_index() { return {.lengths = {2, 1, 3}, .pointers = {0, 4, 6}, .documents = {0, 1, 3}}; }

std::shared_ptr<const TokenSet> open(const std::string& name, const std::string& config) {
  return make_registered<TokenSource>(name, config)->open("data.source");
}

std::vector<int64_t> tokens_of(const TokenSet& set) {
  std::vector<int64_t> tokens(static_cast<size_t>(set.size()));
  set.read(0, tokens);
  return tokens;
}

std::vector<int64_t> documents_of(const TokenSet& set) {
  return places_of(set.document_begins(0, set.size()));
}

std::string error_of(const std::string& name, const std::string& config) {
  try {
    open(name, config);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

std::string files(const std::filesystem::path& path) {
  return "{files: ['" + path.string() + "']}";
}

TEST(TokenSources, OfBytesAreTextFiles) {
  const TextFolder folder;
  folder.write("a", "ab");
  folder.write("b", "c");
  const auto set = open("bytes", files(folder.path()));
  EXPECT_THAT(tokens_of(*set), ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(documents_of(*set), ElementsAre(0, 2));
  EXPECT_EQ(set->element(), "bytes");
}

TEST(TokenSources, OfLlmcAreBothVersions) {
  const TextFolder folder;
  const std::string tokens = stored<uint16_t>({50256, 7, 8, 50256, 9});
  const auto first = open("llmc", files(folder.write("a.bin", llmc_file(20240520, 1, 5, tokens))));
  EXPECT_THAT(tokens_of(*first), ElementsAre(50256, 7, 8, 50256, 9));
  EXPECT_THAT(documents_of(*first), ElementsAre(0, 3));
  const std::string wide = stored<uint32_t>({128000, 100000, 5});
  const auto path = folder.write("b.bin", llmc_file(20240801, 7, 3, wide));
  EXPECT_THAT(tokens_of(*open("llmc", files(path))), ElementsAre(128000, 100000, 5));
  const auto other = open("llmc", "{files: ['" + path.string() + "'], end_of_text: 5}");
  EXPECT_THAT(documents_of(*other), ElementsAre(2));
}

TEST(TokenSources, OfLlmcReadShardsInTheirOrder) {
  const TextFolder folder;
  for (const uint16_t number : {2, 0, 1}) {
    folder.write("train_00000" + std::to_string(number) + ".bin",
                 llmc_file(20240520, 1, 1, stored<uint16_t>({number})));
  }
  EXPECT_THAT(tokens_of(*open("llmc", files(folder.path() / "train_*.bin"))), ElementsAre(0, 1, 2));
}

TEST(TokenSources, OfLlmcRefuseWhatIsBroken) {
  const TextFolder folder;
  const std::string two = stored<uint16_t>({1, 2});
  const auto error = [&](const std::string& content) {
    return error_of("llmc", files(folder.write("x.bin", content)));
  };
  EXPECT_THAT(error("short"),
              AllOf(HasSubstr("data.source.files"), HasSubstr("x.bin' is too short")));
  EXPECT_THAT(error(llmc_file(1, 2, 2, two)),
              HasSubstr("it begins with 1 and 2, not with 20240520"));
  EXPECT_THAT(error(llmc_file(20240520, 7, 2, two)), HasSubstr("begins with 20240520 and 7"));
  EXPECT_THAT(error(llmc_file(20240520, 1, 3, two)),
              HasSubstr("has 1028 bytes, but its header names 3 tokens, which need 1030"));
  EXPECT_THAT(error(llmc_file(20240520, 1, 1, two)), HasSubstr("names 1 tokens, which need 1026"));
  EXPECT_THAT(error(llmc_file(20240520, 1, -1, "")), HasSubstr("names -1 tokens"));
}

TEST(TokenSources, OfNanoGptAreTokensAlone) {
  const TextFolder folder;
  const auto path = folder.write("t.bin", stored<uint16_t>({5, 50256, 6, 7}));
  const auto set = open("nanogpt", files(path));
  EXPECT_THAT(tokens_of(*set), ElementsAre(5, 50256, 6, 7));
  EXPECT_THAT(documents_of(*set), ElementsAre(0, 2));
  const auto whole = open("nanogpt", "{files: ['" + path.string() + "'], end_of_text: null}");
  EXPECT_THAT(documents_of(*whole), ElementsAre(0));
  const auto wide = open("nanogpt", "{files: ['" + path.string() + "'], dtype: uint32}");
  EXPECT_THAT(tokens_of(*wide), ElementsAre(5 + (int64_t{50256} << 16), 6 + (7 << 16)));
}

TEST(TokenSources, OfNanoGptRefuseWhatIsBroken) {
  const TextFolder folder;
  EXPECT_THAT(error_of("nanogpt", files(folder.write("x.bin", "abc"))),
              HasSubstr("has 3 bytes, no multiple of the 2 of a token"));
  EXPECT_THAT(error_of("nanogpt", files(folder.write("y.bin", llmc_file(20240520, 1, 0, "")))),
              HasSubstr("name this source 'llmc'"));
}

TEST(TokenSources, OfMegatronAreIndexedSets) {
  const TextFolder folder;
  folder.write("a.idx", good_index().bytes());
  const auto data = folder.write("a.bin", stored<uint16_t>({1, 2, 3, 4, 5, 6}));
  const auto prefix = folder.path() / "a";
  for (const auto& named : {prefix, folder.path() / "a.idx", data, folder.path()}) {
    const auto set = open("megatron", files(named));
    EXPECT_THAT(tokens_of(*set), ElementsAre(1, 2, 3, 4, 5, 6)) << named;
    EXPECT_THAT(documents_of(*set), ElementsAre(0, 2)) << named;
    EXPECT_THAT(places_of(set->document_begins(1, 6)), ElementsAre(2));
    EXPECT_THAT(set->document_begins(3, 6), testing::IsEmpty());
  }
}

TEST(TokenSources, OfMegatronMayHoldEmptyDocuments) {
  const TextFolder folder;
  folder.write(
      "a.idx",
      Index{.lengths = {2, 0, 1}, .pointers = {0, 4, 4}, .documents = {0, 1, 2, 3}}.bytes());
  folder.write("a.bin", stored<uint16_t>({1, 2, 3}));
  EXPECT_THAT(documents_of(*open("megatron", files(folder.path() / "a"))), ElementsAre(0, 2));
}

TEST(TokenSources, OfMegatronRefuseWhatIsBroken) {
  const TextFolder folder;
  folder.write("a.bin", stored<uint16_t>({1, 2, 3, 4, 5, 6}));
  const auto error = [&](const std::string& index) {
    folder.write("a.idx", index);
    return error_of("megatron", files(folder.path() / "a"));
  };
  const auto changed = [&](auto change) {
    Index index = good_index();
    change(index);
    return error(index.bytes());
  };
  EXPECT_EQ(error(good_index().bytes()), "no error");
  EXPECT_THAT(error("MMIDIDX"), HasSubstr("is no index of Megatron"));
  EXPECT_THAT(error(std::string(100, 'x')), HasSubstr("is no index of Megatron"));
  EXPECT_THAT(changed([](Index& i) { i.version = 2; }), HasSubstr("is of version 2"));
  EXPECT_THAT(changed([](Index& i) { i.type = 7; }), HasSubstr("of type 7, which is no integer"));
  const std::string whole = good_index().bytes();
  for (size_t size = 34; size < whole.size(); ++size) {
    EXPECT_THAT(error(whole.substr(0, size)), HasSubstr("is cut off")) << size;
  }
  std::string huge = whole;
  huge.replace(18, 8, stored<uint64_t>({~uint64_t{0}}));
  EXPECT_THAT(error(huge), HasSubstr("is cut off"));
  EXPECT_THAT(changed([](Index& i) { i.lengths[1] = -1; }), HasSubstr("sequence 1 a length of -1"));
  EXPECT_THAT(changed([](Index& i) { i.pointers[1] = 2; }),
              HasSubstr("sequence 1 begin at byte 2"));
  EXPECT_THAT(changed([](Index& i) {
                i.documents = {0, 1, 2};
              }),
              HasSubstr("from sequence 0 to 2"));
  EXPECT_THAT(changed([](Index& i) {
                i.documents = {0, 4, 3};
              }),
              HasSubstr("begin behind document"));
  EXPECT_THAT(changed([](Index& i) {
                i.documents = {0, -9, 3};
              }),
              HasSubstr("begin behind document"));
  EXPECT_THAT(changed([](Index& i) { i.lengths[2] = 2; }),
              AllOf(HasSubstr("a.bin' has 12 bytes"), HasSubstr("index ends at byte 10")));
  EXPECT_THAT(changed([](Index& i) { i.type = 4; }), HasSubstr("begin at byte"));
  std::filesystem::remove(folder.path() / "a.bin");
  EXPECT_THAT(error(whole), AllOf(HasSubstr("cannot read"), HasSubstr("a.bin")));
}

// Three bytes, and two tokens of which the second is a document.
std::string two_sources(const TextFolder& folder) {
  const auto text = folder.write("text", "abc");
  const auto tokens = folder.write("t.bin", stored<uint16_t>({50256, 7}));
  return "{name: bytes, files: ['" + text.string() + "']}, {name: nanogpt, files: ['" +
         tokens.string() + "']}";
}

TEST(TokenSources, OfAConcatenationFollowEachOther) {
  const TextFolder folder;
  const auto set = open("concatenation", "{sources: [" + two_sources(folder) + "]}");
  EXPECT_THAT(tokens_of(*set), ElementsAre('a', 'b', 'c', 50256, 7));
  EXPECT_THAT(documents_of(*set), ElementsAre(0, 3, 4));
  EXPECT_EQ(set->element(), "tokens");
  EXPECT_THAT(error_of("concatenation",
                       "{sources: [" + two_sources(folder) + ", {name: bytes, files: [gone]}]}"),
              AllOf(HasSubstr("data.source.sources[2].files"), HasSubstr("'gone'")));
}

TEST(TokenSources, OfARangeAreAPartOfAnother) {
  const TextFolder folder;
  const std::string whole = "source: {name: concatenation, sources: [" + two_sources(folder) + "]}";
  const auto set = open("range", "{" + whole + ", begin: 1, end: 4}");
  EXPECT_THAT(tokens_of(*set), ElementsAre('b', 'c', 50256));
  EXPECT_THAT(documents_of(*set), ElementsAre(2));
  EXPECT_THAT(set->place_of(2), AllOf(HasSubstr("t.bin"), HasSubstr("token 0")));
  EXPECT_THAT(tokens_of(*open("range", "{" + whole + ", begin: 3}")), ElementsAre(50256, 7));
  EXPECT_THAT(error_of("range", "{" + whole + ", begin: 2, end: 6}"),
              HasSubstr("tokens from 2 to 6 are no part of the source, which has 5"));
  EXPECT_THAT(error_of("range", "{" + whole + ", begin: 5}"), HasSubstr("from 5 to 5"));
}

TEST(TokenSources, OfMegatronWithoutAnyAreRefused) {
  const TextFolder folder;
  folder.write("notes.txt", "x");
  EXPECT_THAT(error_of("megatron", files(folder.path())), HasSubstr("no file that ends with .idx"));
}

}  // namespace
}  // namespace phalanx
