// SPDX-License-Identifier: Apache-2.0
#include "decode/video/packet_reader.h"

#include <algorithm>
#include <string>

namespace feedline::decode {
namespace {

constexpr std::uint64_t kMostGap = 32 << 10;      // between packets that are read together, such as interleaved sound
constexpr std::uint64_t kMostBytes = 4 << 20;     // read at once
constexpr std::uint64_t kMostPacket = 256 << 20;  // a frame of 16384 x 16384 pixels, lossless, is smaller

}  // namespace

ByteRange range_from(const VideoIndex& index, std::uint32_t packet, std::uint32_t last) {
  const VideoPacket& first = index.packets[packet];
  ByteRange range{first.offset, first.offset + first.bytes};
  for (std::uint32_t i = packet + 1; i <= last; ++i) {
    const VideoPacket& next = index.packets[i];
    if (next.offset < range.end || next.offset - range.end > kMostGap ||
        next.offset + next.bytes - range.begin > kMostBytes)
      break;
    range.end = next.offset + next.bytes;
  }
  return range;
}

void add_ranges(const VideoIndex& index, std::uint32_t first, std::uint32_t last, std::vector<ByteRange>& ranges) {
  ByteRange range;
  for (std::uint32_t i = first; i <= last; ++i) {
    const VideoPacket& packet = index.packets[i];
    if (packet.bytes == 0 || packet.bytes > kMostPacket) continue;
    if (packet.offset >= range.begin && packet.offset + packet.bytes <= range.end) continue;
    range = range_from(index, i, last);
    ranges.push_back(range);
  }
}

Result<void> PacketReader::fetch(std::uint32_t packet, std::uint32_t last) {
  const VideoPacket& first = index_.packets[packet];
  if (first.bytes > kMostPacket)
    return data_error("a packet of " + std::to_string(first.bytes) + " bytes, over the limit of 256 MiB", "decode");
  const ByteRange range = range_from(index_, packet, last);
  begin_ = range.begin;
  end_ = range.end;
  room_.resize(end_ - begin_);
  auto read = read_exactly(source_, begin_, room_);
  if (!read) {
    end_ = begin_;
    // the packets before the end of a truncated file are still readable
    if (first.bytes < room_.size() && last > packet) return fetch(packet, packet);
    return read;
  }
  fetched_ += room_.size();
  return {};
}

Result<std::span<const std::byte>> PacketReader::read(std::uint32_t packet, std::uint32_t last) {
  if (index_.is_sequential) return read_in_sequence(packet);
  const VideoPacket& wanted = index_.packets[packet];
  if (wanted.offset < begin_ || wanted.offset + wanted.bytes > end_) FEEDLINE_CHECK_OK(fetch(packet, last));
  used_ += wanted.bytes;
  return std::span<const std::byte>(room_).subspan(wanted.offset - begin_, wanted.bytes);
}

Result<std::span<const std::byte>> PacketReader::read_in_sequence(std::uint32_t packet) {
  if (!demuxer_ || packet < next_) {
    demuxer_.reset();
    FEEDLINE_TRY(demuxer_, media_ == Media::kVideo ? Demuxer::open(library_, source_, index_.stream)
                                                   : Demuxer::open_sound(library_, source_, -1, index_.stream));
    next_ = 0;
  }
  for (;;) {
    FEEDLINE_TRY(const auto read, demuxer_->next());
    if (!read || read->bytes.size() != index_.packets[next_].bytes)
      return data_error("the file's packets do not match its index; the file may have changed", "decode");
    fetched_ += read->bytes.size();
    if (next_++ != packet) continue;
    used_ += read->bytes.size();
    return read->bytes;
  }
}

}  // namespace feedline::decode
