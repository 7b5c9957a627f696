// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/cli/command.h"
#include "trainer/io/file.h"
#include "trainer/ranks/stores/tcp_store.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

using StorePointer = c10::intrusive_ptr<c10d::Store>;
using Seconds = std::chrono::seconds;

constexpr int64_t kDefaultTimeout = 10;

const std::vector<Flag>& flags_of_all() {
  static const std::vector<Flag> flags{
      {"--at", "the store's HOST:PORT; without it MASTER_ADDR and MASTER_PORT", Flag::Takes::text},
      {"--prefix", "put before every key, with a / between, as PrefixStore does",
       Flag::Takes::text},
      {"--timeout", "seconds to wait for the store and for keys; 10", Flag::Takes::count},
  };
  return flags;
}

std::vector<Flag> with_flag(const Flag& flag) {
  std::vector<Flag> flags = flags_of_all();
  flags.insert(flags.begin(), flag);
  return flags;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// As URLs write an address of IPv6, to tell its port from it: [::1]:29500.
std::string without_brackets(std::string host) {
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  return has_brackets ? host.substr(1, host.size() - 2) : host;
}

StorePlace place_of(const Invocation& invocation) {
  const auto at = invocation.value("--at");
  const std::string text = at ? *at : variable("MASTER_ADDR") + ":" + variable("MASTER_PORT");
  const size_t colon = text.rfind(':');
  const auto port = number_in<uint16_t>(
      colon == std::string::npos ? std::string_view() : std::string_view(text).substr(colon + 1));
  if (!port || *port == 0 || colon == 0) {
    throw UserError(at ? fmt::format("--at is HOST:PORT, not '{}'", text)
                       : "which store? Give --at=HOST:PORT, or set MASTER_ADDR and MASTER_PORT");
  }
  return {.host = without_brackets(text.substr(0, colon)),
          .port = *port,
          .setting = at ? "--at" : "MASTER_ADDR"};
}

Seconds timeout_of(const Invocation& invocation) {
  return Seconds(invocation.count("--timeout").value_or(kDefaultTimeout));
}

// Without --prefix.
StorePointer open_whole(const Invocation& invocation) {
  const StorePlace place = place_of(invocation);
  require_known_host(place);
  show_only_errors_of_c10d();
  try {
    return open_tcp_store(place, {}, timeout_of(invocation));
  } catch (const std::exception& error) {
    throw std::runtime_error(
        fmt::format("no store at {}:{}: {}", place.host, place.port, error_text(error)));
  }
}

StorePointer open(const Invocation& invocation) {
  StorePointer store = open_whole(invocation);
  const auto prefix = invocation.value("--prefix");
  if (!prefix) return store;
  return c10::make_intrusive<c10d::PrefixStore>(*prefix, std::move(store));
}

void wait_for(c10d::Store& store, const std::vector<std::string>& keys, Seconds timeout) {
  try {
    store.wait(keys, timeout);
  } catch (const c10::DistStoreError&) {
    std::string missing;
    for (const std::string& key : keys) {
      if (!store.check({key})) missing += fmt::format("{}'{}'", missing.empty() ? "" : ", ", key);
    }
    throw std::runtime_error(fmt::format("{} not set within {} s", missing, timeout.count()));
  }
}

// No store is asked for what a Tab offers.
std::vector<std::string> no_words(Arguments) { return {}; }

int get(const Invocation& invocation) {
  const StorePointer store = open(invocation);
  const std::string& key = invocation.arguments.front();
  wait_for(*store, {key}, timeout_of(invocation));
  const std::string value = store->get_to_str(key);
  if (const auto file = invocation.value("--output")) {
    replace_file(*file, value);
  } else {
    fmt::print("{}\n", value);
  }
  return 0;
}

int set(const Invocation& invocation) {
  const auto file = invocation.value("--input");
  const bool has_value = invocation.arguments.size() == 2;
  if (has_value == file.has_value()) {
    throw UserError("store set takes a VALUE or --input=PATH, one of them");
  }
  const std::string value = file ? read_text(*file) : invocation.arguments[1];
  open(invocation)->set(invocation.arguments.front(), value);
  return 0;
}

int wait(const Invocation& invocation) {
  wait_for(*open(invocation), invocation.arguments, timeout_of(invocation));
  return 0;
}

int add(const Invocation& invocation) {
  const std::string& key = invocation.arguments.front();
  const auto amount = number_in<int64_t>(invocation.arguments[1]);
  if (!amount) {
    throw UserError(fmt::format("AMOUNT is a whole number, not '{}'", invocation.arguments[1]));
  }
  const StorePointer store = open(invocation);
  // c10d's server drops who adds to a text.
  if (store->check({key})) {
    const std::string value = store->get_to_str(key);
    if (!number_in<int64_t>(value)) {
      throw UserError(fmt::format("'{}' is '{}', to which nothing can be added", key, value));
    }
  }
  fmt::print("{}\n", store->add(key, *amount));
  return 0;
}

int remove(const Invocation& invocation) {
  const std::string& key = invocation.arguments.front();
  if (open(invocation)->deleteKey(key)) return 0;
  throw std::runtime_error(fmt::format("there is no key '{}'", key));
}

// PrefixStore's own list has keys of longer prefixes, too: those of run/10 for run/1.
int keys(const Invocation& invocation) {
  std::vector<std::string> all = open_whole(invocation)->listKeys();
  std::ranges::sort(all);
  const auto prefix = invocation.value("--prefix");
  const std::string before = prefix ? *prefix + "/" : "";
  const std::string begin =
      before + (invocation.arguments.empty() ? "" : invocation.arguments.front());
  for (const std::string& key : all) {
    if (key.starts_with(begin)) fmt::print("{}\n", key.substr(before.size()));
  }
  return 0;
}

}  // namespace

