// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/sndfile_reader.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
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
// An MP3 frame may begin in up to 511 bytes of earlier frames. libmpg123 decodes 4 frames before the wanted one, which
// are fewer bytes in silence of a variable bit rate.
constexpr std::uint64_t kMp3PreRoll = std::uint64_t{16} * 1152;
// More than the frames of a Vorbis packet, so that decoding begins in an earlier page than the last one.
constexpr std::uint64_t kVorbisPreRoll = 16'384;
constexpr std::size_t kDecodedFrames = 16 << 10;  // frames decoded at a time
constexpr std::uint64_t kUnknownFrames = std::uint64_t{1} << 60;

// Returns the frame at which the last page of an Ogg file begins; 0 if the file has one page of samples. In this page,
// libsndfile (1.2.2) seeks to a wrong frame if the encoder cut the last packet.
Result<std::uint64_t> find_last_page(ByteSource& source) {
  constexpr std::uint64_t kMostPages = 128 << 10;  // two pages of the largest size
  constexpr std::size_t kGranuleAt = 6, kHead = 14;
  const std::uint64_t size = source.size(), begin = size - std::min(size, kMostPages);
  FEEDLINE_TRY(const Bytes tail, source.bytes(begin, kMostPages));
  const std::string_view text(reinterpret_cast<const char*>(tail.data()), tail.size());
  std::size_t page = text.rfind("OggS");
  if (page != text.npos && page > 0) page = text.rfind("OggS", page - 1);
  if (page == text.npos || page + kHead > text.size()) return 0;
  const Bytes granule = tail.subspan(page + kGranuleAt, 8);
  const std::uint64_t frame =
      std::uint64_t{number(granule.subspan(4, 4), false)} << 32 | number(granule.first(4), false);
  return frame == ~std::uint64_t{0} ? 0 : frame;  // no packet ends in that page
}

// Checks that an Ogg file ends with a whole page that ends its stream; libsndfile reads others without an error.
Result<void> check_last_page(ByteSource& source, std::string_view format) {
  constexpr std::uint64_t kMostPage = 27 + 255 + 255 * 255;
  constexpr std::size_t kVersionAt = 4, kFlagsAt = 5, kSegmentsAt = 26, kEndsStream = 4;
  const std::uint64_t size = source.size(), begin = size - std::min(size, kMostPage);
  FEEDLINE_TRY(const Bytes tail, source.bytes(begin, kMostPage));
  const std::string_view text(reinterpret_cast<const char*>(tail.data()), tail.size());
  for (std::size_t page = text.rfind("OggS"); page != text.npos;
       page = page > 0 ? text.rfind("OggS", page - 1) : text.npos) {
    const Bytes head = tail.subspan(page);
    const auto at = [&](std::size_t i) { return i < head.size() ? std::to_integer<std::size_t>(head[i]) : 0; };
    if (at(kVersionAt) != 0 || at(kFlagsAt) > 7) continue;  // the letters are in a packet
    std::size_t bytes = kSegmentsAt + 1 + at(kSegmentsAt);
    for (std::size_t i = 0; i < at(kSegmentsAt); ++i) bytes += at(kSegmentsAt + 1 + i);
    if (bytes > head.size()) break;
    if ((at(kFlagsAt) & kEndsStream) != 0) return {};
    return data_error(std::string(format) +
                          ": truncated: the last page of Ogg does not end the stream; if the file is complete, write "
                          "it again, for example with: ffmpeg -i in.ogg -c copy out.ogg",
                      "decode");
  }
  return data_error(std::string(format) + ": truncated: the file ends inside a page of Ogg", "decode");
}

SampleKind kind_of(int subformat) {
  if (subformat == 6 || subformat == 7) return SampleKind::kFloat;  // float, double
  const bool is_pcm = subformat >= 1 && subformat <= 5;
  const bool is_coded = subformat == 0x10 || subformat == 0x11;  // mu-law, A-law
  const bool is_alac = subformat >= 0x70 && subformat <= 0x73;
  return is_pcm || is_coded || is_alac ? SampleKind::kInteger : SampleKind::kLossy;
}

}  // namespace

