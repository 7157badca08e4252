// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "decode/codec.h"
#include "feedline/foreign_images.h"

namespace feedline::decode {

// Returns whether a decoder is registered for formats without a built-in codec. Thread-safe.
bool reads_foreign_images();

class ForeignDecoder final : public Codec {
 public:
  // Sets the decoder of images that are opened afterwards, which must exist until the process ends. nullptr: the
  // registered one.
  void use(const ForeignImages* images) { plugin_ = images; }
  // Sets whether images that are opened afterwards are rotated according to their EXIF orientation.
  void apply_exif(bool applies) { applies_exif_ = applies; }
  std::string kind() const;                                // format of the opened image, in lower case
  int orientation() const { return opened_.orientation; }  // EXIF orientation of the opened image, 1 to 8
  Result<ImageHeader> open(std::span<const std::byte> bytes) override;
  Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) override;

 private:
  std::shared_ptr<const ForeignImages> images_;  // the decoder that opened it
  ForeignImages::Opened opened_;
  const ForeignImages* plugin_ = nullptr;
  bool applies_exif_ = false;
};

}  // namespace feedline::decode
