// SPDX-License-Identifier: Apache-2.0
// Two tasks: one with defaults alone, one with sections and a path that must be given.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/trainer/loop/tiny.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx::tiny {
namespace {

/// A section that both tasks have, in different places.
struct LoaderSection {
  bool shuffle = true;
  bool drop_last = false;
  int64_t num_workers = 0;
  int64_t prefetch_batches = 2;

  static void describe(config::Schema<LoaderSection>& s) {
    s.field("shuffle", &LoaderSection::shuffle, "another order in each epoch");
    s.field("drop_last", &LoaderSection::drop_last, "leave out a last batch that is not full");
    s.field("num_workers", &LoaderSection::num_workers, "threads that read").at_least(0);
    s.field("prefetch_batches", &LoaderSection::prefetch_batches, "read ahead a worker")
        .at_least(1);
  }
};

struct EchoingConfig {
  int64_t symbols = 16;
  int64_t length = 16;
  int64_t training_samples = 10;
  int64_t validation_samples = 5;
  LoaderSection loader;

  static void describe(config::Schema<EchoingConfig>& s) {
    s.field("symbols", &EchoingConfig::symbols, "number of different ones").at_least(2);
    s.field("length", &EchoingConfig::length, "of what is to be repeated")
        .at_least(1)
        .unit("symbols");
    s.field("training_samples", &EchoingConfig::training_samples, "an epoch").count().at_least(1);
    s.field("validation_samples", &EchoingConfig::validation_samples, "0: no validation")
        .count()
        .at_least(0);
    s.field("loader", &EchoingConfig::loader, "how samples are read");
  }
};

class Echoing : public Regression {
 public:
  using Config = EchoingConfig;
  explicit Echoing(const Config& config)
      : Regression({.data = {.samples = config.training_samples,
                             .validation_samples = config.validation_samples}}) {}
};

struct TextSection {
  std::filesystem::path path;
  std::optional<std::filesystem::path> validation_path;
  double validation_fraction = 0.1;
  int64_t sequence_length = 256;
  LoaderSection loader;

  static void describe(config::Schema<TextSection>& s) {
    s.field("path", &TextSection::path, "the text that is read: a file or a folder").mandatory();
    s.field("validation_path", &TextSection::validation_path, "another text, for validation");
    s.field("validation_fraction", &TextSection::validation_fraction,
            "share of path's text that is kept for validation")
        .at_least(0)
        .less_than(1);
    s.field("sequence_length", &TextSection::sequence_length, "length of a sample")
        .at_least(1)
        .unit("tokens");
    s.field("loader", &TextSection::loader, "how samples are read");
    s.ineffective({"validation_fraction"}, "validation_path is given",
                  [](const TextSection& c) { return c.validation_path.has_value(); });
  }
};

struct SampleSection {
  std::string prompt = "\n";
  int64_t tokens = 200;
  double temperature = 0.8;
  int64_t seed = 0;

  static void describe(config::Schema<SampleSection>& s) {
    s.field("prompt", &SampleSection::prompt, "how the sample begins").resume_may_change();
    s.field("tokens", &SampleSection::tokens, "how many follow; 0: no sample")
        .at_least(0)
        .unit("tokens")
        .resume_may_change();
    s.field("temperature", &SampleSection::temperature, "0 takes the likeliest").at_least(0);
    s.field("seed", &SampleSection::seed, "of the draws").at_least(0);
    s.check([](const SampleSection& c) -> std::optional<std::string> {
      if (!c.prompt.empty() || c.tokens == 0) return std::nullopt;
      return "prompt must hold at least one byte to go on from";
    });
    s.ineffective({"prompt", "temperature", "seed"}, "tokens is 0",
                  [](const SampleSection& c) { return c.tokens == 0; });
  }
};

struct ReadingConfig {
  TextSection data;
  SampleSection sample;

  static void describe(config::Schema<ReadingConfig>& s) {
    s.field("data", &ReadingConfig::data, "the text and how it is cut into samples");
    s.field("sample", &ReadingConfig::sample, "what is written at the end of training");
  }
};

class Reading : public Regression {
 public:
  using Config = ReadingConfig;
  explicit Reading(const Config&) {}
};

REGISTER_TASK("echoing", Echoing);
REGISTER_TASK("reading", Reading);

}  // namespace
}  // namespace phalanx::tiny
