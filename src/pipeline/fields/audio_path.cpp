// SPDX-License-Identifier: Apache-2.0
#include "pipeline/fields/audio_path.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "decode/audio/channel_reader.h"
#include "decode/audio/resampler.h"
#include "decode/audio/soxr_library.h"
#include "memory/sample_limit.h"
#include "pipeline/fields/field_scratch.h"
#include "storage/registry.h"
#include "transform/operation/image_operation.h"

namespace feedline::pipeline {
namespace {

// Factors of speed are multiples of 1/1000.
constexpr std::uint64_t kSpeedUnit = 1000;

std::uint64_t samples_of(double seconds, std::uint32_t rate) {
  constexpr double kMost = 1e15;  // samples; longer than any file
  return static_cast<std::uint64_t>(std::llround(std::clamp(seconds * rate, 0.0, kMost)));
}

std::string seconds_text(std::uint64_t frames, std::uint32_t rate) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f s", static_cast<double>(frames) / rate);
  return text;
}

std::string hertz(std::uint32_t rate) { return std::to_string(rate) + " Hz"; }

// Returns a uniform number below `bound`, which may exceed 32 bits.
std::uint64_t below(base::Random& random, std::uint64_t bound) {
  return std::min(static_cast<std::uint64_t>(random.uniform() * static_cast<double>(bound)), bound - 1);
}

Result<void> check_room(std::uint64_t frames, std::uint64_t channels, std::uint64_t most_bytes) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(frames, channels * sizeof(float), &bytes) || bytes > most_bytes)
    return memory::too_large(bytes, most_bytes);
  return {};
}

// The ratio of a file's rate, played with this speed, to the delivered rate.
std::pair<std::uint64_t, std::uint64_t> ratio_of(std::uint32_t file_rate, std::uint32_t rate, double speed) {
  const auto units = static_cast<std::uint64_t>(std::llround(speed * static_cast<double>(kSpeedUnit)));
  const std::uint64_t from = std::uint64_t{file_rate} * units, to = std::uint64_t{rate} * kSpeedUnit;
  const std::uint64_t common = std::gcd(from, to);
  return {from / common, to / common};
}

// Selects channels of interleaved frames, or takes their mean; the result is interleaved.
void mix(const op::Audio& audio, std::span<const float> in, std::uint32_t in_channels, std::span<float> out,
         std::uint32_t out_channels) {
  const std::size_t frames = in.size() / in_channels;
  if (audio.mono) {
    const auto count = static_cast<float>(in_channels);
    for (std::size_t i = 0; i < frames; ++i) {
      float sum = 0;
      for (std::size_t c = 0; c < in_channels; ++c) sum += in[i * in_channels + c];
      out[i] = sum / count;
    }
    return;
  }
  for (std::size_t i = 0; i < frames; ++i)
    for (std::size_t c = 0; c < out_channels; ++c)
      out[i * out_channels + c] =
          in[i * in_channels + (audio.channels.empty() ? c : static_cast<std::size_t>(audio.channels[c]))];
}

template <typename T>
void to_planes(std::span<const T> in, std::uint32_t channels, std::span<T> out) {
  const std::size_t frames = in.size() / channels;
  for (std::size_t c = 0; c < channels; ++c)
    for (std::size_t i = 0; i < frames; ++i) out[c * frames + i] = in[i * channels + c];
}

double power_of(std::span<const float> samples) {
  double sum = 0;
  for (const float sample : samples) sum += static_cast<double>(sample) * sample;
  return samples.empty() ? 0 : sum / static_cast<double>(samples.size());
}

double from_decibels(double decibels) { return std::pow(10.0, decibels / 20); }

}  // namespace

std::uint64_t AudioPlan::longest(std::uint64_t frames, std::uint32_t file_rate) const {
  const double slowest = speed ? std::ranges::min(speed->factors) : 1;
  const auto [from, to] = ratio_of(file_rate, rate, slowest);
  const std::uint64_t all = decode::resampled_frames(frames, from, to), begin = samples_of(audio.offset, rate);
  const std::uint64_t rest = all > begin ? all - begin : 0;
  return audio.duration ? std::min(rest, samples_of(*audio.duration, rate)) : rest;
}

