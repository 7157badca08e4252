// SPDX-License-Identifier: Apache-2.0
#include "text/json_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "text/numbers.h"
#include "text/utf8.h"

namespace feedline::text {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

bool is_high_surrogate(std::uint32_t code) { return code >= 0xD800 && code < 0xDC00; }
bool is_low_surrogate(std::uint32_t code) { return code >= 0xDC00 && code < 0xE000; }

}  // namespace

JsonReader::JsonReader(std::string_view text, Options options)
    : options_(options), begin_(text.data()), next_(text.data()), end_(text.data() + text.size()), is_at_end_(true) {
  FEEDLINE_CHECK(options_.max_levels <= kMaxLevels);
  if (text.starts_with(kByteOrderMark)) advance(kByteOrderMark.size());
}

JsonReader::JsonReader(ReadBlock read_block, Options options, std::size_t block)
    : options_(options), read_block_(std::move(read_block)), window_(std::max(block, 2 * kMaxNumber)) {
  FEEDLINE_CHECK(options_.max_levels <= kMaxLevels);
  begin_ = next_ = end_ = window_.data();
  if (fill(kByteOrderMark.size()) && std::string_view(next_, available()).starts_with(kByteOrderMark))
    advance(kByteOrderMark.size());
}

bool JsonReader::fail(std::uint64_t offset, std::string problem) {
  const std::string what = problem + " at byte " + std::to_string(offset);
  return fail(offset, std::move(problem), what);
}

bool JsonReader::invalid(std::uint64_t offset, std::string problem) {
  const std::string what = "invalid JSON at byte " + std::to_string(offset) + ": " + problem;
  return fail(offset, std::move(problem), what);
}

bool JsonReader::fail(std::uint64_t offset, std::string problem, const std::string& what) {
  if (error_) return false;
  problem_ = std::move(problem);
  error_ = data_error(what, options_.stage).error();
  error_->where.offset = offset;
  return false;
}

bool JsonReader::expected(const char* what) {
  const bool at_end = look() == '\0' && next_ == end_;
  return invalid(position(), std::string(at_end ? "the text ends; expected " : "expected ") + what);
}

bool JsonReader::fill(std::size_t wanted) {
  if (error_) return false;
  if (available() >= wanted || is_at_end_) return true;
  std::size_t held = available();
  std::memmove(window_.data(), next_, held);
  base_ += static_cast<std::uint64_t>(next_ - begin_);
  next_ = begin_;
  while (held < wanted && !is_at_end_) {
    const auto got = read_block_(base_ + held, std::as_writable_bytes(std::span(window_).subspan(held)));
    if (!got) {
      error_ = got.error();
      problem_ = error_->what;
      return false;
    }
    is_at_end_ = *got == 0;
    held += *got;
  }
  end_ = begin_ + held;
  return true;
}

char JsonReader::look() {
  while (true) {
    while (next_ < end_ && is_space(*next_)) ++next_;
    if (next_ < end_) return *next_;
    if (is_at_end_ || !fill(1)) return '\0';
  }
}

std::uint64_t JsonReader::offset() {
  if (error_) return error_->where.offset.value_or(position());
  look();
  return position();
}

JsonReader::Kind JsonReader::peek() {
  const char c = look();
  if (error_) return Kind::kNone;
  switch (c) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 't':
    case 'f':
      return Kind::kBool;
    case 'n':
      return Kind::kNull;
    case '-':
    case 'N':
    case 'I':
      return Kind::kNumber;
    default:
      return c >= '0' && c <= '9' ? Kind::kNumber : Kind::kNone;
  }
}

bool JsonReader::begin(bool is_object) {
  if (!starts_with(is_object ? '{' : '[')) return expected(is_object ? "an object" : "a list");
  if (level_ == options_.max_levels)
    return invalid(position(), "nested deeper than " + std::to_string(options_.max_levels) + " levels");
  advance(1);
  ++level_;
  is_object_[level_] = is_object;
  is_started_[level_] = false;
  if (options_.unique_keys) {
    if (keys_.size() <= level_) keys_.resize(level_ + 1);
    keys_[level_].clear();
  }
  return true;
}

bool JsonReader::begin_object() { return begin(true); }
bool JsonReader::begin_array() { return begin(false); }

// Moves to the next member or item of the innermost container. Returns false at its end.
bool JsonReader::end_or_comma(char end, const char* what) {
  const char c = look();
  if (error_) return false;
  if (c == end) {
    advance(1);
    --level_;
    return false;
  }
  if (!is_started_[level_]) {
    is_started_[level_] = true;
    return true;
  }
  if (c != ',') return expected(what);
  advance(1);
  if (look() == end) return invalid(position(), "a comma before the end of a list or an object");
  return !error_;
}

