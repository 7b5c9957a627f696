// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <new>
#include <stdexcept>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> message{};
  pcre2_get_error_message(error, message.data(), message.size());
  return reinterpret_cast<const char*>(message.data());
}

// PCRE2's \s holds U+180E, which is no white space since Unicode 6.3.
std::string with_white_space(std::string_view pattern) {
  std::string result;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view escape = pattern.substr(i, 2);
    if (escape == "\\s") {
      result += "\\p{White_Space}";
    } else if (escape == "\\S") {
      result += "\\P{White_Space}";
    } else {
      result += escape.starts_with('\\') ? escape : escape.substr(0, 1);
    }
    if (escape.starts_with('\\')) ++i;
  }
  return result;
}

}  // namespace

void SplitPattern::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

void SplitPattern::Pieces::Free::operator()(pcre2_real_match_data_8* data) const {
  pcre2_match_data_free(data);
}

SplitPattern::SplitPattern(const std::string& pattern) {
  const std::string ours = with_white_space(pattern);
  int error = 0;
  size_t place = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(ours.data()), ours.size(),
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &place,
                            nullptr));
  if (!code_) {
    throw UserError(fmt::format("the pattern '{}' is none that PCRE2 knows: {} (before '{}')",
                                pattern, message_of(error), ours.substr(place)));
  }
  is_compiled_ = pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE) == 0;
}

SplitPattern::Pieces::Pieces(const SplitPattern& pattern, std::string_view text)
    : pattern_(pattern),
      text_(text),
      data_(pcre2_match_data_create_from_pattern(pattern.code_.get(), nullptr)) {
  if (!data_) throw std::bad_alloc();
  find_match();
}

// The next match that is not empty, or the end of the text.
void SplitPattern::Pieces::find_match() {
  const auto* const text = reinterpret_cast<PCRE2_SPTR>(text_.data());
  const pcre2_code* const code = pattern_.code_.get();
  constexpr uint32_t kOptions = PCRE2_NOTEMPTY;
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (pattern_.is_compiled_) {
    found = pcre2_jit_match(code, text, text_.size(), done_, kOptions, data_.get(), nullptr);
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {  // The interpreter backtracks on the heap.
    found = pcre2_match(code, text, text_.size(), done_,
                        kOptions | PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data_.get(), nullptr);
  }
  if (found == PCRE2_ERROR_NOMATCH) {
    match_begin_ = match_end_ = text_.size();
  } else if (found < 0) {
    throw std::runtime_error("cannot cut a text into words: " + message_of(found));
  } else {
    const size_t* const range = pcre2_get_ovector_pointer(data_.get());
    match_begin_ = range[0];
    match_end_ = range[1];
  }
}

bool SplitPattern::Pieces::next(Piece& piece) {
  if (done_ == text_.size()) return false;
  if (done_ == match_end_) find_match();
  piece.is_match = done_ == match_begin_;
  const size_t end = piece.is_match ? match_end_ : match_begin_;
  piece.text = text_.substr(done_, end - done_);
  done_ = end;
  return true;
}

}  // namespace phalanx
