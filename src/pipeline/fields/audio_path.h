// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decode/audio/audio_reader.h"
#include "feedline/operation.h"
#include "pipeline/fields/field_path.h"

namespace feedline::pipeline {

struct AudioScratch;

// The form of a delivered audio field, compiled from a chain of operations. Threads share it unchanged.
struct AudioPlan {
  std::uint32_t rate = 0;      // of the delivered samples
  bool is_any_rate = false;    // the operations do not set the rate: it is that of the first sample
  std::uint32_t channels = 0;  // delivered
  op::Audio audio{};           // mono, chosen channels, part, dtype
  std::optional<op::SpeedPerturbation> speed;
  std::uint32_t audio_stream = 0, speed_stream = 0;
  // Operations on the samples, in their order, with the streams of their random draws.
  struct Change {
    std::uint32_t stream = 0;
    const op::RandomGain* gain = nullptr;  // one of the two
    const op::AddNoise* noise = nullptr;
  };
  std::vector<Change> changes;
  std::vector<Operation> operations;  // owns the arguments

  // Returns the number of delivered samples for `frames` frames of a file with this rate, at the slowest speed.
  std::uint64_t longest(std::uint64_t frames, std::uint32_t file_rate) const;
};

// Returns the plan for the operations of one field. first: the first sample; its rate and channels apply
// unless operations set them.
// kConfig: audio() occurs twice.
Result<AudioPlan> plan_audio(const std::vector<Operation>& operations, const decode::AudioInfo& first);

// Returns the frames [begin, end) of a file that belong to a sample. kData: the file has no such part.
struct AudioWindow {
  std::uint64_t begin = 0, end = 0;
};
Result<AudioWindow> window_of(const memory::TimeRange& range, const decode::AudioInfo& info);

// Opens a sample's file, or one of its channels if the sample has only that one. `source` must outlive the reader.
Result<std::unique_ptr<decode::AudioReader>> open_sample(AudioSource& source, const memory::Record::Field& stored);

// Audio from the bytes of a file: decodes a part, selects channels, resamples, and changes the samples. Thread-safe.
// Owns the plan; the state of a thread is in its AudioScratch.
class AudioPath final : public FieldPath {
 public:
  AudioPath(FieldSpec spec, AudioPlan plan) : FieldPath(std::move(spec)), plan_(std::move(plan)) {}

  const AudioPlan& plan() const { return plan_; }
  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& cached) const override;
  std::vector<std::string> explain() const override;
  // Returns the samples [begin, end) of the file that fill_window() reads.
  AudioWindow window_needed(const decode::AudioInfo& info, std::int64_t begin, std::uint64_t frames) const;
  // Writes planes of `length` samples, one for each channel: `frames` delivered samples from number `begin` on, and
  // zeros for those outside the file and after `frames`. out: of the spec's dtype. Requires: frames <= length.
  Result<void> fill_window(decode::AudioReader& reader, std::int64_t begin, std::uint64_t length, std::uint64_t frames,
                           FieldWork& work, std::byte* out) const;

 private:
  // The frames to deliver.
  struct Part {
    std::uint64_t window_begin = 0, window_frames = 0;  // in the file
    std::uint64_t from = 1, to = 1;                     // the ratio of the rates, after the change of speed
    std::uint64_t begin = 0, frames = 0;                // delivered
  };
  Result<void> check(const decode::AudioInfo& info) const;
  // Returns the part of a window that is inside the file.
  Part part_inside(const decode::AudioInfo& info, std::int64_t begin, std::uint64_t frames) const;
  Result<Part> draw_part(const decode::AudioInfo& info, const memory::TimeRange& range, const FieldWork& work) const;
  // Reads the part and changes its samples.
  Result<void> deliver(decode::AudioReader& reader, const Part& part, FieldWork& work, std::byte* out) const;
  Result<void> read_floats(decode::AudioReader& reader, const Part& part, AudioScratch& scratch,
                           std::uint64_t most_bytes, std::span<float> out) const;
  Result<void> read_integers(decode::AudioReader& reader, const Part& part, AudioScratch& scratch,
                             std::uint64_t most_bytes, std::span<std::int16_t> out) const;
  Result<void> change(std::span<float> samples, FieldWork& work, AudioScratch& scratch) const;
  Result<void> add_noise(const op::AddNoise& noise, base::Random& random, std::span<float> samples,
                         AudioScratch& scratch, std::uint64_t most_bytes) const;

  const AudioPlan plan_;
};

}  // namespace feedline::pipeline
