// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feedline/operation.h"

namespace feedline::transform {

// Returns the source position of position `i`, which may be outside an axis of `size` pixels; -1 means the fill colour.
int border_source(int i, int size, PaddingMode mode);

}  // namespace feedline::transform
