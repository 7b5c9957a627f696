// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/long.h"
#include "tests/trainer/config/properties.h"
#include "tests/trainer/config/random_config.h"
#include "trainer/config/syntax/print.h"
#include "trainer/registry/ambiguities.h"
#include "trainer/registry/registry.h"
#include "trainer/registry/trainers.h"

/// Properties of the configs of every registered trainer, with every class that it may choose.
namespace phalanx {
namespace {

using config::Declaration;
using config::Field;
using config::Node;
using config::RandomConfig;

std::vector<std::string> trainer_names() { return TrainerRegistry::instance().table().names(); }

const Declaration& declaration_of(const std::string& trainer) {
  return TrainerRegistry::instance().at(trainer).declaration();
}

/// Names that only checks know: sinks, hooks.
std::vector<std::string> registered_names() {
  std::vector<std::string> names;
  for (const NameTable* table : NameTable::all()) {
    for (const std::string& name : table->names()) names.push_back(name);
  }
  return names;
}

using Property = std::function<void(RandomConfig&, const Declaration&, const Node& written)>;

/// Calls `check` for random configs of each trainer with each class of each kind: as many as said
/// in a long test, else one, by a seed of its own.
void for_random_configs(std::uint32_t configs, const Property& check) {
  std::uint32_t seed = 0;
  for (const std::string& trainer : trainer_names()) {
    const Declaration& declaration = declaration_of(trainer);
    for (const Field& field : declaration.fields()) {
      if (!field.type.choice) continue;
      for (const std::string& name : field.type.choice->names()) {
        const std::uint32_t end = seed + (runs_long_tests() ? configs : 1);
        for (; seed < end; ++seed) {
          SCOPED_TRACE(trainer + ", " + field.name + " " + name + ", seed " + std::to_string(seed));
          RandomConfig random(seed, registered_names());
          const Node written = random.draw(declaration, {{field.name, name}});
          ASSERT_NO_THROW(check(random, declaration, written)) << print(written);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(EveryTrainersConfigs, HoldTheTextsThatWereWritten) {
  for_random_configs(5, [](RandomConfig&, const Declaration& declaration, const Node& written) {
    expect_texts_as_written(declaration, written);
  });
}

TEST(EveryTrainersConfigs, ReadBackAsTheyArePrinted) {
  for_random_configs(5, [](RandomConfig&, const Declaration& declaration, const Node& written) {
    expect_print_reads_back(declaration, resolve_written(declaration, written));
  });
}

TEST(EveryTrainersConfigs, ReadBackFromWhatDiffersFromTheDefaults) {
  for_random_configs(3, [](RandomConfig&, const Declaration& declaration, const Node& written) {
    expect_minimal_suffices(declaration, resolve_written(declaration, written));
  });
}

TEST(EveryTrainersConfigs, AreTheSameInJson) {
  for_random_configs(5, [](RandomConfig&, const Declaration& declaration, const Node& written) {
    config::expect_json_holds_the_same(resolve_written(declaration, written));
  });
}

TEST(EveryTrainersConfigs, KnowWhereEachValueWasWritten) {
  for_random_configs(5, [](RandomConfig& random, const Declaration& declaration,
                           const Node& written) { expect_origins(random, declaration, written); });
}

TEST(EveryTrainersConfigs, MergeInEitherGrouping) {
  for_random_configs(3, [](RandomConfig& random, const Declaration& declaration, const Node&) {
    expect_merging_is_associative(random, declaration);
  });
}

TEST(EveryTrainersFields, AreToldOfEverywhere) {
  for (const std::string& trainer : trainer_names()) {
    config::expect_told_everywhere(trainer, declaration_of(trainer));
  }
}

TEST(Registrations, AreThoseOfTheProgram) {
  EXPECT_FALSE(trainer_names().empty());
  EXPECT_THAT(registered_names(), testing::IsSupersetOf({"language_modeling", "gpt2", "adamw",
                                                         "cosine", "local", "jsonl", "allreduce"}));
}

TEST(Registrations, LeaveNoConfigAmbiguous) {
  EXPECT_THAT(NameTable::double_registrations(), testing::IsEmpty());
  EXPECT_THAT(ambiguous_registrations(), testing::IsEmpty());
}

}  // namespace
}  // namespace phalanx
