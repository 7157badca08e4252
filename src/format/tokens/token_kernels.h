// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops over tokens, for all stored and output dtypes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::format {

// A function that converts `count` + 1 stored tokens to x and y, where y is shifted by one token.
using Widen = void (*)(const std::byte* tokens, std::uint64_t count, std::byte* x, std::byte* y);
// Fails with kConfig if this stored or output dtype is not supported.
Result<Widen> widen_of(DType stored, DType output);

// Writes the index of each token's document to `document`, and sets y to `ignored` at every separator in x. Requires: x
// and y have the dtype `output`, which can represent `separator` and `ignored`.
void number_documents(DType output, std::int64_t separator, std::int64_t ignored, ArrayView x, ArrayView y,
                      std::int32_t* document);

// Returns whether this dtype can represent `token`.
bool holds_token(DType stored, std::int64_t token);

// Returns the position of the first of `count` tokens that is negative or not below `vocabulary`, or `count` if there
// is none.
std::uint64_t first_outside(DType stored, const std::byte* tokens, std::uint64_t count, std::uint64_t vocabulary);

// Returns the token at the start of `tokens`.
std::int64_t first_token(DType stored, const std::byte* tokens);

// Appends the positions of `token` in `tokens` to `locations`. The first token has the position `base`. Requires:
// aligned tokens.
void find_token(DType stored, std::span<const std::byte> tokens, std::int64_t token, std::uint64_t base,
                std::vector<std::uint64_t>& locations);

}  // namespace feedline::format
