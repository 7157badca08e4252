// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layout of a pixel file, which caches decoded samples on disk or in memory shared by processes.
//
//     0         PixelHead, kPageBytes
//     contents  description of the pixels (PixelContents), padded to a multiple of kPageBytes
//     index     8 bytes per sample: offset of its record in the file, or 0 if it is missing
//     data      records (pixel_record.h), each at a multiple of 64, in the order in which they were added
//
// Numbers are little-endian. After a record is written, its offset is stored in the index atomically, so that readers
// never see an incomplete record, even if the writer is killed.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

// The largest page size of all supported machines, so that a file written on one machine can be mapped on any other.
constexpr std::uint64_t kPageBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kPixelMagic = 0x0a'4c'58'50'44'45'45'46;  // "FEEDPXL\n"
// Files that have only images and numbers, without optional fields, use the first version.
constexpr std::uint32_t kPixelsAndNumbers = 1;
constexpr std::uint32_t kPixelVersion = 2;

// Identifies the contents of a pixel file. Two files with an empty difference() have the same pixels.
struct PixelContents {
  std::uint64_t fingerprint = 0;  // of the dataset
  std::uint64_t samples = 0;
  std::string preparation;  // processing of the stored images
  std::vector<FieldDescription> fields;
  std::vector<std::string> classes;
  // The normalised location of the dataset. The location is needed because datasets with the same file names but
  // different images have the same fingerprint.
  std::string source;

  std::uint32_t version() const;  // layout version of the file
  std::vector<std::byte> serialized() const;
  static Result<PixelContents> parse(std::span<const std::byte> bytes);
  // Returns an empty string if both are equal, otherwise the difference for an error message: "the existing pixels are
  // from ...; these would be from ...".
  std::string difference(const PixelContents& other) const;
  std::string digest() const;  // 16 hexadecimal digits; equal if difference() is empty
};

struct PixelHead {
  // constant after the file was created
  std::uint64_t magic = kPixelMagic;
  std::uint32_t version = kPixelVersion;
  std::uint32_t reserved = 0;
  std::uint64_t samples = 0;
  std::uint64_t contents_bytes = 0;
  std::uint64_t contents_checksum = 0;
  std::uint64_t index_offset = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t head_checksum = 0;  // checksum of everything above
  // updated atomically while the file is filled
  std::uint64_t end = 0;      // end of the records
  std::uint64_t present = 0;  // samples in the index
  // written when the file is complete
  std::uint64_t finished = 0;
  std::uint64_t index_checksum = 0;
  char machine[40] = {};  // id of the system that fills the file
};

PixelHead make_head(const PixelContents& contents, std::span<const std::byte> serialized);
// Checks the head of a file of `file_bytes` bytes. Fails with kData if the file is not a pixel file, has an unsupported
// version, or is damaged.
Result<void> check_head(const PixelHead& head, std::uint64_t file_bytes);

}  // namespace feedline::format
