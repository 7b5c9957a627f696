// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/hostfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>
#include <system_error>

#include "trainer/base/user_error.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/launch/launcher.h"

namespace phalanx {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream text(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

// Whether this is a name, or an address of IPv4 or IPv6: without user and port, and nothing that
// ssh takes for an option.
bool is_host(std::string_view name) {
  const auto may_be_in_it = [](unsigned char letter) {
    return std::isalnum(letter) != 0 ||
           std::string_view("-._:%").find(static_cast<char>(letter)) != std::string_view::npos;
  };
  return std::isalnum(static_cast<unsigned char>(name.front())) != 0 &&
         std::ranges::all_of(name, may_be_in_it);
}

std::string why_no_host(std::string_view name) {
  if (name.find('@') != std::string_view::npos) {
    return "name the user in ~/.ssh/config or --ssh=\"ssh -l USER\"";
  }
  return "a name or an address has letters, digits and -._:%";
}

int64_t slots_in(const std::string& word) {
  constexpr std::string_view kSlots = "slots=";
  if (!word.starts_with(kSlots)) {
    throw UserError(fmt::format("'{}' is not understood: write HOST, or HOST slots=4", word));
  }
  const auto slots = config::parse_integer(word.substr(kSlots.size())).value;
  if (slots && *slots >= 1 && *slots <= kMostRanksOfNode) return *slots;
  throw UserError(
      fmt::format("'{}': write a number of ranks from 1 to {}", word, kMostRanksOfNode));
}

Host host_in(const std::vector<std::string>& words) {
  Host host{.name = words.front(), .slots = std::nullopt};
  if (!is_host(host.name)) {
    throw UserError(fmt::format("'{}' is no host: {}", host.name, why_no_host(host.name)));
  }
  if (words.size() > 1) host.slots = slots_in(words[1]);
  if (words.size() > 2) {
    throw UserError(fmt::format("'{}' is one word too many: write HOST slots=4", words[2]));
  }
  return host;
}

}  // namespace

std::vector<Host> read_hostfile(const std::filesystem::path& file) {
  std::ifstream text(file);
  std::vector<Host> hosts;
  std::map<std::string, int64_t> lines;  // where a host is
  int64_t number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    const auto words = words_of(line);
    if (words.empty()) continue;
    try {
      hosts.push_back(host_in(words));
      const auto [earlier, is_new] = lines.try_emplace(words.front(), number);
      if (!is_new) {
        throw UserError(
            fmt::format("'{}' stands in line {} already", words.front(), earlier->second));
      }
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}:{}: {}", file.string(), number, error.what()));
    }
  }
  if (!text.eof() || text.bad()) {
    throw UserError(fmt::format("{}: cannot be read: {}", file.string(),
                                std::generic_category().message(errno)));
  }
  if (hosts.empty()) throw UserError(file.string() + ": names no host: write one a line");
  return hosts;
}

}  // namespace phalanx