Result<AudioPlan> plan_audio(const std::vector<Operation>& operations, const decode::AudioInfo& first) {
  AudioPlan plan;
  plan.operations = operations;
  plan.audio.mono = false;
  bool has_audio = false;
  for (std::uint32_t i = 0; i < plan.operations.size(); ++i) {
    const transform::Properties properties = plan.operations[i]->properties();
    if (properties.audio != nullptr) {
      if (std::exchange(has_audio, true)) return config_error("audio: call audio() only once for each field");
      plan.audio = *properties.audio;
      plan.audio_stream = i;
    }
    if (properties.speed != nullptr) {
      if (plan.speed) return config_error("speed_perturbation: call speed_perturbation() only once for each field");
      plan.speed = *properties.speed;
      plan.speed_stream = i;
    }
    if (properties.gain != nullptr || properties.noise != nullptr)
      plan.changes.push_back({i, properties.gain, properties.noise});
  }
  plan.is_any_rate = !plan.audio.rate;
  plan.rate = plan.audio.rate ? static_cast<std::uint32_t>(*plan.audio.rate) : first.rate;
  plan.channels = plan.audio.mono               ? 1
                  : plan.audio.channels.empty() ? first.channels
                                                : static_cast<std::uint32_t>(plan.audio.channels.size());
  return plan;
}

Result<AudioWindow> window_of(const memory::TimeRange& range, const decode::AudioInfo& info) {
  const std::uint64_t begin = samples_of(range.begin, info.rate);
  const std::uint64_t end = range.duration < 0 ? info.frames : begin + samples_of(range.duration, info.rate);
  // times in manifests are rounded, often to milliseconds, so a part may end shortly after the file
  const std::uint64_t allowed = info.frames + info.rate / 50;
  if (range.begin >= 0 && begin < info.frames && end > begin && end <= allowed)
    return AudioWindow{begin, std::min(end, info.frames)};
  return data_error("the part from " + seconds_text(begin, info.rate) + " to " + seconds_text(end, info.rate) +
                        " is not in the file, which has " + seconds_text(info.frames, info.rate),
                    "decode");
}

Result<std::unique_ptr<decode::AudioReader>> open_sample(AudioSource& source, const memory::Record::Field& stored) {
  FEEDLINE_TRY(auto reader, decode::open_audio(source));
  if (stored.channel < 0) return reader;
  return decode::only_channel(std::move(reader), static_cast<std::uint32_t>(stored.channel));
}

void AudioPath::add_scratch(FieldScratch& scratch) const {
  if (!scratch.audio) scratch.audio = std::make_unique<AudioScratch>();
}

Result<void> AudioPath::check(const decode::AudioInfo& info) const {
  if (info.rate != plan_.rate && plan_.is_any_rate)
    return data_error("the file has " + hertz(info.rate) + ", but the first sample has " + hertz(plan_.rate) +
                          "; resample all with audio(rate=" + std::to_string(plan_.rate) + ")",
                      "decode");
  if (info.rate != plan_.rate)
    if (const auto soxr = decode::soxr_library(); !soxr)
      return config_error("the file has " + hertz(info.rate) +
                          ", and the dataset has audio(rate=" + std::to_string(plan_.rate) + "): " + soxr.error().what);
  if (plan_.audio.mono) return {};
  for (const int channel : plan_.audio.channels)
    if (static_cast<std::uint32_t>(channel) >= info.channels)
      return data_error("channels: channel " + std::to_string(channel) + " does not exist: the file has " +
                            std::to_string(info.channels) + " channels, counted from 0",
                        "decode");
  if (plan_.audio.channels.empty() && info.channels != plan_.channels)
    return data_error("the file has " + std::to_string(info.channels) + " channels, but the first sample has " +
                          std::to_string(plan_.channels) + "; use audio(mono=True) or channels=",
                      "decode");
  return {};
}

