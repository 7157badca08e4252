// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/lmdb_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "format/format_contract.h"
#include "format/inspected.h"
#include "format/lmdb/datum_writer.h"
#include "format/lmdb/lmdb_writer.h"
#include "storage/mapped_storage.h"
#include "storage/short_reads_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;
using Entries = std::vector<LmdbWriter::Entry>;

std::string file_of(Entries entries) {
  std::ranges::sort(entries, {}, &LmdbWriter::Entry::key);
  return LmdbWriter(4096, 4).file_of(entries);
}

std::string store_datums(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  Entries entries;
  for (const StoredSample& sample : samples) entries.push_back({sample.key, encoded_datum(sample.image, sample.label)});
  folder.write("images_lmdb/data.mdb", file_of(entries));
  return folder.path("images_lmdb");
}

std::string store_pairs(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  Entries entries;
  for (const StoredSample& sample : samples) {
    entries.push_back({sample.key + ".jpg", sample.image});
    entries.push_back({sample.key + ".cls", std::to_string(sample.label)});
  }
  return folder.write("pairs.mdb", file_of(entries));
}

// Writes two databases, one of them in a folder.
std::string store_list(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  const auto half = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  const std::string first = store_datums(folder, {samples.begin(), half});
  std::filesystem::rename(first, folder.path("first"));
  store_datums(folder, {half, samples.end()});
  return folder.path("first") + "::" + folder.path("images_lmdb");
}

constexpr std::size_t kBefore = 64;  // an image file in a Datum

FormatUnderTest under_test(const std::string& name, std::function<std::shared_ptr<const storage::Storage>()> storage) {
  return {name, "lmdb", store_datums, std::move(storage), {}, "{key}", nullptr, kBefore, false, true};
}

INSTANTIATE_TEST_SUITE_P(
    Lmdb, FormatContract,
    ::testing::Values(
        under_test("lmdb", storage::local_storage), under_test("lmdb_mapped", storage::mapped_storage),
        under_test("lmdb_short_reads", storage::short_reads_storage),
        FormatUnderTest{
            "lmdb_list", "lmdb", store_list, storage::local_storage, {}, "{key}", nullptr, kBefore, false, true},
        FormatUnderTest{"lmdb_pairs",
                        "lmdb",
                        store_pairs,
                        storage::local_storage,
                        {"image={key}.jpg", "label={key}.cls"},
                        "{key}.jpg",
                        nullptr,
                        kBefore,
                        false,
                        true}),
    name_of_format);

