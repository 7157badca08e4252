// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops over tokens, for every stored and delivered dtype.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::format {

// Converts `count` + 1 stored tokens to x, and to y shifted by one token.
using Widen = void (*)(const std::byte* tokens, std::uint64_t count, std::byte* x, std::byte* y);
// kConfig: tokens cannot be stored, or cannot be delivered, in this dtype.
Result<Widen> widen_of(DType stored, DType output);

// Numbers the documents of a window in `document`, and sets y to `ignored` at every separator in x. Requires: x and y
// have this output dtype, which can represent `separator` and `ignored`.
void number_documents(DType output, std::int64_t separator, std::int64_t ignored, ArrayView x, ArrayView y,
                      std::int32_t* document);

// Returns whether this dtype can represent `token`.
bool holds_token(DType stored, std::int64_t token);

// Returns the position of the first of `count` tokens that is negative or not below `vocabulary`, or `count` if there
// is none.
std::uint64_t first_outside(DType stored, const std::byte* tokens, std::uint64_t count, std::uint64_t vocabulary);

// Returns the first of `tokens`.
std::int64_t first_token(DType stored, const std::byte* tokens);

// Appends the positions of `token` to `places`; the first of the tokens has position `base`. Requires: aligned tokens.
void find_token(DType stored, std::span<const std::byte> tokens, std::int64_t token, std::uint64_t base,
                std::vector<std::uint64_t>& places);

}  // namespace feedline::format
