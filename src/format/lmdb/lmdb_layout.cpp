// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/lmdb_layout.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "decode/image_formats.h"
#include "format/field_kind.h"
#include "format/lmdb/datum.h"
#include "memory/npy_header.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kLookedAt = 8;  // number of values that are read to determine a field's type

struct Spec {
  std::string text, name;
  std::string_view pattern;  // as text; without braces it names a Datum's member
  std::optional<FieldKind> said;
};

bool is_label(std::string_view name) { return name == "label" || name == "cls" || name == "class"; }

// Returns "image" for "image-{:09d}", and "txt" for "{key}.txt".
std::string name_of(const KeyPattern& pattern) {
  constexpr std::string_view kEnds = "-_./: ";
  std::string_view name = pattern.prefix;
  name = name.substr(0, name.find_last_not_of(kEnds) + 1);
  name = name.substr(name.rfind('/') + 1);
  if (name.empty()) {
    name = pattern.suffix;
    name.remove_prefix(std::min(name.find_first_not_of(kEnds), name.size()));
  }
  return name.empty() ? "image" : std::string(name);
}

Result<Spec> parse_spec(const std::string& text) {
  Spec spec{text, {}, {}, {}};
  std::string_view rest = text;
  const std::size_t brace = text.find('{'), close = text.rfind('}');
  // a colon between braces belongs to the pattern
  if (const std::size_t colon = text.rfind(':'); colon != text.npos && (close == text.npos || colon > close)) {
    FEEDLINE_TRY(spec.said, take_kind(rest));
  }
  if (const std::size_t equals = rest.find('='); equals != rest.npos && equals < brace) {
    spec.name = rest.substr(0, equals);
    rest.remove_prefix(equals + 1);
    if (spec.name.empty()) return config_error("fields: an empty name in '" + text + "'");
  }
  spec.pattern = rest;
  return spec;
}

// Returns the first entries that match a pattern.
std::vector<std::uint64_t> first_of(const KeyPattern& pattern, const LmdbIndex& index) {
  std::vector<std::uint64_t> entries;
  for (std::uint64_t i = 0; i < index.size() && entries.size() < kLookedAt; ++i)
    if (pattern.sample_in(index.key(i))) entries.push_back(i);
  return entries;
}

std::string keys_shown(const LmdbIndex& index) {
  constexpr std::uint64_t kShown = 3;
  std::string text;
  for (std::uint64_t i = 0; i < std::min(kShown, index.size()); ++i)
    text.append(i == 0 ? "'" : ", '").append(index.key_text(i)).append("'");
  return text + (index.size() > kShown ? ", ..." : "");
}

// Counts the types of the first values. Ignores values that cannot be read.
struct Seen {
  std::size_t values = 0, images = 0, arrays = 0, integers = 0, datums = 0;
  FieldKind datum_kind = FieldKind::kImage;  // of the first Datum's image
  bool are_all(std::size_t count) const { return values > 0 && count == values; }
};

Result<Seen> look_at(const std::vector<std::uint64_t>& entries, const ReadEntry& read) {
  Seen seen;
  for (const std::uint64_t entry : entries) {
    const auto value = read(entry);
    if (!value && value.error().code == ErrorCode::kStorage) return std::unexpected(value.error());
    if (!value) continue;
    ++seen.values;
    seen.images += !decode::image_extension(*value).empty();
    seen.arrays += memory::is_npy(*value);
    seen.integers += parse_integer(*value).has_value();
    const auto datum = parse_datum(*value);
    if (datum && seen.datums++ == 0)
      seen.datum_kind = datum->encoded || datum->is_pixels() ? FieldKind::kImage : FieldKind::kArray;
  }
  return seen;
}

FieldKind usual_kind_of(const std::string& name, const KeyPattern& pattern, const Seen& seen) {
  const std::string_view extension = std::string_view(pattern.suffix).substr(pattern.suffix.rfind('.') + 1);
  const bool has_extension = pattern.suffix.contains('.');
  if (const FieldKind kind = usual_kind(name, has_extension ? extension : ""); kind != FieldKind::kBytes) return kind;
  if (seen.are_all(seen.images)) return usual_kind(name, "png");
  if (seen.are_all(seen.arrays)) return FieldKind::kArray;
  if (is_label(name)) return seen.are_all(seen.integers) ? FieldKind::kInteger : FieldKind::kText;
  const FieldKind kind = usual_kind(name, name);
  return kind == FieldKind::kText || kind == FieldKind::kJson ? kind : FieldKind::kBytes;
}

