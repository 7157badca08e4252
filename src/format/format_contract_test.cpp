// SPDX-License-Identifier: Apache-2.0
#include "format/format_contract.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

namespace feedline::format {

TEST_P(FormatContract, ReadsEverySampleInAnyOrder) {
  const auto samples = some_samples();
  const auto format = open(samples);
  ASSERT_TRUE(format);
  EXPECT_EQ(format->name(), GetParam().format);
  ASSERT_EQ(format->size(), samples.size());
  ASSERT_EQ(format->fields().size(), 2u);
  EXPECT_EQ(format->fields()[0].name, "image");
  EXPECT_EQ(format->fields()[0].kind, FieldKind::kImage);
  EXPECT_EQ(format->fields()[1].name, "label");
  EXPECT_EQ(format->fields()[1].kind, FieldKind::kInteger);
  memory::Record record;
  for (std::size_t step : {1, 5, 13})
    for (std::size_t i = 0, index = 0; i < samples.size(); ++i, index = (index + step) % samples.size())
      EXPECT_TRUE(reads_as(*format, index, samples[index], record)) << index;
}

TEST_P(FormatContract, GivesTheFilesOfEverySample) {
  const auto samples = some_samples();
  const auto format = open(samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto stored = format->files(i);
    ASSERT_TRUE(stored) << stored.error().message();
    if (GetParam().key)
      EXPECT_TRUE(stored->key.ends_with(GetParam().key(i))) << stored->key;
    else
      EXPECT_EQ(stored->key, samples[i].key);
    const auto text = [&](std::size_t file) {
      const auto& bytes = stored->files[file].bytes;
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    EXPECT_TRUE(stored->files[0].extension.ends_with("jpg")) << stored->files[0].extension;
    EXPECT_EQ(text(0), samples[i].image);
    // the label is either a file or a separate number
    const std::string label = stored->label ? std::to_string(*stored->label) : text(1);
    EXPECT_EQ(label, std::to_string(samples[i].label));
    EXPECT_EQ(stored->files.size(), stored->label ? 1u : 2u);
  }
}

TEST_P(FormatContract, FetchedPiecesAreWhatReadingGives) {
  const auto samples = some_samples();
  const auto format = open(samples);
  std::size_t pieces = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::vector<storage::Piece> found;
    const auto searched = format->find_pieces(i, found);
    ASSERT_TRUE(searched) << searched.error().message();
    ASSERT_LE(found.size(), format->most_pieces());
    if (found.empty()) continue;  // views need no fetching
    ++pieces;
    for (const storage::Piece& piece : found)  // an abandoned read may outlive the format
      EXPECT_TRUE(!piece.reader || piece.reader.use_count() > 0);
    memory::Record expected, record;
    std::vector<storage::Read> fetches(found.size());
    std::vector<std::span<const std::byte>> bytes;
    for (std::size_t piece = 0; piece < found.size(); ++piece) {
      fetches[piece].piece = found[piece];
      storage::read_now(*format->storage(), fetches[piece]);
      ASSERT_TRUE(fetches[piece].bytes) << fetches[piece].bytes.error().message();
      bytes.push_back(*fetches[piece].bytes);
      record.piece_offsets.push_back(found[piece].offset);
    }
    ASSERT_TRUE(format->accept(i, bytes, record));
    ASSERT_TRUE(format->read(i, expected));
    EXPECT_EQ(image_of(record), samples[i].image);
    EXPECT_EQ(record.fields[1].value, expected.fields[1].value);
    EXPECT_EQ(record.bytes_read, expected.bytes_read);
  }
  const bool is_viewed = GetParam().name.find("mapped") != std::string::npos;
  EXPECT_EQ(pieces, is_viewed || GetParam().is_packed ? 0 : samples.size());
}

TEST_P(FormatContract, ALabelIsReadWithoutItsImage) {
  const auto samples = some_samples();
  const auto format = open(samples);
  memory::Record record;
  memory::Record::Field known;
  std::string room;
  std::uint64_t images = 0, read = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    images += samples[i].image.size();
    if (format->find_value(i, 1, known, room)) {
      EXPECT_EQ(known.value, samples[i].label) << i;
      continue;
    }
    const auto done = format->read_field(i, 1, record);
    ASSERT_TRUE(done) << done.error().message();
    ASSERT_NE(*done, GetParam().reads_whole_samples);
    if (!*done) continue;
    EXPECT_EQ(record.fields.front().value, samples[i].label) << i;
    read += record.bytes_read;
  }
  EXPECT_LT(read, images / 10);
}

TEST_P(FormatContract, AnImageAloneIsTheSameAsInItsSample) {
  const auto samples = some_samples();
  const auto format = open(samples);
  memory::Record record;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto done = format->read_field(i, 0, record);
    ASSERT_TRUE(done) << done.error().message();
    if (*done) EXPECT_EQ(image_of(record), samples[i].image) << i;
  }
}

