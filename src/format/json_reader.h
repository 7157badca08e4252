// SPDX-License-Identifier: Apache-2.0
#pragma once

// JSON read from front to back, without a tree of values: indexes of datasets are large, and most of what they say is
// passed over. Strict by RFC 8259, except that only integers among numbers are checked, and that a byte-order mark, NaN
// and Infinity are accepted, as in Python's json.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace feedline::format {

// Every method that finds something else than it was called for, or damage, says no; from then on all do. Not for
// several threads at once. The text must outlive it.
class JsonReader {
 public:
  enum class Type : std::uint8_t { kObject, kArray, kString, kNumber, kBool, kNull, kNothing };

  explicit JsonReader(std::string_view text) : text_(text) {
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    if (text_.starts_with(kMark)) at_ = kMark.size();
  }

  Type peek();  // kNothing: the end, or damage
  // Calls `take` with each key, which then reads the value, until one gives false.
  template <typename Take>
  bool object(Take&& take);
  // Calls `take` for each element, which reads it, until one gives false.
  template <typename Take>
  bool array(Take&& take);
  std::optional<std::string> string();
  // As it is written, between its quotes: what is escaped there is not looked into.
  std::optional<std::string_view> raw_string();
  std::optional<std::int64_t> integer();
  // As it is written, and NaN, Infinity and -Infinity, which Python's json.dumps() writes as well.
  std::optional<std::string_view> real();
  std::optional<bool> boolean();
  bool null();
  // Any value, of which the text is given; nullopt: there is none, or one nested too deep.
  std::optional<std::string_view> skip();

  bool is_good() const { return !damaged_; }
  bool at_end();  // nothing but white space follows
  std::size_t offset() const { return at_; }

 private:
  static constexpr int kDeepest = 64;  // recursion that a file can ask for

  bool fail() {
    damaged_ = true;
    return false;
  }
  bool enter(char open) { return ++depth_ <= kDeepest && take(open) ? true : fail(); }
  bool take(char wanted);  // behind white space; nothing is damaged where it is another one
  bool literal(std::string_view word);
  bool escape(std::string& out);
  std::optional<std::uint32_t> hex4();
  bool skip_value();
  bool skip_number();

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool damaged_ = false;
};

template <typename Take>
bool JsonReader::object(Take&& take_member) {
  if (damaged_ || !enter('{')) return fail();
  for (bool first = true; !take('}'); first = false) {
    if (!first && !take(',')) return fail();
    const auto key = string();
    if (!key || !take(':')) return fail();
    if (!take_member(*key) || damaged_) return fail();
  }
  --depth_;
  return true;
}

template <typename Take>
bool JsonReader::array(Take&& take_element) {
  if (damaged_ || !enter('[')) return fail();
  for (bool first = true; !take(']'); first = false) {
    if (!first && !take(',')) return fail();
    if (!take_element() || damaged_) return fail();
  }
  --depth_;
  return true;
}

}  // namespace feedline::format
