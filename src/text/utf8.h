// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::text {

// The byte-order mark. Python's json.loads skips it in bytes, and refuses it in a str.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// kData: not UTF-8 as Python decodes it (no overlong forms, no surrogates, nothing above U+10FFFF). The message names
// the first wrong byte.
Result<void> check_utf8(std::span<const std::byte> text);

// Appends a code point. A surrogate becomes three bytes, which are not valid UTF-8.
void append_utf8(std::uint32_t code, std::string& out);

}  // namespace feedline::text
