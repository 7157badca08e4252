// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "feedline/observe.h"

namespace feedline::observe {

// Both functions measure how much of an open file of `facts.bytes` bytes (more than 0) is in the page cache, without
// reading the file.

// Uses cachestat(2), which is available since Linux 6.5. Returns false if the kernel does not support the call, or a
// container forbids it.
bool ask_cachestat(int file, FileFacts& facts);

// Maps the file, or evenly spaced parts of a large file, and uses mincore(2), which is reliable only for files that
// this user owns or may write.
void ask_mincore(int file, FileFacts& facts);

}  // namespace feedline::observe
