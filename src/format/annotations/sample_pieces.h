// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads samples that consist of several files.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "memory/record.h"
#include "storage/storage.h"

namespace feedline::format {

// Reads whole files, the first into record.storage, the others into record.more, as prefetching does. An error belongs
// to paths[failed]. kData: together they exceed the record's size limit.
Result<void> read_pieces(const storage::Storage& storage, std::span<const std::string> paths, memory::Record& record,
                         std::vector<std::span<const std::byte>>& pieces, std::size_t& failed);

// All files below a folder, as sorted relative paths; follows links. kStorage: a folder cannot be listed. kConfig:
// nested absurdly deep, as by a link to a parent folder.
Result<std::vector<std::string>> files_below(const storage::Storage& storage, const std::string& folder);

// Reads a text file of at most kMostText bytes. kStorage: it cannot be read. kData: it is larger.
inline constexpr std::uint64_t kMostText = std::uint64_t{64} << 20;
Result<std::string> read_text(const storage::Storage& storage, const std::string& path);

}  // namespace feedline::format
