// SPDX-License-Identifier: Apache-2.0

// Any bytes as an LMDB file: no crash, no read out of bounds, no page walked twice, no excessive memory. In an
// undamaged file, every value is at the location from the walk, and the index does not change when it is written and
// read. The bytes are also used as a Datum, a pattern of keys and a list of keys.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "format/index/memory_reader.h"
#include "format/lmdb/datum.h"
#include "format/lmdb/lmdb_index.h"
#include "format/lmdb/lmdb_layout.h"
#include "format/lmdb/lmdb_samples.h"
#include "format/lmdb/lmdb_walk.h"
#include "format/lmdb/value_reader.h"

using namespace feedline;

namespace {

using Bytes = std::span<const std::byte>;

void look_at(Bytes bytes) {
  std::uint8_t sum = 0;
  for (const std::byte byte : bytes)
    sum ^= std::to_integer<std::uint8_t>(byte);  // reads every byte, for the sanitizers
  static volatile std::uint8_t sink;
  sink = sum;
}

void check_datum(Bytes message) {
  const auto datum = format::parse_datum(message);
  if (!datum) return;
  look_at(datum->data);
  for (const Bytes run : datum->floats) look_at(run);
  if (!datum->is_pixels()) return;
  memory::ByteBuffer room;
  const auto pixels = format::pixels_of(*datum, room, message.size());
  FEEDLINE_CHECK(pixels.has_value() == datum->is_whole());
  if (pixels)
    look_at(
        {reinterpret_cast<const std::byte*>(pixels->data), pixels->stride * static_cast<std::size_t>(pixels->height)});
}

void check_samples(const format::LmdbIndex& index, const format::ReadEntry& read,
                   const std::vector<std::string>& specs) {
  const auto layout = format::choose_layout(specs, index, read);
  if (!layout) return;
  for (const Missing missing : {Missing::kError, Missing::kSkip}) {
    const auto samples = format::LmdbSamples::of(*layout, index, missing);
    FEEDLINE_CHECK(samples.has_value());
    FEEDLINE_CHECK(samples->size() <= index.size());
    const format::ValueReader reader(*layout);
    memory::Record record;
    for (std::uint64_t i = 0; i < samples->size(); ++i) {
      std::vector<std::optional<Bytes>> values;
      for (std::size_t source = 0; source < layout->sources.size(); ++source) {
        const auto entry = samples->entry(i, source);
        if (entry)
          values.emplace_back(read(*entry).value_or(Bytes()));
        else
          values.emplace_back();
      }
      if (reader.read(values, record))
        for (const auto& field : record.fields) look_at(field.bytes);
      (void)reader.files(values);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  const Bytes file = std::as_bytes(std::span(data, bytes));
  check_datum(file);
  if (const auto pattern = format::KeyPattern::parse(text.substr(0, text.find('\n'))))
    if (const auto sample = pattern->sample_in(text)) FEEDLINE_CHECK(pattern->id_of(*sample).size() <= sample->size());
  const format::MemoryReader reader(text);
  format::Findings findings;
  const auto walk = format::walk_lmdb(reader, bytes, "fuzz.mdb", false, findings);
  if (!walk || findings.first_error() != nullptr) return 0;
  const storage::ObjectStat stat{bytes, 1};
  const auto index = format::LmdbIndex::build(*walk, stat);
  memory::ByteBuffer buffer;
  std::ranges::copy(index.file_bytes(), buffer.resize(index.file_bytes().size()).begin());
  const auto again = format::LmdbIndex::parse(std::move(buffer), index.file_bytes().size(), stat);
  FEEDLINE_CHECK(again && again->size() == index.size());
  const auto value = [&](std::uint64_t entry) {
    const format::LmdbIndex::Location location = index.location(entry);
    return index.value_in(file.subspan(location.offset, location.bytes), entry);
  };
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    const format::LmdbIndex::Location location = index.location(i);
    FEEDLINE_CHECK(location.offset <= bytes && location.bytes <= bytes - location.offset);
    const auto found = value(i);
    FEEDLINE_CHECK(found.has_value() || location.on_own_pages);  // checked only when it is read
    if (found) look_at(*found);
    FEEDLINE_CHECK(!index.key_text(i).empty());
  }
  const format::ReadEntry read = [&](std::uint64_t entry) -> Result<Bytes> {
    const auto found = value(entry);
    return found ? Result<Bytes>(*found) : data_error(found.error(), "format");
  };
  check_samples(index, read, {});
  check_samples(index, read, {"a={key}:bytes"});
  check_samples(index, read, {"image=image-{:04d}", "label=label-{:04d}"});
  check_samples(index, read, {"image", "label"});
  return 0;
}
