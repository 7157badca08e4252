// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads JSON one value at a time, from memory or in blocks from a file, without building a tree. Accepts RFC 8259 and
// Python's additions: NaN, Infinity, -Infinity and a byte-order mark.

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"

namespace feedline::text {

struct JsonNumber {
  double real = 0;
  std::optional<std::int64_t> whole;  // set if it is written as an integer that fits
  std::string_view written;           // valid until the next call
};

// After the first error, every call returns false or nullopt, and error() describes the error. Not thread-safe.
class JsonReader {
 public:
  enum class Kind : std::uint8_t { kObject, kArray, kString, kNumber, kBool, kNull, kNone };

  static constexpr std::size_t kMaxLevels = 512;                        // of Options::max_levels
  static constexpr std::size_t kMaxKeys = 4096;                         // per object, with unique_keys
  static constexpr std::size_t kMaxNumber = 512;                        // characters, if read in blocks
  static constexpr std::size_t kMaxString = std::size_t{256} << 20;     // bytes
  static constexpr std::size_t kDefaultBlock = std::size_t{256} << 10;  // bytes

  struct Options {
    std::size_t max_levels = 64;       // of nested lists and objects
    std::size_t max_digits = 0;        // of an integer; 0 for no limit
    bool unique_keys = false;          // a repeated key in an object is a fault
    bool unpaired_surrogates = false;  // "\ud800" is accepted in a skipped string, as by Python's json.loads
    const char* stage = "format";      // of errors
  };
  // Reads bytes of the text from `offset` into `block` and returns their number, or 0 at the end of the text.
  using ReadBlock = std::function<Result<std::size_t>(std::uint64_t offset, std::span<std::byte> block)>;

  // Requires: the text outlives the reader.
  explicit JsonReader(std::string_view text) : JsonReader(text, Options()) {}
  JsonReader(std::string_view text, Options options);
  // Memory use is limited by the block and the longest string.
  explicit JsonReader(ReadBlock read_block) : JsonReader(std::move(read_block), Options()) {}
  JsonReader(ReadBlock read_block, Options options, std::size_t block = kDefaultBlock);
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // Returns the kind of the next value, or kNone at the end of the text, after an error, and if no value begins here.
  Kind peek();
  // Returns the offset of the next value or of the end of the text or, after an error, of the error.
  std::uint64_t offset();

  // After next_key() or next_item() returns true, read exactly one value. Both functions return false at the end of the
  // object or list, and after an error. A key is valid until the next call.
  bool begin_object();
  bool next_key(std::string_view& key);
  bool begin_array();
  bool next_item();
  // Calls `read` with each key, or for each item. `read` must read one value; if it returns false, the reader stops.
  template <typename Read>
  bool object(Read&& read);
  template <typename Read>
  bool array(Read&& read);

  bool take_string(std::string& text);
  bool take_number(JsonNumber& number);
  // Reads true, false, 1, 0, or null, which means false.
  bool take_flag(bool& flag);
  // Returns a string as written, with its quotes and escapes.
  bool take_token(std::string& token);
  std::optional<std::string> string();
  std::optional<std::int64_t> integer();
  std::optional<bool> boolean();
  bool null();
  // Skips a value of any kind.
  bool skip();
  // Returns a value of any kind as written. Requires: the whole text is in memory.
  std::optional<std::string_view> raw();

  // Checks that only white space follows. Anything else is an error.
  bool finish();

  const std::optional<Error>& error() const { return error_; }
  const std::string& problem() const { return problem_; }  // what error() says, without the position
  // Reports a value that the caller rejects: error() is "PROBLEM at byte OFFSET". Returns false.
  bool fail(std::uint64_t offset, std::string problem);

 private:
  static constexpr std::size_t kSortedKeys = 24;  // more keys are sorted before they are searched

  bool fill(std::size_t wanted);  // makes so many bytes available, or all that are left
  char look();                    // the next character after white space; '\0' at the end
  bool fail(std::uint64_t offset, std::string problem, const std::string& what);
  bool invalid(std::uint64_t offset, std::string problem);  // a fault of the syntax
  bool expected(const char* what);
  bool begin(bool is_object);
  bool end_or_comma(char end, const char* what);
  bool advance_key(bool unescapes);
  bool add_key(std::uint64_t offset);
  bool next();
  bool skip_scalar();
  bool take_characters(std::string* out, bool unescapes);
  bool take_escape(std::string* out, bool unescapes);
  bool take_four_digits(std::uint32_t& code);
  bool take_word(std::string_view word);
  bool starts_with(char c) { return look() == c && !error_; }
  void advance(std::size_t characters) { next_ += characters; }
  std::size_t available() const { return static_cast<std::size_t>(end_ - next_); }
  std::uint64_t position() const { return base_ + static_cast<std::uint64_t>(next_ - begin_); }

  const Options options_;
  const ReadBlock read_block_;  // empty if the whole text is in memory
  std::vector<char> window_;
  const char *begin_ = nullptr, *next_ = nullptr, *end_ = nullptr;  // of the text in memory, or of the window
  std::uint64_t base_ = 0;                                          // offset of begin_ in the text
  bool is_at_end_ = false;                                          // nothing follows end_
  std::bitset<kMaxLevels + 1> is_object_, is_started_;
  std::vector<std::vector<std::uint64_t>> keys_;  // per level: hashes, sorted from kSortedKeys on
  std::size_t level_ = 0;
  std::string key_;
  std::string problem_;
  std::optional<Error> error_;
};

template <typename Read>
bool JsonReader::object(Read&& read) {
  if (!begin_object()) return false;
  std::string_view key;
  while (next_key(key)) {
    const std::string name(key);  // reading the value overwrites `key`
    if (!read(name)) return fail(offset(), "unexpected value");
  }
  return !error_;
}

template <typename Read>
bool JsonReader::array(Read&& read) {
  if (!begin_array()) return false;
  while (next_item())
    if (!read()) return fail(offset(), "unexpected value");
  return !error_;
}

}  // namespace feedline::text
