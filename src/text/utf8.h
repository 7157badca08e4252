// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "feedline/error.h"

namespace feedline::text {

// The byte-order mark. Python's json.loads skips this mark in bytes, and rejects it in a str.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Checks that bytes are UTF-8. Like Python, rejects overlong forms, surrogates and code points above U+10FFFF. Fails
// with kData and a message that names the first invalid byte.
Result<void> check_utf8(std::span<const std::byte> text);

// Appends a code point. Surrogates are encoded as three bytes, which are not valid UTF-8.
void append_utf8(std::uint32_t code, std::string& out);

}  // namespace feedline::text
