// SPDX-License-Identifier: Apache-2.0
#pragma once

// One stored sample as read from a format: the fields' raw bytes, or parsed integers.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feedline/array.h"
#include "feedline/error.h"
#include "memory/pixels.h"
#include "memory/sample_limit.h"

namespace feedline::storage {
class Storage;
}

namespace feedline::decode {
struct JpegPart;
}

namespace feedline::memory {

class Volume;

// A growable byte buffer that does not clear new memory, unlike std::vector.
class ByteBuffer {
 public:
  std::size_t capacity() const { return capacity_; }
  const std::byte* data() const { return data_.get(); }
  // Like resize(), for a size that a file or a header claims: kData if it exceeds `most` or the available memory.
  Result<std::span<std::byte>> make_room(std::uint64_t bytes, std::uint64_t most);
  // The contents are lost when the buffer grows. Requires: a trusted size that fits in memory.
  std::span<std::byte> resize(std::size_t bytes) {
    if (bytes > capacity_) {
      data_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return {data_.get(), bytes};
  }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t capacity_ = 0;
};

// The image to which boxes, points and labels refer if the sample's image has an EXIF orientation.
struct ImageFrame {
  std::uint8_t orientation = 1;  // EXIF, 1 to 8; 1: the stored and the oriented image are the same
  bool is_turned = false;        // they refer to the oriented image, otherwise to the stored one
  int width = 0, height = 0;     // of the stored image
};

// A part of an audio file. Seconds.
struct TimeRange {
  double begin = 0;
  double duration = -1;  // negative: to the end of the file
};

// Formats fill the record, and decode reads it. Each thread reuses one object.
struct Record {
  struct Field {
    std::span<const std::byte> bytes;  // image fields: points into `storage`, or into a mapped shard
    std::int64_t value = 0;            // integer fields
    PixelView pixels = {};             // image fields stored decoded, instead of `bytes`
    bool absent = false;               // the sample lacks the field, which is allowed
    std::optional<ArraySpec> array{};  // arrays, boxes and points whose `bytes` are raw numbers, without a file header
    ImageFrame frame = {};             // for boxes, points and labels
    TimeRange range = {};              // audio fields: the sample's part of the file
    std::int32_t channel = -1;         // audio fields: the only channel of the file that the sample has; -1: all
    // Audio and video fields of a record with defers_audio or defers_videos: the object to be read in place of `bytes`,
    // and its storage, which the format owns. nullptr: `bytes` has the file.
    const storage::Storage* storage = nullptr;
    std::string object{};
    std::shared_ptr<const Volume> volume{};  // volume fields, which are read in boxes
    // Set if only a part of an image was read: `bytes` is then the part's file (decode/jpeg/jpeg_part.h).
    std::shared_ptr<decode::JpegPart> part{};
    std::optional<Shape> origin{};  // of the sample's patch, if the format chose it
    // Of videos whose format chooses the frames: their times in seconds from the first frame, or encoded images.
    std::vector<double> times{};
    std::vector<std::span<const std::byte>> images{};
  };
  std::vector<Field> fields;        // in the order of Format::fields()
  ByteBuffer storage;               // owns the bytes that were read
  std::vector<ByteBuffer> more;     // owns those of further objects, if there are several
  std::string name;                 // memory for a format to build file names
  std::shared_ptr<const void> pin;  // keeps a mapped shard alive while `bytes` points into it
  std::size_t bytes_read = 0;       // for telemetry
  // The owner of the record sets these flags: formats may leave audio or video files unread, because only parts of them
  // are needed.
  bool defers_audio = false, defers_videos = false;
  // The offsets of the pieces that Format::accept() receives. The caller of accept() sets them.
  std::vector<std::uint64_t> piece_offsets;
  // The owner of the record sets this limit: formats do not load larger stored samples into memory (see
  // sample_limit.h).
  std::uint64_t most_bytes = kLeastSampleBytes;
};

}  // namespace feedline::memory