bool JsonReader::next_item() {
  FEEDLINE_CHECK(error_ || (level_ > 0 && !is_object_[level_]));
  return !error_ && end_or_comma(']', "',' or ']'");
}

bool JsonReader::next_key(std::string_view& key) {
  if (!advance_key(true)) return false;
  key = key_;
  return true;
}

bool JsonReader::advance_key(bool unescapes) {
  FEEDLINE_CHECK(error_ || (level_ > 0 && is_object_[level_]));
  if (error_ || !end_or_comma('}', "',' or '}'")) return false;
  if (!starts_with('"')) return expected("a key in double quotes");
  const std::uint64_t at = position();
  key_.clear();
  advance(1);
  const bool keeps = unescapes || options_.unique_keys;
  if (!take_characters(keeps ? &key_ : nullptr, keeps)) return false;
  if (!starts_with(':')) return expected("':'");
  advance(1);
  return !options_.unique_keys || add_key(at);
}

bool JsonReader::add_key(std::uint64_t offset) {
  std::vector<std::uint64_t>& keys = keys_[level_];
  const std::uint64_t hash = std::hash<std::string_view>()(key_);
  const bool is_sorted = keys.size() >= kSortedKeys;
  if (keys.size() == kSortedKeys) std::ranges::sort(keys);
  const auto found = is_sorted ? std::ranges::lower_bound(keys, hash) : std::ranges::find(keys, hash);
  if (found != keys.end() && *found == hash)
    return invalid(offset, "the key '" + key_.substr(0, 100) + "' appears twice in an object");
  if (keys.size() == kMaxKeys) return invalid(offset, "an object with more than " + std::to_string(kMaxKeys) + " keys");
  keys.insert(found, hash);
  return true;
}

bool JsonReader::take_four_digits(std::uint32_t& code) {
  if (!fill(4)) return false;
  code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = next_ < end_ ? *next_ : '\0';
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return invalid(position(), "an invalid escape in a string: expected four hexadecimal digits");
    code = code << 4 | static_cast<std::uint32_t>(digit);
    advance(1);
  }
  return true;
}

