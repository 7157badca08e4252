// SPDX-License-Identifier: Apache-2.0
// Headers of WAV, AIFF and AU files, the structure of FLAC files, and frames of MP3 files: our own parsers of audio.
// libsndfile is not called.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "decode/audio/audio_reader.h"
#include "decode/audio/flac_reader.h"
#include "decode/audio/flac_stream.h"
#include "decode/audio/mp3_frames.h"
#include "decode/audio/pcm_layout.h"
#include "decode/audio/pcm_reader.h"

namespace {

using namespace feedline;

// Reads the beginning, the end, and each part between once.
void read_all(decode::ByteSource& source, const decode::PcmLayout& layout) {
  decode::PcmReader reader(source, layout);
  const std::uint64_t frames = std::min<std::uint64_t>(layout.frames, 4096);
  std::vector<float> floats(frames * layout.channels);
  std::vector<std::int16_t> integers(floats.size());
  for (const std::uint64_t begin : {std::uint64_t{0}, layout.frames - frames})
    if (!reader.read(begin, std::span(floats)) || !reader.read(begin, std::span(integers))) std::abort();
}

// Parts equal the slices of the whole file, if it can be read.
void read_flac(decode::ByteSource& source) {
  if (const auto stream = decode::read_flac_stream(source); stream && stream->samples > 0) {
    const auto found = decode::find_flac_frame(source, *stream, stream->samples / 2, 0);
    if (!found || found->sample > stream->samples / 2 || found->at < stream->data_at || found->at >= source.size())
      std::abort();
  }
  const auto reader = decode::FlacReader::open(source);
  constexpr std::uint64_t kMost = 1 << 20;
  if (!reader || (*reader)->info().frames == 0 || (*reader)->info().frames * (*reader)->info().channels > kMost) return;
  const std::uint64_t channels = (*reader)->info().channels, frames = (*reader)->info().frames;
  std::vector<float> whole(frames * channels), part((frames - frames / 2) * channels);
  const bool is_whole = (*reader)->read(0, std::span(whole)).has_value();
  if (!(*reader)->read(frames / 2, std::span(part))) {
    if (is_whole) std::abort();
  } else if (is_whole && !std::ranges::equal(part, std::span(whole).last(part.size()))) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  decode::MemoryBytes source(std::as_bytes(std::span(data, size)));
  for (const auto read_header : {decode::read_wav_header, decode::read_aiff_header, decode::read_au_header}) {
    const auto layout = read_header(source);
    if (layout && layout->unsupported.empty()) read_all(source, *layout);
  }
  read_flac(source);
  const auto samples = decode::count_mp3_samples(source);
  if (samples && *samples && **samples > size * 1152) std::abort();
  return 0;
}
