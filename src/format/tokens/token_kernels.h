// SPDX-License-Identifier: Apache-2.0
#pragma once

// The loops over tokens, for every width that they are stored or delivered in.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"

namespace feedline::format {

// Writes `count` + 1 stored tokens as x, and one token later as y.
using Widen = void (*)(const std::byte* tokens, std::uint64_t count, std::byte* x, std::byte* y);
// kConfig: tokens are not stored, or not delivered, in this dtype.
Result<Widen> widen_of(DType stored, DType output);

// Numbers the documents of a window into `document`, and sets y to `ignored` at every separator of x. Requires: x and
// y are of this output dtype, which holds `separator` and `ignored`.
void number_documents(DType output, std::int64_t separator, std::int64_t ignored, ArrayView x, ArrayView y,
                      std::int32_t* document);

// Can a token of this dtype be `token`?
bool holds_token(DType stored, std::int64_t token);

// The place of the first of `count` tokens that is negative or not below `vocabulary`; `count`: none.
std::uint64_t first_outside(DType stored, const std::byte* tokens, std::uint64_t count, std::uint64_t vocabulary);

// The first of `tokens`.
std::int64_t first_token(DType stored, const std::byte* tokens);

// Appends to `places` where `token` is among the tokens, the first of which has the place `base`. Requires: aligned.
void find_token(DType stored, std::span<const std::byte> tokens, std::int64_t token, std::uint64_t base,
                std::vector<std::uint64_t>& places);

}  // namespace feedline::format
