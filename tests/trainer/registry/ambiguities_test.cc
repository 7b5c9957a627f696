// SPDX-License-Identifier: Apache-2.0
#include "trainer/registry/ambiguities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/tree/schema.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/registry.h"

namespace phalanx {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;

/// Kinds of this test's own.
class Clear {};
class Unclear {};

struct SizeConfig {
  std::int64_t size = 1;
  static void describe(config::Schema<SizeConfig>& s) {
    s.field("size", &SizeConfig::size, "of it");
    s.preset("small", "", [](SizeConfig& c) { c.size = 2; });
    s.preset("large", "", [](SizeConfig& c) { c.size = 9; });
  }
};

struct OtherConfig {
  std::int64_t size = 1;
  static void describe(config::Schema<OtherConfig>& s) {
    s.field("size", &OtherConfig::size, "of it");
    s.preset("large", "", [](OtherConfig& c) { c.size = 99; });
    s.preset("sized", "", [](OtherConfig& c) { c.size = 1; });
  }
};

struct NamedConfig {
  std::string name;
  static void describe(config::Schema<NamedConfig>& s) {
    s.field("name", &NamedConfig::name, "of it");
  }
};

template <class Kind, class ConfigType>
struct Registered : Kind {
  using Config = ConfigType;
  explicit Registered(Config) {}
};

}  // namespace

template <>
struct RegistryKind<Clear> {
  static constexpr std::string_view kName = "clear thing";
};
template <>
struct RegistryKind<Unclear> {
  static constexpr std::string_view kName = "unclear thing";
};

namespace {

PHALANX_REGISTER(Clear, "sized", Registered<Clear, SizeConfig>);

PHALANX_REGISTER(Unclear, "sized", Registered<Unclear, SizeConfig>);
PHALANX_REGISTER(Unclear, "other", Registered<Unclear, OtherConfig>);
PHALANX_REGISTER(Unclear, "named", Registered<Unclear, NamedConfig>);

template <class Kind>
std::vector<std::string> ambiguities_of_choosing() {
  config::Declaration declaration;
  declaration.add_choice("thing", registered_choice<Kind>());
  return ambiguities(declaration);
}

TEST(Ambiguities, AreNoneWhereNamesDiffer) {
  EXPECT_THAT(ambiguities_of_choosing<Clear>(), IsEmpty());
  EXPECT_THAT(ambiguities(config::declaration<NamedConfig>()), IsEmpty());  // picks no class
}

TEST(Ambiguities, AreToldWithTheirPlaces) {
  const std::string place = " \\(.*ambiguities_test.cc:[0-9]+\\)";
  EXPECT_THAT(
      ambiguities_of_choosing<Unclear>(),
      ElementsAre(
          MatchesRegex("unclear thing 'named'" + place +
                       " has a field 'name', by which a config picks the class; call the field "
                       "otherwise"),
          MatchesRegex("the preset 'sized' of unclear thing 'other'" + place +
                       " has the name of unclear thing 'sized'" + place),
          MatchesRegex("the preset 'large' of unclear thing 'sized'" + place +
                       " is one of unclear thing 'other'" + place + " too")));
}

}  // namespace
}  // namespace phalanx
