// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace feedline::text {

// A small JSON document as a tree.
struct JsonValue {
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kText, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string text = {};  // UTF-8; numbers and booleans as written
  std::vector<JsonValue> items = {};
  std::vector<std::pair<std::string, JsonValue>> members = {};  // in their order; the last of a repeated key counts

  const JsonValue* find(std::string_view name) const;  // nullptr if there is no such member
};

// Returns nullopt if the text is not JSON, or has more than a million values.
std::optional<JsonValue> parse_json(std::string_view text);

}  // namespace feedline::text
