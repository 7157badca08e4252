// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/sndfile_reader.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "decode/audio/edited_bytes.h"
#include "decode/audio/mp3_frames.h"
#include "decode/file_bytes.h"

namespace feedline::decode {
namespace {

// Numbers of sndfile.h.
constexpr int kModeRead = 0x10;
constexpr int kSubformatMask = 0xFFFF;
constexpr int kSeekFromStart = 0, kSeekFromHere = 1;

// The state of an Opus decoder depends on all earlier packets; after this many frames the difference is inaudible.
constexpr std::uint64_t kOpusPreRoll = 48'000;
constexpr std::size_t kDecodedFrames = 16 << 10;  // frames decoded at a time
constexpr std::uint64_t kUnknownFrames = std::uint64_t{1} << 60;
// Bits 4 to 39 of these bytes of a FLAC file are its number of frames.
constexpr std::size_t kFlacFramesAt = 21, kFlacFramesBytes = 5;

SampleKind kind_of(int subformat) {
  if (subformat == 6 || subformat == 7) return SampleKind::kFloat;  // float, double
  const bool is_pcm = subformat >= 1 && subformat <= 5;
  const bool is_coded = subformat == 0x10 || subformat == 0x11;  // mu-law, A-law
  const bool is_alac = subformat >= 0x70 && subformat <= 0x73;
  return is_pcm || is_coded || is_alac ? SampleKind::kInteger : SampleKind::kLossy;
}

}  // namespace

SndfileIo SndfileReader::io() {
  return {.length = [](void* user) { return static_cast<std::int64_t>(static_cast<Stream*>(user)->source->size()); },
          .seek =
              [](std::int64_t offset, int whence, void* user) {
                Stream& stream = *static_cast<Stream*>(user);
                const std::int64_t from = whence == kSeekFromStart  ? 0
                                          : whence == kSeekFromHere ? stream.position
                                                                    : static_cast<std::int64_t>(stream.source->size());
                std::int64_t to = 0;
                if (__builtin_add_overflow(from, offset, &to) || to < 0) return std::int64_t{-1};
                return stream.position = to;
              },
          .read =
              [](void* out, std::int64_t count, void* user) {
                Stream& stream = *static_cast<Stream*>(user);
                if (count <= 0 || !stream.state) return std::int64_t{0};
                const auto bytes = stream.source->bytes(static_cast<std::uint64_t>(stream.position),
                                                        static_cast<std::uint64_t>(count));
                if (!bytes) {
                  stream.state = std::unexpected(bytes.error());
                  return std::int64_t{0};
                }
                if (!bytes->empty()) std::memcpy(out, bytes->data(), bytes->size());
                stream.position += static_cast<std::int64_t>(bytes->size());
                return static_cast<std::int64_t>(bytes->size());
              },
          .write = [](const void*, std::int64_t, void*) { return std::int64_t{0}; },
          .tell = [](void* user) { return static_cast<Stream*>(user)->position; }};
}

Result<std::unique_ptr<AudioReader>> SndfileReader::open(ByteSource& source, std::string_view format) {
  FEEDLINE_TRY(const SndfileLibrary* const library, sndfile_library());
  std::unique_ptr<SndfileReader> reader(new SndfileReader(*library, source, format));
  if (format == "MP3") FEEDLINE_CHECK_OK(reader->complete_mp3());
  FEEDLINE_CHECK_OK(reader->start());
  if (reader->info_.frames >= kUnknownFrames) FEEDLINE_CHECK_OK(reader->complete_flac());
  return reader;
}

SndfileReader::~SndfileReader() {
  if (file_ != nullptr) library_.close(file_);
}

std::unexpected<Error> SndfileReader::failed(const std::string& what) const {
  if (!stream_.state) return std::unexpected(stream_.state.error());
  return data_error(std::string(info_.format) + ": " + what, "decode");
}

Result<void> SndfileReader::start() {
  if (file_ != nullptr) library_.close(std::exchange(file_, nullptr));
  SndfileIo functions = io();
  SndfileInfo info;
  stream_.position = 0;
  file_ = library_.open_virtual(&functions, kModeRead, &info, &stream_);
  // libsndfile's message about a failed opening is shared by all threads, so it may be about another file
  if (file_ == nullptr)
    return failed(std::string("damaged, or not supported by ") + library_.version_string() +
                  (info_.format == "MP3" ? " (MP3 needs 1.1 or newer)" : ""));
  if (info.channels <= 0 || static_cast<std::uint32_t>(info.channels) > kMostChannels || info.rate <= 0 ||
      static_cast<std::uint32_t>(info.rate) > kMostRate)
    return failed("a rate of " + std::to_string(info.rate) + " Hz and " + std::to_string(info.channels) +
                  " channels are not possible");
  info_.rate = static_cast<std::uint32_t>(info.rate);
  info_.channels = static_cast<std::uint32_t>(info.channels);
  info_.kind = kind_of(info.format & kSubformatMask);
  info_.frames = static_cast<std::uint64_t>(std::max<std::int64_t>(info.frames, 0));
  return {};
}

void SndfileReader::edit(std::uint64_t at, std::uint64_t replaced, std::vector<std::byte> by) {
  edited_ = std::make_unique<EditedBytes>(*stream_.source, at, replaced, std::move(by));
  stream_.source = edited_.get();
}

Result<void> SndfileReader::complete_mp3() {
  FEEDLINE_TRY(auto counted, count_mp3_frames(*stream_.source));
  if (counted) edit(counted->begin, 0, std::move(counted->header));
  return {};
}

// A FLAC file that was written to a pipe has 0 in the 36 bits of its number of frames, and libsndfile cannot seek in
// it. Decodes it once to count them.
Result<void> SndfileReader::complete_flac() {
  if (info_.format != "FLAC") return failed("the header does not state the number of frames");
  std::uint64_t frames = 0;
  floats_.resize(kDecodedFrames * info_.channels);
  for (;;) {
    const std::int64_t came = library_.readf_float(file_, floats_.data(), kDecodedFrames);
    if (came <= 0) break;
    frames += static_cast<std::uint64_t>(came);
  }
  if (!stream_.state) return stream_.state;
  FEEDLINE_TRY(const Bytes head, stream_.source->bytes(0, kFlacFramesAt + kFlacFramesBytes));
  if (!begins_with(head, "fLaC") || head.size() < kFlacFramesAt + kFlacFramesBytes)
    return failed("the header does not state the number of frames");
  std::vector<std::byte> stated(head.begin() + kFlacFramesAt, head.end());
  stated[0] |= static_cast<std::byte>(frames >> 32 & 15U);
  for (std::size_t i = 1; i < kFlacFramesBytes; ++i) stated[i] = static_cast<std::byte>(frames >> (32 - 8 * i));
  edit(kFlacFramesAt, kFlacFramesBytes, std::move(stated));
  return start();
}

Result<void> SndfileReader::seek(std::uint64_t frame) {
  if (library_.seek(file_, static_cast<std::int64_t>(frame), kSeekFromStart) != static_cast<std::int64_t>(frame))
    return failed("cannot seek to frame " + std::to_string(frame) + " of " + std::to_string(info_.frames));
  next_ = frame;
  return {};
}

template <typename T, typename Read>
Result<void> SndfileReader::read_frames(std::uint64_t begin, std::span<T> out, Read decode) {
  if (begin != next_) {
    const std::uint64_t pre_roll = info_.format == "Opus" ? std::min(begin, kOpusPreRoll) : 0;
    FEEDLINE_CHECK_OK(seek(begin - pre_roll));
    std::vector<T> skipped(pre_roll * info_.channels);
    const auto wanted = static_cast<std::int64_t>(pre_roll);
    if (pre_roll > 0 && decode(file_, skipped.data(), wanted) != wanted)
      return failed("damaged before frame " + std::to_string(begin));
  }
  const std::uint64_t frames = out.size() / info_.channels;
  FEEDLINE_CHECK(begin + frames <= info_.frames);
  const std::int64_t came = decode(file_, out.data(), static_cast<std::int64_t>(frames));
  next_ = begin + static_cast<std::uint64_t>(std::max<std::int64_t>(came, 0));
  if (next_ == begin + frames && library_.error(file_) == 0 && stream_.state) return {};
  return failed("truncated or damaged: decoding ended at frame " + std::to_string(next_) + ", but the header states " +
                std::to_string(info_.frames) + " frames");
}

Result<void> SndfileReader::read(std::uint64_t begin, std::span<float> out) {
  return read_frames(begin, out, library_.readf_float);
}

Result<void> SndfileReader::read(std::uint64_t begin, std::span<std::int16_t> out) {
  if (info_.kind == SampleKind::kInteger) return read_frames(begin, out, library_.readf_short);
  const std::size_t block = kDecodedFrames * info_.channels;
  while (!out.empty()) {
    const auto part = out.first(std::min(block, out.size()));
    floats_.resize(part.size());
    FEEDLINE_CHECK_OK(read(begin, std::span(floats_)));
    std::ranges::transform(floats_, part.begin(), to_int16);
    begin += part.size() / info_.channels;
    out = out.subspan(part.size());
  }
  return {};
}

}  // namespace feedline::decode
