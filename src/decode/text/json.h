// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "feedline/error.h"

namespace feedline::decode {

// Python's json.loads of bytes passes over this mark of UTF-8, and refuses it in a str.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Is it JSON in UTF-8, as Python's json.loads reads its bytes? kData: no; says what is wrong, and at which byte. The
// README has the two things in which it is stricter.
Result<void> check_json(std::span<const std::byte> text);

}  // namespace feedline::decode
