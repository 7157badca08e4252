// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/litdata/framed_chunk.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "format/compression/compression.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

constexpr char kMagic[8] = {'L', 'D', 'F', 'Z', '0', '1', '\0', '\0'};
constexpr std::size_t kHeaderBytes = 24, kFrameBytes = 24;
constexpr std::uint64_t kMostPlain = std::numeric_limits<std::uint32_t>::max();

struct Header {
  char magic[8];
  std::uint16_t version, flags;
  std::uint32_t samples, of_frame, frames;
};
static_assert(sizeof(Header) == kHeaderBytes);

struct Frame {
  std::uint32_t first, samples;
  std::uint64_t offset;
  std::uint32_t bytes, plain_bytes;
};
static_assert(sizeof(Frame) == kFrameBytes);

std::unexpected<Error> damaged(const std::string& how, std::uint64_t offset) {
  auto error = data_error("the chunk is damaged: " + how + "; copy or download it again", "format");
  error.error().where.offset = offset;
  return error;
}

Result<void> read_exactly(const storage::Reader& reader, std::uint64_t offset, std::span<std::byte> out) {
  FEEDLINE_TRY(const std::size_t got, reader.read_at(offset, out));
  if (got == out.size()) return {};
  return damaged(
      "the chunk ends at byte " + std::to_string(offset + got) + ", before the end that its header specifies",
      offset + got);
}

template <typename T>
std::span<std::byte> bytes_of(std::vector<T>& list) {
  return std::as_writable_bytes(std::span(list));
}

struct Tables {
  std::vector<std::uint32_t> offsets;
  std::vector<Frame> frames;
};

Result<Tables> read_tables(const storage::Reader& reader, std::uint64_t samples, std::uint64_t file_bytes) {
  Header header;
  FEEDLINE_CHECK_OK(read_exactly(reader, 0, std::as_writable_bytes(std::span(&header, 1))));
  if (header.version != 1) return damaged("the header has version " + std::to_string(header.version), 8);
  if (header.samples != samples)
    return damaged(
        "the header has " + std::to_string(header.samples) + " samples, but the index has " + std::to_string(samples),
        12);
  const std::uint64_t offsets_bytes = 4 * (std::uint64_t{header.samples} + 1);
  const std::uint64_t table_end = kHeaderBytes + offsets_bytes + kFrameBytes * std::uint64_t{header.frames};
  if (table_end > file_bytes || header.frames > header.samples || (header.frames == 0) != (samples == 0))
    return damaged("the tables of " + std::to_string(header.samples) + " samples and " + std::to_string(header.frames) +
                       " frames do not fit into the chunk",
                   12);
  Tables tables{std::vector<std::uint32_t>(header.samples + std::size_t{1}), std::vector<Frame>(header.frames)};
  FEEDLINE_CHECK_OK(read_exactly(reader, kHeaderBytes, bytes_of(tables.offsets)));
  FEEDLINE_CHECK_OK(read_exactly(reader, kHeaderBytes + offsets_bytes, bytes_of(tables.frames)));
  if (tables.offsets.front() != 0 || !std::ranges::is_sorted(tables.offsets))
    return damaged("the samples are not consecutive", kHeaderBytes);
  std::uint64_t sample = 0;
  for (const Frame& frame : tables.frames) {
    const std::uint64_t end = std::uint64_t{frame.first} + frame.samples;
    if (frame.first != sample || end > samples || frame.samples == 0 || frame.offset < table_end ||
        frame.offset > file_bytes || frame.bytes > file_bytes - frame.offset ||
        frame.plain_bytes != tables.offsets[end] - tables.offsets[sample])
      return damaged("the frame of sample " + std::to_string(sample) + " does not exist or has invalid sizes",
                     kHeaderBytes + offsets_bytes);
    sample = end;
  }
  if (sample != samples) return damaged("the frames have " + std::to_string(sample) + " samples", kHeaderBytes);
  return tables;
}

Result<void> write_frame(const storage::Reader& reader, const Frame& frame, cache::OutputFile& output) {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20U;
  FEEDLINE_TRY(auto stream, StreamDecompression::start(Compression::kZstd, frame.plain_bytes));
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, frame.bytes)));
  const auto take = [&](Bytes plain) { return output.append(plain); };
  const auto run = [&]() -> Result<void> {
    for (std::uint64_t at = 0; at < frame.bytes;) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), frame.bytes - at));
      FEEDLINE_CHECK_OK(read_exactly(reader, frame.offset + at, std::span(piece).first(count)));
      FEEDLINE_CHECK_OK(stream.feed(Bytes(piece).first(count), take));
      at += count;
    }
    FEEDLINE_CHECK_OK(stream.finish(take));
    if (stream.made() == frame.plain_bytes) return {};
    return damaged("a frame decompresses to " + std::to_string(stream.made()) + " bytes instead of " +
                       std::to_string(frame.plain_bytes),
                   frame.offset);
  };
  auto done = run();
  if (!done && done.error().code == ErrorCode::kData) done.error().where.offset = frame.offset;
  return done;
}

}  // namespace

Result<bool> is_framed(const storage::Reader& reader) {
  std::array<std::byte, sizeof kMagic> start;
  FEEDLINE_TRY(const std::size_t got, reader.read_at(0, start));
  return got == start.size() && std::memcmp(start.data(), kMagic, sizeof kMagic) == 0;
}

Result<void> write_unframed(const storage::Reader& reader, std::uint64_t samples, cache::OutputFile& output) {
  FEEDLINE_TRY(const auto stat, reader.version());
  FEEDLINE_TRY(Tables tables, read_tables(reader, samples, stat.bytes));
  const std::uint64_t begin = 4 * (samples + 2);
  if (begin + tables.offsets.back() > kMostPlain)
    return damaged("the uncompressed size exceeds the limit of such chunks", kHeaderBytes);
  std::vector<std::uint32_t> table{static_cast<std::uint32_t>(samples)};
  for (const std::uint32_t offset : tables.offsets) table.push_back(static_cast<std::uint32_t>(begin + offset));
  FEEDLINE_CHECK_OK(output.append(std::as_bytes(std::span(table))));
  for (const Frame& frame : tables.frames) FEEDLINE_CHECK_OK(write_frame(reader, frame, output));
  return {};
}

}  // namespace feedline::format
