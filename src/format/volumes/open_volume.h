// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "cache/notes.h"
#include "feedline/error.h"
#include "format/volumes/nifti.h"
#include "format/volumes/volume_format.h"
#include "memory/volume.h"

namespace feedline::format {

struct OpenedVolume {
  std::shared_ptr<const memory::Volume> volume;
  std::optional<Affine> affine = {};  // of NIfTI files
};

// Opens a volume of any supported format, which is recognised by the name of the file or folder. kConfig: the name
// does not match a supported format, or an array is named in a file that has one array. Other errors: as for the
// format.
Result<OpenedVolume> open_volume(const VolumeSource& source, cache::Notes* notes);

}  // namespace feedline::format
