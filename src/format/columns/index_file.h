// SPDX-License-Identifier: Apache-2.0
#pragma once

// Datasets that are a folder with an index.json, which lists the shards.

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "memory/record.h"
#include "storage/storage.h"

namespace feedline::format {

struct IndexPlace {
  std::string index;   // path of the index
  std::string folder;  // folder that contains it
};

// For a source that is the folder or the index itself. Does not access the storage.
Result<IndexPlace> index_place(const std::string& source, const storage::Storage& storage);
// The parts of a list, "a::b", with braces expanded.
Result<std::vector<std::string>> index_sources(const std::string& source, const storage::Storage& storage);
// Reads the index into `room`. kData: it is implausibly large.
Result<std::string_view> read_index_file(const IndexPlace& place, const storage::Storage& storage,
                                         memory::ByteBuffer& room);
// True for a local folder with shards of these names, whose index is missing or not recognised by its first key.
bool holds_shards(const std::string& source, const storage::Storage& storage,
                  const std::function<bool(std::string_view name)>& is_shard);
// True if there is an index whose first key is one of these. Sends no request for a remote folder, which needs the
// index's name or format=.
Result<bool> begins_with_key(const std::string& source, const storage::Storage& storage,
                             std::initializer_list<std::string_view> keys);

}  // namespace feedline::format
