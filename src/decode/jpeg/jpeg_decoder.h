// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes JPEGs with accurate DCT and fancy upsampling, reading only the columns and rows that a region needs.
// libjpeg-turbo reads every header and decodes the images that our own two decoders reject; all three produce the same
// pixels and errors.

#include <array>
#include <memory>

#include "decode/codec.h"

namespace feedline::decode {

namespace baseline {
struct Kernels;
const Kernels& best_kernels();
}  // namespace baseline

// Reuses one libjpeg decompressor for all images. Damage that costs pixels is an error even if libjpeg only warns;
// harmless oddities (unknown markers, bytes between segments or after the end) are not.
class JpegDecoder final : public Codec {
 public:
  // Without `kernels` libjpeg decodes everything, for comparison.
  explicit JpegDecoder(const baseline::Kernels* kernels = &baseline::best_kernels());
  ~JpegDecoder() override;

  Result<ImageHeader> open(std::span<const std::byte> bytes) override;
  Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) override;
  bool decode_planes(const Box& region, ColorMode mode, const memory::Coarseness& most, memory::Planes& out) override;
  std::array<Result<void>, 2> decode_pair(const PixelTask& task, Codec& other, const PixelTask& other_task) override;

  // Decodes two images together. Requires: as for decode(), for both; the decoders must differ.
  static std::array<Result<void>, 2> decode_in_turn(JpegDecoder& first, const PixelTask& first_task,
                                                    JpegDecoder& second, const PixelTask& second_task);

  // Returns whether the baseline decoder, not libjpeg, produced the last result of decode() or decode_planes().
  bool used_baseline() const;
  // Returns whether our progressive decoder produced it.
  bool used_progressive() const;
  // The number of restart intervals that the baseline decoder skipped: damage in them is not detected.
  int intervals_passed() const;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

extern const ImageCodec kJpegCodec;

}  // namespace feedline::decode
