// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reading a sample that lies in several files.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "memory/record.h"
#include "storage/storage.h"

namespace feedline::format {

// Reads files whole: the first into record.storage, the others into record.more, as fetching ahead has them. The error
// is of paths[failed]. kData: together they have more bytes than the record takes.
Result<void> read_pieces(const storage::Storage& storage, std::span<const std::string> paths, memory::Record& record,
                         std::vector<std::span<const std::byte>>& pieces, std::size_t& failed);

// All files below a folder, as paths relative to it, sorted; links are followed. kStorage: one cannot be listed.
// kConfig: nested absurdly deep, as by a link to a parent folder.
Result<std::vector<std::string>> files_below(const storage::Storage& storage, const std::string& folder);

// A whole text file, of at most kMostText bytes. kStorage, kData: larger.
inline constexpr std::uint64_t kMostText = std::uint64_t{64} << 20;
Result<std::string> read_text(const storage::Storage& storage, const std::string& path);

}  // namespace feedline::format
