// SPDX-License-Identifier: Apache-2.0
#include "decode/video/sound_track.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>

#include "decode/audio/audio_reader.h"
#include "decode/video/demuxer.h"
#include "decode/video/sound_decoder.h"

namespace feedline::decode {
namespace {

// Times that differ by more from the count of samples are gaps.
constexpr double kMostJitter = 0.02;        // seconds
constexpr std::int64_t kMostSkipped = 100;  // packets without a heard sample at the start

struct Scan {
  SoundTrack track;
  std::vector<std::int64_t> times;    // of the packets, in the stream's time base
  std::vector<std::uint64_t> counts;  // samples of each packet
  std::uint64_t skipped = 0;          // samples at the start that are not heard
  std::uint32_t skipped_at_end = 0;
  std::int64_t first_packet = -1;  // with samples
};

double samples_per_unit(const Scan& scan) {
  return static_cast<double>(scan.track.stream.time_num) * scan.track.rate /
         static_cast<double>(scan.track.stream.time_den);
}

// Reads all packets, and decodes them up to the first samples, or all.
Result<Scan> read_packets(const FfmpegLibrary& library, const VideoFile& source, int video, bool decodes_all) {
  FEEDLINE_TRY(const std::unique_ptr<Demuxer> demuxer, Demuxer::open_sound(library, source, video));
  Scan scan;
  VideoIndex& stream = scan.track.stream;
  stream = demuxer->stream();
  SoundDecoder decoder(library), heard_decoder(library, SoundDecoder::Output::kHeard);
  FEEDLINE_CHECK_OK(decoder.open(demuxer->parameters()));
  FEEDLINE_CHECK_OK(heard_decoder.open(demuxer->parameters()));
  std::string damage;
  const auto count = [&](const SoundDecoder::Samples& samples) -> Result<void> {
    if (samples.packet < 0 || static_cast<std::size_t>(samples.packet) >= scan.counts.size()) return {};
    scan.counts[static_cast<std::size_t>(samples.packet)] += samples.count;
    if (scan.first_packet >= 0) return {};
    scan.first_packet = samples.packet;
    scan.track.rate = samples.rate;
    scan.track.channels = samples.channels;
    return {};
  };
  // the first packet states how many samples are not heard, or else the decoder knows it from the stream's parameters
  bool knows_skipped = false;
  std::uint64_t heard = 0;
  const auto count_heard = [&](const SoundDecoder::Samples& samples) -> Result<void> {
    heard += samples.count;
    return {};
  };
  const auto note = [&](std::int64_t /*packet*/, const std::string& what) { damage = what; };
  std::vector<std::byte> buffer, last;  // last: the last packet, if it was not decoded
  for (std::int64_t number = 0;; ++number) {
    FEEDLINE_TRY(const auto packet, demuxer->next());
    if (!packet) break;
    if (packet->pts == ffmpeg::kNoTime)
      return data_error("stream " + std::to_string(stream.stream) + ", the sound, has packets without time stamps",
                        "format");
    std::uint64_t offset = 0;
    if (!stream.is_sequential) {
      FEEDLINE_TRY(const auto found, locate(source, *packet, buffer));
      stream.is_sequential = !found;
      offset = found.value_or(0);
    }
    stream.packets.push_back({.pts = 0,
                              .offset = offset,
                              .bytes = static_cast<std::uint32_t>(packet->bytes.size()),
                              .is_key = true,
                              .is_hidden = packet->is_hidden});
    scan.times.push_back(packet->pts);
    scan.counts.push_back(0);
    scan.skipped_at_end = packet->skipped_at_end;
    if (number == 0 && packet->skipped > 0) {
      scan.skipped = packet->skipped;
      knows_skipped = true;
    }
    last.clear();
    if (decodes_all || scan.first_packet < 0 || !knows_skipped)
      FEEDLINE_CHECK_OK(decoder.decode(number, packet->bytes, count, note));
    else
      last.assign(packet->bytes.begin(), packet->bytes.end());
    if (knows_skipped) continue;
    FEEDLINE_CHECK_OK(heard_decoder.decode(number, packet->bytes, count_heard, note));
    knows_skipped = heard > 0 || number >= kMostSkipped;
    if (heard > 0) scan.skipped = std::accumulate(scan.counts.begin(), scan.counts.end(), std::uint64_t{0}) - heard;
  }
  const auto last_number = static_cast<std::int64_t>(stream.packets.size()) - 1;
  if (!last.empty()) FEEDLINE_CHECK_OK(decoder.decode(last_number, last, count, note));
  FEEDLINE_CHECK_OK(decoder.decode(last_number, {}, count, note));
  for (VideoPacket& packet : stream.packets)
    if (stream.is_sequential) packet.offset = 0;
  if (scan.first_packet < 0)
    return data_error("stream " + std::to_string(stream.stream) + ", the sound, has no samples" +
                          (damage.empty() ? "" : ": " + damage),
                      "decode");
  if (scan.track.rate == 0 || scan.track.rate > kMostRate || scan.track.channels == 0 ||
      scan.track.channels > kMostChannels)
    return data_error("stream " + std::to_string(stream.stream) + ", the sound, has " +
                          std::to_string(scan.track.rate) + " Hz and " + std::to_string(scan.track.channels) +
                          " channels; such sound is not supported",
                      "decode");
  return scan;
}

// Sets the count of all packets if times show that each holds as many samples as the first one; the last one may hold
// fewer.
bool are_regular(Scan& scan) {
  if (scan.first_packet != 0) return false;
  const std::uint64_t each = scan.counts[0], last = scan.counts.back();
  const VideoIndex& stream = scan.track.stream;
  for (std::size_t i = 1; i < scan.times.size(); ++i) {
    const __int128 passed = static_cast<__int128>(scan.times[i] - scan.times[0]) * stream.time_num * scan.track.rate;
    if (passed != static_cast<__int128>(each) * i * stream.time_den) return false;
  }
  std::ranges::fill(scan.counts, each);
  if (last > 0 && last < each) scan.counts.back() = last;
  return true;
}

// Numbers the samples.
void number_samples(Scan& scan) {
  SoundTrack& track = scan.track;
  const double per_unit = samples_per_unit(scan);
  const auto first = static_cast<std::size_t>(scan.first_packet);
  std::int64_t next = 0;
  std::uint64_t unheard = scan.skipped;
  std::optional<std::int64_t> origin;
  for (std::size_t i = 0; i < scan.times.size(); ++i) {
    if (i > first) {
      const double by_time = static_cast<double>(scan.times[i] - scan.times[first]) * per_unit;
      if (by_time - static_cast<double>(next) > kMostJitter * track.rate) next = std::llround(by_time);
    }
    VideoPacket& packet = track.stream.packets[i];
    packet.pts = next;
    next += static_cast<std::int64_t>(scan.counts[i]);
    if (origin || scan.counts[i] == 0) continue;
    if (packet.is_hidden) {
      unheard -= std::min(unheard, scan.counts[i]);
      continue;
    }
    origin = packet.pts + static_cast<std::int64_t>(unheard);
    track.start = scan.times[i] + std::llround(static_cast<double>(unheard) / per_unit);
  }
  const std::int64_t from = origin.value_or(next);
  for (VideoPacket& packet : track.stream.packets) packet.pts -= from;
  track.stream.end = next - from - std::int64_t{scan.skipped_at_end};
}

}  // namespace

Result<SoundTrack> scan_sound(const FfmpegLibrary& library, const VideoFile& source, int video) {
  FEEDLINE_TRY(Scan scan, read_packets(library, source, video, false));
  if (!are_regular(scan)) {
    FEEDLINE_TRY(scan, read_packets(library, source, video, true));
  }
  number_samples(scan);
  if (scan.track.stream.end <= 0)
    return data_error("stream " + std::to_string(scan.track.stream.stream) + ", the sound, has no samples", "decode");
  return std::move(scan.track);
}

std::vector<std::byte> write_sound_track(const SoundTrack& track) {
  const std::array<std::int64_t, 3> numbers{track.rate, track.channels, track.start};
  std::vector<std::byte> bytes(sizeof numbers);
  std::memcpy(bytes.data(), numbers.data(), sizeof numbers);
  const std::vector<std::byte> stream = write_video_index(track.stream);
  bytes.insert(bytes.end(), stream.begin(), stream.end());
  return bytes;
}

Result<SoundTrack> read_sound_track(std::span<const std::byte> bytes) {
  std::array<std::int64_t, 3> numbers{};
  if (bytes.size() < sizeof numbers) return data_error("the stored index is damaged", "format");
  std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
  SoundTrack track;
  FEEDLINE_TRY(track.stream, read_video_index(bytes.subspan(sizeof numbers)));
  if (numbers[0] < 1 || numbers[0] > kMostRate || numbers[1] < 1 || numbers[1] > kMostChannels || track.stream.end <= 0)
    return data_error("the stored index is damaged", "format");
  track.rate = static_cast<std::uint32_t>(numbers[0]);
  track.channels = static_cast<std::uint32_t>(numbers[1]);
  track.start = numbers[2];
  return track;
}

}  // namespace feedline::decode
