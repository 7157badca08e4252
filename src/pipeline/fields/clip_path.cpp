// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/clip_path.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "decode/video/sound_reader.h"
#include "pipeline/fields/field_scratch.h"
#include "pipeline/fields/image_input.h"
#include "pipeline/fields/pixels_path.h"

namespace feedline::pipeline {

using telemetry::Stage;

Shape ClipPlan::shape() const {
  if (given) return given->axes;
  if (!clip) return {static_cast<std::int64_t>(frames->frames.size() + frames->times.size())};
  const Shape one{frames_of(*clip)};
  return clip->clips == 1 ? one : one.with_front(clip->clips);
}

Shape ClipPlan::shape_of(const Shape& frame) const {
  const Shape axes = shape();
  Shape all = frame;
  for (std::size_t i = axes.dims(); i > 0; --i) all = all.with_front(axes[i - 1]);
  return all;
}

ClipPath::ClipPath(std::vector<FieldSpec> specs, ClipPlan plan, std::shared_ptr<const transform::Chain> chain,
                   std::shared_ptr<VideoIndexes> indexes, std::unique_ptr<const AudioPath> sound)
    : FieldPath(std::move(specs)),
      plan_(std::move(plan)),
      chain_(std::move(chain)),
      indexes_(std::move(indexes)),
      sound_(std::move(sound)) {}

// Returns the sample's video that was fetched in advance, or nullptr.
static std::shared_ptr<const FetchedVideo> fetched_of(const memory::Record::Field& stored, const FieldWork& work) {
  const auto& clips = work.scratch.video->fetched;
  if (!clips || work.record == nullptr) return nullptr;
  const auto field = static_cast<std::size_t>(&stored - work.record->fields.data());
  return field < clips->videos.size() ? clips->videos[field] : nullptr;
}

void ClipPath::add_scratch(FieldScratch& scratch) const {
  if (sound_) sound_->add_scratch(scratch);
  if (!scratch.video) scratch.video = std::make_unique<VideoScratch>();
  if (plan_.are_images()) {
    if (!scratch.image) scratch.image = std::make_unique<ImageScratch>();
  } else if (!scratch.video->decoder) {
    scratch.video->decoder.emplace(*decode::ffmpeg_library());
  }
}

Result<void> ClipPath::fill_rows(const memory::Record::Field& stored, FieldWork& work,
                                 std::span<memory::Row> rows) const {
  VideoScratch& scratch = *work.scratch.video;
  const std::uint64_t started = base::now_ns();
  if (plan_.are_images())
    return transform(work, rows.front(), started, stored.images.size(),
                     [&](const auto& sink) { return decode_images(stored, work.scratch, sink); });
  auto fetched = fetched_of(stored, work);
  if (fetched)
    scratch.source.open(std::move(fetched));
  else
    FEEDLINE_CHECK_OK(scratch.source.open(stored));
  auto filled = fill_from_video(stored, work, rows, started);
  scratch.source.close();
  return filled;
}

// Joins ranges that overlap, such as those of frames and of sound between them.
static void join(std::vector<decode::ByteRange>& ranges) {
  std::ranges::sort(ranges, {}, &decode::ByteRange::begin);
  std::size_t count = 0;
  for (const decode::ByteRange& range : ranges) {
    if (count > 0 && range.begin <= ranges[count - 1].end)
      ranges[count - 1].end = std::max(ranges[count - 1].end, range.end);
    else
      ranges[count++] = range;
  }
  ranges.resize(count);
}

Result<void> ClipPath::choose(const memory::Record::Field& stored, const IndexedVideo& video,
                              const base::SampleKey& key, ChosenFrames& chosen) const {
  if (plan_.clip) return choose_frames(*plan_.clip, video.index, video.shown, base::Random(key, plan_.stream), chosen);
  if (plan_.frames) return choose_frames(*plan_.frames, video.index, video.shown, chosen);
  return choose_frames(stored.times, plan_.given->tolerance, video.index, video.shown, chosen);
}

std::shared_ptr<const FetchedVideo> ClipPath::fetch(const memory::Record::Field& stored, const base::SampleKey& key,
                                                    FieldScratch& all) const {
  if (plan_.are_images() || stored.storage == nullptr) return nullptr;
  VideoScratch& scratch = *all.video;
  if (!scratch.source.open(stored)) return nullptr;
  auto fetched = std::make_shared<FetchedVideo>();
  fetched->reader = scratch.source.reader();
  fetched->size = scratch.source.size();
  fetched->key = scratch.source.key();
  const auto read = [&]() -> Result<void> {
    FEEDLINE_TRY(const auto video, indexes_->find(scratch.source, plan_.video_stream()));
    FEEDLINE_CHECK_OK(choose(stored, *video, key, scratch.chosen));
    FEEDLINE_TRY(auto ranges, scratch.decoder->find_ranges(video->index, video->shown, scratch.chosen.frames));
    if (sound_) FEEDLINE_CHECK_OK(add_sound_ranges(*video, scratch, ranges));
    join(ranges);
    for (const decode::ByteRange& range : ranges) {
      std::vector<std::byte> content(range.end - range.begin);
      FEEDLINE_CHECK_OK(decode::read_exactly(scratch.source, range.begin, content));
      fetched->ranges.push_back({range.begin, std::move(content)});
    }
    return {};
  };
  const auto done = read();
  scratch.source.close();
  if (!done) return nullptr;
  return fetched;
}

Result<void> ClipPath::fill_from_video(const memory::Record::Field& stored, FieldWork& work,
                                       std::span<memory::Row> rows, std::uint64_t started) const {
  VideoScratch& scratch = *work.scratch.video;
  FEEDLINE_TRY(const auto video, indexes_->find(scratch.source, plan_.video_stream()));
  FEEDLINE_CHECK_OK(choose(stored, *video, work.key, scratch.chosen));
  if (sound_) FEEDLINE_CHECK_OK(fill_sound(*video, work, rows.back()));
  const auto& frames = scratch.chosen.frames;
  FEEDLINE_CHECK_OK(transform(work, rows.front(), started, frames.size(), [&](const auto& sink) -> Result<void> {
    VideoDecoders::Reserved reserved;
    if (scratch.decoders) {
      FEEDLINE_TRY(reserved, scratch.decoders->reserve(video->index));
    }
    const auto before = scratch.decoder->counts();
    auto decoded = scratch.decoder->decode(video->index, video->shown, scratch.source, frames, sink);
    if (scratch.decoders) scratch.decoders->count(before, scratch.decoder->counts());
    return decoded;
  }));
  return fill_facts(*video, work, rows);
}

Result<void> ClipPath::decode_images(const memory::Record::Field& stored, FieldScratch& all,
                                     const decode::ClipDecoder::Sink& sink) const {
  VideoScratch& scratch = *all.video;
  for (std::size_t i = 0; i < stored.images.size(); ++i) {
    FEEDLINE_TRY(const decode::ImageHeader header, scratch.images.open(stored.images[i], chain_->applies_exif()));
    all.image->deepest = std::max(all.image->deepest, header.depth);
    const Box whole{.width = header.width, .height = header.height};
    FEEDLINE_CHECK_OK(scratch.images.decode(whole, chain_->color_mode(), scratch.image));
    FEEDLINE_CHECK_OK(sink(i, scratch.image.view()));
  }
  return {};
}

template <typename Decode>
Result<void> ClipPath::transform(FieldWork& work, memory::Row& row, std::uint64_t started, std::size_t frames,
                                 Decode decode) const {
  VideoScratch& scratch = *work.scratch.video;
  std::optional<Size> size;
  ArrayView out;
  std::size_t frame_bytes = 0;
  std::uint64_t transform_ns = 0, decoded = 0;
  // the size is that of the decoded frames, which a container may report wrongly
  const auto begin = [&](Size of_frame) -> Result<void> {
    size = of_frame;
    if (plan_.given && plan_.given->size &&
        (of_frame.width != plan_.given->size->width || of_frame.height != plan_.given->size->height))
      return data_error("the frames have " + std::to_string(of_frame.width) + " x " + std::to_string(of_frame.height) +
                            " pixels, but the metadata states " + std::to_string(plan_.given->size->width) + " x " +
                            std::to_string(plan_.given->size->height),
                        "decode");
    FEEDLINE_CHECK_OK(chain_->draw(of_frame, work.key, scratch.drawing));
    const Shape one = shape_drawn(*chain_, scratch.drawing);
    frame_bytes = ArraySpec{specs().front().array.dtype, one}.bytes();
    FEEDLINE_TRY(out, destination(row, plan_.shape_of(one), work));
    return {};
  };
  const decode::ClipDecoder::Sink sink = [&](std::size_t position, memory::PixelView pixels) -> Result<void> {
    const std::uint64_t arrived = base::now_ns();
    const Size of_frame{pixels.height, pixels.width};
    if (!size) FEEDLINE_CHECK_OK(begin(of_frame));
    if (of_frame.width != size->width || of_frame.height != size->height)
      return data_error("the frames of the clip differ in size: " + std::to_string(size->width) + " x " +
                            std::to_string(size->height) + " and " + std::to_string(of_frame.width) + " x " +
                            std::to_string(of_frame.height) + " pixels",
                        "decode");
    FEEDLINE_TRY(const memory::PixelView region,
                 region_of(pixels, scratch.drawing.region, chain_->color_mode(), scratch.pixels));
    const ArrayView place{out.data + position * frame_bytes, {out.spec.dtype, shape_drawn(*chain_, scratch.drawing)}};
    FEEDLINE_CHECK_OK(chain_->apply(scratch.drawing, region, scratch.workspace, place));
    decoded += memory::bytes_of(pixels);
    transform_ns += base::now_ns() - arrived;
    return {};
  };
  FEEDLINE_CHECK_OK(decode(sink));
  // one item each, as if all decoding came first
  const std::uint64_t ended = base::now_ns(), middle = ended - transform_ns;
  work.meter.count(Stage::kDecode, started, middle, decoded);
  work.meter.count(Stage::kTransform, middle, ended, frame_bytes * frames);
  return {};
}

std::vector<ClipPath::SoundWindow> ClipPath::sound_windows(const IndexedVideo& video, const decode::SoundTrack& track,
                                                           std::span<const std::uint64_t> frames) const {
  std::vector<SoundWindow> windows(static_cast<std::size_t>(plan_.clips()));
  const std::size_t each = frames.size() / windows.size();
  const std::uint32_t rate = sound_->plan().rate;
  for (std::size_t clip = 0; clip < windows.size(); ++clip) {
    const double start = video.shown.time(frames[clip * each]);
    const double seconds = video.shown.end(frames[(clip + 1) * each - 1]) - start;
    windows[clip] = {std::llround((video.shown.start() + start - track.start_s()) * rate),
                     static_cast<std::uint64_t>(std::max<std::int64_t>(std::llround(seconds * rate), 0))};
  }
  return windows;
}

Result<void> ClipPath::add_sound_ranges(const IndexedVideo& video, VideoScratch& scratch,
                                        std::vector<decode::ByteRange>& ranges) const {
  if (!video.index.has_times) return {};
  FEEDLINE_TRY(const auto track, indexes_->find_sound(scratch.source, video));
  const decode::AudioInfo info{
      .rate = track->rate, .channels = track->channels, .frames = static_cast<std::uint64_t>(track->stream.end)};
  for (const SoundWindow& window : sound_windows(video, *track, scratch.chosen.frames)) {
    const auto [begin, end] = sound_->window_needed(info, window.begin, window.samples);
    if (begin < end) decode::SoundReader::add_ranges(*track, begin, end - begin, ranges);
  }
  return {};
}

// Clips that are shorter than the longest one, if the frames' times vary, are followed by zeros.
Result<void> ClipPath::fill_sound(const IndexedVideo& video, FieldWork& work, memory::Row& row) const {
  VideoScratch& scratch = *work.scratch.video;
  if (!video.index.has_times) return data_error("the video has no time stamps; omit audio=True", "decode");
  FEEDLINE_TRY(const auto track, indexes_->find_sound(scratch.source, video));
  decode::SoundReader reader(*decode::ffmpeg_library(), track, scratch.source);
  const auto windows = sound_windows(video, *track, scratch.chosen.frames);
  const std::size_t clips = windows.size();
  const AudioPlan& plan = sound_->plan();
  const std::uint64_t longest = std::ranges::max(windows, {}, &SoundWindow::samples).samples;
  Shape shape{std::int64_t{plan.channels}, static_cast<std::int64_t>(longest)};
  if (clips > 1) shape = shape.with_front(static_cast<std::int64_t>(clips));
  const DType dtype = plan.audio.dtype;
  FEEDLINE_TRY(const auto room, row.item->make_room(shape, dtype, work.most_bytes));
  const std::size_t bytes = plan.channels * longest * size_of(dtype);
  for (std::size_t clip = 0; clip < clips; ++clip)
    FEEDLINE_CHECK_OK(sound_->fill_window(reader, windows[clip].begin, longest, windows[clip].samples, work,
                                          room.data() + clip * bytes));
  if (scratch.decoders) scratch.decoders->count_bytes(reader.bytes_fetched(), reader.bytes_used());
  return {};
}

Result<void> ClipPath::fill_facts(const IndexedVideo& video, FieldWork& work, std::span<memory::Row> rows) const {
  const ChosenFrames& chosen = work.scratch.video->chosen;
  std::size_t next = 1;
  const auto place_of = [&](DType dtype) -> Result<ArrayView> {
    memory::Row& row = rows[next++];
    if (row.item == nullptr) return row.view;
    FEEDLINE_TRY(const auto room, row.item->make_room(plan_.shape(), dtype, work.most_bytes));
    return ArrayView{room.data(), {dtype, plan_.shape()}};
  };
  if (plan_.has_timestamps()) {
    if (!video.index.has_times) return data_error("the video has no time stamps; omit timestamps=True", "decode");
    FEEDLINE_TRY(const ArrayView out, place_of(DType::kFloat64));
    for (std::size_t i = 0; i < chosen.frames.size(); ++i) out.as<double>()[i] = video.shown.time(chosen.frames[i]);
  }
  if (plan_.has_pads()) {
    FEEDLINE_TRY(const ArrayView out, place_of(DType::kBool));
    std::memcpy(out.data, chosen.are_pads.data(), chosen.are_pads.size());
  }
  return {};
}

Result<void> ClipPath::prepare(const memory::Record::Field& /*stored*/, FieldWork& /*work*/,
                               format::PixelRecordBuilder& /*cached*/) const {
  return internal_error("videos cannot be cached");  // make_field_path() rejects it
}

std::vector<std::string> ClipPath::explain() const {
  const std::string chosen = plan_.given  ? "frames of each sample"
                             : plan_.clip ? describe(Operation(*plan_.clip))
                                          : describe(Operation(*plan_.frames));
  std::vector<std::string> lines{plan_.are_images() ? chosen
                                                    : chosen + ", decoded with " + decode::ffmpeg_library()->version};
  for (std::string& line : chain_->explain()) lines.push_back(std::move(line));
  if (sound_)
    for (std::string& line : sound_->explain()) lines.push_back("sound: " + std::move(line));
  return lines;
}

}  // namespace feedline::pipeline
