// SPDX-License-Identifier: Apache-2.0
#include "pipeline/planning/audio_lengths.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "decode/audio/audio_reader.h"
#include "format/format.h"
#include "format/shards/each_shard.h"
#include "memory/sample_limit.h"
#include "pipeline/fields/audio_path.h"
#include "pipeline/media/audio_headers.h"
#include "pipeline/media/audio_source.h"

namespace feedline::pipeline {
namespace {

// Samples whose headers a thread reads at a time.
constexpr std::uint64_t kBlockSamples = 64;

struct AudioField {
  std::size_t index = 0;
  const AudioPlan* plan = nullptr;
};

Result<std::uint64_t> length_of(const memory::Record::Field& stored, const AudioPlan& plan, AudioHeaders& headers,
                                AudioSource& source) {
  if (stored.absent) return 0;
  if (stored.range.duration >= 0) {
    const double samples = std::min(stored.range.duration * plan.rate, 1e15);  // longer than any file
    return plan.longest(static_cast<std::uint64_t>(std::llround(samples)), plan.rate);
  }
  FEEDLINE_TRY(const AudioLength length, headers.find(stored, source));
  const decode::AudioInfo info{.rate = length.rate, .frames = length.frames};
  FEEDLINE_TRY(const AudioWindow window, window_of(stored.range, info));
  return plan.longest(window.end - window.begin, info.rate);
}

}  // namespace

Result<AudioLengths> audio_lengths(const Recipe& recipe) {
  std::vector<AudioField> fields;
  for (std::size_t i = 0; i < recipe.paths.size(); ++i)
    if (const auto* const audio = dynamic_cast<const AudioPath*>(recipe.paths[i].get()))
      fields.push_back({i, &audio->plan()});
  if (fields.empty())
    return config_error("loader: max_seconds is for audio, but the samples of \"" + recipe.dataset + "\" have none");
  AudioLengths lengths{fields.front().plan->rate, {}};
  const auto headers = recipe.audio_headers ? recipe.audio_headers : AudioHeaders::in_memory();
  const std::uint64_t size = recipe.records->size(), blocks = (size + kBlockSamples - 1) / kBlockSamples;
  const auto read_block = [&](std::size_t block) -> Result<std::vector<std::uint64_t>> {
    std::vector<std::uint64_t> some;
    memory::Record record;
    record.most_bytes = memory::usual_sample_limit();
    record.defers_audio = true;
    AudioSource source;
    for (std::uint64_t i = block * kBlockSamples; i < std::min(size, (block + 1) * kBlockSamples); ++i) {
      if (auto read = recipe.records->read(i, record); !read)
        return std::unexpected(with_location(std::move(read).error(), recipe, i));
      std::uint64_t longest = 1;
      for (const AudioField& field : fields) {
        auto length = length_of(record.fields[field.index], *field.plan, *headers, source);
        if (!length) {
          Error error = std::move(length).error();
          error.what = "field '" + recipe.format->fields()[field.index].name + "': " + error.what;
          return std::unexpected(with_location(std::move(error), recipe, i));
        }
        // fields with other rates count as time
        longest = std::max<std::uint64_t>(longest, *length * lengths.rate / field.plan->rate);
      }
      some.push_back(longest);
    }
    return some;
  };
  FEEDLINE_TRY(const auto all, format::each_shard<std::vector<std::uint64_t>>(blocks, read_block));
  headers->write();
  lengths.samples.reserve(size);
  for (const auto& some : all) lengths.samples.insert(lengths.samples.end(), some.begin(), some.end());
  return lengths;
}

}  // namespace feedline::pipeline
