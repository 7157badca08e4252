// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decompresses shards once into the user's cache folder: random access needs the plain bytes.

#include <functional>
#include <string>
#include <string_view>

#include "cache/notes.h"
#include "cache/output_file.h"
#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Checks whether the object begins like gzip data.
Result<bool> is_gzip(const storage::Reader& reader);
// Checks for zlib data, whose header of two bytes may also begin other data.
Result<bool> is_zlib(const storage::Reader& reader);

// Writes the plain bytes of a shard. kData errors include their location.
using MakePlain = std::function<Result<void>(const storage::Reader& reader, cache::OutputFile& output)>;

// Returns the path of the local plain copy of `path`. Calls `make` to write it, unless there is a complete copy for
// this size and modification time. Threads and processes that need the same shard wait for the one that makes the copy
// (cache/publication.h). kData: from `make`. kStorage: the shard cannot be read, or the cache cannot be written.
// extension: of the copy, such as ".tar".
Result<std::string> made_plain(const storage::Storage& storage, const std::string& path, std::string_view extension,
                               const MakePlain& make, cache::Notes* notes = nullptr,
                               const cache::SystemWrites& writes = cache::system_writes());

// Like made_plain(), for a shard compressed by gzip or zlib. kData: the compressed data is damaged or truncated.
Result<std::string> decompressed(const storage::Storage& storage, const std::string& path, std::string_view extension,
                                 cache::Notes* notes = nullptr,
                                 const cache::SystemWrites& writes = cache::system_writes());

}  // namespace feedline::format
