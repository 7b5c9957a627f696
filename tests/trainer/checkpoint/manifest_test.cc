// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/manifest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"

namespace phalanx {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Manifest example() {
  Manifest manifest;
  manifest.state = {.phase = Phase::train,
                    .epoch = 2,
                    .step = 200,
                    .samples = 6400,
                    .tokens = 409600,
                    .epoch_samples = 12,
                    .elapsed = 61.25};
  manifest.config = R"({"name":"supervised","task":{"lr":0.1}})";
  manifest.data_fingerprint = "0123abcd";
  manifest.seed = std::numeric_limits<uint64_t>::max();
  manifest.global_batch_size = 32;
  manifest.metrics = {{"loss", 0.1},
                      {"worst", std::numeric_limits<double>::infinity()},
                      {"odd", std::numeric_limits<double>::quiet_NaN()}};
  manifest.previous = "step-00000100";
  manifest.phalanx_version = "0.1.0";
  manifest.torch_version = "2.11.0";
  manifest.files["model.safetensors"] = {.size = 100, .head_bytes = 76, .head_checksum = 255};
  manifest.tensors = {
      {.part = "model",
       .name = "w",
       .dtype = at::kFloat,
       .shape = {2, 3},
       .slices = {
           {.begin = 0, .end = 4, .file = "model.safetensors", .offset = 76, .checksums = {1}},
           {.begin = 4,
            .end = 6,
            .file = "model.safetensors",
            .offset = 92,
            .checksums = {std::numeric_limits<uint64_t>::max()}}}}};
  return manifest;
}

// The text with `from` replaced, and a checksum that fits: what a forger would write.
std::string forged(const std::string& from, const std::string& to) {
  std::string text = format_manifest(example());
  const size_t place = text.find(from);
  if (place == std::string::npos) throw std::logic_error("nothing to forge");
  text.replace(place, from.size(), to);
  const std::string body = text.substr(0, text.rfind(",\n  \"checksum\""));
  return body + ",\n  \"checksum\": \"" + checksum_digits(checksum_of(body)) + "\"\n}\n";
}

std::string parse_error(std::string_view text) {
  try {
    parse_manifest(text, "some/manifest.json");
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Manifest, SaysOnlyThatAValidationIsDue) {
  EXPECT_EQ(format_manifest(example()).find("validation_due"), std::string::npos)
      << "as programs write it that know of none";
  EXPECT_FALSE(parse_manifest(format_manifest(example()), "m").state.validation_due);
  Manifest due = example();
  due.state.validation_due = true;
  EXPECT_TRUE(parse_manifest(format_manifest(due), "m").state.validation_due);
  EXPECT_THAT(parse_error(forged(R"("epoch": 2,)", R"("epoch": 2, "validation_due": 1,)")),
              HasSubstr("some/manifest.json"));
}

TEST(Manifest, ComesBackAsItWas) {
  const Manifest manifest = parse_manifest(format_manifest(example()), "m");
  EXPECT_EQ(manifest.state.step, 200);
  EXPECT_EQ(manifest.state.epoch, 2);
  EXPECT_EQ(manifest.state.samples, 6400);
  EXPECT_EQ(manifest.state.tokens, 409600);
  EXPECT_EQ(manifest.state.epoch_samples, 12);
  EXPECT_EQ(manifest.state.elapsed, 61.25);
  EXPECT_EQ(manifest.config, example().config);
  EXPECT_EQ(manifest.data_fingerprint, "0123abcd");
  EXPECT_EQ(manifest.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(manifest.global_batch_size, 32);
  EXPECT_EQ(manifest.world_size, 1);
  EXPECT_EQ(manifest.previous, "step-00000100");
  EXPECT_EQ(manifest.phalanx_version, "0.1.0");
  EXPECT_EQ(manifest.torch_version, "2.11.0");
  EXPECT_EQ(manifest.chunk_bytes, 65536U);
  EXPECT_EQ(manifest.files.at("model.safetensors").size, 100U);
  EXPECT_EQ(manifest.files.at("model.safetensors").head_bytes, 76U);
  EXPECT_EQ(manifest.files.at("model.safetensors").head_checksum, 255U);
  ASSERT_EQ(manifest.tensors.size(), 1U);
  EXPECT_EQ(manifest.tensors[0].part, "model");
  EXPECT_EQ(manifest.tensors[0].name, "w");
  EXPECT_EQ(manifest.tensors[0].dtype, at::kFloat);
  EXPECT_THAT(manifest.tensors[0].shape, ElementsAre(2, 3));
  ASSERT_EQ(manifest.tensors[0].slices.size(), 2U);
  const ManifestSlice& slice = manifest.tensors[0].slices[1];
  EXPECT_EQ(slice.begin, 4);
  EXPECT_EQ(slice.end, 6);
  EXPECT_EQ(slice.file, "model.safetensors");
  EXPECT_EQ(slice.offset, 92U);
  EXPECT_THAT(slice.checksums, ElementsAre(std::numeric_limits<uint64_t>::max()));
}

Manifest with_attachment(const std::string& name) {
  Manifest manifest = example();
  manifest.attachments[name] = {.size = 8, .head_bytes = 8, .head_checksum = 15};
  return manifest;
}

TEST(Manifest, AttachmentsComeBackAndAreListed) {
  const std::string text = format_manifest(with_attachment("tokenizer.json"));
  const Manifest manifest = parse_manifest(text, "m");
  EXPECT_EQ(format_manifest(manifest), text);
  EXPECT_EQ(manifest.attachments.at("tokenizer.json").size, 8U);
  EXPECT_EQ(manifest.attachments.at("tokenizer.json").head_checksum, 15U);
  const auto listed = listed_files(manifest);
  EXPECT_THAT(listed, testing::SizeIs(2));
  EXPECT_EQ(listed.at("attachments/tokenizer.json").head_bytes, 8U);
  EXPECT_TRUE(listed.contains("model.safetensors"));
}

// Such a manifest is of Phalanx 0.1, or of a task without any.
TEST(Manifest, WithoutAttachmentsThereIsNoFieldOfThem) {
  const std::string text = format_manifest(example());
  EXPECT_THAT(text, testing::Not(HasSubstr("attachments")));
  EXPECT_THAT(parse_manifest(text, "m").attachments, testing::IsEmpty());
}

TEST(Manifest, TheBaseOfAdaptersComesBackAndAModelHasNone) {
  Manifest manifest = example();
  EXPECT_EQ(format_manifest(manifest).find("\"base\""), std::string::npos);
  manifest.base = "xxh3_64:0123456789abcdef";
  EXPECT_EQ(parse_manifest(format_manifest(manifest), "manifest.json").base, manifest.base);
}

TEST(Manifest, TheOrderOfReductionComesBackAndOneRankHasNone) {
  Manifest manifest = example();
  EXPECT_EQ(format_manifest(manifest).find("\"reduction_order\""), std::string::npos);
  manifest.reduction_order = {"head.weight", "body.bias"};
  EXPECT_THAT(parse_manifest(format_manifest(manifest), "manifest.json").reduction_order,
              ElementsAre("head.weight", "body.bias"));
}

TEST(Manifest, AttachmentsThatLeaveTheirFolderAreRefused) {
  for (const char* name : {"", ".", "..", "../a", "a/b", "/etc/passwd"}) {
    EXPECT_THAT(parse_error(format_manifest(with_attachment(name))),
                HasSubstr(fmt::format("its attachment '{}' does not lie in its folder", name)));
  }
  Manifest large = with_attachment("a");
  large.attachments["a"].size = 100'000'001;
  EXPECT_THAT(parse_error(format_manifest(large)), HasSubstr("its attachment 'a' has 100000001"));
}

TEST(Manifest, MetricsKeepOrderAndWhatJsonHasNoWordFor) {
  const NamedValues metrics = parse_manifest(format_manifest(example()), "m").metrics;
  ASSERT_EQ(metrics.size(), 3U);
  EXPECT_EQ(metrics[0], (std::pair<std::string, double>("loss", 0.1)));
  EXPECT_EQ(metrics[1].second, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(metrics[2].second));
}

TEST(Manifest, EveryFlippedBitIsNoticed) {
  const std::string sound = format_manifest(example());
  for (size_t place = 0; place < sound.size(); ++place) {
    std::string text = sound;
    text[place] = static_cast<char>(text[place] ^ 1);
    EXPECT_NE(parse_error(text), "accepted") << "at byte " << place;
  }
}

TEST(Manifest, EveryCutIsNoticed) {
  const std::string sound = format_manifest(example());
  for (size_t size = 0; size < sound.size(); ++size) {
    EXPECT_THAT(parse_error(sound.substr(0, size)),
                AllOf(HasSubstr("some/manifest.json"), HasSubstr("checksum")));
  }
}

TEST(Manifest, AnEditSaysSo) {
  std::string text = format_manifest(example());
  text.replace(text.find("6400"), 4, "6401");
  EXPECT_THAT(parse_error(text), HasSubstr("damaged or edited"));
}

TEST(Manifest, AnotherFormatVersionSaysSo) {
  EXPECT_THAT(parse_error(forged("\"format_version\": 2", "\"format_version\": 1")),
              HasSubstr("it has format version 1, this program reads versions 2 and 3"));
  EXPECT_THAT(parse_error(forged("\"format_version\": 2", "\"format_version\": 4")),
              HasSubstr("it has format version 4"));
}

Manifest with_boxes() {
  Manifest manifest = example();
  ManifestTensor& tensor = manifest.tensors[0];
  tensor.slices[0].box = TensorBox{{0, 0}, {2, 2}};
  tensor.slices[1].box = TensorBox{{0, 2}, {2, 1}};
  tensor.slices[1].begin = 0;
  tensor.slices[1].end = 2;
  return manifest;
}

TEST(Manifest, BoxesComeBackAsTheyWereInTheNewerVersion) {
  EXPECT_THAT(format_manifest(example()), HasSubstr("\"format_version\": 2"));
  const std::string text = format_manifest(with_boxes());
  EXPECT_THAT(text, HasSubstr("\"format_version\": 3"));
  const Manifest manifest = parse_manifest(text, "m");
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(manifest.tensors[0].slices[i].box, with_boxes().tensors[0].slices[i].box);
  }
  EXPECT_EQ(parse_error(forged("\"format_version\": 2", "\"format_version\": 3")), "accepted")
      << "without boxes";
}

TEST(Manifest, BoxesThatAreNoneAreRefused) {
  const auto boxed = [](const std::string& box) {
    return parse_error(forged("\"begin\": 0", "\"box\": " + box + ", \"begin\": 0"));
  };
  EXPECT_THAT(boxed(R"({"offsets": [0, 0], "sizes": [2, 2]})"),
              HasSubstr("it has boxes of tensors, which format version 2 does not have"));
  for (const char* box :
       {R"({"offsets": [0, -1], "sizes": [2, 2]})", R"({"offsets": [0, 0], "sizes": [2, 0.5]})",
        R"({"offsets": [0, 0], "sizes": [2, "2"]})",
        R"({"offsets": [0, 0], "sizes": [2, true]})"}) {
    EXPECT_THAT(boxed(box), HasSubstr("a box has an offset or a size that is no number")) << box;
  }
  for (const char* box : {"1", "null", "[]", "{}", R"({"offsets": 0, "sizes": [2, 2]})"}) {
    EXPECT_NE(boxed(box), "accepted") << box;
  }
}

TEST(Manifest, WrongTypesAreNamed) {
  EXPECT_THAT(parse_error(forged("\"step\": 200", "\"step\": \"200\"")),
              HasSubstr("its step is no number"));
  EXPECT_THAT(parse_error(forged("\"dtype\": \"F32\"", "\"dtype\": \"F31\"")),
              HasSubstr("unknown dtype 'F31'"));
  EXPECT_THAT(parse_error(forged("0000000000000001", "000000000000000g")),
              HasSubstr("'000000000000000g' is no checksum"));
  EXPECT_THAT(parse_error(forged("0000000000000001", "01")), HasSubstr("'01' is no checksum"));
  EXPECT_THAT(parse_error(forged("\"seed\"", "\"sheed\"")), HasSubstr("seed"));
}

TEST(Manifest, HostileTextsTakeNeitherTheStackNorHours) {
  const std::string nested = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THAT(parse_error(forged("\"lr\": 0.1", "\"lr\": " + nested)),
              HasSubstr("nested too deeply"));
  std::string keys;
  for (int i = 0; i < 30'000; ++i) keys += fmt::format("\"{}\": 1, ", i);
  EXPECT_THAT(parse_error(forged("\"lr\": 0.1", keys + "\"lr\": 0.1")), HasSubstr("too many keys"));
}

TEST(Manifest, NumbersThatAreNoneAreRefused) {
  for (const char* number : {"-200", "200.5", "true", "1e300", "18446744073709551615"}) {
    EXPECT_THAT(parse_error(forged("\"step\": 200", fmt::format("\"step\": {}", number))),
                HasSubstr("its step is no number"));
  }
  for (const char* number : {"-1", "1.0", "null"}) {
    EXPECT_NE(parse_error(forged("\"offset\": 76", fmt::format("\"offset\": {}", number))),
              "accepted");
  }
}

TEST(Manifest, AGlobalBatchBeyondWhatAStepMayHoldIsRefused) {
  for (const char* number : {"0", "2147483649", "9223372036854775807"}) {
    const std::string text = fmt::format("\"global_batch_size\": {}", number);
    EXPECT_EQ(parse_error(forged("\"global_batch_size\": 32", text)),
              fmt::format("'some/manifest.json' cannot be used: its global_batch_size, {}, is no "
                          "number of samples from 1 to 2147483648",
                          number));
  }
  EXPECT_EQ(parse_error(forged("\"global_batch_size\": 32", "\"global_batch_size\": 2147483648")),
            "accepted");
}

TEST(Manifest, AConfigThatIsNoJsonIsRefused) {
  Manifest manifest = example();
  manifest.config = "name: supervised";
  EXPECT_THAT([&] { format_manifest(manifest); },
              ThrowsMessage<std::logic_error>(HasSubstr("no JSON")));
}

}  // namespace
}  // namespace phalanx
