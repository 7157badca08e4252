// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "feedline/error.h"

namespace feedline::decode {

// kData if not UTF-8 as Python decodes it (no overlong forms, no surrogates, nothing above U+10FFFF), with the byte
// position.
Result<void> check_utf8(std::span<const std::byte> text);

}  // namespace feedline::decode
