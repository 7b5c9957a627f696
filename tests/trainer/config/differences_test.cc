// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/text/differences.h"

#include <gtest/gtest.h>

#include "trainer/config/syntax/parse.h"

namespace phalanx::config {
namespace {

std::string compare(const std::string& a, const std::string& b) {
  Diagnostics diagnostics;
  std::string text;
  for (const Difference& difference :
       differences(parse_yaml(a, "a.yaml", diagnostics), parse_yaml(b, "b.yaml", diagnostics))) {
    text += difference.path + ": " + difference.a + " | " + difference.b + "\n";
  }
  return text;
}

TEST(Differences, AreNoneBetweenEqualValues) {
  EXPECT_EQ(compare("{a: 1, b: [x, 'y'], c: 1e-3}", "{c: 0.001, a: 1, b: ['x', y]}"), "");
}

TEST(Differences, NameThePathAndBothValues) {
  EXPECT_EQ(compare("{a: {b: 1, c: 2, d: 3}, l: [1], t: '1'}",
                    "{a: {b: 1, c: 4, e: 5}, l: [1, 2], t: 1}"),
            "a.c: 2 | 4\n"
            "a.d: 3 | (absent)\n"
            "a.e: (absent) | 5\n"
            "l: [1] | [1, 2]\n"
            "t: \"1\" | 1\n");
  EXPECT_EQ(compare("{a: {b: 1}}", "{a: null}"), "a: {b: 1} | null\n");
}

TEST(Differences, OfListsOfSectionsNameTheElement) {
  EXPECT_EQ(compare("{m: [{a: 1, f: [x]}, {a: 2}]}", "{m: [{a: 1, f: [x, z]}, {a: 3}, {a: 4}]}"),
            "m[0].f: [x] | [x, z]\n"
            "m[1].a: 2 | 3\n"
            "m[2]: (absent) | {a: 4}\n");
  EXPECT_EQ(compare("{m: [{a: 1}]}", "{m: []}"), "m: [{a: 1}] | []\n");
}

}  // namespace
}  // namespace phalanx::config
