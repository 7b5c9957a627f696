#include "trainer/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "trainer/checkpoint/checkpoint_error.h"
#include "trainer/checkpoint/checksum.h"

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
  manifest.files["model.safetensors"] = {.size = 100, .checksum = "00000000000000ff"};
  manifest.tensors = {{.part = "model",
                       .name = "w",
                       .dtype = at::kFloat,
                       .shape = {2, 3},
                       .begin = 0,
                       .end = 6,
                       .file = "model.safetensors",
                       .byte_begin = 76,
                       .byte_end = 100}};
  return manifest;
}

// The text with `from` replaced, and a checksum that fits: what a forger would write.
std::string forged(const std::string& from, const std::string& to) {
  std::string text = format_manifest(example());
  const size_t place = text.find(from);
  if (place == std::string::npos) throw std::logic_error("nothing to forge");
  text.replace(place, from.size(), to);
  const std::string body = text.substr(0, text.rfind(",\n  \"checksum\""));
  Checksum checksum;
  checksum.update(body);
  return body + ",\n  \"checksum\": \"" + checksum.digits() + "\"\n}\n";
}

std::string parse_error(std::string_view text) {
  try {
    parse_manifest(text, "some/manifest.json");
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "accepted";
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
  EXPECT_EQ(manifest.files.at("model.safetensors").size, 100U);
  EXPECT_EQ(manifest.files.at("model.safetensors").checksum, "00000000000000ff");
  ASSERT_EQ(manifest.tensors.size(), 1U);
  EXPECT_EQ(manifest.tensors[0].part, "model");
  EXPECT_EQ(manifest.tensors[0].name, "w");
  EXPECT_EQ(manifest.tensors[0].dtype, at::kFloat);
  EXPECT_THAT(manifest.tensors[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(manifest.tensors[0].end, 6);
  EXPECT_EQ(manifest.tensors[0].byte_begin, 76U);
  EXPECT_EQ(manifest.tensors[0].byte_end, 100U);
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
  EXPECT_THAT(parse_error(forged("\"format_version\": 1", "\"format_version\": 2")),
              HasSubstr("it has format version 2, this program reads version 1"));
}

TEST(Manifest, FilesStayInTheFolder) {
  for (const char* name : {"../model.safetensors", "/etc/passwd", "a/b", "..", ".", ""}) {
    EXPECT_THAT(parse_error(forged("\"model.safetensors\": {", '"' + std::string(name) + "\": {")),
                HasSubstr("outside of its folder"))
        << name;
  }
}

TEST(Manifest, TensorsStandWithinListedFiles) {
  EXPECT_THAT(parse_error(forged("\"file\": \"model", "\"file\": \"other")), HasSubstr("not list"));
  EXPECT_THAT(parse_error(forged("        100\n", "        101\n")), HasSubstr("ranges"));
  EXPECT_THAT(parse_error(forged("\"begin\": 0", "\"begin\": -1")), HasSubstr("ranges"));
  EXPECT_THAT(parse_error(forged("\"begin\": 0", "\"begin\": 7")), HasSubstr("ranges"));
}

TEST(Manifest, WrongTypesAreNamed) {
  EXPECT_THAT(parse_error(forged("\"step\": 200", "\"step\": \"200\"")),
              HasSubstr("not a checkpoint's manifest"));
  EXPECT_THAT(parse_error(forged("\"dtype\": \"F32\"", "\"dtype\": \"F31\"")),
              HasSubstr("unknown dtype 'F31'"));
  EXPECT_THAT(parse_error(forged("\"seed\"", "\"sheed\"")), HasSubstr("seed"));
}

TEST(Manifest, AConfigThatIsNoJsonIsRefused) {
  Manifest manifest = example();
  manifest.config = "name: supervised";
  EXPECT_THAT([&] { format_manifest(manifest); },
              ThrowsMessage<std::logic_error>(HasSubstr("no JSON")));
}

}  // namespace
}  // namespace phalanx