// Reads an escape after its backslash. If `out` is nullptr, skips the escape.
bool JsonReader::take_escape(std::string* out, bool unescapes) {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  if (!fill(1)) return false;
  const char letter = next_ < end_ ? *next_ : '\0';
  const std::uint64_t at = position() - 1;
  if (out && !unescapes) out->append("\\").append(1, letter);
  if (const std::size_t found = kLetters.find(letter); letter != '\0' && found != kLetters.npos) {
    advance(1);
    if (out && unescapes) *out += kMeanings[found];
    return true;
  }
  if (letter != 'u') return invalid(at, "an invalid escape in a string");
  advance(1);
  std::uint32_t code = 0;
  if (!take_four_digits(code)) return false;
  if (out && !unescapes) out->append(next_ - 4, next_);
  if (options_.unpaired_surrogates && !unescapes) return true;
  if (is_high_surrogate(code)) {
    if (!fill(6)) return false;
    const bool is_pair = available() >= 6 && next_[0] == '\\' && next_[1] == 'u';
    std::uint32_t low = 0;
    if (is_pair) {
      advance(2);
      if (!take_four_digits(low)) return false;
      if (out && !unescapes) out->append(next_ - 6, next_);
    }
    if (!is_low_surrogate(low)) return invalid(at, "an unpaired surrogate in a string");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (is_low_surrogate(code)) {
    return invalid(at, "an unpaired surrogate in a string");
  }
  if (out && unescapes) append_utf8(code, *out);
  return true;
}

// Reads the rest of a string after its opening quote. If `out` is nullptr, skips it.
bool JsonReader::take_characters(std::string* out, bool unescapes) {
  const std::uint64_t begin = position();
  while (true) {
    const char* const from = next_;
    while (next_ < end_ && *next_ != '"' && *next_ != '\\' && static_cast<unsigned char>(*next_) >= 0x20) ++next_;
    if (out) {
      out->append(from, next_);
      if (out->size() > kMaxString) return invalid(begin, "a string of more than 256 MiB");
    }
    if (next_ == end_) {
      if (is_at_end_) return invalid(begin, "an unterminated string");
      if (!fill(1)) return false;
      continue;
    }
    const char c = *next_;
    if (c != '"' && c != '\\') return invalid(position(), "a control character in a string");
    advance(1);
    if (c == '"') return true;
    if (!take_escape(out, unescapes)) return false;
  }
}

bool JsonReader::take_string(std::string& text) {
  text.clear();
  if (!starts_with('"')) return expected("a string");
  advance(1);
  return take_characters(&text, true);
}

std::optional<std::string> JsonReader::string() {
  std::string text;
  if (!take_string(text)) return {};
  return text;
}

bool JsonReader::take_token(std::string& token) {
  token = '"';
  if (!starts_with('"')) return expected("a string");
  advance(1);
  if (!take_characters(&token, false)) return false;
  token += '"';
  return true;
}

bool JsonReader::take_number(JsonNumber& number) {
  const char first = look();
  if (error_ || first == '\0' || !fill(kMaxNumber + 1)) return expected("a number");
  const bool is_whole_text = !read_block_;
  const std::string_view rest(next_, is_whole_text ? available() : std::min(available(), kMaxNumber + 1));
  const Number parsed = parse_number(rest);
  if (parsed.length == 0) return expected("a number");
  if (!is_whole_text && parsed.length > kMaxNumber)
    return invalid(position(), "a number of more than " + std::to_string(kMaxNumber) + " characters");
  if (parsed.is_out_of_range) return fail(position(), "a number out of the range of a double");
  number = {parsed.real, parsed.whole, rest.substr(0, parsed.length)};
  advance(parsed.length);
  return true;
}

std::optional<std::int64_t> JsonReader::integer() {
  const std::uint64_t at = offset();
  JsonNumber number;
  if (!take_number(number)) return {};
  if (!number.whole) return fail(at, "expected a 64-bit integer"), std::nullopt;
  return number.whole;
}

bool JsonReader::take_word(std::string_view word) {
  look();
  if (!fill(word.size())) return false;
  if (!std::string_view(next_, available()).starts_with(word)) return expected("a value");
  advance(word.size());
  return true;
}

std::optional<bool> JsonReader::boolean() {
  const char c = look();
  if (error_ || (c != 't' && c != 'f')) return expected("true or false"), std::nullopt;
  if (!take_word(c == 't' ? "true" : "false")) return {};
  return c == 't';
}

bool JsonReader::null() { return starts_with('n') ? take_word("null") : expected("null"); }

bool JsonReader::take_flag(bool& flag) {
  flag = false;
  const Kind kind = peek();
  if (kind == Kind::kNull) return null();
  if (kind == Kind::kBool) {
    const auto value = boolean();
    flag = value.value_or(false);
    return value.has_value();
  }
  const std::uint64_t at = offset();
  JsonNumber number;
  if (!take_number(number)) return false;
  if (number.real != 0 && number.real != 1) return fail(at, "a number that is neither 0 nor 1");
  flag = number.real == 1;
  return true;
}

bool JsonReader::skip_scalar() {
  switch (peek()) {
    case Kind::kString:
      advance(1);
      return take_characters(nullptr, false);
    case Kind::kNumber: {
      if (!fill(kMaxNumber + 1)) return false;
      const Number number = parse_number({next_, available()});
      if (number.length == 0) return expected("a value");
      const std::string_view written(next_, number.length);
      const std::size_t digits = number.length - (written.front() == '-' ? 1 : 0);
      if (options_.max_digits > 0 && digits > options_.max_digits && written.find_first_of(".eE") == written.npos)
        return invalid(position(), "an integer of more than " + std::to_string(options_.max_digits) + " digits");
      if (read_block_ && number.length > kMaxNumber)
        return invalid(position(), "a number of more than " + std::to_string(kMaxNumber) + " characters");
      advance(number.length);
      return true;
    }
    case Kind::kBool:
      return boolean().has_value();
    case Kind::kNull:
      return null();
    case Kind::kObject:
    case Kind::kArray:
    case Kind::kNone:
      break;
  }
  return expected("a value");
}

bool JsonReader::next() { return is_object_[level_] ? advance_key(false) : next_item(); }

// Skips a value without recursion, so that nesting does not use stack memory.
bool JsonReader::skip() {
  const std::size_t outer = level_;
  do {
    const Kind kind = peek();
    const bool is_container = kind == Kind::kObject || kind == Kind::kArray;
    if (is_container ? !begin(kind == Kind::kObject) : !skip_scalar()) return false;
    while (level_ > outer && !next())
      if (error_) return false;
  } while (level_ > outer);
  return true;
}

std::optional<std::string_view> JsonReader::raw() {
  FEEDLINE_CHECK(!read_block_);
  look();
  const char* const from = next_;
  if (!skip()) return {};
  return std::string_view(from, next_);
}

bool JsonReader::finish() {
  if (look() == '\0' && !error_ && next_ == end_) return true;
  return invalid(offset(), "text after the end of the value");
}

}  // namespace feedline::text