Result<AudioPath::Part> AudioPath::draw_part(const decode::AudioInfo& info, const memory::TimeRange& range,
                                             const FieldWork& work) const {
  FEEDLINE_TRY(const AudioWindow window, window_of(range, info));
  Part part{.window_begin = window.begin, .window_frames = window.end - window.begin};
  double speed = 1;
  if (plan_.speed) {
    base::Random random(work.key, plan_.speed_stream);
    speed = plan_.speed->factors[random.below(static_cast<std::uint32_t>(plan_.speed->factors.size()))];
  }
  std::tie(part.from, part.to) = ratio_of(info.rate, plan_.rate, speed);
  const std::uint64_t all = decode::resampled_frames(part.window_frames, part.from, part.to);
  part.begin = samples_of(plan_.audio.offset, plan_.rate);
  if (part.begin >= all)
    return data_error("audio: offset=" + std::to_string(plan_.audio.offset) +
                          " is after the end of the audio, which has " + seconds_text(all, plan_.rate),
                      "decode");
  part.frames = all - part.begin;
  if (!plan_.audio.duration) return part;
  const std::uint64_t wanted = samples_of(*plan_.audio.duration, plan_.rate);
  if (part.frames <= wanted) return part;
  if (plan_.audio.random) {
    base::Random random(work.key, plan_.audio_stream);
    part.begin += below(random, part.frames - wanted + 1);
  }
  part.frames = wanted;
  return part;
}

// Writes planes of plan_.channels channels.
Result<void> AudioPath::read_floats(decode::AudioReader& reader, const Part& part, AudioScratch& scratch,
                                    std::uint64_t most_bytes, std::span<float> out) const {
  const std::uint32_t in_channels = reader.info().channels;
  const bool is_resampled = part.from != part.to;
  decode::ResampledPart needed{part.begin, part.begin + part.frames, 0};
  if (is_resampled) needed = decode::part_needed(part.begin, part.frames, part.window_frames, part.from, part.to);
  const std::uint64_t frames = needed.end - needed.begin, begin = part.window_begin + needed.begin;
  if (in_channels == 1 && !is_resampled) return reader.read(begin, out);
  FEEDLINE_CHECK_OK(check_room(frames, in_channels, most_bytes));
  scratch.read.resize(frames * in_channels);
  FEEDLINE_CHECK_OK(reader.read(begin, std::span(scratch.read)));
  std::span<const float> samples = scratch.read;
  if (in_channels != plan_.channels || !plan_.audio.channels.empty()) {
    scratch.mixed.resize(frames * plan_.channels);
    mix(plan_.audio, samples, in_channels, scratch.mixed, plan_.channels);
    samples = scratch.mixed;
  }
  if (is_resampled) {
    auto& planes = scratch.planar;  // if there is one channel, it is a plane already
    planes.resize(plan_.channels == 1 ? 0 : out.size());
    const auto to = plan_.channels == 1 ? out : std::span(planes);
    FEEDLINE_CHECK_OK(
        decode::resample(samples, plan_.channels, part.from, part.to, needed.skipped, to, scratch.resampled));
    if (plan_.channels == 1) return {};
    samples = planes;
  }
  to_planes(samples, plan_.channels, out);
  return {};
}

Result<void> AudioPath::add_noise(const op::AddNoise& noise, base::Random& random, std::span<float> samples,
                                  AudioScratch& scratch, std::uint64_t most_bytes) const {
  const std::string& file = noise.noise[below(random, noise.noise.size())];
  const double ratio = from_decibels(random.uniform(noise.snr.low, noise.snr.high));
  const auto failed = [&](Error error) {
    error.what = "add_noise: '" + file + "': " + error.what;
    return std::unexpected(std::move(error));
  };
  auto location = storage::open(file);
  if (!location) return failed(std::move(location).error());
  AudioSource source;
  if (auto opened = source.open(*location->storage, location->object); !opened)
    return failed(std::move(opened).error());
  auto reader = decode::open_audio(source);
  if (!reader) return failed(std::move(reader).error());
  const decode::AudioInfo& info = (*reader)->info();
  const auto [from, to] = ratio_of(info.rate, plan_.rate, 1);
  const std::uint64_t frames = samples.size() / plan_.channels;
  const std::uint64_t all = decode::resampled_frames(info.frames, from, to), wanted = std::min(all, frames);
  if (all == 0) return failed(data_error("the file has no samples", "decode").error());
  // the mean of the channels is added to all channels
  decode::ResampledPart needed;
  const std::uint64_t begin = below(random, all - wanted + 1);
  needed = from == to ? decode::ResampledPart{begin, begin + wanted, 0}
                      : decode::part_needed(begin, wanted, info.frames, from, to);
  const std::uint64_t read = needed.end - needed.begin;
  FEEDLINE_CHECK_OK(check_room(read, info.channels, most_bytes));
  scratch.read.resize(read * info.channels);
  if (auto got = (*reader)->read(needed.begin, std::span(scratch.read)); !got) return failed(std::move(got).error());
  scratch.mixed.resize(read);
  mix({}, scratch.read, info.channels, scratch.mixed, 1);
  scratch.noise.resize(wanted);
  if (from == to) {
    std::ranges::copy(scratch.mixed, scratch.noise.begin());
  } else if (auto made = decode::resample(scratch.mixed, 1, from, to, needed.skipped, scratch.noise, scratch.resampled);
             !made) {
    return failed(std::move(made).error());
  }
  const double noise_power = power_of(scratch.noise);
  if (noise_power == 0) return {};
  const auto scale = static_cast<float>(std::sqrt(power_of(samples) / noise_power) / ratio);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] += scale * scratch.noise[i % frames % wanted];
  return {};
}

