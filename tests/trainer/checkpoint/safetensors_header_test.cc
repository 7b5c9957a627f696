// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/safetensors_header.h"

#include <c10/core/ScalarType.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "trainer/checkpoint/format/checkpoint_error.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::string parse_error(std::string_view text, uint64_t data_size = 16) {
  try {
    parse_safetensors_header(text, data_size);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SafetensorsHeader, ReadsEntriesInTheOrderOfTheirData) {
  const SafetensorsHeader header = parse_safetensors_header(
      R"({"b":{"shape":[2],"dtype":"F32","data_offsets":[8,16]},"__metadata__":{"k":"v"},)"
      R"("a":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}   )",
      16);
  ASSERT_EQ(header.entries.size(), 2U);
  EXPECT_EQ(header.entries[0].name, "a");
  EXPECT_EQ(header.entries[0].dtype, at::kBFloat16);
  EXPECT_THAT(header.entries[0].shape, ElementsAre(2, 2));
  EXPECT_EQ(header.entries[1].name, "b");
  EXPECT_EQ(header.entries[1].begin, 8U);
  EXPECT_EQ(header.entries[1].end, 16U);
  EXPECT_THAT(header.metadata, ElementsAre(Pair("k", "v")));
}

TEST(SafetensorsHeader, EmptyTensorsAndScalarsAreLegal) {
  const SafetensorsHeader header =
      parse_safetensors_header(R"({"none":{"dtype":"F64","shape":[3,0,7],"data_offsets":[0,0]},)"
                               R"("one":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                               R"("end":{"dtype":"I8","shape":[0],"data_offsets":[8,8]}})",
                               8);
  EXPECT_EQ(header.entries.size(), 3U);
  EXPECT_EQ(parse_error("{}", 0), "accepted");
}

TEST(SafetensorsHeader, FormatsAsThePythonPackageDoes) {
  const SafetensorsHeader header{
      .entries = {{"w", at::kFloat, {1, 2}, 0, 8}, {"s\n\"é", at::kBool, {}, 8, 9}},
      .metadata = {{"format", "pt"}}};
  const std::string text = format_safetensors_header(header);
  EXPECT_EQ(text.size() % 8, 0U);
  EXPECT_EQ(
      text.substr(0, text.find_last_not_of(' ') + 1),
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
      R"("s\n\"é":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}})");
}

TEST(SafetensorsHeader, EveryDtypeHasItsName) {
  for (const auto& [name, dtype] :
       std::initializer_list<std::pair<const char*, at::ScalarType>>{{"F64", at::kDouble},
                                                                     {"F32", at::kFloat},
                                                                     {"F16", at::kHalf},
                                                                     {"BF16", at::kBFloat16},
                                                                     {"I64", at::kLong},
                                                                     {"I32", at::kInt},
                                                                     {"I16", at::kShort},
                                                                     {"I8", at::kChar},
                                                                     {"U8", at::kByte},
                                                                     {"BOOL", at::kBool}}) {
    EXPECT_EQ(safetensors_dtype_name(dtype), name);
    EXPECT_EQ(safetensors_dtype(name), dtype);
  }
  EXPECT_THROW(safetensors_dtype("F8_E4M3"), CheckpointError);
  EXPECT_THROW(safetensors_dtype_name(at::kComplexFloat), std::logic_error);
}

struct BadHeader {
  const char* label;
  std::string text;
  const char* message;
  uint64_t data_size = 16;
};

class BadHeaders : public testing::TestWithParam<BadHeader> {};

TEST_P(BadHeaders, AreRefused) {
  EXPECT_THAT(parse_error(GetParam().text, GetParam().data_size), HasSubstr(GetParam().message));
}

std::string entry(std::string_view fields) { return "{\"a\":{" + std::string(fields) + "}}"; }

