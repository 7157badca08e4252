// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pixel files by path. A file is named PATH.filling until it has every sample, and then PATH.

#include <cstdint>
#include <memory>
#include <string>

#include "feedline/error.h"
#include "format/pixels/pixel_store.h"
#include "storage/storage.h"

namespace feedline::format {

// Opens the pixel file at `path`, regardless of its contents. kConfig: there is only an unfinished one, or the file is
// not local and so cannot be mapped. kData: damaged. kStorage: it cannot be opened.
Result<std::unique_ptr<PixelStore>> open_pixel_file(const std::string& path,
                                                    const storage::Storage& storage = *storage::local_storage());
// Returns whether the object starts like a pixel file.
bool is_pixel_file(const storage::Storage& storage, const std::string& path);

// Opens PATH if it exists, else PATH.filling, which other processes on this machine may be filling as well, else
// creates a new file. budget: maximum size of the file in bytes; 0 for no limit. kConfig: the file has other contents.
// kData: damaged. kStorage: it cannot be created, or another machine is filling it.
Result<std::unique_ptr<PixelStore>> open_or_fill_pixel_file(const std::string& path, const PixelContents& contents,
                                                            std::uint64_t budget);
// Renames a complete PATH.filling, unless another process already has. kStorage: it cannot be flushed or renamed.
Result<void> finish_pixel_file(PixelStore& store, const std::string& path);

}  // namespace feedline::format
