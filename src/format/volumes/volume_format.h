// SPDX-License-Identifier: Apache-2.0
#pragma once

// Samples that consist of volumes, and samples that are patches of these.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/notes.h"
#include "feedline/error.h"
#include "feedline/sources/volumes.h"
#include "format/format.h"
#include "storage/storage.h"

namespace feedline::format {

// A volume's location; see feedline::StoredVolume.
struct VolumeSource {
  std::shared_ptr<const storage::Storage> storage;
  std::string path, array, chunks;
};

// One volume for each field, for each sample. kConfig: as for feedline::volumes(). Reads nothing but the first sample's
// headers.
Result<std::shared_ptr<const RecordFormat>> open_volumes(std::string name, const std::vector<VolumeField>& fields,
                                                         std::vector<std::vector<VolumeSource>> samples,
                                                         std::shared_ptr<cache::Notes> notes);

// Errors: as for Dataset::patches().
Result<std::shared_ptr<const RecordFormat>> patches_of(std::shared_ptr<const RecordFormat> volumes,
                                                       const PatchOptions& options);

}  // namespace feedline::format
