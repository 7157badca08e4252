// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "feedline/error.h"

namespace feedline::decode {

// Checks that `text` is valid UTF-8 JSON by the rules that Python's json.loads() applies to bytes. kData otherwise; the
// message describes the problem and its byte position. The README lists two rules that are stricter.
Result<void> check_json(std::span<const std::byte> text);

}  // namespace feedline::decode
