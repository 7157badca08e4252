// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace feedline::base {

// The beginning of a value of a JSON field that is not JSON, because it contains bytes: see
// format/columnar/nested_writer.h. No JSON text begins like this, because the first byte is invalid in UTF-8.
constexpr std::string_view kNestedMark = "\xffnested\x01";

inline bool has_nested_mark(std::span<const std::byte> value) {
  return value.size() >= kNestedMark.size() &&
         std::ranges::equal(value.first(kNestedMark.size()), std::as_bytes(std::span(kNestedMark)));
}

}  // namespace feedline::base
