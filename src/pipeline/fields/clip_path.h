// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/video/clip_decoder.h"
#include "feedline/operation.h"
#include "format/format.h"
#include "pipeline/fields/audio_path.h"
#include "pipeline/fields/field_path.h"
#include "pipeline/media/clip_choice.h"
#include "pipeline/media/video_indexes.h"
#include "transform/chain.h"

namespace feedline::pipeline {

struct VideoScratch;

// The frames of each sample: those of clip() or frames(), or those that the format chooses. One of the three is set.
struct ClipPlan {
  std::optional<op::Clip> clip;
  std::optional<op::Frames> frames;
  std::optional<format::ChosenByFormat> given;
  std::uint32_t stream = 0;  // of the operation's random numbers

  std::optional<int> video_stream() const { return clip ? clip->stream : frames ? frames->stream : std::nullopt; }
  bool has_timestamps() const { return clip ? clip->timestamps : frames && frames->timestamps; }
  bool has_pads() const { return clip && clip->pad; }
  bool has_sound() const { return clip && clip->audio; }
  int clips() const { return clip ? clip->clips : 1; }
  // (frames,), or (clips, frames) if there are several clips.
  Shape shape() const;
  bool are_images() const { return given && given->tolerance == 0; }  // instead of a video
  // The same axes before those of a frame.
  Shape shape_of(const Shape& frame) const;
};

// Clips of a video: the path chooses frames, reads and decodes the packets that they need, and applies the operations
// on images to each frame, with the same random values. Rows: the frames, their times, flags of repeated ones, and the
// sound of the same time.
// Thread-safe; the state of a thread is in its VideoScratch.
class ClipPath final : public FieldPath {
 public:
  ClipPath(std::vector<FieldSpec> specs, ClipPlan plan, std::shared_ptr<const transform::Chain> chain,
           std::shared_ptr<VideoIndexes> indexes, std::unique_ptr<const AudioPath> sound);

  void add_scratch(FieldScratch& scratch) const override;
  Result<void> fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const override {
    return fill_rows(stored, work, {&row, 1});
  }
  Result<void> fill_rows(const memory::Record::Field& stored, FieldWork& work,
                         std::span<memory::Row> rows) const override;
  Result<void> prepare(const memory::Record::Field& stored, FieldWork& work,
                       format::PixelRecordBuilder& cached) const override;
  std::vector<std::string> explain() const override;
  // Opens the video, chooses the frames of the sample with this key, and reads the bytes that they need. nullptr: the
  // video is not read from an object in parts, or something failed.
  std::shared_ptr<const FetchedVideo> fetch(const memory::Record::Field& stored, const base::SampleKey& key,
                                            FieldScratch& scratch) const;

 private:
  Result<void> choose(const memory::Record::Field& stored, const IndexedVideo& video, const base::SampleKey& key,
                      ChosenFrames& chosen) const;
  Result<void> fill_from_video(const memory::Record::Field& stored, FieldWork& work, std::span<memory::Row> rows,
                               std::uint64_t started) const;
  // Applies the operations to all frames that `decode` passes to a sink.
  template <typename Decode>
  Result<void> transform(FieldWork& work, memory::Row& row, std::uint64_t started, std::size_t frames,
                         Decode decode) const;
  Result<void> decode_images(const memory::Record::Field& stored, FieldScratch& all,
                             const decode::ClipDecoder::Sink& sink) const;
  // Delivered samples from `begin` on, which may be negative, for each clip.
  struct SoundWindow {
    std::int64_t begin = 0;
    std::uint64_t samples = 0;
  };
  std::vector<SoundWindow> sound_windows(const IndexedVideo& video, const decode::SoundTrack& track,
                                         std::span<const std::uint64_t> frames) const;
  Result<void> add_sound_ranges(const IndexedVideo& video, VideoScratch& scratch,
                                std::vector<decode::ByteRange>& ranges) const;
  Result<void> fill_sound(const IndexedVideo& video, FieldWork& work, memory::Row& row) const;
  Result<void> fill_facts(const IndexedVideo& video, FieldWork& work, std::span<memory::Row> rows) const;

  const ClipPlan plan_;
  const std::shared_ptr<const transform::Chain> chain_;
  const std::shared_ptr<VideoIndexes> indexes_;
  const std::unique_ptr<const AudioPath> sound_;  // nullptr: not delivered
};

}  // namespace feedline::pipeline
