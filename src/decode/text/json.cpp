// SPDX-License-Identifier: Apache-2.0
#include "decode/text/json.h"

#include <bitset>
#include <string>
#include <string_view>

#include "decode/text/utf8.h"

namespace feedline::decode {
namespace {

constexpr std::size_t kMostDepth = 500;
constexpr std::size_t kMostDigits = 4300;  // of an integer: sys.int_info.default_max_str_digits

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Scans the text once, without recursion, with one bit per open nesting level.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  Result<void> scan() {
    take(kByteOrderMark);
    if (!value()) return failed();
    while (depth_ > 0)
      if (!rest_of_container()) return failed();
    skip_space();
    if (at_ < text_.size() && !fail("something follows the value")) return failed();
    return {};
  }

 private:
  Result<void> failed() const {
    return data_error("not JSON: " + std::string(what_) + " at byte " + std::to_string(at_), "decode");
  }
  bool fail(std::string_view what) {
    what_ = what;
    return false;
  }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (next() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_space() {
    while (next() == ' ' || next() == '\t' || next() == '\n' || next() == '\r') ++at_;
  }

  // Parses a value; for a container, its start up to the end of its first value or the start of a nested container.
  bool value() {
    while (true) {
      skip_space();
      const char first = next();
      if (first == '"') return string();
      if (first != '[' && first != '{') return scalar();
      ++at_;
      if (depth_ == kMostDepth) return fail("over 500 levels");
      is_object_[depth_++] = first == '{';
      skip_space();
      if (take(first == '{' ? '}' : ']')) {
        --depth_;
        return true;
      }
      if (first == '{' && !key()) return false;
    }
  }
  // After a value in the innermost container: parses its end or the next value.
  bool rest_of_container() {
    skip_space();
    const bool is_object = is_object_[depth_ - 1];
    if (take(is_object ? '}' : ']')) {
      --depth_;
      return true;
    }
    if (!take(',')) return fail(is_object ? "no ',' or '}'" : "no ',' or ']'");
    if (is_object) {
      skip_space();
      if (!key()) return false;
    }
    return value();
  }
  bool key() {
    if (next() != '"') return fail("no name in double quotes");
    if (!string()) return false;
    skip_space();
    return take(':') || fail("no ':'");
  }
  bool string() {
    ++at_;
    while (true) {
      if (at_ == text_.size()) return fail("a string without an end");
      const char c = text_[at_++];
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return --at_, fail("a control character in a string");
      if (c == '\\' && !escape()) return false;
    }
  }
  bool escape() {
    if (take('u')) {
      for (int i = 0; i < 4; ++i, ++at_)
        if (!is_hex(next())) return fail("no four hexadecimal digits");
      return true;
    }
    if (std::string_view("\"\\/bfnrt").find(next()) == std::string_view::npos || at_ == text_.size())
      return fail("an unknown escape in a string");
    ++at_;
    return true;
  }
  std::size_t digits() {
    const std::size_t begin = at_;
    while (is_digit(next())) ++at_;
    return at_ - begin;
  }
  bool scalar() {
    for (const std::string_view word : {"true", "false", "null", "NaN", "Infinity", "-Infinity"})
      if (take(word)) return true;
    const std::size_t begin = at_;
    take('-');
    const bool is_zero = take('0');
    const std::size_t whole = is_zero ? 1 : digits();
    if (whole == 0) {
      at_ = begin;
      return fail(at_ == text_.size() ? "no value" : "no value is written so");
    }
    bool is_integer = true;
    if (next() == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])) {
      ++at_;
      digits();
      is_integer = false;
    }
    if (next() == 'e' || next() == 'E') is_integer = !exponent() && is_integer;
    return !is_integer || whole <= kMostDigits || fail("an integer of over 4300 digits");
  }
  bool exponent() {
    const std::size_t before = at_++;
    if (next() == '+' || next() == '-') ++at_;
    if (digits() > 0) return true;
    at_ = before;  // the number ends before it; the text after it is invalid
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0, depth_ = 0;
  std::bitset<kMostDepth> is_object_;
  std::string_view what_;
};

}  // namespace

Result<void> check_json(std::span<const std::byte> text) {
  FEEDLINE_CHECK_OK(check_utf8(text));
  return JsonScanner({reinterpret_cast<const char*>(text.data()), text.size()}).scan();
}

}  // namespace feedline::decode
