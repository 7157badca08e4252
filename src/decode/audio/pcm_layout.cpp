// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/pcm_layout.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "decode/audio/audio_reader.h"
#include "decode/file_bytes.h"

namespace feedline::decode {
namespace {

constexpr std::uint32_t kUnknownSize = 0xFFFFFFFF;  // of a program that cannot seek in its output
constexpr std::uint32_t kSoxUnknownSize = 0x7FFFF000;
// More chunks before the samples are damage. A header is read in one request if it has at most kWavHeaderBytes.
constexpr int kMostChunks = 4096;
constexpr std::uint64_t kWavHeaderBytes = 4096;
constexpr std::uint64_t kUsedBytes = 64;  // of a chunk's content

std::unexpected<Error> damaged(std::string_view format, const std::string& what) {
  return data_error(std::string(format) + ": " + what, "decode");
}

std::uint64_t number64(Bytes bytes) {
  return std::uint64_t{number(bytes.subspan(4, 4), false)} << 32 | number(bytes.first(4), false);
}

std::string hexadecimal(std::uint32_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (; value != 0 || text.empty(); value >>= 4U) text.insert(text.begin(), kDigits[value & 15U]);
  return "0x" + text;
}

// Reads the chunks of RIFF and IFF files:
//
//   id (4) | size (4) | content (size), padded to an even number of bytes
class Chunks {
 public:
  Chunks(ByteSource& source, std::string_view format, bool big_endian, std::uint64_t begin)
      : source_(source), format_(format), big_endian_(big_endian), next_(begin) {}

  struct Chunk {
    std::array<char, 4> id{};
    std::uint64_t at = 0;    // of the content
    std::uint32_t size = 0;  // as stated
    Bytes content;           // at most kUsedBytes, valid until the next chunk
    bool is(std::string_view name) const { return std::string_view(id.data(), id.size()) == name; }
  };
  // Returns the next chunk, or nullopt at the end of the file.
  Result<std::optional<Chunk>> next() {
    if (++count_ > kMostChunks) return damaged(format_, "more than " + std::to_string(kMostChunks) + " chunks");
    FEEDLINE_TRY(Bytes head, source_.bytes(next_, 8 + kUsedBytes));
    if (head.size() < 8) return std::optional<Chunk>();
    Chunk chunk;
    std::memcpy(chunk.id.data(), head.data(), chunk.id.size());
    chunk.size = number(head.subspan(4, 4), big_endian_);
    chunk.at = next_ + 8;
    head = head.subspan(8);
    chunk.content = head.first(std::min<std::size_t>(head.size(), chunk.size));
    next_ = chunk.at + chunk.size + chunk.size % 2;
    return chunk;
  }

