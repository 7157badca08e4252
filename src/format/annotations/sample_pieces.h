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

// Reads whole files to the same places as prefetching: the first file into record.storage, and the others into
// record.more. On failure, sets `failed` to the index of the file that caused the error. Fails with kData if the files
// together exceed the record's size limit.
Result<void> read_pieces(const storage::Storage& storage, std::span<const std::string> paths, memory::Record& record,
                         std::vector<std::span<const std::byte>>& pieces, std::size_t& failed);

// Returns the sorted relative paths of all files in a folder and its subfolders. Follows symbolic links. Fails with
// kStorage if a folder cannot be listed, and with kConfig if folders are nested too deeply, for example because of a
// link to a parent folder.
Result<std::vector<std::string>> files_below(const storage::Storage& storage, const std::string& folder);

// Reads a text file. Fails with kStorage if the file cannot be read, and with kData if it has more than kMostText
// bytes.
inline constexpr std::uint64_t kMostText = std::uint64_t{64} << 20;
Result<std::string> read_text(const storage::Storage& storage, const std::string& path);

}  // namespace feedline::format
