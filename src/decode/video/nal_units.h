// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads from a packet's first bytes, without decoding it, whether decoding can begin there and whether other frames
// depend on it.

#include <cstddef>
#include <span>
#include <string_view>

#include "decode/video/video_index.h"

namespace feedline::decode {

// Never changes after construction, and is thread-safe; it does not refer to the index.
class PacketProbe {
 public:
  explicit PacketProbe(const VideoIndex& index);

  // Returns whether key frames can be recognised in the packets of this codec.
  bool knows_keys() const { return codec_ != Codec::kOther; }
  // Returns whether the packet is a key frame. Requires: knows_keys().
  bool is_key(std::span<const std::byte> packet) const;
  // Returns whether no other frame is predicted from the packet's frame, so that it need not be decoded if it is not
  // wanted: H.264 with nal_ref_idc 0, HEVC's sub-layer non-reference pictures of the highest layer. False if unknown.
  bool is_unreferenced(std::span<const std::byte> packet) const;
  // Returns whether the packet's frame is only for the prediction of others, and never shown (VP8, VP9).
  bool is_hidden(std::span<const std::byte> packet) const;

 private:
  enum class Codec : unsigned char { kH264, kHevc, kVp8, kVp9, kAv1, kMpeg4, kOther };
  // Calls visit(unit) for each NAL unit until it returns false. Returns false if the units are damaged.
  template <typename Visit>
  bool each_unit(std::span<const std::byte> packet, Visit visit) const;

  Codec codec_ = Codec::kOther;
  unsigned layers_ = 0;           // temporal layers of HEVC; 0: unknown
  std::size_t length_bytes_ = 0;  // of the length before each NAL unit; 0: units begin with 00 00 01
};

}  // namespace feedline::decode
