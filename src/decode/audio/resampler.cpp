// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/resampler.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/check.h"
#include "decode/audio/soxr_library.h"

namespace feedline::decode {
namespace {

constexpr unsigned long kVeryHighQuality = 6;  // SOXR_VHQ
constexpr int kFloat32Interleaved = 0;         // SOXR_FLOAT32_I

// Half of the length of libsoxr's filters, in periods of the lower rate. With 0.005 s at 8 kHz parts differ from slices
// by up to 2e-3, with 0.02 s by rounding errors only.
constexpr std::uint64_t kMarginPeriods = 1024;

}  // namespace

std::uint64_t resampled_frames(std::uint64_t frames, std::uint64_t from, std::uint64_t to) {
  using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{frames} * to * 2 + from) / (Wide{from} * 2));
}

ResampledPart part_needed(std::uint64_t begin, std::uint64_t frames, std::uint64_t file_frames, std::uint64_t from,
                          std::uint64_t to) {
  using Wide = unsigned __int128;
  const std::uint64_t margin = std::max<std::uint64_t>(kMarginPeriods * from / std::min(from, to), 1);
  // a part begins at a frame whose time is also that of a resampled frame
  const std::uint64_t common = std::gcd(from, to), step = from / common;
  const auto middle = static_cast<std::uint64_t>(Wide{begin} * from / to);
  const auto last = static_cast<std::uint64_t>((Wide{begin + frames} * from + to - 1) / to);
  ResampledPart part;
  part.begin = middle > margin ? (middle - margin) / step * step : 0;
  part.end = std::min(file_frames, last + margin);
  part.begin = std::min(part.begin, part.end);
  part.skipped = begin - static_cast<std::uint64_t>(Wide{part.begin} * to / from);
  return part;
}

Result<void> resample(std::span<const float> in, std::uint32_t channels, std::uint64_t from, std::uint64_t to,
                      std::uint64_t skipped, std::span<float> out, std::vector<float>& room) {
  FEEDLINE_TRY(const SoxrLibrary* const soxr, soxr_library());
  const SoxrQuality quality = soxr->quality_spec(kVeryHighQuality, 0);
  const SoxrIo io = soxr->io_spec(kFloat32Interleaved, kFloat32Interleaved);
  const char* error = nullptr;
  const std::unique_ptr<void, void (*)(void*)> resampler(
      soxr->create(static_cast<double>(from), static_cast<double>(to), channels, &error, &io, &quality, nullptr),
      soxr->destroy);
  if (error != nullptr || resampler == nullptr)
    return internal_error(std::string("libsoxr: ") + (error != nullptr ? error : "out of memory"));
  const std::uint64_t wanted = skipped + out.size() / channels;
  room.resize(wanted * channels);
  std::size_t taken = 0, made = 0;
  const std::size_t in_frames = in.size() / channels;
  while (made < wanted) {
    std::size_t in_done = 0, out_done = 0;
    // without input, libsoxr delivers the rest
    const bool is_end = taken == in_frames;
    error = soxr->process(resampler.get(), is_end ? nullptr : in.data() + taken * channels, in_frames - taken, &in_done,
                          room.data() + made * channels, wanted - made, &out_done);
    if (error != nullptr) return internal_error(std::string("libsoxr: ") + error);
    taken += in_done;
    made += out_done;
    if (is_end && out_done == 0) break;
  }
  // the last frame may round up to a time after the end of the file
  std::fill(room.begin() + static_cast<std::ptrdiff_t>(made * channels), room.end(), 0.0F);
  std::copy_n(room.begin() + static_cast<std::ptrdiff_t>(skipped * channels), out.size(), out.begin());
  return {};
}

}  // namespace feedline::decode
