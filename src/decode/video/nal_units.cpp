// SPDX-License-Identifier: Apache-2.0
#include "decode/video/nal_units.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "decode/file_bytes.h"

namespace feedline::decode {
namespace {

// ISO/IEC 14496-10, table 7-1 and D.1; ISO/IEC 23008-2, table 7-1
constexpr unsigned kH264LastSlice = 5, kH264Idr = 5, kH264Sei = 6, kRecoveryPoint = 6;
constexpr unsigned kHevcFirstIrap = 16, kHevcLastIrap = 21, kHevcLastSlice = 31, kHevcLastSubLayer = 14;

unsigned byte_at(Bytes bytes, std::size_t i) { return i < bytes.size() ? std::to_integer<unsigned>(bytes[i]) : 0; }

// Returns whether a unit of supplemental information announces a point from which all later frames are right.
bool has_recovery_point(Bytes unit) {
  std::size_t at = 1;
  while (at + 2 < unit.size()) {
    unsigned type = 0, size = 0;
    for (; byte_at(unit, at) == 0xff; ++at) type += 0xff;
    type += byte_at(unit, at++);
    for (; byte_at(unit, at) == 0xff; ++at) size += 0xff;
    size += byte_at(unit, at++);
    if (type == kRecoveryPoint) return (byte_at(unit, at) & 0x80U) != 0;  // recovery_frame_cnt = 0, as ue(v)
    at += size;
  }
  return false;
}

// An open bitstream unit of type 1 is a sequence header, which precedes every key frame (AV1 specification, 7.5).
bool has_sequence_header(Bytes packet) {
  for (std::size_t at = 0; at < packet.size();) {
    const unsigned head = byte_at(packet, at);
    if ((head >> 3U & 15U) == 1) return true;
    at += (head & 4U) != 0 ? 2 : 1;
    if ((head & 2U) == 0) return false;  // no size: the last unit
    std::uint64_t size = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      const unsigned part = byte_at(packet, at++);
      size |= std::uint64_t{part & 0x7fU} << shift;
      if (part < 0x80) break;
    }
    at += size;
  }
  return false;
}

// The first bits of a VP9 frame: frame_marker (2), profile (2), show_existing_frame, frame_type, show_frame.
unsigned vp9_bits(Bytes packet) {
  const unsigned head = byte_at(packet, 0);
  const bool is_long = (head & 0x30U) == 0x30;  // profile 3 is followed by a reserved bit
  return is_long ? head << 1U | byte_at(packet, 1) >> 7U : head;
}

bool is_vp9_key(Bytes packet) {
  const unsigned bits = vp9_bits(packet);
  return (bits & 0x08U) == 0 && (bits & 0x04U) == 0;
}

bool is_mpeg4_key(Bytes packet) {
  for (std::size_t at = 0; at + 4 < packet.size(); ++at)
    if (byte_at(packet, at) == 0 && byte_at(packet, at + 1) == 0 && byte_at(packet, at + 2) == 1 &&
        byte_at(packet, at + 3) == 0xb6)
      return byte_at(packet, at + 4) >> 6U == 0;  // vop_coding_type I
  return false;
}

}  // namespace

PacketProbe::PacketProbe(const VideoIndex& index) {
  static constexpr std::pair<std::string_view, Codec> kCodecs[] = {{"h264", Codec::kH264}, {"hevc", Codec::kHevc},
                                                                   {"vp8", Codec::kVp8},   {"vp9", Codec::kVp9},
                                                                   {"av1", Codec::kAv1},   {"mpeg4", Codec::kMpeg4}};
  for (const auto& [name, codec] : kCodecs)
    if (name == index.codec) codec_ = codec;
  const Bytes extradata = index.extradata;
  // avcC and hvcC begin with their version, 1; other extradata has start codes
  if (byte_at(extradata, 0) != 1) return;
  if (codec_ == Codec::kH264) length_bytes_ = (byte_at(extradata, 4) & 3U) + 1;
  if (codec_ != Codec::kHevc) return;
  length_bytes_ = (byte_at(extradata, 21) & 3U) + 1;
  layers_ = byte_at(extradata, 21) >> 3U & 7U;
}

