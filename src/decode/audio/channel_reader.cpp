// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/channel_reader.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace feedline::decode {
namespace {

class ChannelReader final : public AudioReader {
 public:
  ChannelReader(std::unique_ptr<AudioReader> reader, std::uint32_t channel)
      : reader_(std::move(reader)), channel_(channel), channels_(reader_->info().channels) {
    info_ = reader_->info();
    info_.channels = 1;
  }

  Result<void> read(std::uint64_t begin, std::span<float> out) override { return read_channel(begin, out); }
  Result<void> read(std::uint64_t begin, std::span<std::int16_t> out) override { return read_channel(begin, out); }

 private:
  template <typename T>
  Result<void> read_channel(std::uint64_t begin, std::span<T> out) {
    // Read at a time. Many, because each read of AAC decodes earlier packets again.
    constexpr std::size_t kSamples = 1 << 20;
    std::vector<T> all;
    while (!out.empty()) {
      const std::size_t frames = std::min(out.size(), kSamples / channels_);
      all.resize(frames * channels_);
      FEEDLINE_CHECK_OK(reader_->read(begin, std::span(all)));
      for (std::size_t i = 0; i < frames; ++i) out[i] = all[i * channels_ + channel_];
      out = out.subspan(frames);
      begin += frames;
    }
    return {};
  }

  const std::unique_ptr<AudioReader> reader_;
  const std::size_t channel_, channels_;
};

}  // namespace

Result<std::unique_ptr<AudioReader>> only_channel(std::unique_ptr<AudioReader> reader, std::uint32_t channel) {
  if (channel >= reader->info().channels)
    return data_error("the sample is channel " + std::to_string(channel) + " of the file, which has " +
                          std::to_string(reader->info().channels) + " channels, counted from 0",
                      "decode");
  return std::unique_ptr<AudioReader>(std::make_unique<ChannelReader>(std::move(reader), channel));
}

}  // namespace feedline::decode
