// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/config/fuzz/subject.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/trainer/config/fuzz/invariants.h"
#include "trainer/config/text/differences.h"
#include "trainer/config/tree/array.h"
#include "trainer/config/tree/schema.h"

namespace phalanx::config::fuzz {

// Not in an unnamed namespace: clang refuses to count the members of a struct without linkage.
enum class Color { red, green };
enum class Strategy { full = 1, hybrid = 4 };

struct Item {
  std::int64_t count = 1;
  std::string label;
  std::optional<std::int64_t> id;

  static void describe(Schema<Item>& s) {
    s.field("count", &Item::count, "a small number").in_range(0, 8).resume_may_change();
    s.field("label", &Item::label, "any text");
    s.field("id", &Item::id, "a number, or none").unit("steps");
  }
};

struct Inner {
  bool on = true;
  double rate = 0.5;
  std::optional<std::chrono::milliseconds> pause;
  Item item{.count = 2};
  std::vector<Item> items;
  std::optional<Item> spare;

  static void describe(Schema<Inner>& s) {
    s.field("on", &Inner::on, "a switch");
    s.field("rate", &Inner::rate, "half open").greater_than(0).at_most(1);
    s.field("pause", &Inner::pause, "a time, or none").greater_than(std::chrono::seconds(1));
    s.field("item", &Inner::item, "a section with a default of its holder's");
    s.field("items", &Inner::items, "sections").resume_may_change();
    s.field("spare", &Inner::spare, "a section, or none");
    s.check([](const Inner& inner) -> std::optional<std::string> {
      if (inner.on || inner.items.empty()) return std::nullopt;
      return "items need on";
    });
    s.ineffective({"pause", "item.count"}, "on is false", [](const Inner& i) { return !i.on; });
    s.preset("fast", "more at once", [](Inner& inner) { inner.rate = 1; });
    s.preset("slow", "with a section", [](Inner& inner) {
      inner.on = false;
      inner.item.count = 7;
    });
  }
};

struct Top {
  bool flag = false;
  std::int64_t small = 1;
  std::int64_t big = -1;
  double real = 1e-3;
  std::string text = "of ${big} and ${oc.env:FUZZ_UNSET,none}";
  std::filesystem::path path;
  Color color = Color::red;
  std::optional<double> limit;
  std::optional<std::int64_t> workers;
  std::vector<std::int64_t> numbers;
  std::array<double, 2> pair = {0.9, 0.999};
  std::vector<std::string> words = {"a"};
  std::vector<std::vector<std::int64_t>> matrix;
  std::vector<Color> colors;
  std::vector<std::optional<bool>> flags;
  std::optional<std::vector<std::string>> names;
  Inner inner{.rate = 0.25};
  std::vector<Inner> inners;
  std::optional<Inner> maybe;
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  std::int64_t steps = 100'000;
  Strategy strategy = Strategy::full;
  std::map<std::string, double> weights = {{"a", 0.5}};
  std::map<std::string, Inner> parts;
  std::array<double, 2> betas = {0.5, 0.75};

  static void describe(Schema<Top>& s) {
    s.field("flag", &Top::flag, "a switch");
    s.field("small", &Top::small, "few are below").at_least(-5);
    s.field("big", &Top::big, "64 bits").unit("bytes").resume_may_change();
    s.field("real", &Top::real, "a number").less_than(1e3);
    s.field("text", &Top::text, "text whose default refers to other values");
    s.field("path", &Top::path, "a file").mandatory();
    s.field("color", &Top::color, "an enum")
        .choices({{"red", Color::red}, {"green", Color::green}});
    s.field("limit", &Top::limit, "a number, or none");
    s.field("workers", &Top::workers, "a word for none").null_is("auto");
    s.field("numbers", &Top::numbers, "integers").at_least(0);
    s.field("pair", &Top::pair, "two numbers").in_range(0, 1);
    s.field("words", &Top::words, "texts");
    s.field("matrix", &Top::matrix, "lists of lists");
    s.field("colors", &Top::colors, "enums")
        .choices({{"red", Color::red}, {"green", Color::green}});
    s.field("flags", &Top::flags, "booleans or null");
    s.field("names", &Top::names, "texts, or none");
    s.field("inner", &Top::inner, "a section");
    s.field("inners", &Top::inners, "sections that hold sections");
    s.field("maybe", &Top::maybe, "a section, or none");
    s.field("timeout", &Top::timeout, "a time").deprecated("timeout_seconds", "s");
    s.field("steps", &Top::steps, "a count").count().at_least(1).deprecated("max_steps");
    s.field("strategy", &Top::strategy, "an enum that has numbers")
        .choices({{"FULL", Strategy::full}, {"HYBRID", Strategy::hybrid}})
        .numbered();
    s.field("weights", &Top::weights, "numbers by name").at_least(0);
    s.field("parts", &Top::parts, "sections by name");
    s.field("betas", &Top::betas, "an array").in_range(0, 1);
    s.check([](const Top& top) -> std::optional<std::string> {
      if (top.pair[0] <= top.pair[1]) return std::nullopt;
      return "pair must not fall";
    });
  }
};

struct Sgd {
  double lr = 0.1;
  bool nesterov = false;

  static void describe(Schema<Sgd>& s) {
    s.field("lr", &Sgd::lr, "step size").at_least(0).resume_may_change();
    s.field("nesterov", &Sgd::nesterov, "which momentum");
  }
};

struct Adam {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  Item item;

  static void describe(Schema<Adam>& s) {
    s.field("lr", &Adam::lr, "step size").at_least(0);
    s.field("betas", &Adam::betas, "decay").in_range(0, 1);
    s.field("item", &Adam::item, "a section");
    s.preset("quick", "of a class", [](Adam& adam) { adam.lr = 1; });
  }
};

struct Nothing {
  static void describe(Schema<Nothing>&) {}
};

namespace {

const Declaration* find_class(std::string_view name) {
  if (name == "sgd") return &declaration<Sgd>();
  if (name == "adam") return &declaration<Adam>();
  if (name == "nothing") return &declaration<Nothing>();
  return nullptr;
}

Choice choice(std::string kind) {
  Choice result;
  result.kind = std::move(kind);
  result.names = [] { return std::vector<std::string>{"adam", "nothing", "sgd"}; };
  result.find = find_class;
  result.meaning = "one of the registered";
  return result;
}

template <class T>
void require_same(const Node& section) {
  const Node written = write(read<T>(section));
  for (const Entry& entry : written.entries) {
    const Node* given = section.find(entry.key);
    require(given != nullptr && differences(*given, entry.value).empty(),
            "a resolved value changes when it is read into its struct: " + entry.key);
  }
}

void require_readable_choice(const Node& section) {
  const Node* name = section.find("name");
  require(name != nullptr, "a chosen class has no name");
  if (name->text == "sgd") return require_same<Sgd>(section);
  if (name->text == "adam") return require_same<Adam>(section);
  require(name->text == "nothing", "a resolved choice names no class");
}

}  // namespace

const Declaration& subject() {
  static const Declaration result = [] {
    Declaration top = declaration<Top>();
    top.add_section("loader", declaration<Item>(), "a section of the composition's own");
    top.add_choice("optimizer", choice("optimizer"));
    Choice model = choice("model");
    model.default_name = "nothing";
    top.add_choice("model", model);
    return top;
  }();
  return result;
}

void require_readable(const Node& resolved) {
  require_same<Top>(resolved);
  require_same<Item>(*resolved.find("loader"));
  for (const char* name : {"optimizer", "model"}) {
    require_readable_choice(*resolved.find(name));
  }
}

}  // namespace phalanx::config::fuzz
