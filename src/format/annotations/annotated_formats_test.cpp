// SPDX-License-Identifier: Apache-2.0

// Tests that all formats of annotated images return the same samples from local files, mapped files and short reads.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "format/annotations/annotated_fixture.h"
#include "storage/mapped_storage.h"
#include "storage/short_reads_storage.h"

namespace feedline::format {
namespace {

struct UnderTest {
  std::string format, storage_name;
  std::function<std::string(const storage::TemporaryFolder&, const std::vector<AnnotatedSample>&)> store;
  std::function<std::shared_ptr<const storage::Storage>()> storage;
  friend void PrintTo(const UnderTest& one, std::ostream* out) { *out << one.format << "_" << one.storage_name; }
};

class AnnotatedFormat : public ::testing::TestWithParam<UnderTest> {
 protected:
  std::shared_ptr<const RecordFormat> open(const std::vector<AnnotatedSample>& samples) {
    folder_ = std::make_unique<storage::TemporaryFolder>();
    source_ = GetParam().store(*folder_, samples);
    OpenOptions options;
    options.storage = GetParam().storage();
    auto format = open_records(source_, options);
    EXPECT_TRUE(format) << format.error().message();
    return format ? *format : nullptr;
  }
  static bool is(const memory::Record& record, const AnnotatedSample& sample) {
    if (record.fields.size() != 3) return false;
    const auto image = record.fields[0].bytes;
    std::vector<float> boxes;
    for (const auto& box : sample.boxes) boxes.insert(boxes.end(), box.begin(), box.end());
    const auto rows = static_cast<std::int64_t>(sample.boxes.size());
    return std::string(reinterpret_cast<const char*>(image.data()), image.size()) == sample.image &&
           record.fields[1].array == ArraySpec{DType::kFloat32, {rows, 4}} &&
           record.fields[2].array == ArraySpec{DType::kInt64, {rows}} && numbers_of<float>(record.fields[1]) == boxes &&
           numbers_of<std::int64_t>(record.fields[2]) == sample.labels &&
           record.bytes_read >= image.size() + 24 * sample.boxes.size();
  }

  std::unique_ptr<storage::TemporaryFolder> folder_;
  std::string source_;
};

TEST_P(AnnotatedFormat, ReadsEverySampleInAnyOrder) {
  const auto samples = some_annotated();
  const auto format = open(samples);
  ASSERT_TRUE(format);
  EXPECT_EQ(format->name(), GetParam().format);
  ASSERT_EQ(format->size(), samples.size());
  std::string fields;
  for (const FieldDescription& field : format->fields())
    fields += field.name + ":" + std::string(name_of(field.kind)) + " ";
  EXPECT_EQ(fields, "image:image boxes:boxes labels:array ");
  EXPECT_TRUE(format->fields()[2].array.is_ragged());
  EXPECT_EQ(format->classes(), (std::vector<std::string>{"ant", "bee", "cow"}));
  memory::Record record;
  for (const std::size_t step : {1, 5, 7})
    for (std::size_t i = 0, index = 0; i < samples.size(); ++i, index = (index + step) % samples.size()) {
      const auto read = format->read(index, record);
      ASSERT_TRUE(read) << read.error().message();
      EXPECT_TRUE(is(record, samples[index])) << index;
    }
}

TEST_P(AnnotatedFormat, FetchedPiecesAreWhatReadingGives) {
  const auto samples = some_annotated();
  const auto format = open(samples);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::vector<storage::Piece> found;
    ASSERT_TRUE(format->find_pieces(i, found));
    ASSERT_LE(found.size(), format->most_pieces());
    std::vector<storage::Read> fetches(found.size());
    std::vector<std::span<const std::byte>> bytes;
    memory::Record record, expected;
    for (std::size_t piece = 0; piece < found.size(); ++piece) {
      fetches[piece].piece = found[piece];
      storage::read_now(*format->storage(), fetches[piece]);
      ASSERT_TRUE(fetches[piece].bytes) << fetches[piece].bytes.error().message();
      bytes.push_back(*fetches[piece].bytes);
      record.piece_offsets.push_back(found[piece].offset);
    }
    ASSERT_TRUE(format->accept(i, bytes, record));
    ASSERT_TRUE(format->read(i, expected));
    EXPECT_TRUE(is(record, samples[i])) << i;
    EXPECT_EQ(record.bytes_read, expected.bytes_read);
  }
}

TEST_P(AnnotatedFormat, LabelsAreReadWithoutImages) {
  const auto samples = some_annotated();
  const auto format = open(samples);
  std::size_t removed = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_->path()))
    removed += file.path().extension() == ".png" && std::filesystem::remove(file.path());
  ASSERT_EQ(removed, samples.size());
  memory::Record record;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto read = format->read_field(i, 2, record);
    ASSERT_TRUE(read) << read.error().message();
    ASSERT_TRUE(*read);
    EXPECT_EQ(record.fields.front().array,
              (ArraySpec{DType::kInt64, {static_cast<std::int64_t>(samples[i].labels.size())}}));
    EXPECT_EQ(numbers_of<std::int64_t>(record.fields.front()), samples[i].labels) << i;
  }
}

