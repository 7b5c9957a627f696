// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "trainer/base/nearest.h"
#include "trainer/base/user_error.h"
#include "trainer/cli/columns.h"
#include "trainer/cli/command.h"
#include "trainer/config/text/help.h"
#include "trainer/config/tree/fields.h"
#include "trainer/data/token_source.h"
#include "trainer/registry/kinds.h"
#include "trainer/registry/trainers.h"

namespace phalanx {
namespace {

std::string plural(const NameTable& table) { return table.kind() + "s"; }

// By kind: the order of registration is the linker's.
std::vector<const NameTable*> tables() {
  auto tables = NameTable::all();
  std::sort(tables.begin(), tables.end(),
            [](const auto* a, const auto* b) { return a->kind() < b->kind(); });
  return tables;
}

std::vector<std::string> kinds() {
  std::vector<std::string> kinds;
  for (const auto* table : tables()) kinds.push_back(plural(*table));
  return kinds;
}

// In the plural, as listed, or as a config says it; nullptr for an unknown one.
const NameTable* find_table(std::string_view kind) {
  for (const auto* table : tables()) {
    if (kind == plural(*table) || kind == table->kind()) return table;
  }
  return nullptr;
}

// What is known of a registered name.
struct Known {
  const config::Declaration* declaration = nullptr;  // of its fields
  std::string facts;                                 // a few words; or empty
};

Known known_trainer(std::string_view name) {
  const config::Declaration& declaration = TrainerRegistry::instance().at(name).declaration();
  std::vector<std::string_view> sections;
  for (const config::Field& field : declaration.fields()) {
    if (field.type.section != nullptr) sections.push_back(field.name);
  }
  return {&declaration, fmt::format("sections {}", fmt::join(sections, ", "))};
}

template <class Product>
Known known_class(std::string_view name) {
  const auto& entry = Registry<Product>::instance().at(name);
  std::vector<std::string> facts;
  if (!entry.required_interface.empty()) {
    facts.push_back(fmt::format("needs {}", entry.required_interface));
  }
  if (!entry.interfaces.empty()) {
    facts.push_back(fmt::format("offers {}", fmt::join(entry.interfaces, ", ")));
  }
  const config::Declaration& declaration = *entry.declaration();
  std::vector<std::string_view> presets;
  for (const config::Preset& preset : declaration.presets()) presets.push_back(preset.name);
  if (!presets.empty()) facts.push_back(fmt::format("presets {}", fmt::join(presets, ", ")));
  return {&declaration, fmt::format("{}", fmt::join(facts, "; "))};
}

// What is known of the class in the registry of this kind; nothing for another kind.
template <class... Products>
Known known_class_of(std::string_view kind, std::string_view name) {
  Known known;
  const auto look_in = [&]<class Product>(const RegistryKind<Product>&) {
    if (RegistryKind<Product>::kName == kind) known = known_class<Product>(name);
  };
  (look_in(RegistryKind<Products>()), ...);
  return known;
}

Known known(const NameTable& table, std::string_view name) {
  if (&table == &TrainerRegistry::instance().table()) return known_trainer(name);
  return known_class_of<AnyTask, ModelBase, Optimizer, LrScheduler, Sink, CommHook, Launcher,
                        TokenSource>(table.kind(), name);
}

void print_names(const NameTable& table, const TextStyle& style) {
  std::vector<Row> rows;
  for (const auto& name : table.names()) rows.push_back({name, known(table, name).facts});
  fmt::print("{}\n{}", style.heading(plural(table) + ":"), two_columns(rows, style));
}

void print_fields(const NameTable& table, const std::string& name, const TextStyle& style) {
  table.index_of(name);  // throws for one that is not there
  const auto [declaration, facts] = known(table, name);
  fmt::print("{}\n{}", style.heading(fmt::format("{} {}", table.kind(), name)),
             facts.empty() ? "" : two_columns(std::vector<Row>{{facts, ""}}, style));
  if (declaration == nullptr || declaration->fields().empty()) return;
  fmt::print("\n{}", config::help(config::field_entries(*declaration),
                                  {.width = style.width, .colour = style.colour}));
}

[[noreturn]] void refuse_kind(const std::string& kind) {
  for (const auto* table : tables()) {
    if (!table->contains(kind)) continue;
    throw UserError(fmt::format("'{0}' is a {1}, not a kind: list {2} {0}", kind, table->kind(),
                                plural(*table)));
  }
  throw UserError(unknown_name("kind", kind, kinds()));
}

std::vector<std::string> words(Arguments before) {
  if (before.empty()) return kinds();
  const NameTable* table = find_table(before.front());
  return table != nullptr && before.size() == 1 ? table->names() : std::vector<std::string>();
}

int run(const Invocation& invocation) {
  const TextStyle style = page_style(STDOUT_FILENO);
  const auto& arguments = invocation.arguments;
  if (arguments.empty()) {
    for (const auto* table : tables()) print_names(*table, style);
    return 0;
  }
  const NameTable* table = find_table(arguments.front());
  if (table == nullptr) refuse_kind(arguments.front());
  if (arguments.size() == 1) {
    print_names(*table, style);
  } else {
    print_fields(*table, arguments[1], style);
  }
  return 0;
}

}  // namespace

Command list_command() {
  return {
      .name = "list",
      .summary = "what is registered: tasks, models, optimizers, ...",
      .help =
          "Lists everything that a config can name, what a task needs of a model and what "
          "models offer; with KIND only that kind, with NAME the fields of that one.",
      .examples = {"list", "list models", "list models gpt2"},
      .positionals = {{"KIND", Positional::Takes::word, Positional::Count::optional},
                      {"NAME", Positional::Takes::word, Positional::Count::optional}},
      .run = run,
      .words = words,
  };
}

}  // namespace phalanx
