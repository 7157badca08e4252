// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shards that are compressed, decompressed once into the user's cache folder: random access needs the plain bytes.

#include <functional>
#include <string>
#include <string_view>

#include "cache/notes.h"
#include "cache/output_file.h"
#include "feedline/error.h"
#include "storage/storage.h"

namespace feedline::format {

// By content: does the object start as gzip data does?
Result<bool> is_gzip(const storage::Reader& reader);
// As zlib data does: a header of two bytes, which other data may begin with as well.
Result<bool> is_zlib(const storage::Reader& reader);

// Writes the plain bytes of a shard that it reads. What fails with kData says where.
using MakePlain = std::function<Result<void>(const storage::Reader& reader, cache::OutputFile& output)>;

// The path of the local plain copy of `path`, made now by `make` unless a whole one of this size and modification time
// is there. Threads and processes that want the same shard wait for the one that makes it: cache/publication.h.
// kData: what `make` says. kStorage: it cannot be read, or the cache cannot be written. extension: of the copy, ".tar".
Result<std::string> made_plain(const storage::Storage& storage, const std::string& path, std::string_view extension,
                               const MakePlain& make, cache::Notes* notes = nullptr,
                               const cache::SystemWrites& writes = cache::system_writes());

// Of a shard compressed by gzip or zlib. kData: the compressed data is damaged or cut.
Result<std::string> decompressed(const storage::Storage& storage, const std::string& path, std::string_view extension,
                                 cache::Notes* notes = nullptr,
                                 const cache::SystemWrites& writes = cache::system_writes());

}  // namespace feedline::format
