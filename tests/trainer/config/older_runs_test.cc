// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/older_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Inner {
  int64_t known = 1;
  std::optional<int64_t> limit = 100;

  static void describe(Schema<Inner>& s) {
    s.field("known", &Inner::known, "was always there");
    s.field("limit", &Inner::limit, "came later").older_runs_have_none();
  }
};

struct Outer {
  Inner data;
  std::optional<Inner> pairs;
  std::optional<int64_t> other = 5;

  static void describe(Schema<Outer>& s) {
    s.field("data", &Outer::data, "a section");
    s.field("pairs", &Outer::pairs, "a section that need not be there");
    s.field("other", &Outer::other, "came later too, and gets its default");
  }
};

Node parsed(const std::string& text) {
  Diagnostics diagnostics;
  Node tree = parse_yaml(text, "test", diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.text();
  return tree;
}

TEST(OlderRuns, LackWhatTheirProgramDidNotKnow) {
  const auto lacking = [](const std::string& kept) {
    return fields_without_value(declaration<Outer>(), parsed(kept));
  };
  EXPECT_THAT(lacking("{data: {known: 1}, pairs: null}"), ElementsAre("data.limit"));
  EXPECT_THAT(lacking("{data: {known: 1}, pairs: {known: 2}}"),
              ElementsAre("data.limit", "pairs.limit"));
  EXPECT_THAT(lacking("{data: {known: 1, limit: 7}, pairs: null}"), IsEmpty());
  EXPECT_THAT(lacking("{data: {known: 1, limit: null}, pairs: null}"), IsEmpty());
}

TEST(OlderRuns, GoOnWithoutAValueUnlessOneIsGiven) {
  const auto left = [](const std::string& given) {
    Node tree = parsed(given);
    leave_without_value(tree, {"data.limit", "pairs.limit"});
    return print_inline(tree);
  };
  EXPECT_EQ(left("{data: {known: 1}}"), "{data: {known: 1, limit: null}}");
  EXPECT_EQ(left("{data: {limit: 7}, pairs: {known: 1}}"),
            "{data: {limit: 7}, pairs: {known: 1, limit: null}}");
  EXPECT_EQ(left("{pairs: null}"), "{pairs: null}") << "a section that is not given stays so";
}

}  // namespace
}  // namespace phalanx::config
