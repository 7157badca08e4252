// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pixel files by path. One that is being filled is called PATH.filling, and PATH once every sample is there.

#include <cstdint>
#include <memory>
#include <string>

#include "feedline/error.h"
#include "format/pixels/pixel_store.h"
#include "storage/storage.h"

namespace feedline::format {

// The pixel file that a storage calls `path`, whoever made it. kConfig: there is only an unfinished one, or it is no
// local file, which is what can be mapped. kData: damaged. kStorage: it cannot be opened.
Result<std::unique_ptr<PixelStore>> open_pixel_file(const std::string& path,
                                                    const storage::Storage& storage = *storage::local_storage());
// Does the object begin like a pixel file?
bool is_pixel_file(const storage::Storage& storage, const std::string& path);

// PATH if it is there, else PATH.filling, which other processes of this machine may be filling too, else a new one.
// budget: bytes that the file may grow to; 0: whatever the disk has.
// kConfig: it holds other pixels. kData: damaged. kStorage: it cannot be made, or another machine is filling it.
Result<std::unique_ptr<PixelStore>> open_or_fill_pixel_file(const std::string& path, const PixelContents& contents,
                                                            std::uint64_t budget);
// Gives a complete PATH.filling its name; whichever process does so first. kStorage: it cannot be flushed or renamed.
Result<void> finish_pixel_file(PixelStore& store, const std::string& path);

}  // namespace feedline::format
