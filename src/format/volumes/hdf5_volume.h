// SPDX-License-Identifier: Apache-2.0
#pragma once

// Datasets of HDF5 files, read by a list of their chunks, which python/feedline/data/hdf5_chunks.py makes with h5py.
// Numbers are little-endian.
//
//      0 8  "FLh5chk1"
//      8 8  CRC-32C of the rest
//     16 8  bytes of the JSON
//     24    JSON: "bytes" and "mtime_ns" of the file, "dtype" as in NumPy, "shape", "fill" as hexadecimal digits of a
//           little-endian element; and either "offset", of contiguous elements, or "chunk" and "filters", numbers of
//           HDF5 filters in their order
//           per chunk, in C order of the grid: 8 offset in the file (all ones: not stored), 4 bytes, 4 filter mask

#include <cstddef>
#include <memory>
#include <span>

#include "feedline/error.h"
#include "format/volumes/volume_format.h"
#include "memory/volume.h"

namespace feedline::format {

// source.chunks: the file with the list. kData: the list is damaged, or names a filter that is not supported; kStorage:
// the HDF5 file has changed since its chunks were listed.
Result<std::shared_ptr<const memory::Volume>> open_hdf5(const VolumeSource& source);

struct ChunkList;
// Parses a list. kData: as above.
Result<std::shared_ptr<const ChunkList>> parse_chunk_list(std::span<const std::byte> file);

}  // namespace feedline::format
