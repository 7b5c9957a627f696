// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/syntax/document.h"

#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/source_text.h"
#include "trainer/config/syntax/tree_builder.h"

namespace phalanx::config {

namespace {

using SourcePointer = std::shared_ptr<const Source>;

/// The first character after the document's end that is no white space or comment.
struct TextAfter {
  Origin origin;
};

/// What yaml-cpp says, in words that tell what to do.
std::string explained(const std::string& problem) {
  namespace Theirs = YAML::ErrorMsg;
  struct Words {
    std::string_view theirs;
    const char* ours;
  };
  static const std::array kWords = {
      Words{Theirs::UNKNOWN_TOKEN, "no value begins with this character; quote the text"},
      Words{Theirs::MAP_VALUE,
            "a ':' before a blank ends a key, and there is none here; quote a text with a ':'"},
      Words{Theirs::END_OF_MAP_FLOW, "a '}' is missing here"},
      Words{Theirs::END_OF_SEQ_FLOW, "a ']' is missing here"},
      Words{Theirs::FLOW_END, "this closes no list or map that is open here"},
      Words{Theirs::END_OF_MAP, "this is indented otherwise than the lines it belongs to"},
      Words{Theirs::END_OF_SEQ, "this is indented otherwise than the lines it belongs to"},
      Words{Theirs::BLOCK_ENTRY, "a list begins on a line of its own"},
      Words{Theirs::UNKNOWN_ANCHOR,
            "an alias is not allowed; refer to a value with ${a.b}, or quote a text with a '*'"}};
  const auto known = std::find_if(kWords.begin(), kWords.end(),
                                  [&](const Words& words) { return words.theirs == problem; });
  return known == kWords.end() ? problem : known->ours;
}

/// Notices a further document.
class NoFurtherDocument : public TreeBuilder {
 public:
  NoFurtherDocument(const SourcePointer& source, Diagnostics& diagnostics)
      : TreeBuilder(source, diagnostics), source_(source) {}
  void OnDocumentStart(const YAML::Mark& mark) override {
    throw TextAfter{origin_at(source_, static_cast<std::size_t>(std::max(mark.pos, 0)))};
  }

 private:
  SourcePointer source_;
};

}  // namespace

std::optional<Node> parse_document(const SourcePointer& source, std::string text,
                                   Diagnostics& diagnostics) {
  try {
    std::istringstream stream(mask_interpolations(text));
    YAML::Parser parser(stream);
    TreeBuilder builder(source, diagnostics);
    if (!parser.HandleNextDocument(builder)) return std::nullopt;
    NoFurtherDocument further(source, diagnostics);
    parser.HandleNextDocument(further);
    return builder.take();
  } catch (const YAML::Exception& error) {
    // Behind a line end yaml-cpp goes on, and where the quote began is known.
    const bool in_quotes = error.msg == YAML::ErrorMsg::EOF_IN_SCALAR && !text.ends_with('\n');
    if (in_quotes) return parse_document(source, std::move(text) + '\n', diagnostics);
    // What is missing at the end of a text is missing after its last character.
    const std::size_t end = source->text.find_last_not_of(" \n") + 1;
    const std::size_t position =
        error.mark.is_null() ? 0 : static_cast<std::size_t>(error.mark.pos);
    diagnostics.add(origin_at(source, std::min(position, end)), "",
                    "this is not valid YAML: " + explained(error.msg));
  } catch (const TreeBuilder::TooDeep& deep) {
    diagnostics.add(deep.origin, "",
                    "lists and maps nest deeper than " + std::to_string(kMaxDepth) + " levels");
  } catch (const TreeBuilder::NotClosed& quote) {
    diagnostics.add(quote.origin, "", "the quote that begins here is not closed");
  } catch (const TextAfter& after) {
    diagnostics.add(after.origin, "",
                    source->kind == Source::Kind::file
                        ? "the document has ended, but more follows; a config is one YAML document"
                        : "the value has ended, but more follows; quote it, or leave this out");
  }
  return std::nullopt;
}

}  // namespace phalanx::config