INSTANTIATE_TEST_SUITE_P(
    Rules, BadHeaders,
    testing::Values(
        BadHeader{"Empty", "", "does not start with '{'"},
        BadHeader{"LeadingSpace", " {}", "does not start with '{'"},
        BadHeader{"ByteOrderMark", "\xEF\xBB\xBF{}", "does not start with '{'"},
        BadHeader{"NotJson", "{\"a\"", "not valid JSON"},
        BadHeader{"TrailingText", "{} x", "not valid JSON", 0},
        BadHeader{"TrailingZeroByte", std::string("{}\0", 3), "zero byte", 0},
        BadHeader{"Comment", "{/* */}", "not valid JSON", 0},
        BadHeader{"InvalidUtf8",
                  "{\"\xC3\x28\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
                  "not valid JSON"},
        BadHeader{"TopIsNested", "{\"a\":[[[[[[", "a list in the entry"},
        BadHeader{"EntryIsNumber", "{\"a\":3}", "a number in the entry of tensor 'a'"},
        BadHeader{"NameThatTerminalsObey", R"({"\u001b[2Ja":3})", "entry of tensor ' [2Ja'"},
        BadHeader{"EntryIsNull", "{\"a\":null}", "null in the entry"},
        BadHeader{"MetadataIsList", "{\"__metadata__\":[]}", "__metadata__"},
        BadHeader{"MetadataValueIsNumber", "{\"__metadata__\":{\"k\":1}}", "__metadata__"},
        BadHeader{"MetadataKeyTwice", R"({"__metadata__":{"k":"1","k":"2"}})",
                  "the metadata key 'k' appears twice"},
        BadHeader{"MetadataTwice", R"({"__metadata__":{},"__metadata__":{}})",
                  "'__metadata__' appears twice", 0},
        BadHeader{"NameTwice",
                  R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
                  "the key 'a' appears twice"},
        BadHeader{"FieldTwice", entry(R"("dtype":"F32","dtype":"F32")"), "'dtype' of tensor 'a'"},
        BadHeader{"ShapeTwice", entry(R"("shape":[4],"shape":[])"), "'shape' of tensor 'a'"},
        BadHeader{"UnknownField", entry(R"("stride":[1])"), "unknown field 'stride'"},
        BadHeader{"DtypeMissing", entry(R"("shape":[4],"data_offsets":[0,16])"), "lacks one of"},
        BadHeader{"ShapeMissing", entry(R"("dtype":"F32","data_offsets":[0,16])"), "lacks one of"},
        BadHeader{"OffsetsMissing", entry(R"("dtype":"F32","shape":[4])"), "lacks one of"},
        BadHeader{"UnknownDtype", entry(R"("dtype":"F31","shape":[4],"data_offsets":[0,16])"),
                  "unknown dtype 'F31'"},
        BadHeader{"DtypeIsNumber", entry(R"("dtype":32)"), "a number in the entry"},
        BadHeader{"NegativeExtent", entry(R"("shape":[-4])"), "a negative number"},
        BadHeader{"FractionalExtent", entry(R"("shape":[4.0])"), "no 64-bit integer"},
        BadHeader{"TextExtent", entry(R"("shape":["4"])"), "a text in the entry"},
        BadHeader{"NestedShape", entry(R"("shape":[[4]])"), "a list in the entry"},
        BadHeader{"HugeExtent",
                  entry(R"("dtype":"U8","shape":[9223372036854775808],)"
                        R"("data_offsets":[0,16])"),
                  "a dimension of 9223372036854775808"},
        BadHeader{"ExtentBeyond64Bits", entry(R"("shape":[99999999999999999999])"),
                  "no 64-bit integer"},
        BadHeader{"ProductOverflows",
                  entry(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])"),
                  "too large", 0},
        BadHeader{"ProductOverflowsBesideZero",
                  entry(R"("dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"),
                  "too large", 0},
        BadHeader{"OneOffset", entry(R"("dtype":"F32","shape":[4],"data_offsets":[0])"),
                  "has 1 data_offsets"},
        BadHeader{"ThreeOffsets", entry(R"("dtype":"F32","shape":[4],"data_offsets":[0,8,16])"),
                  "has 3 data_offsets"},
        BadHeader{"ReversedOffsets",
                  entry(R"("dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                        R"("b":{"dtype":"F32","shape":[0],"data_offsets":[16,8])"),
                  "reversed"},
        BadHeader{"SizeDiffers", entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,16])"),
                  "16 bytes of data, but its shape and dtype make 12"},
        BadHeader{"StartsLate", entry(R"("dtype":"F32","shape":[3],"data_offsets":[4,16])"),
                  "a hole"},
        BadHeader{"Hole",
                  entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                        R"("b":{"dtype":"F32","shape":[2],"data_offsets":[8,16])"),
                  "tensor 'b' stands at [8, 16), but the data before it ends at 4"},
        BadHeader{"Overlap",
                  entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,12]},)"
                        R"("b":{"dtype":"F32","shape":[2],"data_offsets":[8,16])"),
                  "an overlap"},
        BadHeader{"SameRangeTwice",
                  entry(R"("dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                        R"("b":{"dtype":"F32","shape":[4],"data_offsets":[0,16])"),
                  "an overlap"},
        BadHeader{"DataBeyondTheTensors",
                  entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"),
                  "end at byte 8 of the data, which has 16"},
        BadHeader{"TensorsBeyondTheData",
                  entry(R"("dtype":"F32","shape":[8],"data_offsets":[0,32])"),
                  "end at byte 32 of the data, which has 16"}),
    [](const auto& info) { return info.param.label; });

TEST(SafetensorsHeader, MessagesStayShortWhateverTheFileHolds) {
  EXPECT_LT(parse_error(entry("\"" + std::string(100000, 'x') + "\":1")).size(), 400U);
}

// Mutates a sound header: every outcome but a clear error or a sound header would crash the test
// or, under the sanitizers, be reported.
TEST(SafetensorsHeader, SurvivesMutatedHeaders) {
  const std::string sound =
      R"({"__metadata__":{"format":"pt"},"h.0.w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[16,17]}})";
  const std::string alphabet =
      "{}[]\",:0123456789-.eE \\u\xC3\x28\x01truefalsn" + std::string(1, '\0');
  std::mt19937 random(20240229);
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  int accepted = 0;
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = sound;
    for (size_t edits = 1 + below(6); edits > 0; --edits) {
      const size_t place = below(text.size());
      switch (below(4)) {
        case 0:
          text[place] = alphabet[below(alphabet.size())];
          break;
        case 1:
          text.insert(place, 1, alphabet[below(alphabet.size())]);
          break;
        case 2:
          text.erase(place, 1 + below(8));
          break;
        default:
          text.insert(place, text.substr(below(text.size()), below(40)));
      }
      if (text.empty()) text = "{";
    }
    try {
      const SafetensorsHeader header = parse_safetensors_header(text, 17);
      EXPECT_EQ(header.entries.empty() ? 0 : header.entries.back().end, 17U);
      ++accepted;
    } catch (const CheckpointError&) {
      ++refused;
    }
  }
  // Both ways were taken, so the mutations are neither blunt nor harmless.
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace phalanx