TEST_P(AnnotatedFormat, RecordsOutliveTheFormat) {
  const auto samples = some_annotated();
  auto format = open(samples);
  std::vector<memory::Record> records(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) ASSERT_TRUE(format->read(i, records[i]));
  format.reset();
  folder_.reset();
  for (std::size_t i = 0; i < samples.size(); ++i) EXPECT_TRUE(is(records[i], samples[i])) << i;
}

TEST_P(AnnotatedFormat, FourThreadsReadTheSame) {
  const auto samples = some_annotated(40);
  const auto format = open(samples);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      memory::Record record;
      for (std::size_t i = 0; i < 3 * samples.size(); ++i) {
        const std::size_t index = (i * (2 * thread + 1) + thread) % samples.size();
        wrong += !format->read(index, record) || !is(record, samples[index]);
        wrong += format->where(index).record != index;
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_P(AnnotatedFormat, FingerprintsTheSamplesNotTheirBytes) {
  auto samples = some_annotated();
  const std::uint64_t first = open(samples)->fingerprint();
  EXPECT_EQ(open(samples)->fingerprint(), first) << "another folder, the same dataset";
  samples[3].image.back() = static_cast<char>(~samples[3].image.back());
  EXPECT_EQ(open(samples)->fingerprint(), first) << "bytes inside a sample do not count";
  samples[3].key += "x";
  const std::uint64_t second = open(samples)->fingerprint();
  EXPECT_NE(second, first);
  samples.pop_back();
  EXPECT_NE(open(samples)->fingerprint(), second);
  OpenOptions options;
  options.storage = GetParam().storage();
  options.fields = {"image", "labels"};
  const auto other = open_records(source_, options);
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_NE((*other)->fingerprint(), open(samples)->fingerprint()) << "other fields";
}

TEST_P(AnnotatedFormat, AnEmptyImageIsAnErrorOfThatSampleAlone) {
  auto samples = some_annotated();
  samples[4].image.clear();
  const auto format = open(samples);
  memory::Record record;
  const auto done = format->read(4, record);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kData);
  EXPECT_NE(done.error().what.find("an empty file"), std::string::npos) << done.error().message();
  EXPECT_EQ(done.error().where.record, 4u);
  EXPECT_EQ(done.error().where.shard, format->where(4).shard);
  ASSERT_TRUE(format->read(5, record));
  EXPECT_TRUE(is(record, samples[5]));
}

TEST_P(AnnotatedFormat, AMissingImageIsNamedWithItsRecord) {
  const auto samples = some_annotated();
  const auto format = open(samples);
  const std::string path = format->where(6).shard;
  ASSERT_TRUE(path.ends_with("key106.png")) << path;
  std::filesystem::remove(path);
  memory::Record record;
  const auto done = format->read(6, record);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kStorage);
  EXPECT_EQ(done.error().where.record, 6u);
  EXPECT_EQ(done.error().where.shard, path);
  // a YOLO set contains every image in its folder
  if (GetParam().format == "yolo") return;
  EXPECT_NE(inspected(source_).find(":error"), std::string::npos);
}

