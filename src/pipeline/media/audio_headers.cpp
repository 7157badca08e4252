// SPDX-License-Identifier: Apache-2.0
#include "pipeline/media/audio_headers.h"

#include <array>
#include <cstring>
#include <utility>

#include "cache/persisted_tables.h"
#include "decode/audio/audio_reader.h"

namespace feedline::pipeline {
namespace {

constexpr cache::FrameKind kLengths{0x6c'64'75'61'64'65'65'66, 1};  // "feedaudl"
constexpr std::string_view kSuffix = ".feedline-audio";
// An entry takes 32 bytes, and reading a header 0.3 ms: a file is worth writing for 64 of them.
constexpr cache::EntryLimits kLimits{.least_written = 64 * 16};

// Stored: rate and frames, 8 bytes each.
using Numbers = std::array<std::uint64_t, 2>;

}  // namespace

AudioHeaders::AudioHeaders(std::vector<std::string> paths) : store_(kLengths, std::move(paths), kLimits) {}

std::shared_ptr<AudioHeaders> AudioHeaders::of_source(const storage::Storage& storage, const std::string& source,
                                                      const std::string& directory) {
  return std::shared_ptr<AudioHeaders>(
      new AudioHeaders(cache::locations_of_source(kLengths, kSuffix, storage, source, directory)));
}

std::shared_ptr<AudioHeaders> AudioHeaders::in_memory() { return std::shared_ptr<AudioHeaders>(new AudioHeaders({})); }

Result<AudioLength> AudioHeaders::find(const memory::Record::Field& stored, AudioSource& source) {
  FEEDLINE_CHECK_OK(source.open(stored));
  Numbers numbers{};
  std::vector<std::byte> entry;
  const std::optional<std::uint64_t> key = source.key();
  if (key && store_.find(*key, entry) && entry.size() == sizeof numbers) {
    std::memcpy(numbers.data(), entry.data(), sizeof numbers);
    source.close();
    return AudioLength{static_cast<std::uint32_t>(numbers[0]), numbers[1]};
  }
  const auto reader = decode::open_audio(source);
  source.close();
  if (!reader) return std::unexpected(reader.error());
  const decode::AudioInfo& info = (*reader)->info();
  numbers = {info.rate, info.frames};
  if (key) store_.save(*key, std::as_bytes(std::span(numbers)));
  return AudioLength{info.rate, info.frames};
}

void AudioHeaders::write() { (void)store_.write(); }

}  // namespace feedline::pipeline
