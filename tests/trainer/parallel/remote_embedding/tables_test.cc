// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/remote_embedding/tables.h"

#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "models/layers/embedding.h"

namespace phalanx::remote_embedding {
namespace {

struct Net : torch::nn::Module {
  Net() {
    register_module("words", Embedding(100, 4, 1.0, TableUse::whole));
    register_module("places", Embedding(30, 4, 1.0, TableUse::rows));
    register_module("kinds", Embedding(2, 4, 1.0, TableUse::rows));
    register_module("plain", make_embedding(5, 4, 1.0));
  }
};

std::vector<std::string> names_of(const std::vector<NamedTable>& tables) {
  std::vector<std::string> names;
  for (const NamedTable& table : tables) names.push_back(table.name);
  return names;
}

std::string refusal(torch::nn::Module& module, const std::vector<std::string>& names,
                    int64_t servers) {
  try {
    chosen_tables(module, names, servers);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(Tables, AreAllOfTheModelOrThoseOfNames) {
  Net net;
  const auto all = chosen_tables(net, {}, 1);
  EXPECT_EQ(names_of(all), (std::vector<std::string>{"words", "places", "kinds"}));
  EXPECT_EQ(all[0].weight.size(0), 100);
  EXPECT_EQ(all[0].table->use(), TableUse::whole);
  EXPECT_EQ(names_of(chosen_tables(net, {"kinds", "words"}, 1)),
            (std::vector<std::string>{"words", "kinds"}));
}

TEST(Tables, GoToTheServerWithTheLeast) {
  Net net;
  EXPECT_EQ(deal_tables(chosen_tables(net, {}, 2), 2), (std::vector<int64_t>{0, 1, 1}));
}

TEST(Tables, RefuseWhatTheModelDoesNotHave) {
  Net net;
  EXPECT_EQ(refusal(net, {"words", "plain"}, 1),
            "the model has no table 'plain'; there are: words, places, kinds");
  EXPECT_EQ(refusal(net, {"words", "kinds"}, 3), "there are 3 servers for 2 tables (words, kinds)");
  torch::nn::Module none;
  EXPECT_EQ(refusal(none, {}, 1),
            "the model has no table that could lie elsewhere: its embeddings are no LookupTable");
}

}  // namespace
}  // namespace phalanx::remote_embedding