TEST_P(AnnotatedFormat, InspectionCounts) {
  const auto samples = some_annotated();
  const auto format = open(samples);
  std::uint64_t smallest = ~std::uint64_t{0}, largest = 0;
  for (const AnnotatedSample& sample : samples) {
    smallest = std::min<std::uint64_t>(smallest, sample.image.size());
    largest = std::max<std::uint64_t>(largest, sample.image.size());
  }
  const auto inspection = format->inspect();
  ASSERT_TRUE(inspection) << inspection.error().message();
  EXPECT_EQ(inspection->format, GetParam().format);
  EXPECT_EQ(inspection->samples, samples.size());
  EXPECT_EQ(inspection->smallest_bytes, smallest);
  EXPECT_EQ(inspection->largest_bytes, largest);
  EXPECT_EQ(inspection->fields, (std::vector<std::string>{"image", "boxes", "labels"}));
  EXPECT_EQ(inspected(source_), "");
}

TEST_P(AnnotatedFormat, GivesFilesOfEveryField) {
  const auto samples = some_annotated();
  const auto format = open(samples);
  const auto files = format->files(3);
  ASSERT_TRUE(files) << files.error().message();
  EXPECT_EQ(files->key, samples[3].key);
  std::string names;
  for (const SampleFiles::File& file : files->files) names += file.extension + " ";
  EXPECT_EQ(names, "png boxes.npy labels.npy ");
  const auto& boxes = files->files[1].bytes;
  const std::string text(reinterpret_cast<const char*>(boxes.data()), boxes.size());
  EXPECT_NE(text.find("'descr': '<f4', 'fortran_order': False, 'shape': (3,4,)"), std::string::npos) << text;
  EXPECT_EQ((boxes.size() - 48) % 64, 0u) << "the numbers begin at a multiple of 64";
  const auto sizes = format->file_sizes(3);
  ASSERT_TRUE(sizes);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(sizes->files[i].bytes, files->files[i].bytes.size());
}

TEST_P(AnnotatedFormat, OptionsAndFieldsThatAreNotItsOwnAreRefused) {
  open(some_annotated());
  const auto why = [&](OpenOptions options) {
    options.storage = GetParam().storage();
    const auto format = open_records(source_, options);
    if (format) return std::string("opened");
    EXPECT_EQ(format.error().code, ErrorCode::kConfig) << format.error().message();
    return format.error().what;
  };
  const auto has = [&](const OpenOptions& options, const char* part) {
    const std::string text = why(options);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has({.fields = {"image", "box"}}, "the annotations have no 'box'; they have image, boxes, labels");
  has({.fields = {"image", "image"}}, "two fields are called 'image'");
  has({.fields = {"=image"}}, "an empty name");
  has({.missing = Missing::kSkip}, "missing:");
  if (GetParam().format != "coco") has({.annotations = {.images = "/x"}}, "images:");
  if (GetParam().format != "coco") has({.annotations = {.crowd = "keep"}}, "crowd:");
  has({.annotations = {.split = "nothing"}}, "split:");
  has({.format = "folder", .annotations = {.split = "train"}}, "split= is for annotated images");
  has({.format = "folder", .annotations = {.images = "/x"}}, "images= is for annotated images");
  has({.format = "folder", .annotations = {.crowd = "keep"}}, "crowd= is for annotated images");
}

std::vector<UnderTest> all() {
  std::vector<UnderTest> all;
  const std::vector<std::pair<std::string, decltype(UnderTest::store)>> formats{
      {"coco", store_coco}, {"voc", store_voc}, {"yolo", store_yolo}};
  for (const auto& [name, store] : formats) {
    all.push_back({name, "local", store, storage::local_storage});
    all.push_back({name, "mapped", store, storage::mapped_storage});
    all.push_back({name, "short_reads", store, storage::short_reads_storage});
  }
  return all;
}

std::string name_of_one(const ::testing::TestParamInfo<UnderTest>& one) {
  return one.param.format + "_" + one.param.storage_name;
}

INSTANTIATE_TEST_SUITE_P(Annotations, AnnotatedFormat, ::testing::ValuesIn(all()), name_of_one);

}  // namespace
}  // namespace feedline::format
