// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/flac_stream.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "decode/audio/mp3_frames.h"
#include "decode/file_bytes.h"

namespace feedline::decode {
namespace {

constexpr std::size_t kInfoBytes = 34;
constexpr int kMostBlocks = 4096;
constexpr std::uint64_t kLeastWindow = 16 << 10;
constexpr int kMostSteps = 40;
constexpr std::size_t kSeekPointBytes = 18;

std::unexpected<Error> bad_stream(const std::string& what) { return data_error("FLAC: " + what, "decode"); }

std::uint64_t number_64(Bytes bytes) {
  return std::uint64_t{number(bytes.first(4), true)} << 32U | number(bytes.subspan(4, 4), true);
}

// Returns the next place from `from` on that may be a frame's header, or the size of the bytes.
std::size_t next_sync(Bytes bytes, std::size_t from) {
  while (from + 1 < bytes.size()) {
    const void* const found = std::memchr(bytes.data() + from, 0xFF, bytes.size() - 1 - from);
    if (found == nullptr) break;
    from = static_cast<std::size_t>(static_cast<const std::byte*>(found) - bytes.data());
    if ((bytes[from + 1] & std::byte{0xFE}) == std::byte{0xF8}) return from;
    ++from;
  }
  return bytes.size();
}

// A frame before a sample, and one after it or the file's end.
struct Bounds {
  FlacPosition low, high;
};

// Narrows the bounds by the seek table. A point is used only if a matching frame begins at its offset.
Result<void> apply_seek_table(ByteSource& source, const FlacStream& stream, std::uint64_t sample, Bounds& bounds) {
  FEEDLINE_TRY(const Bytes table, source.bytes(stream.seek_table_at, stream.seek_table_bytes));
  std::optional<FlacPosition> before;
  for (std::size_t at = 0; at + kSeekPointBytes <= table.size(); at += kSeekPointBytes) {
    const FlacPosition point{stream.data_at + number_64(part(table, at + 8, 8)), number_64(part(table, at, 8))};
    if (point.sample > sample || point.at >= bounds.high.at) break;
    before = point;
  }
  if (!before || before->at < stream.data_at) return {};
  FEEDLINE_TRY(const Bytes head, source.bytes(before->at, kMostFlacHeader));
  const auto header = parse_flac_header(head);
  if (header && stream.matches(*header) && stream.sample_of(*header) == before->sample) bounds.low = *before;
  return {};
}

}  // namespace

bool FlacStream::matches(const FlacFrameHeader& header) const {
  return header.is_variable == first.is_variable && header.channels == channels &&
         (header.bits == 0 || header.bits == bits) && header.rate_code == first.rate_code &&
         (header.is_variable || header.frames <= first.frames);
}

Result<FlacStream> read_flac_stream(ByteSource& source) {
  FEEDLINE_TRY(const Bytes head, source.bytes(0, 10));
  std::uint64_t at = id3_bytes(head);
  FEEDLINE_TRY(const Bytes magic, source.bytes(at, 4));
  if (!begins_with(magic, "fLaC")) return bad_stream("the ID3 tag is not followed by fLaC");
  FlacStream stream;
  at += 4;
  for (int block = 0; stream.data_at == 0; ++block) {
    if (block == kMostBlocks) return bad_stream("more than " + std::to_string(kMostBlocks) + " blocks of metadata");
    FEEDLINE_TRY(const Bytes bytes, source.bytes(at, 4 + kInfoBytes));
    if (bytes.size() < 4) return bad_stream("truncated in the metadata");
    const unsigned head_byte = std::to_integer<unsigned>(bytes[0]), kind = head_byte & 0x7FU;
    const std::uint32_t size = number(bytes.subspan(1, 3), true);
    if (block == 0) {
      if (kind != 0 || size != kInfoBytes || bytes.size() < 4 + kInfoBytes)
        return bad_stream("the metadata does not begin with STREAMINFO");
      const Bytes info = bytes.subspan(4);
      // after sizes of blocks and frames: 20 bits of rate, 3 of channels, 5 of bits, 36 of samples
      const std::uint64_t numbers = number_64(info.subspan(10, 8));
      stream.most_frame_bytes = number(info.subspan(7, 3), true);
      stream.rate = static_cast<std::uint32_t>(numbers >> 44U);
      stream.channels = static_cast<std::uint32_t>(numbers >> 41U & 7U) + 1;
      stream.bits = static_cast<std::uint32_t>(numbers >> 36U & 31U) + 1;
      stream.samples = numbers & ((std::uint64_t{1} << 36U) - 1);
      if (stream.rate == 0 || stream.bits < 4)
        return bad_stream("a rate of " + std::to_string(stream.rate) + " Hz and " + std::to_string(stream.bits) +
                          " bits per sample are not possible");
    }
    at += 4;
    if (kind == 3) {
      stream.seek_table_at = at;
      stream.seek_table_bytes = size;
    }
    at += size;
    if (at >= source.size()) return bad_stream("truncated in the metadata");
    if ((head_byte & 0x80U) != 0) stream.data_at = at;
  }
  FEEDLINE_TRY(const Bytes bytes, source.bytes(stream.data_at, kMostFlacHeader));
  const auto first = parse_flac_header(bytes);
  if (first) stream.first = *first;
  if (!first || !stream.matches(*first))
    return bad_stream("truncated or damaged: the metadata is not followed by the first frame");
  if (first->number != 0)
    return bad_stream("the first frame has the number " + std::to_string(first->number) +
                      ", so the file is a part of another that was cut without decoding; encode it again");
  return stream;
}

Result<FlacPosition> find_flac_frame(ByteSource& source, const FlacStream& stream, std::uint64_t sample,
                                     std::uint64_t read_bytes) {
  Bounds bounds{{stream.data_at, 0}, {source.size(), stream.samples}};
  auto& [low, high] = bounds;
  if (sample < stream.first.frames) return low;
  if (stream.seek_table_bytes > 0) FEEDLINE_CHECK_OK(apply_seek_table(source, stream, sample, bounds));
  const std::uint64_t least = std::max<std::uint64_t>(kLeastWindow, stream.most_frame_bytes + kMostFlacHeader);
  for (int step = 0; step < kMostSteps; ++step) {
    const std::uint64_t window = step < 2 ? std::max(least, read_bytes) : least;
    const bool is_rest = high.at - low.at <= window;
    std::uint64_t guess = low.at + 1;
    if (!is_rest) {
      // a frame before the place that the sizes suggest, so that the window has the wanted frame and the next one
      const std::uint64_t target = sample - std::min<std::uint64_t>(sample - low.sample, stream.first.frames);
      const double share = static_cast<double>(target - low.sample) /
                           static_cast<double>(std::max(high.sample, target + 1) - low.sample);
      // after some steps halve, because sizes of frames may differ much
      guess += static_cast<std::uint64_t>((step < 6 ? share : 0.5) * static_cast<double>(high.at - low.at - 1));
    }
    FEEDLINE_TRY(const Bytes seen, source.bytes(guess, std::min(window, high.at - guess)));
    bool is_found = false;
    for (std::size_t i = next_sync(seen, 0); i < seen.size(); i = next_sync(seen, i + 1)) {
      const auto header = parse_flac_header(part(seen, i, kMostFlacHeader));
      if (!header || !stream.matches(*header)) continue;
      const std::uint64_t begin = stream.sample_of(*header);
      if (begin <= low.sample || begin >= high.sample) continue;
      is_found = true;
      const FlacPosition position{guess + i, begin};
      if (begin > sample) {
        high = position;
        break;
      }
      low = position;
      if (sample - begin < header->frames) return low;
    }
    if (is_rest) return low;  // the frame is longer than the window
    if (!is_found) high.at = guess;
  }
  return low;
}

Result<std::uint64_t> count_flac_samples(ByteSource& source, const FlacStream& stream) {
  const std::uint64_t size = source.size();
  FlacFrameDecoder decoder;
  for (std::uint64_t window = kLeastWindow;; window *= 4) {
    const std::uint64_t begin = size - std::min(window, size - stream.data_at);
    FEEDLINE_TRY(const Bytes tail, source.bytes(begin, size - begin));
    std::vector<std::size_t> places;
    for (std::size_t i = next_sync(tail, 0); i < tail.size(); i = next_sync(tail, i + 1)) places.push_back(i);
    for (; !places.empty(); places.pop_back()) {
      const Bytes bytes = tail.subspan(places.back());
      const auto header = parse_flac_header(part(bytes, 0, kMostFlacHeader));
      if (!header || !stream.matches(*header)) continue;
      const auto end = decoder.decode(bytes, *header, stream.bits, header->frames);
      if (!end || *end == 0) continue;
      const Bytes rest = bytes.subspan(*end);
      const std::uint64_t samples = stream.sample_of(*header) + header->frames;
      if (rest.empty() || begins_with(rest, "TAG") || begins_with(rest, "APETAGEX")) return samples;
      return bad_stream("truncated or damaged after " +
                        std::to_string(static_cast<double>(samples) / static_cast<double>(stream.rate)) +
                        " s: the file does not end with a whole frame");
    }
    if (begin == stream.data_at || window >= kMostFlacFrame)
      return bad_stream("truncated or damaged: no frame at its end is whole");
  }
}

}  // namespace feedline::decode
