// SPDX-License-Identifier: Apache-2.0
// A class with another of its own kind within: what walks all classes comes to an end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/text/json_schema.h"
#include "trainer/config/tree/chosen.h"
#include "trainer/config/tree/fields.h"
#include "trainer/config/tree/resolve.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::config {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct File {
  std::string path;

  static void describe(Schema<File>& s) { s.field("path", &File::path, "of the file"); }
};

Choice sources();

struct Part {
  Chosen source;
  std::int64_t begin = 0;

  static void describe(Schema<Part>& s) {
    s.field("source", &Part::source, "the whole").mandatory().out_of(sources());
    s.field("begin", &Part::begin, "its first");
  }
};

struct Sum {
  std::vector<Chosen> sources;

  static void describe(Schema<Sum>& s) {
    s.field("sources", &Sum::sources, "all").mandatory().out_of(config::sources());
  }
};

Choice sources() {
  Choice choice;
  choice.kind = "source";
  choice.names = [] { return std::vector<std::string>{"file", "part", "sum"}; };
  choice.find = [](std::string_view name) -> const Declaration* {
    if (name == "file") return &declaration<File>();
    if (name == "part") return &declaration<Part>();
    return name == "sum" ? &declaration<Sum>() : nullptr;
  };
  return choice;
}

struct Data {
  Chosen source = "file";

  static void describe(Schema<Data>& s) {
    s.field("source", &Data::source, "what is read").out_of(sources());
  }
};

std::string mistakes(const std::string& yaml) {
  Diagnostics diagnostics;
  Node tree = parse_yaml(yaml, "test.yaml", diagnostics);
  resolve(declaration<Data>(), tree, diagnostics);
  try {
    diagnostics.throw_if_any();
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(RecursiveChoice, IsNestedAsDeepAsAConfigWants) {
  EXPECT_EQ(mistakes("source: {name: part, source: {name: sum, sources: [{name: file, path: a}, "
                     "{name: part, source: file}]}}"),
            "none");
  EXPECT_THAT(mistakes("source: {name: part, source: {name: part, source: {name: file, pat: a}}}"),
              HasSubstr("source.source.source.pat"));
}

TEST(RecursiveChoice, IsNamedOnceMoreInTheListOfFields) {
  std::vector<std::string> paths;
  for (const FieldEntry& entry : field_entries(declaration<Data>())) paths.push_back(entry.path);
  EXPECT_THAT(paths, Contains("source.source.name"));
  EXPECT_THAT(paths, Contains("source.sources[].name"));
  EXPECT_THAT(paths, Not(Contains("source.source.path")));
}

TEST(RecursiveChoice, RefersToItselfInTheSchema) {
  const std::string schema = json_schema({{"trainer", &declaration<Data>()}});
  EXPECT_THAT(schema, HasSubstr("\"$ref\": \"#/$defs/source\""));
  EXPECT_THAT(schema, HasSubstr("\"$defs\": {\n  \"source\": {"));
}

TEST(RecursiveChoice, IsSearchedOnceForAMisplacedKey) {
  EXPECT_THAT(mistakes("begin: 1"), HasSubstr("did you mean 'source.begin'?"));
}

}  // namespace
}  // namespace phalanx::config