SndfileIo SndfileReader::io() {
  return {.length = [](void* user) { return static_cast<const Stream*>(user)->length(); },
          .seek =
              [](std::int64_t offset, int whence, void* user) {
                Stream& stream = *static_cast<Stream*>(user);
                const std::int64_t from = whence == kSeekFromStart  ? 0
                                          : whence == kSeekFromHere ? stream.position
                                                                    : stream.length();
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
                auto came = static_cast<std::int64_t>(bytes->size());
                if (came < count && stream.stated_lengths > 1) {
                  const std::int64_t zeros =
                      std::clamp<std::int64_t>(stream.length() - stream.position - came, 0, count - came);
                  std::memset(static_cast<std::byte*>(out) + came, 0, static_cast<std::size_t>(zeros));
                  came += zeros;
                }
                stream.position += came;
                return came;
              },
          .write = [](const void*, std::int64_t, void*) { return std::int64_t{0}; },
          .tell = [](void* user) { return static_cast<Stream*>(user)->position; }};
}

Result<std::unique_ptr<AudioReader>> SndfileReader::open(ByteSource& source, std::string_view format) {
  FEEDLINE_TRY(const SndfileLibrary* const library, sndfile_library());
  std::unique_ptr<SndfileReader> reader(new SndfileReader(*library, source, format));
  FEEDLINE_TRY(const Bytes head, source.bytes(0, 4));
  if (begins_with(head, "OggS")) FEEDLINE_CHECK_OK(check_last_page(source, format));
  if (format == "MP3") FEEDLINE_CHECK_OK(reader->complete_mp3());
  FEEDLINE_CHECK_OK(reader->start());
  if (reader->info_.frames >= kUnknownFrames) return reader->failed("the header does not state the number of frames");
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
  info_.frames = counted_.value_or(static_cast<std::uint64_t>(std::max<std::int64_t>(info.frames, 0)));
  return {};
}

// libsndfile reads at most the number of frames that it estimates from the size of the file and the bit rate of the
// first frame. A greater size, with zeros after the end of the file, makes the estimate too large.
Result<void> SndfileReader::complete_mp3() {
  FEEDLINE_TRY(counted_, count_mp3_samples(*stream_.source));
  constexpr std::int64_t kMostRatio = 64;  // of two bit rates
  if (counted_) stream_.stated_lengths = kMostRatio;
  return {};
}

Result<void> SndfileReader::seek(std::uint64_t frame) {
  if (library_.seek(file_, static_cast<std::int64_t>(frame), kSeekFromStart) != static_cast<std::int64_t>(frame))
    return failed("cannot seek to frame " + std::to_string(frame) + " of " + std::to_string(info_.frames));
  next_ = frame;
  return {};
}

// Returns the frame, at or before `begin`, from which decoding returns the same samples as from the
// start of the file.
Result<std::uint64_t> SndfileReader::start_of_decoding(std::uint64_t begin) {
  if (info_.format == "MP3") return begin - std::min(begin, kMp3PreRoll);
  if (info_.format == "Opus") return begin - std::min(begin, kOpusPreRoll);
  if (info_.format != "Vorbis") return begin;
  if (!last_page_) {
    FEEDLINE_TRY(last_page_, find_last_page(*stream_.source));
  }
  if (begin < *last_page_) return begin;
  return *last_page_ - std::min(*last_page_, kVorbisPreRoll);
}

template <typename T, typename Read>
Result<void> SndfileReader::read_frames(std::uint64_t begin, std::span<T> out, Read decode) {
  if (begin != next_) {
    FEEDLINE_TRY(const std::uint64_t start, start_of_decoding(begin));
    FEEDLINE_CHECK_OK(seek(start));
    std::vector<T> skipped(std::min<std::uint64_t>(begin - start, kDecodedFrames) * info_.channels);
    while (next_ < begin) {
      const auto wanted = static_cast<std::int64_t>(std::min<std::uint64_t>(begin - next_, kDecodedFrames));
      if (decode(file_, skipped.data(), wanted) != wanted)
        return failed("damaged before frame " + std::to_string(begin));
      next_ += static_cast<std::uint64_t>(wanted);
    }
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
