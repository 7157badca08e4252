// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "feedline/error.h"
#include "memory/volume.h"
#include "storage/storage.h"

namespace feedline::format {

// Opens an array of Zarr version 2 or 3. path: the folder of an array, or of a group that contains `array`; if that is
// empty, a group must have one array. kConfig: there is no such array, or a group has several; the message lists them
// if they are known. kData: as for parse_zarr3() and parse_zarr2().
Result<std::shared_ptr<const memory::Volume>> open_zarr(std::shared_ptr<const storage::Storage> storage,
                                                        const std::string& path, const std::string& array);

}  // namespace feedline::format