template <typename Visit>
bool PacketProbe::each_unit(Bytes packet, Visit visit) const {
  if (length_bytes_ != 0) {
    while (packet.size() > length_bytes_) {
      const std::size_t size = number(packet.first(length_bytes_), true);
      packet = packet.subspan(length_bytes_);
      if (size > packet.size()) return false;
      if (size > 0 && !visit(packet.first(size))) return true;
      packet = packet.subspan(size);
    }
    return packet.empty();
  }
  static constexpr std::array kStart{std::byte{0}, std::byte{0}, std::byte{1}};
  auto begin = std::ranges::search(packet, kStart).end();
  while (begin != packet.end()) {
    const auto next = std::ranges::search(begin, packet.end(), kStart.begin(), kStart.end());
    if (begin != next.begin() && !visit(Bytes(begin, next.begin()))) return true;
    begin = next.end();
  }
  return true;
}

bool PacketProbe::is_key(Bytes packet) const {
  bool is_key = false;
  switch (codec_) {
    case Codec::kH264:
      each_unit(packet, [&](Bytes unit) {
        const unsigned type = byte_at(unit, 0) & 31U;
        is_key = is_key || type == kH264Idr || (type == kH264Sei && has_recovery_point(unit));
        return type == kH264Sei || type > kH264LastSlice;
      });
      return is_key;
    case Codec::kHevc:
      each_unit(packet, [&](Bytes unit) {
        const unsigned type = byte_at(unit, 0) >> 1U & 63U;
        is_key = type >= kHevcFirstIrap && type <= kHevcLastIrap;
        return type > kHevcLastSlice;
      });
      return is_key;
    case Codec::kVp8:
      return !packet.empty() && (byte_at(packet, 0) & 1U) == 0;
    case Codec::kVp9:
      return !packet.empty() && is_vp9_key(packet);
    case Codec::kAv1:
      return has_sequence_header(packet);
    case Codec::kMpeg4:
      return is_mpeg4_key(packet);
    case Codec::kOther:
      break;
  }
  return false;
}

bool PacketProbe::is_hidden(Bytes packet) const {
  if (packet.empty()) return false;
  if (codec_ == Codec::kVp8) return (byte_at(packet, 0) & 0x10U) == 0;
  if (codec_ != Codec::kVp9) return false;
  // several frames in one packet end with a superframe index, and the last frame is shown
  if ((byte_at(packet, packet.size() - 1) & 0xe0U) == 0xc0) return false;
  const unsigned bits = vp9_bits(packet);
  return (bits & 0x08U) == 0 && (bits & 0x02U) == 0;
}

bool PacketProbe::is_unreferenced(Bytes packet) const {
  if (codec_ != Codec::kH264 && codec_ != Codec::kHevc) return false;
  bool has_slice = false, is_referenced = false;
  const bool is_sound = each_unit(packet, [&](Bytes unit) {
    const unsigned head = byte_at(unit, 0);
    if (codec_ == Codec::kH264) {
      const unsigned type = head & 31U;
      // units that later pictures need: parameter sets
      if (type == 7 || type == 8) is_referenced = true;
      if (type == 0 || type > kH264LastSlice) return true;
      has_slice = true;
      if ((head & 0x60U) != 0) is_referenced = true;
    } else {
      const unsigned type = head >> 1U & 63U;
      if (type >= 32 && type <= 34) is_referenced = true;
      if (type > kHevcLastSlice) return true;
      has_slice = true;
      // pictures of a higher layer may be predicted from it
      const bool is_highest = (byte_at(unit, 1) & 7U) == layers_;
      if (type > kHevcLastSubLayer || type % 2 == 1 || !is_highest) is_referenced = true;
    }
    return true;
  });
  return is_sound && has_slice && !is_referenced;
}

}  // namespace feedline::decode
