// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small document of JSON, as a tree.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace feedline::format {

struct JsonValue {
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kText, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string text = {};  // of text, UTF-8; of numbers and booleans as written
  std::vector<JsonValue> items = {};
  std::vector<std::pair<std::string, JsonValue>> members = {};  // in their order; of one name the last counts

  const JsonValue* find(std::string_view name) const;  // nullptr: no such member
};

// nullopt: no JSON, nested more than 64 deep, or more than a million values.
std::optional<JsonValue> parse_json(std::string_view text);

}  // namespace feedline::format
