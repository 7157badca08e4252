// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "feedline/error.h"

namespace feedline::decode {

// kData if it is not UTF-8 JSON by the rules of Python's json.loads for bytes; the message names the fault and its
// byte. The README lists two stricter rules.
Result<void> check_json(std::span<const std::byte> text);

}  // namespace feedline::decode
