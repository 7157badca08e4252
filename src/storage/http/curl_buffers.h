// SPDX-License-Identifier: Apache-2.0
#pragma once

// curl allocates a 256 KB buffer per request and frees it at its end. malloc returns blocks of that size to the system,
// which must then map and clear their pages again for the next request: a fifth of the CPU time for a photo of 110 KB.
// So blocks of this size, and no others, are pooled: up to 64, of which only those that were used are resident.
//
// Pass these functions to curl_global_init_mem() when initialising libcurl first in a process. Thread-safe; a child
// after fork() has its own pool. Any of curl's calls may free blocks.

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
