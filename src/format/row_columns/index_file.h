// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds and reads the index.json of a dataset folder, which lists the shards.

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "memory/record.h"
#include "storage/storage.h"

namespace feedline::format {

struct IndexLocation {
  std::string index;   // path of the index
  std::string folder;  // folder that contains it
};

// Locates the index. The source may be the folder or the index itself. Does not access the storage.
Result<IndexLocation> index_location(const std::string& source, const storage::Storage& storage);
// Returns the sources in a list such as "a::b", with braces expanded.
Result<std::vector<std::string>> index_sources(const std::string& source, const storage::Storage& storage);
// Reads the index into `room`. Fails with kData if the index is implausibly large.
Result<std::string_view> read_index_file(const IndexLocation& location, const storage::Storage& storage,
                                         memory::ByteBuffer& room);
// Returns whether a source without a recognised index is a local folder that contains files with the names of shards.
bool holds_shards(const std::string& source, const storage::Storage& storage,
                  const std::function<bool(std::string_view name)>& is_shard);
// Returns whether there is an index whose first key is one of `keys`. Sends no requests for remote folders: the user
// opens these with the name of the index or with format=.
Result<bool> begins_with_key(const std::string& source, const storage::Storage& storage,
                             std::initializer_list<std::string_view> keys);

}  // namespace feedline::format
