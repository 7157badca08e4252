// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decodes JPEGs with accurate DCT and fancy upsampling, and reads only the columns and rows that a region needs.
// libjpeg-turbo reads every header, and decodes the images that Feedline's two decoders do not support; all three
// produce the same pixels and errors.

#include <array>
#include <memory>

#include "decode/codec.h"

namespace feedline::decode {

namespace baseline {
struct Kernels;
const Kernels& best_kernels();
}  // namespace baseline

// Reuses one libjpeg decompressor for all images. Damage that affects pixels is an error even if libjpeg only warns.
// Harmless deviations (unknown markers, bytes between segments or after the end) are not errors.
class JpegDecoder final : public Codec {
 public:
  // kernels: if nullptr, libjpeg decodes all images, for comparison.
  explicit JpegDecoder(const baseline::Kernels* kernels = &baseline::best_kernels());
  ~JpegDecoder() override;

  Result<ImageHeader> open(std::span<const std::byte> bytes) override;
  Result<void> decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) override;
  void use_checkpoints(CheckpointStore* store) override;
  std::shared_ptr<JpegPart> find_part(const Box& region, const JpegOutline& outline, bool is_same_file,
                                      const CheckpointStore& store) override;
  void use_part(JpegPart* part) override;
  bool decode_planes(const Box& region, ColorMode mode, const memory::Coarseness& most, memory::Planes& out) override;
  std::array<Result<void>, 2> decode_pair(const PixelTask& task, Codec& other, const PixelTask& other_task) override;

  // Decodes two images together. Requires: both calls meet the conditions of decode(), and the decoders are different.
  static std::array<Result<void>, 2> decode_in_turn(JpegDecoder& first, const PixelTask& first_task,
                                                    JpegDecoder& second, const PixelTask& second_task);

  // Returns whether the baseline decoder, not libjpeg, produced the last result of decode() or decode_planes().
  bool used_baseline() const;
  // Returns whether Feedline's progressive decoder produced the last result.
  bool used_progressive() const;
  // Returns the number of restart intervals that the baseline decoder has skipped: damage in them is not detected.
  int intervals_passed() const;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

extern const ImageCodec kJpegCodec;

}  // namespace feedline::decode
