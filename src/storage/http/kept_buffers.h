// SPDX-License-Identifier: Apache-2.0
#pragma once

// curl allocates a buffer of 256 KB for each request and frees it at its end. malloc gives so large a block back to the
// system, whose pages then have to be made and cleared again for the next request: as many as the answer has, which is
// a fifth of the CPU time of a photo of 110 KB. So these blocks, and no others, come from memory that is kept: 64 of
// them, of which those are in memory that were used, as many as there were requests at a time.
//
// For curl_global_init_mem(), by whoever initialises libcurl first in a process. Any thread; a child after fork() has
// its own. Blocks may be freed by any of curl's calls.

#include <cstddef>

namespace feedline::storage {

inline constexpr std::size_t kCurlBufferBytes = std::size_t{256} << 10;  // of CURLOPT_BUFFERSIZE

// As malloc, free, realloc, strdup and calloc.
void* allocate_for_curl(std::size_t bytes);
void free_of_curl(void* block);
void* reallocate_for_curl(void* block, std::size_t bytes);
char* duplicate_for_curl(const char* text);
void* allocate_zeros_for_curl(std::size_t count, std::size_t bytes);

}  // namespace feedline::storage
