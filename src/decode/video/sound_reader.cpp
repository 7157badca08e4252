// SPDX-License-Identifier: Apache-2.0
#include "decode/video/sound_reader.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "decode/video/demuxer.h"
#include "decode/video/packet_reader.h"
#include "decode/video/sound_decoder.h"

namespace feedline::decode {
namespace {

constexpr std::int64_t kFromStart = 30, kBefore = 1;  // seconds

// The packets to decode: from `from` on, so that those from `first` to `last` are exact.
struct Packets {
  std::uint32_t from = 0, first = 0, last = 0;
};

Packets packets_of(const SoundTrack& track, std::int64_t begin, std::int64_t end) {
  // the packet that holds a sample is the last one that begins no later
  const auto packet_of = [&](std::int64_t sample) {
    const auto& packets = track.stream.packets;
    const auto next = std::ranges::upper_bound(packets, sample, {}, &VideoPacket::pts);
    return static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(next - packets.begin() - 1, 0));
  };
  const std::int64_t rate = track.rate;
  return {begin < kFromStart * rate ? 0 : packet_of(begin - kBefore * rate), packet_of(begin), packet_of(end - 1)};
}

}  // namespace

SoundReader::SoundReader(const FfmpegLibrary& library, std::shared_ptr<const SoundTrack> track, const VideoFile& source)
    : library_(library), track_(std::move(track)), source_(source) {
  info_.format = track_->stream.codec;
  info_.rate = track_->rate;
  info_.channels = track_->channels;
  info_.frames = static_cast<std::uint64_t>(track_->stream.end);
  info_.kind = SampleKind::kLossy;
}

Result<void> SoundReader::read(std::uint64_t begin_sample, std::span<float> out) {
  const auto& packets = track_->stream.packets;
  const std::uint32_t channels = track_->channels;
  const auto begin = static_cast<std::int64_t>(begin_sample);
  const auto end = begin + static_cast<std::int64_t>(out.size() / channels);
  std::ranges::fill(out, 0.0F);
  const auto [from, first, last] = packets_of(*track_, begin, end);
  SoundDecoder decoder(library_);
  FEEDLINE_CHECK_OK(decoder.open(*track_));
  std::int64_t packet = -1, at = 0;
  std::string damage;
  const auto take = [&, last = last](const SoundDecoder::Samples& samples) -> Result<void> {
    if (samples.packet < 0 || samples.packet > last) return {};
    if (samples.packet != packet) at = packets[static_cast<std::size_t>(samples.packet)].pts;
    packet = samples.packet;
    const std::int64_t from_sample = std::max(at, begin);
    const std::int64_t to = std::min(at + static_cast<std::int64_t>(samples.count), end);
    const std::int64_t skipped = from_sample - at;
    at += static_cast<std::int64_t>(samples.count);
    if (from_sample >= to) return {};
    if (samples.rate != track_->rate || samples.channels != channels)
      return data_error("its rate or channels change from " + std::to_string(track_->rate) + " Hz and " +
                            std::to_string(channels) + " channels to " + std::to_string(samples.rate) + " Hz and " +
                            std::to_string(samples.channels) + " channels",
                        "decode");
    return decoder.copy(static_cast<std::uint64_t>(skipped), static_cast<std::uint64_t>(to - from_sample),
                        out.data() + (from_sample - begin) * channels);
  };
  const auto note = [&, first = first](std::int64_t number, const std::string& what) {
    if (number >= first && damage.empty()) damage = what;
  };
  PacketReader reader(library_, track_->stream, source_, room_, Media::kSound);
  const auto decode_all = [&, from = from, last = last]() -> Result<void> {
    for (std::uint32_t number = from; number <= last; ++number) {
      FEEDLINE_TRY(const auto bytes, reader.read(number, last));
      if (!bytes.empty()) FEEDLINE_CHECK_OK(decoder.decode(number, bytes, take, note));
    }
    return decoder.decode(last, {}, take, note);
  };
  auto done = decode_all();
  bytes_fetched_ += reader.fetched();
  bytes_used_ += reader.used();
  if (done && !damage.empty()) done = data_error(damage, "decode");
  if (done || done.error().code != ErrorCode::kData) return done;
  char time[32];
  std::snprintf(time, sizeof time, "%.3f", static_cast<double>(begin) / track_->rate);
  done.error().what = std::string("the sound at ") + time + " s of stream " + std::to_string(track_->stream.stream) +
                      ": " + done.error().what;
  return done;
}

void SoundReader::add_ranges(const SoundTrack& track, std::uint64_t begin, std::uint64_t frames,
                             std::vector<ByteRange>& ranges) {
  if (track.stream.is_sequential) return;
  const auto sample = static_cast<std::int64_t>(begin);
  const Packets packets = packets_of(track, sample, sample + static_cast<std::int64_t>(frames));
  decode::add_ranges(track.stream, packets.from, packets.last, ranges);
}

Result<void> SoundReader::read(std::uint64_t begin, std::span<std::int16_t> out) {
  std::vector<float> samples(out.size());
  FEEDLINE_CHECK_OK(read(begin, samples));
  std::ranges::transform(samples, out.begin(), to_int16);
  return {};
}

}  // namespace feedline::decode