Result<void> AudioPath::change(std::span<float> samples, FieldWork& work, AudioScratch& scratch) const {
  for (const AudioPlan::Change& change : plan_.changes) {
    base::Random random(work.key, change.stream);
    if (random.uniform() >= (change.gain != nullptr ? change.gain->p : change.noise->p)) continue;
    if (change.noise != nullptr) {
      FEEDLINE_CHECK_OK(add_noise(*change.noise, random, samples, scratch, work.most_bytes));
      continue;
    }
    const auto factor =
        static_cast<float>(from_decibels(random.uniform(change.gain->gain.low, change.gain->gain.high)));
    for (float& sample : samples) sample *= factor;
  }
  return {};
}

Result<void> AudioPath::fill(const memory::Record::Field& stored, FieldWork& work, memory::Row& row) const {
  const std::uint64_t started = base::now_ns();
  AudioScratch& scratch = *work.scratch.audio;
  FEEDLINE_CHECK_OK(scratch.source.open(stored));
  FEEDLINE_TRY(const auto reader, open_sample(scratch.source, stored));
  const decode::AudioInfo& info = reader->info();
  FEEDLINE_CHECK_OK(check(info));
  FEEDLINE_TRY(const Part part, draw_part(info, stored.range, work));
  const auto frames = static_cast<std::int64_t>(part.frames);
  if (spec().form == BatchForm::kDense && frames != spec().array.shape[1])
    return data_error("the audio has " + std::to_string(frames) + " samples of the " +
                          std::to_string(spec().array.shape[1]) +
                          " that collate(\"stack\") requires; use collate(\"pad\")",
                      "decode");
  FEEDLINE_TRY(const ArrayView out, destination(row, {std::int64_t{plan_.channels}, frames}, work));
  FEEDLINE_CHECK_OK(deliver(*reader, part, work, out.data));
  work.meter.count(telemetry::Stage::kDecode, started, out.spec.bytes());
  return {};
}

Result<void> AudioPath::deliver(decode::AudioReader& reader, const Part& part, FieldWork& work, std::byte* out) const {
  AudioScratch& scratch = *work.scratch.audio;
  const decode::AudioInfo& info = reader.info();
  const std::size_t count = part.frames * plan_.channels;
  const bool is_mixed = plan_.audio.mono && info.channels > 1;
  if (plan_.audio.dtype == DType::kFloat32) {
    const std::span samples(reinterpret_cast<float*>(out), count);
    FEEDLINE_CHECK_OK(read_floats(reader, part, scratch, work.most_bytes, samples));
    return change(samples, work, scratch);
  }
  const std::span integers(reinterpret_cast<std::int16_t*>(out), count);
  if (part.from == part.to && !is_mixed && plan_.changes.empty() && info.kind == decode::SampleKind::kInteger)
    return read_integers(reader, part, scratch, work.most_bytes, integers);
  std::vector<float>& samples = scratch.floats;
  samples.resize(count);
  FEEDLINE_CHECK_OK(read_floats(reader, part, scratch, work.most_bytes, samples));
  FEEDLINE_CHECK_OK(change(samples, work, scratch));
  std::ranges::transform(samples, integers.begin(), decode::to_int16);
  return {};
}