Result<void> add_datum_part(const Spec& spec, const Seen& seen, LmdbLayout& layout) {
  LmdbField field;
  field.description.name = spec.name.empty() ? std::string(spec.pattern) : spec.name;
  field.source = layout.sources.size() - 1;
  const bool is_image = spec.pattern == "image";
  field.part = is_image ? ValuePart::kDatumImage : ValuePart::kDatumLabel;
  field.description.kind = is_image ? seen.datum_kind : FieldKind::kInteger;
  if (spec.said && *spec.said != field.description.kind) {
    if (!is_image || *spec.said != FieldKind::kMask || seen.datum_kind != FieldKind::kImage)
      return config_error("fields: '" + spec.text + "': the kind of the Datum's " + std::string(spec.pattern) + " is " +
                          std::string(name_of(field.description.kind)));
    field.description.kind = *spec.said;
  }
  layout.fields.push_back(std::move(field));
  return {};
}

// Returns the index of a pattern in layout.sources, after adding the pattern if necessary.
std::size_t source_of(KeyPattern pattern, LmdbLayout& layout) {
  for (std::size_t i = 0; i < layout.sources.size(); ++i) {
    const KeyPattern& other = layout.sources[i];
    if (other.prefix == pattern.prefix && other.suffix == pattern.suffix && other.is_number == pattern.is_number &&
        other.digits == pattern.digits)
      return i;
  }
  layout.sources.push_back(std::move(pattern));
  return layout.sources.size() - 1;
}

Result<void> add_pattern(const Spec& spec, const LmdbIndex& index, const ReadEntry& read, LmdbLayout& layout) {
  FEEDLINE_TRY(KeyPattern pattern, KeyPattern::parse(spec.pattern));
  LmdbField field;
  field.description.name = spec.name.empty() ? name_of(pattern) : spec.name;
  const auto entries = first_of(pattern, index);
  if (entries.empty())
    return config_error("no key matches '" + std::string(spec.pattern) + "' of the field '" + field.description.name +
                        "'; the keys are " + keys_shown(index));
  Seen seen;
  if (!spec.said) {
    FEEDLINE_TRY(seen, look_at(entries, read));
  }
  field.description.kind = spec.said ? *spec.said : usual_kind_of(field.description.name, pattern, seen);
  field.source = source_of(std::move(pattern), layout);
  if (layout.sources[field.source].is_number != layout.sources.front().is_number)
    return config_error("fields: '" + spec.text + "' has " +
                        (layout.sources[field.source].is_number ? "a number" : "a name") +
                        " for the sample, but the field before it does not");
  layout.fields.push_back(std::move(field));
  return {};
}

Result<LmdbLayout> usual_layout(const LmdbIndex& index, const ReadEntry& read) {
  const KeyPattern numbered{"image-", "", true, 9};  // used by MMOCR and earlier tools
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    if (index.key(i) != kSampleCount) continue;
    if (first_of(numbered, index).empty()) break;
    FEEDLINE_TRY(LmdbLayout layout,
                 choose_layout({"image=image-{:09d}:image", "label=label-{:09d}:text"}, index, read));
    layout.is_counted = true;
    return layout;
  }
  const KeyPattern all;
  FEEDLINE_TRY(const Seen seen, look_at(first_of(all, index), read));
  if (seen.are_all(seen.images)) return choose_layout({"image={key}:image"}, index, read);
  if (seen.are_all(seen.datums)) return choose_layout({"image", "label"}, index, read);
  return config_error(
      "the values are neither images nor Datums; specify the keys of the fields, as in "
      "fields=(\"image={key}.jpg\", \"label={key}.cls\"); the keys are " +
      keys_shown(index));
}

}  // namespace

Result<LmdbLayout> choose_layout(const std::vector<std::string>& specs, const LmdbIndex& index, const ReadEntry& read) {
  if (index.size() == 0) return config_error("the database has no entries");
  if (specs.empty()) return usual_layout(index, read);
  LmdbLayout layout;
  std::optional<Seen> datums;
  for (const std::string& text : specs) {
    FEEDLINE_TRY(const Spec spec, parse_spec(text));
    if (spec.pattern == "image" || spec.pattern == "label") {
      if (!datums) {
        layout.sources.push_back({});
        FEEDLINE_TRY(datums, look_at(first_of(layout.sources.back(), index), read));
        if (!datums->are_all(datums->datums))
          return config_error("fields: '" + text +
                              "' is a part of Datums, but the values are not Datums; a pattern of keys such as "
                              "'{key}' reads values unchanged");
      }
      FEEDLINE_CHECK_OK(add_datum_part(spec, *datums, layout));
    } else {
      FEEDLINE_CHECK_OK(add_pattern(spec, index, read, layout));
    }
    if (datums && layout.sources.size() > 1)
      return config_error("fields: parts of Datums and patterns of keys cannot be combined: '" + text + "'");
    const auto& name = layout.fields.back().description.name;
    for (std::size_t i = 0; i + 1 < layout.fields.size(); ++i)
      if (layout.fields[i].description.name == name)
        return config_error("fields: two fields are called '" + name + "'; put NAME= before one of them");
  }
  return layout;
}

}  // namespace feedline::format
