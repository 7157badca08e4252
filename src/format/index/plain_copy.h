// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decompresses shards into the user's cache folder, since random access needs uncompressed data.

#include <functional>
#include <string>
#include <string_view>

#include "cache/notes.h"
#include "cache/output_file.h"
#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// Returns whether the object begins like gzip data.
Result<bool> is_gzip(const storage::Reader& reader);
// Returns whether the object begins like zlib data. Other data may begin with the same two bytes.
Result<bool> is_zlib(const storage::Reader& reader);

// Writes the uncompressed data of a shard. Errors with the code kData include a location.
using MakePlain = std::function<Result<void>(const storage::Reader& reader, cache::OutputFile& output)>;

// Returns the path of the local uncompressed copy of `path`. Calls `make` to write the copy, unless a copy for this
// size and modification time exists. Threads and processes that need the same shard wait until one of them has written
// the copy (cache/publication.h). `extension` is the file extension of the copy, such as ".tar". If there is not enough
// room, copies that no process uses are removed (cache/copy_folder.h). Fails with kStorage if the shard cannot be read,
// the copies in use leave too little room or the cache cannot be written, and with kData if `make` does.
Result<std::string> made_plain(const storage::Storage& storage, const std::string& path, std::string_view extension,
                               const MakePlain& make, cache::Notes* notes = nullptr,
                               const cache::SystemWrites& writes = cache::system_writes());

// Like made_plain(), for a shard compressed with gzip or zlib. Fails with kData if the compressed data is damaged or
// truncated.
Result<std::string> decompressed(const storage::Storage& storage, const std::string& path, std::string_view extension,
                                 cache::Notes* notes = nullptr,
                                 const cache::SystemWrites& writes = cache::system_writes());

}  // namespace feedline::format
