// SPDX-License-Identifier: Apache-2.0
#pragma once

// A dataset that is a folder with an index.json, which says what else is in it.

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
  std::string index;   // the file
  std::string folder;  // it is in
};

// Of a folder, or of a source that is the file itself. Asks nobody.
Result<IndexPlace> index_place(const std::string& source, const storage::Storage& storage);
// The parts of a list, "a::b", braces expanded.
Result<std::vector<std::string>> index_sources(const std::string& source, const storage::Storage& storage);
// The file, into `room`. kData: it is larger than any index is.
Result<std::string_view> read_index_file(const IndexPlace& place, const storage::Storage& storage,
                                         memory::ByteBuffer& room);
// Is it a local folder with shards of these names, whose index is missing or not recognised by its first key?
bool holds_shards(const std::string& source, const storage::Storage& storage,
                  const std::function<bool(std::string_view name)>& is_shard);
// Is there such an index, whose first key is one of these? Of a folder behind a network nobody is asked: there the
// index is named, or format=.
Result<bool> begins_with_key(const std::string& source, const storage::Storage& storage,
                             std::initializer_list<std::string_view> keys);

}  // namespace feedline::format
