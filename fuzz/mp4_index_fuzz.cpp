// SPDX-License-Identifier: Apache-2.0
// Any bytes as an MP4 file: an index whose packets are consistent, or an error. Any bytes as a stored index: the index
// that they describe, or an error.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "decode/video/mp4_index.h"
#include "decode/video/nal_units.h"
#include "decode/video/video_file.h"
#include "decode/video/video_index.h"

namespace {

using namespace feedline::decode;

void check(const VideoIndex& index) {
  const ShownFrames shown(index);
  FEEDLINE_CHECK(shown.count() <= index.packets.size() || !index.has_times);
  if (shown.count() > 0 && index.has_times) {
    FEEDLINE_CHECK(shown.time(0) == 0);
    FEEDLINE_CHECK(shown.at(0).has_value());
    FEEDLINE_CHECK(!shown.at(-1));
  }
  const auto read = read_video_index(write_video_index(index));
  FEEDLINE_CHECK(read.has_value());
  FEEDLINE_CHECK(*read == index);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // an allocation of exactly this size, so that the address sanitizer detects reads beyond it
  const auto copy = std::make_unique_for_overwrite<std::byte[]>(size);
  std::ranges::copy(std::as_bytes(std::span(data, size)), copy.get());
  const std::span<const std::byte> file(copy.get(), size);
  if (const auto stored = read_video_index(file)) {
    FEEDLINE_CHECK(read_video_index(write_video_index(*stored)).value() == *stored);
    (void)ShownFrames(*stored).at(1);
  }
  const VideoInMemory source(file);
  const auto index = read_mp4_index(source, {});
  if (!index || !*index) return 0;
  check(**index);
  const PacketProbe probe(**index);
  for (const VideoPacket& packet : (*index)->packets) {
    if (packet.offset > size || packet.bytes > size - packet.offset) continue;
    const auto bytes = file.subspan(packet.offset, packet.bytes);
    (void)probe.is_key(bytes);
    (void)probe.is_hidden(bytes);
    (void)probe.is_unreferenced(bytes);
  }
  return 0;
}
