// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gzipped shards, decompressed once into the user's cache folder: random access needs the plain bytes.

#include <string>

#include "cache/notes.h"
#include "cache/output_file.h"
#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// By content: does the object start as gzip data does?
Result<bool> is_gzip(const storage::Reader& reader);

// The path of the local plain copy of `path`, made now unless a whole one of this size and modification time is
// there. Threads and processes that want the same shard wait for the one that makes it: cache/publication.h. kData: the
// gzip data is damaged or cut. kStorage: it cannot be read, or the cache cannot be written.
Result<std::string> decompressed(const storage::Storage& storage, const std::string& path,
                                 cache::Notes* notes = nullptr,
                                 const cache::SystemWrites& writes = cache::system_writes());

}  // namespace feedline::format
