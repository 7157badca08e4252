// SPDX-License-Identifier: Apache-2.0
#pragma once

// curl allocates a 256 KB buffer for each request and frees it at the end. malloc returns blocks of this size to the
// system, which must map and clear their pages again for the next request. This takes a fifth of the CPU time of
// reading a 110 KB photo. So blocks of this size, and no others, are pooled: up to 64, of which only those that were
// used are resident.
//
// Pass these functions to curl_global_init_mem() when the process first initializes libcurl. Thread-safe; after fork(),
// a child has a separate pool. Any curl function may free blocks.

#include <cstddef>

namespace feedline::storage {

inline constexpr std::size_t kCurlBufferBytes = std::size_t{256} << 10;  // of CURLOPT_BUFFERSIZE

// Like malloc, free, realloc, strdup and calloc.
void* allocate_for_curl(std::size_t bytes);
void free_of_curl(void* block);
void* reallocate_for_curl(void* block, std::size_t bytes);
char* duplicate_for_curl(const char* text);
void* allocate_zeros_for_curl(std::size_t count, std::size_t bytes);

}  // namespace feedline::storage
