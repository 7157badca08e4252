// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bytes of a pixel file: decoded samples that were kept, in a file or in memory that processes share.
//
//     0         PixelHead, kPageBytes
//     contents  what the pixels are of (PixelContents), to the next multiple of kPageBytes
//     index     8 bytes per sample: where its record begins in the file; 0: it is not there
//     data      records (pixel_record.h), each at a multiple of 64, in the order in which they came
//
// Numbers are little-endian. A record is written first and named in the index after that, in one 8-byte store, so a
// reader sees a whole record or none, whatever happens to the writer.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

// The largest page that Linux uses on any machine of ours, so that a file made on one is mapped on another.
constexpr std::uint64_t kPageBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kPixelMagic = 0x0a'4c'58'50'44'45'45'46;  // "FEEDPXL\n"
// Images and numbers that every sample has are a file of the first version, as ever.
constexpr std::uint32_t kPixelsAndNumbers = 1;
constexpr std::uint32_t kPixelVersion = 2;

// What the pixels of a file are of. Where difference() is empty, so are those of the samples.
struct PixelContents {
  std::uint64_t fingerprint = 0;  // of the dataset
  std::uint64_t samples = 0;
  std::string preparation;  // what was done to the stored images
  std::vector<FieldDescription> fields;
  std::vector<std::string> classes;
  // Where the dataset lies, however the user wrote it: the fingerprint is of names, and a copy of a dataset with
  // other images has the same ones.
  std::string source;

  std::uint32_t version() const;  // of the file
  std::vector<std::byte> serialized() const;
  static Result<PixelContents> parse(std::span<const std::byte> bytes);
  // Empty: the same. Else what differs, for people: "the pixels there are of ..., these of ...".
  std::string difference(const PixelContents& other) const;
  std::string digest() const;  // 16 hexadecimal digits; the same where difference() is empty
};

struct PixelHead {
  // fixed once the file is made
  std::uint64_t magic = kPixelMagic;
  std::uint32_t version = kPixelVersion;
  std::uint32_t reserved = 0;
  std::uint64_t samples = 0;
  std::uint64_t contents_bytes = 0;
  std::uint64_t contents_checksum = 0;
  std::uint64_t index_offset = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t head_checksum = 0;  // of all above
  // written as it is filled, atomically
  std::uint64_t end = 0;      // no record begins from here on
  std::uint64_t present = 0;  // samples in the index
  // written when every sample is there
  std::uint64_t finished = 0;
  std::uint64_t index_checksum = 0;
  char machine[40] = {};  // which running system fills it
};

PixelHead make_head(const PixelContents& contents, std::span<const std::byte> serialized);
// kData: it is no pixel file, one of another version, or damaged. `file_bytes`: so long is the file.
Result<void> check_head(const PixelHead& head, std::uint64_t file_bytes);

}  // namespace feedline::format