Command store_command() {
  const Positional key{"KEY"};
  return {
      .name = "store",
      .summary = "read and write the key-value store of ranks",
      .help =
          "A store is c10d's TCPStore, of ranks that train or of a Python program. Exits with 1 "
          "if no store answers, or a key does not come in time.",
      .examples = {"store set ready yes --at=127.0.0.1:29500",
                   "store wait ready --at=127.0.0.1:29500 --timeout=60"},
      .actions =
          {
              {.name = "get",
               .summary = "wait for a key, and print its value",
               .help = "Prints the value as it is, and a line break behind it; --output writes its "
                       "bytes alone.",
               .positionals = {key},
               .flags =
                   with_flag({"--output", "a file for the value's bytes", Flag::Takes::new_file}),
               .run = get,
               .words = no_words},
              {.name = "set",
               .summary = "set a key",
               .help = "A value is text, or the bytes of a file.",
               .positionals = {key,
                               {"VALUE", Positional::Takes::word, Positional::Count::optional}},
               .flags = with_flag({"--input", "a file that holds the value", Flag::Takes::path}),
               .run = set,
               .words = no_words},
              {.name = "wait",
               .summary = "wait until all of these keys are set",
               .help = "Names the keys that did not come in time.",
               .positionals = {key, {"KEY", Positional::Takes::word, Positional::Count::any}},
               .flags = flags_of_all(),
               .run = wait,
               .words = no_words},
              {.name = "add",
               .summary = "add to a number, 0 before it is set, and print the sum",
               .help = "Exits with 2 if the value is not a number.",
               .positionals = {key, {"AMOUNT"}},
               .flags = flags_of_all(),
               .run = add,
               .words = no_words},
              {.name = "delete",
               .summary = "remove a key",
               .help = "Exits with 1 if there is no such key.",
               .positionals = {key},
               .flags = flags_of_all(),
               .run = remove,
               .words = no_words},
              {.name = "keys",
               .summary = "list the keys that begin with a text",
               .help = "All of them without BEGIN. A run of Phalanx begins its keys with phalanx/.",
               .positionals = {{"BEGIN", Positional::Takes::word, Positional::Count::optional}},
               .flags = flags_of_all(),
               .run = keys,
               .words = no_words},
          },
  };
}

}  // namespace phalanx