class Lmdb : public ::testing::Test {
 protected:
  std::string write(const Entries& entries, const std::string& name = "x.mdb") const {
    return folder_.write(name, file_of(entries));
  }
  Result<std::shared_ptr<const RecordFormat>> opened(const std::string& source,
                                                     const std::vector<std::string>& fields = {},
                                                     Missing missing = Missing::kError) const {
    OpenOptions options;
    options.fields = fields;
    options.missing = missing;
    return open_records(source, options);
  }
  std::string refusal(const std::string& source, const std::vector<std::string>& fields = {}) const {
    const auto format = opened(source, fields);
    return format ? "opens" : format.error().message();
  }
  static std::string shown(const RecordFormat& format, std::uint64_t index) {
    memory::Record record;
    if (const auto read = format.read(index, record); !read) return "error: " + read.error().message();
    std::string text;
    for (std::size_t i = 0; i < record.fields.size(); ++i) {
      const memory::Record::Field& field = record.fields[i];
      text += text.empty() ? "" : " ";
      if (field.absent)
        text += "-";
      else if (format.fields()[i].kind == FieldKind::kInteger)
        text += std::to_string(field.value);
      else if (field.pixels.data != nullptr)
        text.append(reinterpret_cast<const char*>(field.pixels.data),
                    static_cast<std::size_t>(field.pixels.height) * field.pixels.stride);
      else
        text.append(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
    }
    return text;
  }

  TemporaryFolder folder_;
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

const std::string kPhoto = "\xff\xd8\xff photo ";

TEST_F(Lmdb, NumberedKeysAreSamplesInTheOrderOfNumbers) {
  Entries entries{{"num-samples", "12"}};
  for (int i = 1; i <= 12; ++i) {
    const std::string number = std::to_string(i), padded = std::string(9 - number.size(), '0') + number;
    entries.push_back({"image-" + padded, kPhoto + number});
    entries.push_back({"label-" + padded, "word " + number});
    entries.push_back({"n-" + number, number});
  }
  const std::string source = write(entries);
  const auto usual = opened(source);
  ASSERT_TRUE(usual) << usual.error().message();
  EXPECT_EQ((*usual)->size(), 12u);
  EXPECT_EQ(shown(**usual, 1), kPhoto + "2 word 2");
  EXPECT_EQ((*usual)->where(1).key, "000000002");
  EXPECT_EQ((*usual)->fields()[1].kind, FieldKind::kText);
  const auto chosen = opened(source, {"text=label-{:09d}", "n={:d}"});
  EXPECT_FALSE(chosen) << "no key is a number";
  const auto unpadded = opened(source, {"photo=image-{:09d}", "n=n-{}:value"});
  ASSERT_TRUE(unpadded) << unpadded.error().message();
  EXPECT_EQ((*unpadded)->fields()[0].kind, FieldKind::kImage);
  for (const std::uint64_t i : {0, 8, 9, 11})
    EXPECT_EQ(shown(**unpadded, i), kPhoto + std::to_string(i + 1) + " " + std::to_string(i + 1));
}

TEST_F(Lmdb, AWrongNumberOfSamplesIsAnError) {
  EXPECT_CONTAINS(refusal(write({{"num-samples", "3"}, {"image-000000001", kPhoto}, {"label-000000001", "x"}})),
                  "'num-samples' says 3, and there are 1 samples");
}

TEST_F(Lmdb, ImagesAloneAreTakenInTheOrderOfTheListNextToThem) {
  const Entries entries{{"a", kPhoto + "a"}, {"b.c", kPhoto + "b"}, {"d", kPhoto + "d"}};
  folder_.write("set.lmdb/data.mdb", file_of(entries));
  const std::string source = folder_.path("set.lmdb");
  EXPECT_EQ(shown(**opened(source), 0), kPhoto + "a");
  const std::string list = folder_.write("set.lmdb/meta_info.txt", "d.png (2,3,3) 1\r\nb.c.png (2,3,3) 1\n\n");
  const auto ordered = opened(source);
  ASSERT_TRUE(ordered) << ordered.error().message();
  EXPECT_EQ((*ordered)->size(), 2u);
  EXPECT_EQ(shown(**ordered, 0), kPhoto + "d");
  EXPECT_EQ((*ordered)->where(1).key, "b.c");
  EXPECT_EQ((*ordered)->files(1)->key, "b%2Ec");
  folder_.write("set.lmdb/meta_info.txt", "d.png (2,3,3) 1\nz.png (2,3,3) 1\n");
  EXPECT_CONTAINS(refusal(source), "line 2 of meta_info.txt names the key 'z'");
}

TEST_F(Lmdb, RawDatumsAreImagesOrArrays) {
  const auto images = opened(write({{"0", raw_datum(3, 1, 2, "bBgGrR", 7)}, {"1", raw_datum(3, 1, 1, "bgr", -1)}}));
  ASSERT_TRUE(images) << images.error().message();
  EXPECT_EQ(shown(**images, 0), "rgbRGB 7");
  EXPECT_EQ(shown(**images, 1), "rgb -1");
  EXPECT_FALSE((*images)->files(0));
  const std::string floats = extents(2, 1, 1) + field(6, raw(1.0F) + raw(2.0F)) + number_field(5, 3);
  const auto arrays = opened(write({{"0", floats}, {"1", raw_datum(3, 1, 1, "bgr", 1)}}, "y.mdb"));
  ASSERT_TRUE(arrays) << arrays.error().message();
  EXPECT_EQ((*arrays)->fields()[0].kind, FieldKind::kArray);
  EXPECT_CONTAINS(shown(**arrays, 0), "'<f4', 'fortran_order': False, 'shape': (2,1,1,)");
  EXPECT_CONTAINS(shown(**arrays, 1), "the Datum is an image, unlike the first");
  EXPECT_EQ((*arrays)->files(0)->files[0].extension, "image.npy");
}

TEST_F(Lmdb, ASampleThatLacksAFieldIsWhatMissingSays) {
  const std::string source =
      write({{"a.jpg", kPhoto}, {"a.txt", "one"}, {"b.jpg", kPhoto}, {"c.jpg", ""}, {"c.txt", "t"}});
  const std::vector<std::string> fields{"{key}.jpg", "{key}.txt"};
  const auto error = opened(source, fields);
  ASSERT_TRUE(error) << error.error().message();
  EXPECT_EQ((*error)->fields()[1].name, "txt");
  EXPECT_CONTAINS(shown(**error, 1), "field 'txt': the sample has no key");
  EXPECT_CONTAINS(shown(**error, 1), "key b");
  EXPECT_CONTAINS(shown(**error, 2), "an empty file");
  const auto skip = opened(source, fields, Missing::kSkip);
  EXPECT_EQ((*skip)->size(), 2u);
  EXPECT_CONTAINS((*skip)->summary(), "1 samples were omitted");
  const auto none = opened(source, fields, Missing::kNone);
  EXPECT_EQ(shown(**none, 1), kPhoto + " -");
  EXPECT_NE((*none)->fingerprint(), (*error)->fingerprint());
}

TEST_F(Lmdb, FieldsThatCannotBeAreErrors) {
  const std::string source = write({{"a", kPhoto}, {"b", kPhoto}});
  EXPECT_CONTAINS(refusal(source, {"x={name}"}), "neither {key} nor a number");
  EXPECT_CONTAINS(refusal(source, {"{key}{key}"}), "is not a pattern of keys");
  EXPECT_CONTAINS(refusal(source, {"label"}), "is a part of Datums, but the values are not Datums");
  EXPECT_CONTAINS(refusal(source, {"{key}.png"}), "no key matches '{key}.png'");
  EXPECT_CONTAINS(refusal(source, {"x={key}", "x={key}"}), "two fields are called 'x'");
  EXPECT_CONTAINS(refusal(source, {"={key}"}), "an empty name");
  EXPECT_CONTAINS(refusal(write({{"a", "text"}}, "text.mdb")), "neither images nor Datums");
  EXPECT_CONTAINS(refusal(write({}, "empty.mdb")), "has no entries");
  const std::string datums = write({{"a0", encoded_datum(kPhoto, 1)}}, "datums.mdb");
  EXPECT_CONTAINS(refusal(datums, {"image", "x=a{key}"}), "cannot be combined");
  EXPECT_CONTAINS(refusal(datums, {"image:text"}), "the Datum's image is image");
}

TEST_F(Lmdb, NeedsNoLockAndNoWritableFolder) {
  folder_.write("set/data.mdb", file_of({{"a", kPhoto}}));
  const std::string lock = folder_.write("set/lock.mdb", "held by another process");
  std::filesystem::permissions(lock, std::filesystem::perms::none);
  const auto format = opened(folder_.path("set"));
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(shown(**format, 0), kPhoto);
}

TEST_F(Lmdb, AWriterIsNoticedWhenAnEpochBegins) {
  const std::string source = write({{"a", kPhoto}, {"b", kPhoto}});
  const auto format = opened(source);
  ASSERT_TRUE(format);
  EXPECT_EQ(shown(**format, 0), kPhoto);
  (*format)->notice_changes();
  EXPECT_EQ(shown(**format, 0), kPhoto);
  // Writes the other meta page, as a transaction does, without changing the file's time.
  const auto time = std::filesystem::last_write_time(source);
  std::string file = TemporaryFolder::read(source);
  const std::uint64_t transaction = 3;
  std::memcpy(file.data() + 4096 + 144, &transaction, sizeof transaction);
  folder_.write("x.mdb", file);
  std::filesystem::last_write_time(source, time);
  (*format)->notice_changes();
  EXPECT_CONTAINS(shown(**format, 0), "is being written to");
  const auto again = opened(source);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(shown(**again, 1), kPhoto);
}

TEST_F(Lmdb, AValueThatIsAnotherOneNowIsAnError) {
  const std::string source = write({{"a", kPhoto}, {"b", std::string(9000, 'x')}});
  const auto format = opened(source, {"x={key}:bytes"});
  ASSERT_TRUE(format);
  std::string file = TemporaryFolder::read(source);
  file[(*format)->where(0).offset.value() + 8] = 'z';
  file[(*format)->where(1).offset.value()] = 'z';
  const auto time = std::filesystem::last_write_time(source);
  folder_.write("x.mdb", file);
  std::filesystem::last_write_time(source, time);
  EXPECT_CONTAINS(shown(**format, 0), "the value of 'a' is not at its position in the index: another entry");
  EXPECT_CONTAINS(shown(**format, 1), "no page of values begins there");
  EXPECT_CONTAINS(shown(**format, 1), "record 1");
}

TEST_F(Lmdb, KeepsItsIndexNextToTheFileAndMakesADamagedOneAgain) {
  Entries entries;
  for (int i = 100; i < 200; ++i) entries.push_back({std::to_string(i), kPhoto + std::string(100, 'x')});
  const std::string source = write(entries);
  const auto first = opened(source);
  const std::string index_path = folder_.path(".feedline/x.mdb.feedline-index");
  ASSERT_TRUE(std::filesystem::exists(index_path));
  const std::string good = TemporaryFolder::read(index_path);
  std::string damaged = good;
  damaged[good.size() / 2] = static_cast<char>(damaged[good.size() / 2] ^ 1);
  folder_.write(".feedline/x.mdb.feedline-index", damaged);
  const auto second = opened(source);
  EXPECT_EQ((*second)->fingerprint(), (*first)->fingerprint());
  EXPECT_EQ(TemporaryFolder::read(index_path), good);
}

TEST_F(Lmdb, AnIndexOfAnotherTransactionIsMadeAgain) {
  const auto file = [](const char* second, std::uint64_t transaction) {
    LmdbWriter writer;
    return writer.file(writer.add_tree({{"a", kPhoto}, {second, kPhoto}}), transaction);
  };
  const std::string source = folder_.write("x.mdb", file("b", 2));
  EXPECT_EQ((*opened(source))->where(1).key, "b");
  const auto time = std::filesystem::last_write_time(source);
  folder_.write("x.mdb", file("c", 3));
  std::filesystem::last_write_time(source, time);
  EXPECT_EQ((*opened(source))->where(1).key, "c");
}

TEST_F(Lmdb, InspectionTellsWhatIsWrong) {
  EXPECT_EQ(inspected(write({{"0", raw_datum(3, 1, 1, "bgr", 1)}, {"1", raw_datum(3, 1, 1, "bg", 1)}})),
            "damaged_datum:error");
  EXPECT_EQ(inspected(write({{"a", kPhoto}, {"b", "text"}}, "y.mdb")), "no_field:error");
  OpenOptions options;
  options.fields = {"{key}.jpg"};
  EXPECT_EQ(inspected(write({{"a.jpg", kPhoto}, {"b", "text"}}, "z.mdb"), options), "unread_key:note");
  std::string cut = TemporaryFolder::read(folder_.path("z.mdb"));
  cut.resize(cut.size() - 4096);
  EXPECT_EQ(inspected(folder_.write("cut.mdb", cut)), "damaged_page:error");
  EXPECT_EQ(inspected(folder_.write("none.mdb", "nothing of the kind")), "damaged_page:error");
  EXPECT_EQ(inspected(write({{"num-samples", "2"}, {"image-000000001", kPhoto}, {"label-000000001", "x"}}, "n.mdb")),
            "count_differs:error");
}

}  // namespace
}  // namespace feedline::format
