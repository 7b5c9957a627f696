// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/unicode/normal_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "trainer/tokenizers/unicode/characters.h"
#include "trainer/tokenizers/unicode/older_tables.h"

namespace phalanx::unicode {
namespace {

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  options |=
      form == NormalForm::nfc || form == NormalForm::nfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

void append_normal(std::string_view text, NormalForm form, std::string& result) {
  thread_local std::vector<utf8proc_int32_t> buffer;
  const utf8proc_option_t options = options_of(form);
  const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  const auto decompose = [&] {
    return utf8proc_decompose(bytes, size, buffer.data(),
                              static_cast<utf8proc_ssize_t>(buffer.size()), options);
  };
  buffer.resize(std::max<size_t>(buffer.size(), text.size() + 16));
  utf8proc_ssize_t count = decompose();
  if (count >= static_cast<utf8proc_ssize_t>(buffer.size())) {
    buffer.resize(static_cast<size_t>(count) + 1);
    count = decompose();
  }
  const utf8proc_ssize_t length =
      count < 0 ? count : utf8proc_reencode(buffer.data(), count, options);
  if (length < 0) {
    throw std::runtime_error(std::string("cannot normalize a text: ") + utf8proc_errmsg(length));
  }
  result.append(reinterpret_cast<const char*>(buffer.data()), static_cast<size_t>(length));
}

// Whether a character stays as it is whatever stands before it. Behind it a mark may.
bool is_inert(char32_t code, NormalForm form) {
  return code < (form == NormalForm::nfc ? 0x300U : 0x80U) || (code >= 0x4E00 && code <= 0x9FFF);
}

size_t ascii_length(std::string_view text) {
  size_t length = 0;
  while (length < text.size() && static_cast<unsigned char>(text[length]) < 0x80) ++length;
  return length;
}

}  // namespace

std::string normal_form(std::string_view text, NormalForm form) {
  std::string result;
  result.reserve(text.size());
  size_t done = 0;
  size_t safe = 0;  // Where the last character begins from which on a part may be normalized.
  bool is_changed = false;
  const auto take_to = [&](size_t end) {
    const std::string_view part = text.substr(done, end - done);
    if (is_changed) {
      append_normal(part, form, result);
    } else {
      result += part;
    }
    done = end;
    is_changed = false;
  };
  for (size_t place = 0; place < text.size();) {
    if (const size_t length = ascii_length(text.substr(place)); length > 0) {
      if (is_changed) take_to(place);
      place += length;
      safe = place - 1;
      continue;
    }
    const Character character = character_at(text, place);
    if (is_inert(character.code, form)) {
      if (is_changed) take_to(place);
      safe = place;
    } else if (is_newer_in_normal_forms(character.code)) {
      take_to(place);
      take_to(place + character.length);
      safe = done;
    } else if (!is_changed) {
      take_to(safe);
      is_changed = true;
    }
    place += character.length;
  }
  take_to(text.size());
  return result;
}

}  // namespace phalanx::unicode
