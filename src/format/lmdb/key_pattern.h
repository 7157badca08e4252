// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::format {

// Which keys are of one field, and of which sample: "{key}", "{key}.txt", or with a number of the sample in place of
// its name, as Python's format() writes it: "image-{:09d}", "label-{}".
struct KeyPattern {
  std::string before, behind;
  bool is_number = false;
  std::size_t digits = 0;  // of a number: filled with zeros up to so many

  // kConfig: not one pair of braces, or something else between them.
  static Result<KeyPattern> parse(std::string_view text);
  bool takes_all() const { return !is_number && before.empty() && behind.empty(); }
  // The sample in a key: its name, or its number's digits; nullopt: the key is of something else.
  std::optional<std::string_view> sample_in(std::string_view key) const;
  // Of a number without the zeros before it.
  std::string_view id_of(std::string_view sample) const;
  // The order of samples, by their ids.
  bool is_before(std::string_view a, std::string_view b) const {
    return is_number && a.size() != b.size() ? a.size() < b.size() : a < b;
  }
};

}  // namespace feedline::format