 private:
  ByteSource& source_;
  const std::string_view format_;
  const bool big_endian_;
  std::uint64_t next_;
  int count_ = 0;
};

Result<void> check_numbers(const PcmLayout& layout) {
  if (layout.channels == 0 || layout.channels > kMostChannels)
    return damaged(layout.format, std::to_string(layout.channels) + " channels; 1 to " + std::to_string(kMostChannels) +
                                      " are possible");
  if (layout.rate == 0 || layout.rate > kMostRate)
    return damaged(layout.format, "a rate of " + std::to_string(layout.rate) + " Hz; 1 to " +
                                      std::to_string(kMostRate) + " are possible");
  return {};
}

// Sets the frames. bytes: the stated size of the samples, or nullopt if they extend to the end of the file.
Result<void> set_frames(PcmLayout& layout, std::optional<std::uint64_t> bytes, std::uint64_t file_bytes) {
  FEEDLINE_CHECK_OK(check_numbers(layout));
  const std::uint64_t frame_bytes = std::uint64_t{layout.sample_bytes} * layout.channels;
  const std::uint64_t rest = file_bytes - std::min(file_bytes, layout.data_at);
  layout.frames = bytes.value_or(rest) / frame_bytes;
  if (layout.frames > rest / frame_bytes)
    return damaged(layout.format, "truncated: the header states " + std::to_string(layout.frames) +
                                      " frames, but the file has " + std::to_string(rest / frame_bytes));
  return {};
}

// ---- WAV ----

// The content of "fmt ":
//
//   code (2) | channels (2) | rate (4) | bytes per second (4) | bytes per frame (2) | bits (2)
//   | size of the rest (2) | used bits (2) | speakers (4) | GUID, which begins with the code (16)     if code is 0xFFFE
Result<void> read_wav_format(Bytes content, PcmLayout& layout) {
  constexpr std::uint32_t kPcm = 1, kFloat = 3, kAlaw = 6, kMulaw = 7, kExtensible = 0xFFFE;
  constexpr std::string_view kGuidEnd("\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14);
  if (content.size() < 16) return damaged("WAV", "the fmt chunk has fewer than 16 bytes");
  const auto at = [&](std::size_t offset, std::size_t size) { return number(content.subspan(offset, size), false); };
  std::uint32_t code = at(0, 2);
  layout.channels = at(2, 2);
  layout.rate = at(4, 4);
  const std::uint32_t frame_bytes = at(12, 2), bits = at(14, 2);
  if (code == kExtensible) {
    if (content.size() < 40) return damaged("WAV", "the fmt chunk of WAVE_FORMAT_EXTENSIBLE has fewer than 40 bytes");
    code = at(24, 2);
    if (!begins_with(content.subspan(26), kGuidEnd)) {
      layout.unsupported = "WAVE_FORMAT_EXTENSIBLE with an unknown GUID";
      return {};
    }
  }
  layout.sample_bytes = (bits + 7) / 8;
  const auto require = [&](bool is_valid) -> Result<void> {
    if (!is_valid)
      return damaged("WAV", std::to_string(bits) + " bits with code " + hexadecimal(code) + " are not possible");
    if (layout.channels != 0 && frame_bytes != layout.sample_bytes * layout.channels)
      return damaged("WAV", std::to_string(frame_bytes) + " bytes in a frame do not match " +
                                std::to_string(layout.channels) + " channels of " + std::to_string(bits) + " bits");
    return {};
  };
  switch (code) {
    case kPcm:
      layout.code = bits <= 8 ? PcmCode::kUnsigned : PcmCode::kSigned;
      return require(bits >= 1 && bits <= 32);
    case kFloat:
      layout.code = PcmCode::kFloat;
      return require(bits == 32 || bits == 64);
    case kAlaw:
    case kMulaw:
      layout.code = code == kAlaw ? PcmCode::kAlaw : PcmCode::kMulaw;
      return require(bits == 8);
    default:
      layout.unsupported = "code " + hexadecimal(code);
      return {};
  }
}

// ---- AIFF ----

// An 80-bit float: sign and exponent (2) | mantissa with its leading 1 (8)
double extended(Bytes bytes) {
  const std::uint32_t exponent = number(bytes.first(2), true) & 0x7FFFU;
  const std::uint64_t mantissa =
      std::uint64_t{number(bytes.subspan(2, 4), true)} << 32 | number(bytes.subspan(6, 4), true);
  return std::ldexp(static_cast<double>(mantissa), static_cast<int>(exponent) - 16383 - 63);
}

// The content of "COMM":
//
//   channels (2) | frames (4) | bits (2) | rate (10) | compression (4) | its name      the last two only in AIFC
Result<void> read_comm(Bytes content, bool is_aifc, PcmLayout& layout, std::uint32_t& frames) {
  if (content.size() < (is_aifc ? 22U : 18U)) return damaged("AIFF", "the COMM chunk is too short");
  layout.channels = number(content.first(2), true);
  frames = number(content.subspan(2, 4), true);
  const std::uint32_t bits = number(content.subspan(6, 2), true);
  const double rate = extended(content.subspan(8, 10));
  layout.rate = rate >= 1 && rate <= kMostRate ? static_cast<std::uint32_t>(std::lround(rate)) : 0;
  const std::string_view type = is_aifc ? std::string_view(reinterpret_cast<const char*>(&content[18]), 4) : "NONE";
  struct Type {
    std::string_view name;
    PcmCode code;
    std::uint32_t bytes;  // 0: of the bits
    bool is_big_endian;
  };
  static constexpr Type kTypes[] = {
      {"NONE", PcmCode::kSigned, 0, true},   {"twos", PcmCode::kSigned, 0, true}, {"sowt", PcmCode::kSigned, 0, false},
      {"raw ", PcmCode::kUnsigned, 1, true}, {"in24", PcmCode::kSigned, 3, true}, {"in32", PcmCode::kSigned, 4, true},
      {"fl32", PcmCode::kFloat, 4, true},    {"FL32", PcmCode::kFloat, 4, true},  {"fl64", PcmCode::kFloat, 8, true},
      {"FL64", PcmCode::kFloat, 8, true},    {"ulaw", PcmCode::kMulaw, 1, true},  {"ULAW", PcmCode::kMulaw, 1, true},
      {"alaw", PcmCode::kAlaw, 1, true},     {"ALAW", PcmCode::kAlaw, 1, true}};
  const auto* const known = std::ranges::find(kTypes, type, &Type::name);
  if (known == std::end(kTypes)) {
    layout.unsupported = "compression '" + std::string(type) + "'";
    return {};
  }
  layout.code = known->code;
  layout.is_big_endian = known->is_big_endian;
  layout.sample_bytes = known->bytes != 0 ? known->bytes : (bits + 7) / 8;
  if (layout.sample_bytes == 0 || (known->bytes == 0 && layout.sample_bytes > 4))
    return damaged("AIFF", std::to_string(bits) + " bits are not possible");
  return {};
}

}  // namespace

Result<PcmLayout> read_wav_header(ByteSource& source) {
  PcmLayout layout{.format = "WAV"};
  FEEDLINE_TRY(const Bytes first, source.bytes(0, kWavHeaderBytes));
  const std::uint32_t riff_size = number(part(first, 4, 4), false);
  std::optional<std::uint64_t> long_data;
  bool has_format = false;
  Chunks chunks(source, "WAV", false, 12);
  for (;;) {
    FEEDLINE_TRY(const auto chunk, chunks.next());
    if (!chunk) break;
    if (chunk->is("ds64") && chunk->content.size() >= 16) long_data = number64(chunk->content.subspan(8, 8));
    if (chunk->is("fmt ")) {
      has_format = true;
      FEEDLINE_CHECK_OK(read_wav_format(chunk->content, layout));
      if (!layout.unsupported.empty()) return layout;
    }
    if (!chunk->is("data")) continue;
    if (!has_format) return damaged("WAV", "the samples precede the fmt chunk");
    layout.data_at = chunk->at;
    std::optional<std::uint64_t> bytes = chunk->size;
    const std::uint32_t frame_bytes = std::max(layout.sample_bytes * layout.channels, 1U);
    if (chunk->size == kUnknownSize || chunk->size == kSoxUnknownSize - kSoxUnknownSize % frame_bytes)
      bytes = long_data;
    // a size of 0 in an otherwise consistent file means that there are no samples
    if (chunk->size == 0 && riff_size + std::uint64_t{8} != source.size()) bytes = std::nullopt;
    if (bytes == 0U && chunk->size != 0) bytes = std::nullopt;
    FEEDLINE_CHECK_OK(set_frames(layout, bytes, source.size()));
    return layout;
  }
  return damaged("WAV", has_format ? "truncated: the data chunk is missing" : "truncated: the fmt chunk is missing");
}

Result<PcmLayout> read_aiff_header(ByteSource& source) {
  PcmLayout layout{.format = "AIFF"};
  FEEDLINE_TRY(const Bytes first, source.bytes(0, kWavHeaderBytes));
  const bool is_aifc = begins_with(part(first, 8, 4), "AIFC");
  bool has_format = false;
  std::uint32_t frames = 0;
  std::optional<std::uint32_t> data_bytes;
  Chunks chunks(source, "AIFF", true, 12);
  while (!has_format || !data_bytes) {
    FEEDLINE_TRY(const auto chunk, chunks.next());
    if (!chunk) break;
    if (chunk->is("COMM")) {
      has_format = true;
      FEEDLINE_CHECK_OK(read_comm(chunk->content, is_aifc, layout, frames));
      if (!layout.unsupported.empty()) return layout;
    }
    if (!chunk->is("SSND") || chunk->content.size() < 8) continue;
    const std::uint32_t offset = number(chunk->content.first(4), true);
    layout.data_at = chunk->at + 8 + offset;
    data_bytes = chunk->size;
  }
  if (!has_format) return damaged("AIFF", "truncated: the COMM chunk is missing");
  if (!data_bytes) return damaged("AIFF", "truncated: the SSND chunk is missing");
  const bool is_unknown = frames == kUnknownSize || (frames == 0 && (*data_bytes == 0 || *data_bytes == kUnknownSize));
  const std::uint64_t frame_bytes = std::uint64_t{layout.sample_bytes} * layout.channels;
  FEEDLINE_CHECK_OK(set_frames(layout, is_unknown ? std::nullopt : std::optional(frames * frame_bytes), source.size()));
  return layout;
}

// The header, in big-endian numbers:
//
//   ".snd" | offset of the samples (4) | their bytes (4) | code (4) | rate (4) | channels (4) | text
Result<PcmLayout> read_au_header(ByteSource& source) {
  struct Code {
    std::uint32_t number;
    PcmCode code;
    std::uint32_t bytes;
  };
  static constexpr Code kCodes[] = {{1, PcmCode::kMulaw, 1},  {2, PcmCode::kSigned, 1}, {3, PcmCode::kSigned, 2},
                                    {4, PcmCode::kSigned, 3}, {5, PcmCode::kSigned, 4}, {6, PcmCode::kFloat, 4},
                                    {7, PcmCode::kFloat, 8},  {27, PcmCode::kAlaw, 1}};
  PcmLayout layout{.format = "AU", .is_big_endian = true};
  FEEDLINE_TRY(const Bytes head, source.bytes(0, 24));
  if (head.size() < 24) return damaged("AU", "truncated: the header has fewer than 24 bytes");
  const auto at = [&](std::size_t offset) { return number(head.subspan(offset, 4), true); };
  const auto* const known = std::ranges::find(kCodes, at(12), &Code::number);
  if (known == std::end(kCodes)) {
    layout.unsupported = "code " + std::to_string(at(12));
    return layout;
  }
  layout.code = known->code;
  layout.sample_bytes = known->bytes;
  layout.data_at = at(4);
  layout.rate = at(16);
  layout.channels = at(20);
  if (layout.data_at < 24) return damaged("AU", "the samples begin within the header");
  const std::uint32_t bytes = at(8);
  FEEDLINE_CHECK_OK(set_frames(
      layout, bytes == kUnknownSize || bytes == 0 ? std::nullopt : std::optional<std::uint64_t>(bytes), source.size()));
  return layout;
}

}  // namespace feedline::decode
