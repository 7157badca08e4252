// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads only the range of a remote JPEG that its crop needs (decode/jpeg/jpeg_part.h).
//
//   first read       the whole object; its outline is stored with its version, and decoding makes its checkpoints
//   later reads      find() draws the crop and returns the range; accept() compares its bytes with the outline
//
// A range is read with the outline's version: another version is an error of the read. If that version has no strong
// ETag, ranges begin at the object's start. If a range cannot be used, the caller reads the whole object, and its
// outline is made again.

#include <cstdint>
#include <memory>
#include <span>

#include "base/random.h"
#include "memory/record.h"
#include "storage/transport.h"

namespace feedline::pipeline {

class ImageCheckpoints;
struct Recipe;

// A range of a sample's image, which suffices for one crop.
struct PartRead {
  storage::Piece piece;
  std::uint64_t image_bytes = 0;  // of the whole image
  std::shared_ptr<decode::JpegPart> part;
  std::uint64_t held_bytes = 0;  // memory besides the piece's bytes
};

// Returns whether ranges of the storage's objects are read.
bool has_ranges(const storage::Storage* storage);
// Stores the outline of an image that was read whole. image: its location. version: of the object.
void note_outline(const storage::Storage& storage, const storage::Piece& image, std::span<const std::byte> bytes,
                  const storage::Version& version, ImageCheckpoints& checkpoints);

// Thread-safe.
class PartReads {
 public:
  // Returns nullptr if the storage has no ranges, or if samples are not one image, whose crop depends on its size only,
  // and numbers.
  static std::unique_ptr<PartReads> make(std::shared_ptr<const Recipe> recipe);
  ~PartReads();

  // Finds the ranges for one thread.
  class Finder {
   public:
    explicit Finder(const PartReads& reads);
    ~Finder();
    // Returns nullptr if the whole sample must be read.
    std::shared_ptr<PartRead> find(std::uint64_t sample, const base::SampleKey& key);

   private:
    struct Scratch;
    const PartReads& reads_;
    const std::unique_ptr<Scratch> scratch_;
  };

  // Fills the record like RecordFormat::accept(). Returns false if the bytes are not usable, or if the read failed;
  // the whole sample must then be read.
  bool accept(const PartRead& read, std::uint64_t sample, const Result<std::span<const std::byte>>& bytes,
              memory::Record& record) const;
  // Calls note_outline() for a sample's image.
  void note(std::uint64_t sample, const memory::Record& record, const storage::Version& version) const;

 private:
  explicit PartReads(std::shared_ptr<const Recipe> recipe);
  bool fill(const PartRead& read, std::uint64_t sample, std::span<const std::byte> bytes, memory::Record& record) const;

  const std::shared_ptr<const Recipe> recipe_;
  const std::shared_ptr<const storage::Storage> storage_;
};

}  // namespace feedline::pipeline
