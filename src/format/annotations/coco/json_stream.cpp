// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/json_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "format/annotations/number_text.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

constexpr std::string_view kMark = "\xef\xbb\xbf";  // of UTF-8, which some editors write

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

void append_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

JsonStream::JsonStream(const storage::Reader& reader, std::size_t block)
    : reader_(reader), window_(std::max(block, 2 * kMostNumber)), levels_(1) {
  if (fill(kMark.size()) && std::string_view(window_.data(), end_).starts_with(kMark)) next_ = kMark.size();
}

bool JsonStream::fail(std::uint64_t offset, const std::string& what) {
  if (error_) return false;
  error_ =
      data_error("not the JSON that was expected: " + what + " at byte " + std::to_string(offset), "format").error();
  error_->where.offset = offset;
  return false;
}

bool JsonStream::expected(const char* what) {
  const char c = look();
  return fail(offset(), c == '\0' ? std::string("the text ends where there should be ") + what
                                  : std::string("there is no ") + what);
}

bool JsonStream::fill(std::size_t wanted) {
  if (error_) return false;
  if (end_ - next_ >= wanted || is_at_end_) return true;
  std::memmove(window_.data(), window_.data() + next_, end_ - next_);
  base_ += next_;
  end_ -= next_;
  next_ = 0;
  while (end_ < wanted && !is_at_end_) {
    const auto got = reader_.read_at(base_ + end_, std::as_writable_bytes(std::span(window_).subspan(end_)));
    if (!got) {
      error_ = got.error();
      return false;
    }
    is_at_end_ = *got == 0;
    end_ += *got;
  }
  return true;
}

char JsonStream::look() {
  while (true) {
    while (next_ < end_ && is_space(window_[next_])) ++next_;
    if (next_ < end_) return window_[next_];
    if (is_at_end_ || !fill(1)) return '\0';
  }
}

std::uint64_t JsonStream::offset() {
  look();
  return base_ + next_;
}

JsonStream::Kind JsonStream::peek() {
  const char c = look();
  if (error_) return Kind::kNothing;
  switch (c) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 't':
    case 'f':
    case 'n':
      return Kind::kWord;
    case '-':
    case 'N':
    case 'I':
      return Kind::kNumber;
    default:
      return c >= '0' && c <= '9' ? Kind::kNumber : Kind::kNothing;
  }
}

bool JsonStream::begin(bool is_object) {
  if (look() != (is_object ? '{' : '[') || error_) return expected(is_object ? "object" : "list");
  if (depth_ == kMostDepth) return fail(offset(), "more than " + std::to_string(kMostDepth) + " levels");
  ++next_;
  if (++depth_ == levels_.size()) levels_.emplace_back();
  Level& level = levels_[depth_];
  level.is_object = is_object;
  level.is_first = true;
  level.keys.clear();
  return true;
}

bool JsonStream::begin_object() { return begin(true); }
bool JsonStream::begin_array() { return begin(false); }

bool JsonStream::next_item() {
  FEEDLINE_CHECK(depth_ > 0 && !levels_[depth_].is_object);
  const char c = look();
  if (error_) return false;
  if (c == ']') {
    ++next_;
    --depth_;
    return false;
  }
  if (!std::exchange(levels_[depth_].is_first, false)) {
    if (c != ',') return expected("comma or end of the list");
    ++next_;
    if (look() == ']') return fail(offset(), "a comma before the end of a list");
  }
  return !error_;
}

bool JsonStream::next_key(std::string_view& key) {
  FEEDLINE_CHECK(depth_ > 0 && levels_[depth_].is_object);
  char c = look();
  if (error_) return false;
  if (c == '}') {
    ++next_;
    --depth_;
    return false;
  }
  if (!std::exchange(levels_[depth_].is_first, false)) {
    if (c != ',') return expected("comma or end of the object");
    ++next_;
    c = look();
  }
  if (c != '"') return expected("key");
  const std::uint64_t at = offset();
  key_.clear();
  ++next_;
  if (!take_characters(key_, true)) return false;
  if (look() != ':') return expected("colon");
  ++next_;
  key = key_;
  return add_key(at, key_);
}

bool JsonStream::add_key(std::uint64_t offset, std::string_view key) {
  std::vector<std::uint64_t>& keys = levels_[depth_].keys;
  const std::uint64_t digest = xxh3(std::as_bytes(std::span(key)));
  const bool is_sorted = keys.size() >= kSorted;
  if (keys.size() == kSorted) std::ranges::sort(keys);
  const auto place = is_sorted ? std::ranges::lower_bound(keys, digest) : std::ranges::find(keys, digest);
  if (place != keys.end() && *place == digest)
    return fail(offset, "the key '" + std::string(key.substr(0, 100)) + "', which the object has already,");
  if (keys.size() == kMostKeys) return fail(offset, "an object of more than " + std::to_string(kMostKeys) + " keys");
  keys.insert(place, digest);
  return true;
}

