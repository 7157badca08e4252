// SPDX-License-Identifier: Apache-2.0
#pragma once

// Opens and creates pixel files by path. A file is named PATH.filling until it has all samples, and then PATH.

#include <cstdint>
#include <memory>
#include <string>

#include "feedline/error.h"
#include "format/pixels/pixel_store.h"
#include "storage/storage.h"

namespace feedline::format {

// Opens the pixel file at `path`, regardless of its dataset. Fails with kConfig if the file is unfinished or remote,
// with kData if it is damaged, and with kStorage if it cannot be opened.
Result<std::unique_ptr<PixelStore>> open_pixel_file(const std::string& path,
                                                    const storage::Storage& storage = *storage::local_storage());
// Returns whether the object begins like a pixel file.
bool is_pixel_file(const storage::Storage& storage, const std::string& path);

// Opens PATH or PATH.filling, or creates a new file. Other processes on this machine may fill PATH.filling
// concurrently. `budget` is the maximum size of the file in bytes, or 0 for no limit. Fails with kConfig if the file
// has different contents, with kData if it is damaged, and with kStorage if it cannot be created or another machine is
// filling it.
Result<std::unique_ptr<PixelStore>> open_or_fill_pixel_file(const std::string& path, const PixelContents& contents,
                                                            std::uint64_t budget);
// Renames a complete PATH.filling to PATH, unless another process has already done so. Fails with kStorage if the file
// cannot be flushed or renamed.
Result<void> finish_pixel_file(PixelStore& store, const std::string& path);

}  // namespace feedline::format
