// SPDX-License-Identifier: Apache-2.0
#pragma once

// Datasets of volumes: N-D arrays, whose patches are samples.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "feedline/dataset.h"

namespace feedline {

// A stored array. NIfTI and .npy files have one array.
struct StoredVolume {
  std::string path;         // a file (.nii, .nii.gz, .npy, .h5), or the folder of a Zarr array or group
  std::string array = {};   // in a Zarr group or an HDF5 file: the path of the array; empty: the only one
  std::string chunks = {};  // HDF5: the file with the list of its chunks (see format/volumes/chunk_list.h)
};

struct VolumeField {
  std::string name;
  bool has_labels = false;  // labels are never interpolated, and intensity operations do not change them
};

struct VolumeOptions {
  std::string name;  // of the dataset, for messages
  std::vector<VolumeField> fields;
  std::vector<std::vector<StoredVolume>> samples;  // one volume for each field
  std::string index_directory;                     // for stored indexes; empty: the user's cache folder
  std::string cache_directory;                     // as in OpenOptions
  CacheLimit cache_limit;
};

// Returns a dataset with one sample per volume. The affine of NIfTI volumes is the field "affine", float64 (4, 4).
// kConfig: there are no samples or fields, names are duplicated, or a path has an unsupported format. Volumes are
// opened when they are first read.
Result<Dataset> volumes(VolumeOptions options);

// The patches that are the samples of a dataset of volumes.
struct PatchOptions {
  std::uint64_t patches = 1;  // consecutive samples of each volume
  // If set, the samples are the patches of a grid that covers each volume, instead.
  struct Grid {
    std::vector<std::int64_t> size, overlap;  // voxels, of the cropped axes
    bool pad = false;  // patches may extend beyond the volume; otherwise the last ones are moved back to end with it
  };
  std::optional<Grid> grid = {};
};

}  // namespace feedline
