// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "feedline/error.h"

namespace feedline::decode {

// Is it JSON in UTF-8, as Python's json.loads takes a str? kData: no; says what is wrong, and at which byte. The README
// has the two things in which it is stricter.
Result<void> check_json(std::span<const std::byte> text);

}  // namespace feedline::decode