AudioPath::Part AudioPath::part_inside(const decode::AudioInfo& info, std::int64_t begin, std::uint64_t frames) const {
  Part part{.window_frames = info.frames};
  std::tie(part.from, part.to) = ratio_of(info.rate, plan_.rate, 1);
  const auto all = static_cast<std::int64_t>(decode::resampled_frames(info.frames, part.from, part.to));
  const std::int64_t from = std::clamp<std::int64_t>(begin, 0, all);
  const std::int64_t to = std::clamp<std::int64_t>(begin + static_cast<std::int64_t>(frames), from, all);
  part.begin = static_cast<std::uint64_t>(from);
  part.frames = static_cast<std::uint64_t>(to - from);
  return part;
}

AudioWindow AudioPath::window_needed(const decode::AudioInfo& info, std::int64_t begin, std::uint64_t frames) const {
  const Part part = part_inside(info, begin, frames);
  if (part.from == part.to || part.frames == 0) return {part.begin, part.begin + part.frames};
  const auto needed = decode::part_needed(part.begin, part.frames, part.window_frames, part.from, part.to);
  return {needed.begin, needed.end};
}

Result<void> AudioPath::fill_window(decode::AudioReader& reader, std::int64_t begin, std::uint64_t length,
                                    std::uint64_t frames, FieldWork& work, std::byte* out) const {
  const decode::AudioInfo& info = reader.info();
  FEEDLINE_CHECK_OK(check(info));
  const Part part = part_inside(info, begin, frames);
  const std::size_t element = size_of(spec().array.dtype);
  if (part.frames == length) return deliver(reader, part, work, out);
  std::memset(out, 0, length * plan_.channels * element);
  if (part.frames == 0) return {};
  std::vector<std::byte>& inside = work.scratch.audio->window;
  inside.resize(part.frames * plan_.channels * element);
  FEEDLINE_CHECK_OK(deliver(reader, part, work, inside.data()));
  const auto skipped = static_cast<std::size_t>(static_cast<std::int64_t>(part.begin) - begin);
  for (std::size_t channel = 0; channel < plan_.channels; ++channel)
    std::memcpy(out + (channel * length + skipped) * element, inside.data() + channel * part.frames * element,
                part.frames * element);
  return {};
}

Result<void> AudioPath::read_integers(decode::AudioReader& reader, const Part& part, AudioScratch& scratch,
                                      std::uint64_t most_bytes, std::span<std::int16_t> out) const {
  const std::uint32_t in_channels = reader.info().channels;
  const std::uint64_t begin = part.window_begin + part.begin;
  if (in_channels == 1) return reader.read(begin, out);
  FEEDLINE_CHECK_OK(check_room(part.frames, in_channels, most_bytes));
  scratch.read_16.resize(part.frames * in_channels);
  FEEDLINE_CHECK_OK(reader.read(begin, std::span(scratch.read_16)));
  for (std::size_t c = 0; c < plan_.channels; ++c) {
    const std::size_t from = plan_.audio.channels.empty() ? c : static_cast<std::size_t>(plan_.audio.channels[c]);
    for (std::size_t i = 0; i < part.frames; ++i) out[c * part.frames + i] = scratch.read_16[i * in_channels + from];
  }
  return {};
}

Result<void> AudioPath::prepare(const memory::Record::Field& /*stored*/, FieldWork& /*work*/,
                                format::PixelRecordBuilder& /*cached*/) const {
  return internal_error("audio cannot be cached");  // make_field_path() rejects it
}

std::vector<std::string> AudioPath::explain() const {
  std::string line = "decode to " + std::string(name_of(spec().array.dtype)) + " " + spec().array.shape.to_string() +
                     " at " + hertz(plan_.rate);
  if (plan_.audio.mono) line += ", the mean of the channels";
  std::vector<std::string> lines{std::move(line)};
  for (const Operation& operation : plan_.operations)
    if (operation->properties().stage == transform::Stage::kAudio && operation->properties().audio == nullptr)
      lines.push_back(describe(operation));
  return lines;
}

}  // namespace feedline::pipeline
