// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feedline/observe.h"

namespace feedline::observe {

// How much of an open file of `facts.bytes` bytes, more than 0, is in the page cache. Neither reads any of it.

// By cachestat(2), which kernels have since 6.5. False: this one does not, or a container forbids it.
bool ask_cachestat(int file, FileFacts& facts);

// By mapping the file, or of a large one parts that are evenly spread, and mincore(2), whose word counts only for files
// that this user owns or may write.
void ask_mincore(int file, FileFacts& facts);

}  // namespace feedline::observe
