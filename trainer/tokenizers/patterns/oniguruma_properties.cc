// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/patterns/oniguruma_properties.h"

#include <cctype>
#include <map>

namespace phalanx {
namespace {

// By names in lower case without spaces, "_" and "-", as Oniguruma compares them.
const std::map<std::string, std::string, std::less<>>& other_names() {
  static const std::map<std::string, std::string, std::less<>> names{
      {"alpha", "Alphabetic"},
      {"casedletter", "L&"},
      {"closepunctuation", "Pe"},
      {"connectorpunctuation", "Pc"},
      {"control", "Cc"},
      {"currencysymbol", "Sc"},
      {"dashpunctuation", "Pd"},
      {"decimalnumber", "Nd"},
      {"digit", "Nd"},
      {"enclosingmark", "Me"},
      {"finalpunctuation", "Pf"},
      {"format", "Cf"},
      {"initialpunctuation", "Pi"},
      {"lc", "L&"},
      {"letter", "L"},
      {"letternumber", "Nl"},
      {"lineseparator", "Zl"},
      {"lower", "Lowercase"},
      {"lowercaseletter", "Ll"},
      {"mark", "M"},
      {"mathsymbol", "Sm"},
      {"modifierletter", "Lm"},
      {"modifiersymbol", "Sk"},
      {"nonspacingmark", "Mn"},
      {"number", "N"},
      {"openpunctuation", "Ps"},
      {"other", "C"},
      {"otherletter", "Lo"},
      {"othernumber", "No"},
      {"otherpunctuation", "Po"},
      {"othersymbol", "So"},
      {"paragraphseparator", "Zp"},
      {"privateuse", "Co"},
      {"punctuation", "P"},
      {"separator", "Z"},
      {"space", "White_Space"},
      {"spaceseparator", "Zs"},
      {"spacingmark", "Mc"},
      {"symbol", "S"},
      {"titlecaseletter", "Lt"},
      {"unassigned", "Cn"},
      {"upper", "Uppercase"},
      {"uppercaseletter", "Lu"},
  };
  return names;
}

}  // namespace

std::optional<std::string> pcre2_property(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    if (!std::isalnum(static_cast<unsigned char>(c))) return std::nullopt;
    plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  // Sets of POSIX, which hold more or less than PCRE2's of these names.
  for (const char* differing : {"alnum", "ascii", "blank", "cntrl", "graph", "print", "punct",
                                "word", "xdigit", "any", "xps", "xsp", "xwd", "xan", "xuc"}) {
    if (plain == differing) return std::nullopt;
  }
  const auto found = other_names().find(plain);
  return found == other_names().end() ? plain : found->second;
}

}  // namespace phalanx
