// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::format {

// A pattern for the keys of one field. Keys contain the sample's name ("{key}", "{key}.txt") or its number in the
// syntax of Python's format() ("image-{:09d}", "label-{}").
struct KeyPattern {
  std::string prefix, suffix;
  bool is_number = false;
  std::size_t digits = 0;  // numbers are zero-padded to this width

  // Fails with kConfig if the text does not contain exactly one pair of braces, or if the text between them is invalid.
  static Result<KeyPattern> parse(std::string_view text);
  bool takes_all() const { return !is_number && prefix.empty() && suffix.empty(); }
  // Returns the sample's name or the digits of its number, or nullopt if the key does not match.
  std::optional<std::string_view> sample_in(std::string_view key) const;
  // Removes the leading zeros of a number.
  std::string_view id_of(std::string_view sample) const;
  // Compares samples by their ids.
  bool is_before(std::string_view a, std::string_view b) const {
    return is_number && a.size() != b.size() ? a.size() < b.size() : a < b;
  }
};

}  // namespace feedline::format
