// SPDX-License-Identifier: Apache-2.0
#include "decode/text/number_lists.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "text/json_reader.h"

namespace feedline::decode {
namespace {

constexpr std::size_t kMaxLevels = 3;

class ListReader {
 public:
  ListReader(std::string_view text, std::vector<float>& numbers) : json_(text), numbers_(numbers) {}

  Result<Shape> read() {
    numbers_.clear();
    lengths_.fill(-1);
    if (!list(0) || !json_.finish())
      return data_error("lists of numbers: " + json_.problem() + " at byte " + std::to_string(json_.offset()),
                        "decode");
    Shape shape;
    for (std::size_t level = levels_; level-- > 0;)
      shape = shape.with_front(std::max<std::int64_t>(lengths_[level], 0));
    if (static_cast<std::size_t>(shape.elements()) != numbers_.size())
      return data_error(
          "lists of numbers: a list contains both numbers and lists at byte " + std::to_string(json_.offset()),
          "decode");
    return shape;
  }

 private:
  using Kind = text::JsonReader::Kind;

  bool list(std::size_t level) {
    const std::uint64_t at = json_.offset();
    if (level == kMaxLevels) return json_.fail(at, "nested deeper than 3 levels");
    levels_ = std::max(levels_, level + 1);
    if (!json_.begin_array()) return false;
    std::int64_t length = 0;
    for (; json_.next_item(); ++length)
      if (json_.peek() == Kind::kArray ? !list(level + 1) : !number(level)) return false;
    if (json_.error()) return false;
    if (lengths_[level] >= 0 && lengths_[level] != length)
      return json_.fail(at, "a list has length " + std::to_string(length) + ", but an earlier list has length " +
                                std::to_string(lengths_[level]));
    lengths_[level] = length;
    return true;
  }

  bool number(std::size_t level) {
    if (numbers_level_ != 0 && numbers_level_ != level + 1)
      return json_.fail(json_.offset(), "a list contains both numbers and lists");
    numbers_level_ = level + 1;
    text::JsonNumber number{.real = std::numeric_limits<double>::quiet_NaN()};
    if (json_.peek() == Kind::kNull ? !json_.null() : !json_.take_number(number)) return false;
    numbers_.push_back(static_cast<float>(number.real));
    return true;
  }

  text::JsonReader json_;
  std::vector<float>& numbers_;
  std::size_t levels_ = 0;
  std::size_t numbers_level_ = 0;  // the level of lists that holds the numbers, from 1; 0 before the first number
  std::array<std::int64_t, kMaxLevels> lengths_{};
};

}  // namespace

Result<Shape> read_number_lists(std::span<const std::byte> text, std::vector<float>& numbers) {
  return ListReader({reinterpret_cast<const char*>(text.data()), text.size()}, numbers).read();
}

}  // namespace feedline::decode