bool JsonStream::take_four_digits(std::uint32_t& code) {
  if (!fill(4)) return false;
  code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = next_ < end_ ? window_[next_] : '\0';
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return fail(base_ + next_, "no four hexadecimal digits");
    code = code << 4 | static_cast<std::uint32_t>(digit);
    ++next_;
  }
  return true;
}

// Behind the backslash.
bool JsonStream::take_escape(std::string& out, bool unescapes) {
  constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
  if (!fill(1)) return false;
  const char c = next_ < end_ ? window_[next_] : '\0';
  const std::uint64_t at = base_ + next_;
  ++next_;
  if (!unescapes) out.append("\\").append(1, c);
  if (const std::size_t place = kNames.find(c); c != '\0' && place != kNames.npos) {
    if (unescapes) out += kValues[place];
    return true;
  }
  if (c != 'u') return fail(at, "an escape that JSON does not have");
  std::uint32_t code = 0;
  if (!take_four_digits(code)) return false;
  if (!unescapes) {
    out.append(window_.data() + next_ - 4, 4);
    return true;
  }
  const bool is_high = code >= 0xd800 && code < 0xdc00;
  if (is_high && fill(6) && end_ - next_ >= 6 && window_[next_] == '\\' && window_[next_ + 1] == 'u') {
    next_ += 2;
    std::uint32_t low = 0;
    if (!take_four_digits(low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return fail(at, "half of a pair of surrogates");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  } else if (code >= 0xd800 && code <= 0xdfff) {
    return fail(at, "half of a pair of surrogates");
  }
  append_utf8(out, code);
  return true;
}

// From behind the first quote to behind the last one.
bool JsonStream::take_characters(std::string& out, bool unescapes) {
  const std::uint64_t begin = base_ + next_;
  while (true) {
    const char* const from = window_.data() + next_;
    const char* const last = window_.data() + end_;
    const char* stop = from;
    while (stop < last && *stop != '"' && *stop != '\\' && static_cast<unsigned char>(*stop) >= 0x20) ++stop;
    out.append(from, stop);
    if (out.size() > kMostString) return fail(begin, "a string of more than 256 MiB");
    next_ += static_cast<std::size_t>(stop - from);
    if (stop == last) {
      if (is_at_end_) return fail(begin, "a string without an end");
      if (!fill(1)) return false;
      continue;
    }
    const char c = window_[next_];
    if (c != '"' && c != '\\') return fail(base_ + next_, "a control character in a string");
    ++next_;
    if (c == '"') return true;
    if (!take_escape(out, unescapes)) return false;
  }
}

bool JsonStream::take_string(std::string& text) {
  text.clear();
  if (look() != '"' || error_) return expected("string");
  ++next_;
  return take_characters(text, true);
}

bool JsonStream::take_token(std::string& token) {
  token = '"';
  if (look() != '"' || error_) return expected("string");
  ++next_;
  if (!take_characters(token, false)) return false;
  token += '"';
  return true;
}

bool JsonStream::take_number(JsonNumber& number) {
  const char first = look();
  if (error_ || first == '\0' || !fill(kMostNumber + 1)) return expected("number");
  const std::string_view text(window_.data() + next_, end_ - next_);
  const NumberText read = read_number(text.substr(0, kMostNumber + 1));
  if (read.characters == 0) return expected("number");
  if (read.characters > kMostNumber)
    return fail(offset(), "a number of more than " + std::to_string(kMostNumber) + " characters");
  if (read.is_out_of_range) return fail(offset(), "a number that is out of the range of a double");
  number = {read.real, read.whole};
  next_ += read.characters;
  return true;
}

bool JsonStream::take_word(std::string_view word) {
  if (!fill(word.size())) return false;
  if (std::string_view(window_.data() + next_, end_ - next_).substr(0, word.size()) != word) return expected("value");
  next_ += word.size();
  return true;
}

bool JsonStream::take_flag(bool& flag) {
  const char c = look();
  if (c == 'n') {
    flag = false;
    return take_word("null");
  }
  if (c == 't' || c == 'f') {
    flag = c == 't';
    return take_word(flag ? "true" : "false");
  }
  JsonNumber number;
  const std::uint64_t at = offset();
  if (!take_number(number)) return false;
  if (number.real != 0 && number.real != 1) return fail(at, "a number that is neither 0 nor 1");
  flag = number.real == 1;
  return true;
}

bool JsonStream::skip() {
  switch (peek()) {
    case Kind::kObject: {
      std::string_view key;
      if (!begin_object()) return false;
      while (next_key(key))
        if (!skip()) return false;
      return !error_;
    }
    case Kind::kArray:
      if (!begin_array()) return false;
      while (next_item())
        if (!skip()) return false;
      return !error_;
    case Kind::kString: {
      std::string text;
      return take_string(text);
    }
    case Kind::kNumber: {
      JsonNumber number;
      return take_number(number);
    }
    case Kind::kWord:
      return take_word(look() == 't' ? "true" : look() == 'f' ? "false" : "null");
    case Kind::kNothing:
      break;
  }
  return expected("value");
}

bool JsonStream::finish() {
  if (look() == '\0' && !error_ && next_ == end_) return true;
  return fail(offset(), "something behind the end of the text");
}

}  // namespace feedline::format
