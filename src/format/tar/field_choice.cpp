// SPDX-License-Identifier: Apache-2.0
#include "format/tar/field_choice.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "decode/audio/audio_reader.h"
#include "feedline/foreign_images.h"
#include "format/field_kind.h"
#include "format/sources/image_names.h"
#include "format/sources/sample_name.h"

namespace feedline::format {
namespace {

constexpr std::array<std::string_view, 5> kIntegerExtensions{"cls", "cls2", "index", "inx", "id"};
constexpr std::uint32_t kNoAlternative = std::numeric_limits<std::uint32_t>::max();

std::vector<std::string> strings(std::span<const std::string_view> views) { return {views.begin(), views.end()}; }

// Returns the first few extensions as text, for messages.
std::string joined(const auto& names) {
  constexpr std::size_t kShown = 20;
  std::string text;
  std::size_t shown = 0;
  for (const auto& name : names) {
    if (shown++ == kShown) return text + ", ...";
    text.append(text.empty() ? "" : ", ").append(name);
  }
  return text;
}

Result<FieldChoice> parse_field(const std::string& spec) {
  FieldChoice choice;
  std::string_view rest = spec;
  FEEDLINE_TRY(const auto said, take_kind(rest));
  while (true) {
    const std::size_t end = rest.find(';');
    const std::string extension = to_lower(rest.substr(0, end));
    if (extension.empty()) return config_error("fields: an empty extension in '" + spec + "'");
    const FieldKind kind = said.value_or(usual_kind(extension, extension));
    if (choice.alternatives.empty()) choice.description = {extension, kind};
    if (kind != choice.description.kind)
      return config_error("fields: '" + spec + "' mixes kinds: " + choice.description.name + " is " +
                          std::string(name_of(choice.description.kind)) + " and " + extension + " is " +
                          std::string(name_of(kind)) + "; choose one, as in '" + spec + ":" +
                          std::string(name_of(choice.description.kind)) + "'");
    choice.alternatives.push_back(extension);
    if (end == std::string_view::npos) return choice;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

std::vector<FieldChoice> default_fields() {
  std::vector<FieldChoice> fields{{{"image", FieldKind::kImage}, strings(native_extensions())},
                                  {{"label", FieldKind::kInteger}, strings(kIntegerExtensions)}};
  fields.push_back({{"audio", FieldKind::kAudio}, strings(decode::audio_extensions())});
  fields.push_back({{"video", FieldKind::kVideo}, strings(feedline::video_extensions())});
  return fields;
}

Result<std::vector<FieldChoice>> parse_fields(const std::vector<std::string>& specs) {
  std::vector<FieldChoice> fields;
  for (const std::string& spec : specs) {
    FEEDLINE_TRY(FieldChoice field, parse_field(spec));
    for (const FieldChoice& other : fields)
      if (other.description.name == field.description.name)
        return config_error("fields: two fields are called '" + field.description.name + "'");
    fields.push_back(std::move(field));
  }
  return fields;
}

Result<std::vector<FieldChoice>> keep_present(std::vector<FieldChoice> fields, bool are_default,
                                              std::span<const ShardIndex* const> indexes) {
  std::set<std::string_view> present;
  std::uint64_t samples = 0;
  for (const ShardIndex* index : indexes) {
    samples += index->samples();
    for (std::uint64_t i = 0; i < index->extensions(); ++i) present.insert(index->extension(i));
  }
  if (samples == 0) return config_error("the tar files have no samples");
  const auto is_present = [&](const FieldChoice& field) {
    return std::ranges::any_of(field.alternatives, [&](const auto& name) { return present.contains(name); });
  };
  const auto has = [&](FieldKind kind) {
    return std::ranges::any_of(
        fields, [&](const FieldChoice& field) { return field.description.kind == kind && is_present(field); });
  };
  // by default, shards without images are shards of audio or videos, if they have any
  const bool has_images = has(FieldKind::kImage), has_audio = has(FieldKind::kAudio),
             has_videos = has(FieldKind::kVideo);
  const auto is_left_out = [&](FieldKind kind) {
    if (kind == FieldKind::kImage) return !has_images && (has_audio || has_videos);
    if (kind == FieldKind::kAudio) return !has_audio;
    return kind == FieldKind::kVideo && (has_images || !has_videos);
  };
  std::vector<FieldChoice> chosen;
  for (FieldChoice& field : fields) {
    if (are_default && is_left_out(field.description.kind)) continue;
    if (is_present(field)) {
      chosen.push_back(std::move(field));
      continue;
    }
    if (are_default && field.description.kind == FieldKind::kInteger) continue;
    return config_error("no sample has the field '" + field.description.name + "' (" + joined(field.alternatives) +
                        "); the members have the extensions " + joined(present));
  }
  return chosen;
}

FieldFinder::FieldFinder(const ShardIndex& index, const std::vector<FieldChoice>& fields) : index_(&index) {
  for (const FieldChoice& field : fields)
    for (std::uint64_t extension = 0; extension < index.extensions(); ++extension) {
      const auto found = std::ranges::find(field.alternatives, index.extension(extension));
      ranks_.push_back(found == field.alternatives.end()
                           ? kNoAlternative
                           : static_cast<std::uint32_t>(found - field.alternatives.begin()));
    }
}

std::optional<std::uint64_t> FieldFinder::find_number(std::uint64_t sample, std::size_t field) const {
  std::optional<std::uint64_t> best;
  std::uint32_t best_rank = kNoAlternative;
  const std::uint32_t* ranks = ranks_.data() + field * index_->extensions();
  for (std::uint64_t i = index_->first_member(sample); i < index_->first_member(sample + 1); ++i) {
    const std::uint32_t rank = ranks[index_->member(i).extension];
    if (rank >= best_rank) continue;
    best_rank = rank;
    best = i;
  }
  return best;
}

}  // namespace feedline::format
