// SPDX-License-Identifier: Apache-2.0
#include "trainer/registry/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/choice.h"

namespace phalanx {
namespace {

/// A kind of this test's own: its double registrations are nobody else's.
class Shape {
 public:
  virtual ~Shape() = default;
  virtual double area() const = 0;
};

struct SquareConfig {
  double side = 2;
  static void describe(config::Schema<SquareConfig>& s) {
    s.field("side", &SquareConfig::side, "length of a side").greater_than(0);
  }
};

struct BoxConfig {
  double width = 1;
  double height = 1;
  static void describe(config::Schema<BoxConfig>& s) {
    s.field("width", &BoxConfig::width, "from left to right");
    s.field("height", &BoxConfig::height, "from bottom to top");
  }
};

class Square : public Shape {
 public:
  using Config = SquareConfig;
  static std::vector<std::string_view> interfaces() { return {"Drawable", "Round"}; }
  explicit Square(Config config) : config_(config) {}
  double area() const override { return config_.side * config_.side; }

 private:
  Config config_;
};

template <int kHeights, int kWidths>
class Boxes : public Shape {
 public:
  using Config = BoxConfig;
  static std::string_view required_interface() { return "Paper"; }
  explicit Boxes(Config config) : config_(config) {}
  double area() const override { return kHeights * kWidths * config_.width * config_.height; }

 private:
  Config config_;
};

}  // namespace

template <>
struct RegistryKind<Shape> {
  static constexpr std::string_view kName = "shape";
};

namespace {

PHALANX_REGISTER(Shape, "square", Square);
PHALANX_REGISTER(Shape, "boxes", Boxes<2, 3>);  // a template's commas pass
PHALANX_REGISTER(Shape, "round", Square);
PHALANX_REGISTER(Shape, "square", Boxes<1, 1>);
constexpr int kLineOfTheDouble = __LINE__ - 1;

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

const Registry<Shape>& shapes() { return Registry<Shape>::instance(); }

config::Node section(const config::Declaration& declaration, const std::string& yaml) {
  config::Diagnostics diagnostics;
  config::Node node = config::parse_yaml(yaml, "test.yaml", diagnostics);
  node = config::resolve(declaration, std::move(node), diagnostics);
  diagnostics.throw_if_any();
  return node;
}

TEST(Registry, BuildsAClassFromItsSection) {
  const auto& entry = shapes().at("boxes");
  const auto made = entry.make(section(*entry.declaration(), "{width: 2.0, height: 5.0}"));
  EXPECT_EQ(made->area(), 60);
}

TEST(Registry, NamesAreSorted) {
  EXPECT_THAT(shapes().table().names(), ElementsAre("boxes", "round", "square"));
  EXPECT_TRUE(shapes().table().contains("round"));
  EXPECT_FALSE(shapes().table().contains("Round"));
}

TEST(Registry, AnUnknownNameListsWhatThereIsNearestFirst) {
  EXPECT_THAT([] { shapes().at("sqare"); },
              ThrowsMessage<UserError>(
                  "unknown shape 'sqare'; did you mean 'square'? There are: square, boxes, round"));
  EXPECT_THAT([] { shapes().at("rounds"); },
              ThrowsMessage<UserError>(HasSubstr("There are: round, ")));
}

TEST(Registry, ADoubleRegistrationIsKeptForMainAndTheFirstStands) {
  const auto messages = NameTable::double_registrations();
  ASSERT_EQ(messages.size(), 1u);
  const std::string& first = shapes().table().registrations().front().file;
  EXPECT_THAT(first, HasSubstr("registry_test.cc"));
  const std::string here = first + ":";
  EXPECT_EQ(messages.front(), "shape 'square' is registered twice: in " + here +
                                  std::to_string(kLineOfTheDouble - 3) + " and in " + here +
                                  std::to_string(kLineOfTheDouble));
  const auto& entry = shapes().at("square");
  EXPECT_EQ(entry.make(section(*entry.declaration(), "{side: 3.0}"))->area(), 9);
  EXPECT_EQ(shapes().table().registrations().size(), 3u);
}

TEST(Registry, KnowsInterfacesBeforeAnythingIsBuilt) {
  EXPECT_THAT(shapes().at("square").interfaces, ElementsAre("Drawable", "Round"));
  EXPECT_EQ(shapes().at("square").required_interface, "");
  EXPECT_THAT(shapes().at("boxes").interfaces, IsEmpty());
  EXPECT_EQ(shapes().at("boxes").required_interface, "Paper");
}

TEST(Registry, ItsTableIsAmongAll) {
  EXPECT_THAT(NameTable::all(), Contains(&shapes().table()));
  EXPECT_EQ(shapes().table().kind(), "shape");
}

config::Declaration with_choice() {
  config::Declaration declaration("Drawing");
  declaration.add_choice("shape", registered_choice<Shape>());
  return declaration;
}

TEST(RegistryChoice, HoldsTheChosenClasssFields) {
  const config::Declaration declaration = with_choice();
  const config::Node square = section(declaration, "{shape: {name: square, side: 4.0}}");
  EXPECT_EQ(square.find_path("shape.side")->text, "4.0");
  EXPECT_EQ(shapes().at("square").make(*square.find("shape"))->area(), 16);
  const config::Node boxes = section(declaration, "{shape: boxes}");
  EXPECT_EQ(boxes.find_path("shape.width")->text, "1.0") << "with its defaults";
}

TEST(RegistryChoice, RefusesUnknownNamesAndOtherClassesFields) {
  const config::Declaration declaration = with_choice();
  EXPECT_THAT([&] { section(declaration, "{shape: {name: sqare}}"); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("unknown shape 'sqare'"), HasSubstr("square, boxes, round"))));
  EXPECT_THAT([&] { section(declaration, "{shape: {name: square, width: 1.0}}"); },
              ThrowsMessage<UserError>(HasSubstr("shape.width")));
  EXPECT_THAT([&] { section(declaration, "{}"); }, ThrowsMessage<UserError>(HasSubstr("shape")));
}

}  // namespace
}  // namespace phalanx
