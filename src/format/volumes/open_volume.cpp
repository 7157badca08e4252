// SPDX-License-Identifier: Apache-2.0
#include "format/volumes/open_volume.h"

#include <utility>

#include "format/volumes/hdf5_volume.h"
#include "format/volumes/zarr_volume.h"

namespace feedline::format {

Result<OpenedVolume> open_volume(const VolumeSource& source, cache::Notes* notes) {
  if (!source.array.empty() && (is_nifti_name(source.path) || source.path.ends_with(".npy")))
    return config_error("fields: '" + source.path + "' has one array, without a name; omit '=" + source.array + "'");
  const std::string name = source.path.substr(0, source.path.find('?'));
  if (is_nifti_name(name)) {
    FEEDLINE_TRY(NiftiVolume opened, open_nifti(source.storage, source.path, notes));
    return OpenedVolume{std::move(opened.volume), opened.affine};
  }
  if (name.ends_with(".npy")) {
    FEEDLINE_TRY(auto volume, open_npy_volume(source.storage, source.path));
    return OpenedVolume{std::move(volume)};
  }
  if (!source.chunks.empty()) {
    FEEDLINE_TRY(auto volume, open_hdf5(source));
    return OpenedVolume{std::move(volume)};
  }
  FEEDLINE_TRY(auto volume, open_zarr(source.storage, source.path, source.array));
  return OpenedVolume{std::move(volume)};
}

}  // namespace feedline::format
