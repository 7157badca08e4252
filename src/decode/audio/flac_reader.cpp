// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/flac_reader.h"

#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "decode/file_bytes.h"

namespace feedline::decode {
namespace {

// Read at a time: little enough to stay in the cache until it is decoded.
constexpr std::uint64_t kLeastRead = 16 << 10, kMostRead = 256 << 10;

}  // namespace

FlacReader::FlacReader(ByteSource& source, const FlacStream& stream)
    : source_(source), stream_(stream), last_{stream.data_at, 0} {
  info_ = {"FLAC", stream_.rate, stream_.channels, stream_.samples, SampleKind::kInteger};
}

Result<std::unique_ptr<AudioReader>> FlacReader::open(ByteSource& source) {
  FEEDLINE_TRY(FlacStream stream, read_flac_stream(source));
  if (stream.samples == 0) {
    FEEDLINE_TRY(stream.samples, count_flac_samples(source, stream));
  }
  return std::unique_ptr<AudioReader>(new FlacReader(source, stream));
}

// Estimates the bytes of frames with this many samples.
std::uint64_t FlacReader::bytes_of(std::uint64_t samples) const {
  const double each = static_cast<double>(source_.size() - stream_.data_at) / static_cast<double>(stream_.samples);
  const auto bytes = static_cast<std::uint64_t>(1.1 * each * static_cast<double>(samples));
  return std::clamp(bytes + stream_.most_frame_bytes, kLeastRead, kMostRead);
}

std::unexpected<Error> FlacReader::failed(const char* kind, const std::string& what, std::uint64_t sample) const {
  char text[100];
  const auto seconds = [&](std::uint64_t samples) { return static_cast<double>(samples) / stream_.rate; };
  std::snprintf(text, sizeof text, "FLAC: %s in the frame at %.3f s of %.3f s: ", kind, seconds(sample),
                seconds(stream_.samples));
  return data_error(text + what, "decode");
}

template <typename T>
Result<void> FlacReader::read_as(std::uint64_t begin, std::span<T> out) {
  const std::uint64_t frames = out.size() / stream_.channels;
  FEEDLINE_CHECK(begin + frames <= stream_.samples);
  FlacPosition position = last_;
  const std::uint64_t near = std::uint64_t{2} * stream_.first.frames;
  if (begin < position.sample || begin - position.sample >= near) {
    FEEDLINE_TRY(position, find_flac_frame(source_, stream_, begin, bytes_of(frames + near)));
  }
  auto decoded = decode_from(position, begin, out);
  if (decoded || decoded.error().code != ErrorCode::kData || position.at == stream_.data_at) return decoded;
  // bytes within a frame may look like a header, so a position may be wrong
  return decode_from(FlacPosition{stream_.data_at, 0}, begin, out);
}

template <typename T>
Result<void> FlacReader::decode_from(FlacPosition position, std::uint64_t begin, std::span<T> out) {
  const std::uint64_t end = begin + out.size() / stream_.channels;
  Bytes bytes;
  while (position.sample < end) {
    const auto header = parse_flac_header(part(bytes, 0, kMostFlacHeader));
    std::size_t size = 0;
    if (header) {
      if (!stream_.matches(*header) || stream_.sample_of(*header) != position.sample)
        return failed("damaged", "its header is another frame's", position.sample);
      const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(end - position.sample, header->frames));
      const auto decoded = decoder_.decode(bytes, *header, stream_.bits, wanted);
      if (!decoded) return failed("damaged", decoded.error().what, position.sample);
      size = *decoded;
      if (const std::uint64_t until = position.sample + wanted; size > 0 && until > begin) {
        const std::uint64_t from = std::max(begin, position.sample);
        decoder_.copy(static_cast<std::uint32_t>(from - position.sample),
                      out.subspan((from - begin) * stream_.channels, (until - from) * stream_.channels));
      }
    } else if (bytes.size() >= kMostFlacHeader) {
      return failed("damaged", "it has no header, or the header's CRC-8 does not match", position.sample);
    }
    if (size > 0) {
      last_ = position;
      position = {position.at + size, position.sample + header->frames};
      bytes = bytes.subspan(size);
      continue;
    }
    // the frame's end was not read yet
    const std::uint64_t rest = source_.size() - position.at;
    if (bytes.size() >= rest) return failed("truncated", "the file ends", position.sample);
    if (bytes.size() >= kMostFlacFrame) return failed("damaged", "it has no end within 16 MiB", position.sample);
    const std::uint64_t wanted =
        std::min(rest, std::max(bytes_of(end - position.sample), std::uint64_t{2} * bytes.size()));
    FEEDLINE_TRY(bytes, source_.bytes(position.at, wanted));
    if (bytes.size() < wanted) return failed("truncated", "the file became shorter", position.sample);
  }
  return {};
}

}  // namespace feedline::decode