TEST_P(FormatContract, RecordsOutliveTheFormatAndEachOther) {
  const auto samples = some_samples();
  auto format = open(samples);
  std::vector<memory::Record> records(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) ASSERT_TRUE(format->read(i, records[i]));
  format.reset();
  folder_.reset();
  for (std::size_t i = 0; i < samples.size(); ++i) EXPECT_EQ(image_of(records[i]), samples[i].image);
}

TEST_P(FormatContract, SaysWhereASampleIs) {
  const auto samples = some_samples();
  const auto format = open(samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Where where = format->where(i);
    EXPECT_EQ(where.dataset, source_);
    if (GetParam().key)
      EXPECT_TRUE(where.key.ends_with(GetParam().key(i))) << where.key;
    else
      EXPECT_TRUE(where.key.starts_with(samples[i].key)) << where.key;
    EXPECT_EQ(where.record, i);
    const std::string shard = storage::TemporaryFolder::read(where.shard);
    const std::size_t most = samples[i].image.size() + GetParam().image_within;
    const std::string there = shard.substr(where.offset.value_or(0), most);
    EXPECT_LE(there.find(samples[i].image), GetParam().image_within);
  }
}

TEST_P(FormatContract, FingerprintsTheSamplesNotTheirBytes) {
  auto samples = some_samples();
  std::set<std::uint64_t> seen;
  const auto fingerprint = [&](const std::vector<StoredSample>& stored) { return open(stored)->fingerprint(); };
  const std::uint64_t first = fingerprint(samples);
  EXPECT_EQ(reopen()->fingerprint(), first);
  const auto is_same = [&](const std::vector<StoredSample>& stored) {  // the copy is in another folder
    return (fingerprint(stored) == first) != GetParam().paths_identify_samples;
  };
  EXPECT_TRUE(is_same(samples)) << "another folder, the same dataset";
  samples[3].image[0] = static_cast<char>(~samples[3].image[0]);
  EXPECT_TRUE(is_same(samples)) << "bytes inside a sample do not count";
  seen.insert(first);
  samples[3].key += "x";
  if (!GetParam().key) EXPECT_TRUE(seen.insert(fingerprint(samples)).second) << "a key changed";
  samples.pop_back();
  EXPECT_TRUE(seen.insert(fingerprint(samples)).second) << "a sample is gone";
  samples.erase(samples.begin(), samples.begin() + 7);
  for (StoredSample& sample : samples) --sample.label;
  EXPECT_TRUE(seen.insert(fingerprint(samples)).second) << "a class was removed";
}

TEST_P(FormatContract, FourThreadsReadTheSame) {
  const auto samples = some_samples(4, 25);
  const auto format = open(samples);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      memory::Record record;
      for (std::size_t i = 0; i < 3 * samples.size(); ++i) {
        const std::size_t index = (i * (2 * thread + 1) + thread) % samples.size();
        wrong += !reads_as(*format, index, samples[index], record);
        wrong += format->where(index).record != index;
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_P(FormatContract, AnEmptyImageIsAnErrorOfThatSampleAlone) {
  auto samples = some_samples();
  samples[4].image.clear();
  const auto format = open(samples);
  memory::Record record;
  const auto done = format->read(4, record);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kData);
  EXPECT_NE(done.error().what.find("an empty file"), std::string::npos);
  EXPECT_EQ(done.error().where.record, 4u);
  EXPECT_EQ(done.error().where.key, format->where(4).key);
  EXPECT_EQ(done.error().where.shard, format->where(4).shard);
  EXPECT_EQ(done.error().where.dataset, source_);
  EXPECT_EQ(done.error().where.stage, "format");
  EXPECT_TRUE(reads_as(*format, 5, samples[5], record));
}

TEST_P(FormatContract, InspectionCounts) {
  auto samples = some_samples();
  const auto format = open(samples);
  std::uint64_t bytes = 0, smallest = ~std::uint64_t{0}, largest = 0;
  for (const StoredSample& sample : samples) {
    bytes += sample.image.size();
    smallest = std::min<std::uint64_t>(smallest, sample.image.size());
    largest = std::max<std::uint64_t>(largest, sample.image.size());
  }
  const auto inspection = format->inspect();
  ASSERT_TRUE(inspection) << inspection.error().message();
  EXPECT_EQ(inspection->format, GetParam().format);
  EXPECT_EQ(inspection->samples, samples.size());
  EXPECT_GE(inspection->bytes, bytes);
  EXPECT_LE(inspection->bytes, bytes + samples.size());  // plus one byte per label if labels are stored
  EXPECT_EQ(inspection->smallest_bytes, smallest);
  EXPECT_EQ(inspection->largest_bytes, largest);
  EXPECT_EQ(inspection->fields, (std::vector<std::string>{"image", "label"}));
  for (const InspectionFinding& finding : inspection->findings) EXPECT_NE(finding.severity, "error") << finding.text;
  const auto jpg = std::ranges::find(inspection->extensions, GetParam().counted_as, &InspectionCount::name);
  ASSERT_NE(jpg, inspection->extensions.end());
  EXPECT_EQ(jpg->count, samples.size());
}

}  // namespace feedline::format
