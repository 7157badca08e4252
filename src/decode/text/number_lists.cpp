// SPDX-License-Identifier: Apache-2.0
#include "decode/text/number_lists.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "decode/text/json.h"

namespace feedline::decode {
namespace {

constexpr std::size_t kMostLevels = 3;

class ListReader {
 public:
  ListReader(std::string_view text, std::vector<float>& numbers) : text_(text), numbers_(numbers) {}

  Result<Shape> read() {
    numbers_.clear();
    lengths_.fill(-1);
    take(kByteOrderMark);
    skip_space();
    if (next() != '[') return failed("no list");
    FEEDLINE_CHECK_OK(list(0));
    skip_space();
    if (at_ < text_.size()) return failed("something follows the list");
    Shape shape;
    for (std::size_t level = levels_; level-- > 0;)
      shape = shape.with_front(std::max<std::int64_t>(lengths_[level], 0));
    if (static_cast<std::size_t>(shape.elements()) != numbers_.size()) return failed("a number among lists");
    return shape;
  }

 private:
  std::unexpected<Error> failed(std::string what) const {
    return data_error("lists of numbers: " + std::move(what) + " at byte " + std::to_string(at_), "decode");
  }
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() {
    while (next() == ' ' || next() == '\t' || next() == '\n' || next() == '\r') ++at_;
  }

  // Requires: next() opens it.
  Result<void> list(std::size_t level) {
    if (level == kMostLevels) return failed("over 3 levels");
    levels_ = std::max(levels_, level + 1);
    ++at_;
    std::int64_t length = 0;
    for (skip_space(); next() != ']'; skip_space(), ++length) {
      if (length > 0) {
        if (next() != ',') return failed("a comma or ']' is missing");
        ++at_;
        skip_space();
      }
      FEEDLINE_CHECK_OK(next() == '[' ? list(level + 1) : number(level));
    }
    ++at_;
    if (lengths_[level] >= 0 && lengths_[level] != length)
      return failed("a list of " + std::to_string(length) + " behind one of " + std::to_string(lengths_[level]) +
                    " ends");
    lengths_[level] = length;
    return {};
  }

  Result<void> number(std::size_t level) {
    if (numbers_level_ != 0 && numbers_level_ != level + 1) return failed("a number among lists");
    numbers_level_ = level + 1;
    if (take("NaN") || take("null")) return add(std::numeric_limits<float>::quiet_NaN());
    if (take("Infinity")) return add(std::numeric_limits<float>::infinity());
    if (take("-Infinity")) return add(-std::numeric_limits<float>::infinity());
    double value = 0;
    const std::size_t digit = at_ + (next() == '-' ? 1 : 0);
    const bool begins = digit < text_.size() && text_[digit] >= '0' && text_[digit] <= '9';
    const char* const end = text_.data() + text_.size();
    const auto [stop, error] = std::from_chars(text_.data() + at_, end, value);
    if (!begins || error != std::errc()) return failed("no number");
    at_ = static_cast<std::size_t>(stop - text_.data());
    return add(static_cast<float>(value));
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  Result<void> add(float value) {
    numbers_.push_back(value);
    return {};
  }

  std::string_view text_;
  std::vector<float>& numbers_;
  std::size_t at_ = 0, levels_ = 0;
  std::size_t numbers_level_ = 0;  // the level at which numbers appear, from 1; 0: none yet
  std::array<std::int64_t, kMostLevels> lengths_{};
};

}  // namespace

Result<Shape> read_number_lists(std::span<const std::byte> text, std::vector<float>& numbers) {
  return ListReader({reinterpret_cast<const char*>(text.data()), text.size()}, numbers).read();
}

}  // namespace feedline::decode
