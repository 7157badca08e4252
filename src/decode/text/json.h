// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "feedline/error.h"

namespace feedline::decode {

// The byte-order mark of UTF-8. Python's json.loads skips it in bytes, and refuses it in a str.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Is it JSON in UTF-8, by the rules of Python's json.loads for bytes? kData: no, with the fault and its byte. The
// README lists two stricter rules.
Result<void> check_json(std::span<const std::byte> text);

}  // namespace feedline::decode
