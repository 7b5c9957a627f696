// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/array.h"
#include "trainer/config/tree/declaration.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"

/// A small config of every type, composed as the trainer composes its own, for the tests of config.
namespace phalanx::config {

struct LoaderConfig {
  std::int64_t workers = 2;
  bool shuffle = true;

  static void describe(Schema<LoaderConfig>& s) {
    s.field("workers", &LoaderConfig::workers, "background threads")
        .at_least(0)
        .resume_may_change();
    s.field("shuffle", &LoaderConfig::shuffle, "whether samples are shuffled");
  }
};

enum class Clip { norm, value };

struct AdamWConfig {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  std::optional<std::int64_t> warmup_steps;
  LoaderConfig loader{.workers = 4};
  Clip kind = Clip::norm;
  std::filesystem::path file;
  std::vector<LoaderConfig> groups;
  std::optional<LoaderConfig> extra;
  std::optional<double> limit;

  static void describe(Schema<AdamWConfig>& s) {
    s.field("lr", &AdamWConfig::lr, "learning rate").at_least(0).resume_may_change();
    s.field("betas", &AdamWConfig::betas, "decay of the moments").in_range(0, 1);
    s.field("warmup_steps", &AdamWConfig::warmup_steps, "length of the ramp")
        .unit("steps")
        .at_least(0);
    s.field("loader", &AdamWConfig::loader, "a nested section");
    s.field("kind", &AdamWConfig::kind, "how to clip")
        .choices({{"norm", Clip::norm}, {"value", Clip::value}});
    s.field("file", &AdamWConfig::file, "what to read").mandatory();
    s.field("groups", &AdamWConfig::groups, "a list of sections");
    s.field("extra", &AdamWConfig::extra, "a section that may be missing");
    s.field("limit", &AdamWConfig::limit, "a bound").greater_than(0);
    s.check([](const AdamWConfig& c) -> std::optional<std::string> {
      if (c.betas[0] <= c.betas[1]) return std::nullopt;
      return "betas must not fall";
    });
  }
};

struct SgdConfig {
  double lr = 0.1;
  static void describe(Schema<SgdConfig>& s) {
    s.field("lr", &SgdConfig::lr, "learning rate").at_least(0);
  }
};

enum class Level { info, warning };

struct BaseConfig {
  std::string title = "run of ${oc.env:PHALANX_TEST_USER,nobody}";
  Level level = Level::info;

  static void describe(Schema<BaseConfig>& s) {
    s.field("title", &BaseConfig::title, "what the run is called");
    s.field("level", &BaseConfig::level, "how much is said")
        .choices({{"info", Level::info}, {"warning", Level::warning}});
  }
};

/// title, level, the section loader, and an optimizer to choose.
inline Declaration example() {
  Declaration top = declaration<BaseConfig>();
  top.add_section("loader", declaration<LoaderConfig>(), "how data is loaded");
  Choice optimizer;
  optimizer.kind = "optimizer";
  optimizer.names = [] { return std::vector<std::string>{"adamw", "sgd"}; };
  optimizer.find = [](std::string_view name) -> const Declaration* {
    if (name == "adamw") return &declaration<AdamWConfig>();
    if (name == "sgd") return &declaration<SgdConfig>();
    return nullptr;
  };
  optimizer.meaning = "what updates the weights";
  top.add_choice("optimizer", optimizer);
  return top;
}

/// The example's config from a file's text and overrides; throws UserError with all mistakes.
inline Node resolve_example(const std::string& yaml, const std::vector<std::string>& overrides = {},
                            const ResolveOptions& options = {}) {
  Diagnostics diagnostics;
  Node tree = parse_yaml(yaml, "test.yaml", diagnostics);
  for (const std::string& argument : overrides) apply_override(tree, argument, diagnostics);
  Node resolved = resolve(example(), tree, diagnostics, options);
  diagnostics.throw_if_any();
  return resolved;
}

}  // namespace phalanx::config
