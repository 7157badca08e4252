// SPDX-License-Identifier: Apache-2.0
#pragma once

// JSON read from its beginning to its end, value by value, in blocks: a file of gigabytes takes no more memory than its
// longest string.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "storage/reader.h"

namespace feedline::format {

struct JsonNumber {
  double real = 0;
  std::optional<std::int64_t> whole;  // where it is written as an integer, and is one of 64 bits
};

// Whoever reads takes exactly one value behind each next_key() and next_item() that gave true. Calls give false once
// something is wrong, and from then on: error() says what, and at which byte. Values are those of Python's json, with
// NaN and Infinity; stricter in that a key that an object has twice is an error, as are more than kMostDepth levels.
// Not for several threads at once.
class JsonStream {
 public:
  enum class Kind : std::uint8_t { kObject, kArray, kString, kNumber, kWord, kNothing };
  static constexpr std::size_t kMostDepth = 64;
  static constexpr std::size_t kMostKeys = 4096;                      // of an object
  static constexpr std::size_t kMostNumber = 512;                     // characters
  static constexpr std::size_t kMostString = std::size_t{256} << 20;  // bytes

  // Requires: the reader outlives it.
  explicit JsonStream(const storage::Reader& reader, std::size_t block = kBlock);

  const std::optional<Error>& error() const { return error_; }
  // Of the value that comes next, or of the end; white space in front is gone.
  std::uint64_t offset();
  Kind peek();  // kNothing: the text ends, or something is wrong

  bool begin_object();
  bool next_key(std::string_view& key);  // valid until the next call; false: the object has ended
  bool begin_array();
  bool next_item();  // false: the array has ended
  bool take_string(std::string& text);
  bool take_token(std::string& token);  // a string as it is written, with its quotes
  bool take_number(JsonNumber& number);
  bool take_flag(bool& flag);  // true or false, or a number that is 0 or 1
  bool skip();                 // any value
  bool finish();               // does nothing but white space follow?

  // Makes what is wrong with a value of the caller's the error of this text.
  bool fail(std::uint64_t offset, const std::string& what);

 private:
  static constexpr std::size_t kBlock = 256 << 10;
  struct Level {
    bool is_object = false;
    bool is_first = true;
    std::vector<std::uint64_t> keys;  // digests, sorted from kSorted on
  };
  static constexpr std::size_t kSorted = 24;

  bool fill(std::size_t wanted);  // brings so many bytes into the window, or all that are left
  char look();                    // the next character that is no white space; '\0': there is none
  bool begin(bool is_object);
  bool add_key(std::uint64_t offset, std::string_view key);
  bool take_characters(std::string& out, bool unescapes);
  bool take_escape(std::string& out, bool unescapes);
  bool take_four_digits(std::uint32_t& code);
  bool take_word(std::string_view word);
  bool expected(const char* what);

  const storage::Reader& reader_;
  std::vector<char> window_;
  std::size_t next_ = 0, end_ = 0;  // what is left of the window
  std::uint64_t base_ = 0;          // offset of the window in the file
  bool is_at_end_ = false;
  std::vector<Level> levels_;
  std::size_t depth_ = 0;
  std::string key_;
  std::optional<Error> error_;
};

}  // namespace feedline::format
