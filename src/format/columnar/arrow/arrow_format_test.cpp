// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <lz4frame.h>

#include <algorithm>
#include <cstring>

#include "format/columnar/arrow/arrow_table.h"
#include "format/columnar/arrow/arrow_writer.h"
#include "format/compression/compressed_fixture.h"
#include "format/format_contract.h"
#include "format/inspected.h"
#include "format/shown_fixture.h"
#include "storage/mapped_storage.h"
#include "storage/short_reads_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

constexpr const char* kFeatures =
    R"({"info": {"features": {"image": {"_type": "Image"}, "label": {"names": ["cat", "\u00f6l"], "_type": "ClassLabel"}}}})";

// Writes batches of five rows, with images stored as in `datasets`.
ArrowWriter written(const std::vector<StoredSample>& samples) {
  std::vector<MadeBatch> batches;
  for (std::size_t begin = 0; begin < samples.size(); begin += 5) {
    std::vector<std::optional<std::string>> images, paths;
    std::vector<std::int64_t> labels;
    for (std::size_t i = begin; i < std::min(begin + 5, samples.size()); ++i) {
      images.emplace_back(samples[i].image);
      paths.emplace_back();
      labels.push_back(samples[i].label);
    }
    batches.push_back({struct_column("image", {bytes_column("bytes", 4, images), bytes_column("path", 5, paths)}),
                       int64_column("label", labels)});
  }
  return ArrowWriter(batches, kFeatures);
}

std::string store_stream(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  return folder.write("data.arrow", written(samples).stream());
}
std::string store_file(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  return folder.write("data.arrow", written(samples).file());
}
std::string store_saved(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  const auto half = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  folder.write("set/data-00000-of-00002.arrow", written({samples.begin(), half}).stream());
  folder.write("set/data-00001-of-00002.arrow", written({half, samples.end()}).stream());
  folder.write("set/state.json", R"({"_data_files": [{"filename": "data-00000-of-00002.arrow"},
                                                     {"filename": "data-00001-of-00002.arrow"}]})");
  return folder.path("set");
}

std::string key_of_one(std::size_t i) { return "data/" + std::string(i < 10 ? 7 : 6, '0') + std::to_string(i); }

FormatUnderTest under_test(const std::string& name, decltype(store_stream)* store,
                           std::function<std::shared_ptr<const storage::Storage>()> storage) {
  const bool is_saved = store == store_saved;
  return {name,
          "arrow",
          store,
          std::move(storage),
          {},
          "image",
          is_saved ? [](std::size_t) { return std::string(); } : std::function<std::string(std::size_t)>(key_of_one),
          0};
}

INSTANTIATE_TEST_SUITE_P(Arrow, FormatContract,
                         ::testing::Values(under_test("arrow_stream", store_stream, storage::local_storage),
                                           under_test("arrow_mapped", store_stream, storage::mapped_storage),
                                           under_test("arrow_short_reads", store_stream, storage::short_reads_storage),
                                           under_test("arrow_file", store_file, storage::local_storage),
                                           under_test("arrow_saved", store_saved, storage::local_storage)),
                         name_of_format);

class Arrow : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const RecordFormat>> opened(const std::string& bytes,
                                                     const std::vector<std::string>& fields = {},
                                                     Missing missing = Missing::kError) const {
    OpenOptions options;
    options.fields = fields;
    options.missing = missing;
    options.format = "arrow";
    return open_records(folder_.write("x.arrow", bytes), options);
  }
  std::string all(const std::string& bytes, const std::vector<std::string>& fields, Missing missing = Missing::kError) {
    return shown_samples(opened(bytes, fields, missing));
  }

  TemporaryFolder folder_;
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

MadeBatch every_kind(std::int64_t first) {
  MadeColumn bools{"flag", 6, {}, 3};
  bools.buffers = {"", "\x05"};
  MadeColumn small{"small", 2, {{0, 8}, {1, 0}}, 3};
  small.buffers = {"", "\x01\xff\x03"};
  MadeColumn fixed{"code", 15, {{0, 2}}, 3};
  fixed.buffers = {"", "aabbcc"};
  MadeColumn nothing{"nothing", 1, {}, 3, 3};
  MadeColumn encoded = int64_column("word", {1, 0, 1});
  encoded.buffers = {"", std::string("\x01\x00\x01", 3)};
  encoded.kind = 5;
  encoded.type = {};
  encoded.dictionary = 7;
  encoded.children = {bytes_column("", 5, {"zero", "one"})};
  return {
      int64_column("n", {first, first + 1, -first}),
      bools,
      small,
      fixed,
      nothing,
      encoded,
      float_column("x", {0.5F, 1, 2}),
      bytes_column("text", 20, {"a", "", "ccc"}),
      list_column("ids", {0, 2, 2, 5}, int64_column("item", {1, 2, 3, 4, 5})),
      fixed_list_column("pair", 2, float_column("item", {1, 2, 3, 4, 5, 6})),
      list_column("boxes", {0, 1, 1, 3},
                  list_column("item", {0, 4, 8, 12}, float_column("item", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}))),
      struct_column("in", {int64_column("a", {7, 8, 9}), bytes_column("b", 4, {"x", "y", "z"})})};
}

const std::vector<std::string> kAllFields{"n",    "flag", "small", "code",        "word", "x",
                                          "text", "ids",  "pair",  "boxes:boxes", "in.a", "b=in.b"};
const std::string kAllShown =
    "100 1 1 aa one ():5 a (2,):1,2 (2,):10,20 (1, 4):10,20,30,40 7 x|"
    "101 0 255 bb zero ():10  (0,): (2,):30,40 (0, 4): 8 y|"
    "-100 1 3 cc one ():20 ccc (3,):3,4,5 (2,):50,60 (2, 4):50,60,70,80,90,100,110,120 9 z";

TEST_F(Arrow, ColumnsBecomeFieldsOfEveryKind) {
  const ArrowWriter writer({every_kind(100), every_kind(100)});
  EXPECT_EQ(all(writer.stream(), kAllFields), kAllShown + "|" + kAllShown);
  EXPECT_EQ(all(writer.file(), kAllFields), kAllShown + "|" + kAllShown);
  const auto format = opened(writer.stream(), kAllFields);
  ASSERT_TRUE(format) << format.error().message();
  std::string kinds;
  for (const auto& field : (*format)->fields()) kinds += field.name + ":" + std::string(name_of(field.kind)) + " ";
  EXPECT_EQ(kinds,
            "n:value flag:value small:value code:bytes word:text x:array text:text ids:array pair:array boxes:boxes "
            "in.a:value b:bytes ");
}

std::string packed_as(int codec, const std::string& plain) {
  if (codec == 1) return compressed(Compression::kZstd, plain);
  std::string frame(LZ4F_compressFrameBound(plain.size(), nullptr), '\0');
  frame.resize(LZ4F_compressFrame(frame.data(), frame.size(), plain.data(), plain.size(), nullptr));
  return frame;
}

TEST_F(Arrow, CompressedBatchesReadTheSame) {
  for (const int codec : {0, 1}) {
    const ArrowWriter writer({every_kind(100)}, {}, codec,
                             [codec](const std::string& plain) { return packed_as(codec, plain); });
    EXPECT_EQ(all(writer.stream(), kAllFields), kAllShown) << codec;
    const auto format = opened(writer.stream(), {"text"});
    for (std::uint64_t i = 0; i < 3; ++i) shown_sample(**format, i);
    EXPECT_EQ((*format)->summary(),
              "1 blocks decompressed, 66 % of 3 were cached, in at most 256 MiB\n"
              "1.0 bytes were decompressed per byte delivered");
  }
}

TEST_F(Arrow, DamagedCompressedBuffersAreErrors) {
  for (const int codec : {0, 1}) {
    const auto text = [&](const ArrowWriter::Pack& pack) {
      return all(ArrowWriter({{bytes_column("t", 5, {std::string(1'000, 'x')})}}, {}, codec, pack).stream(), {"t"});
    };
    EXPECT_EQ(text([codec](const std::string& plain) { return packed_as(codec, plain); }), std::string(1'000, 'x'));
    EXPECT_CONTAINS(text([codec](const std::string& plain) { return packed_as(codec, plain + "x"); }), "is damaged");
    EXPECT_CONTAINS(text([codec](const std::string& plain) { return packed_as(codec, plain.substr(1)); }),
                    "is damaged");
    EXPECT_CONTAINS(text([codec](const std::string& plain) { return packed_as(codec, plain) + "x"; }), "is damaged");
    EXPECT_CONTAINS(text([](const std::string& plain) { return std::string(plain.size() < 20 ? 0 : 3, 'x'); }),
                    "is damaged");
  }
}

TEST_F(Arrow, WithoutFieldsAnImageAndALabelOrAllColumns) {
  const auto names = [&](const std::vector<MadeBatch>& batches, const std::string& features = {}) {
    const auto format = opened(ArrowWriter(batches, features).stream());
    if (!format) return format.error().what;
    std::string text;
    for (const auto& field : (*format)->fields()) text += field.name + ":" + std::string(name_of(field.kind)) + " ";
    for (const auto& name : (*format)->classes()) text += name + ",";
    return text;
  };
  const auto photo = bytes_column("photo", 4, {"p"}), number = int64_column("kind", {1});
  EXPECT_EQ(names({{photo, number}}), "photo:bytes kind:value ");
  EXPECT_EQ(names({{bytes_column("jpg", 4, {"p"}), int64_column("cls", {1}), number}}), "image:image label:value ");
  EXPECT_EQ(names({{photo, number}}, R"({"info": {"features": {"photo": {"_type": "Image"},
                                          "kind": {"_type": "ClassLabel", "names": ["a", "b"]}}}})"),
            "image:image label:value a,b,");
  EXPECT_CONTAINS(names({{MadeColumn{"nothing", 1, {}, 1, 1}}}), "the columns are nothing (nothing)");
}

TEST_F(Arrow, NullsAreErrorsSkippedOrAbsent) {
  const ArrowWriter writer(
      {{int64_column("n", {1, 2, 3}, {true, false, true}),
        struct_column("image", {bytes_column("bytes", 4, {"a", "b", std::nullopt})}, {false, true, true})}});
  const std::vector<std::string> fields{"n", "i=image.bytes:bytes"};
  EXPECT_CONTAINS(all(writer.stream(), fields), "error: field 'i': the row has no value in the column 'image.bytes'");
  EXPECT_EQ(all(writer.stream(), fields, Missing::kNone), "1 -|- b|3 -");
  EXPECT_CONTAINS(all(writer.stream(), fields, Missing::kSkip), "omits all samples");
  EXPECT_EQ(all(writer.stream(), {"n"}, Missing::kSkip), "1|3");
  EXPECT_EQ(opened(writer.stream(), {"n"}, Missing::kSkip).value()->summary(),
            "1 samples were omitted because they lack a field");
}

TEST_F(Arrow, ListsThatAreNoArrayAreThatSamplesError) {
  const auto inner = [](std::vector<std::int32_t> offsets, std::vector<bool> there = {}) {
    return list_column("item", offsets, float_column("item", {1, 2, 3, 4}, there));
  };
  EXPECT_CONTAINS(all(ArrowWriter({{list_column("x", {0, 1, 3}, inner({0, 2, 3, 4}))}}).stream(), {"x"}),
                  "(1, 2):10,20|(2, 1):30,40");
  EXPECT_CONTAINS(all(ArrowWriter({{list_column("x", {0, 2}, inner({0, 1, 4}))}}).stream(), {"x"}),
                  "the inner lists have 1 and 3 elements");
  EXPECT_CONTAINS(all(ArrowWriter({{inner({0, 2, 4}, {true, true, false, true})}}).stream(), {"item"}),
                  "(2,):10,20|error: field 'item': the column 'item': a list contains a null value");
}

TEST_F(Arrow, OffsetsAreNeverTrusted) {
  const auto text = [&](std::vector<std::int32_t> offsets) {
    MadeColumn column = bytes_column("t", 5, {"ab", "cd"});
    column.buffers[1] = little(offsets);
    return all(ArrowWriter({{column}}).stream(), {"t"});
  };
  EXPECT_EQ(text({0, 2, 4}), "ab|cd");
  EXPECT_CONTAINS(text({0, 2, 5}), "ab|error: field 't': the column 't': the offsets point past the end of the bytes");
  EXPECT_CONTAINS(text({0, 3, 2}), "abc|error: field 't': the column 't': the offsets are not in order");
  EXPECT_CONTAINS(text({0, -1, 4}), "error: ");
  EXPECT_CONTAINS(text({0, 2}), "there are fewer offsets than values");
  MadeColumn words = every_kind(1)[5];
  words.buffers[1] = std::string("\x01\x02\xff", 3);
  EXPECT_CONTAINS(all(ArrowWriter({{words}}).stream(), {"word"}),
                  "one|error: field 'word': the column 'word': the dictionary index 2 is not below 2");
  MadeColumn few = int64_column("n", {1, 2});
  few.length = 3;
  EXPECT_CONTAINS(all(ArrowWriter({{few}}).stream(), {"n"}), "there are fewer values than rows");
  MadeColumn list = list_column("x", {0, 1, 3}, int64_column("item", {1, 2}));
  EXPECT_CONTAINS(all(ArrowWriter({{list}}).stream(), {"x"}),
                  "(1,):1|error: field 'x': the column 'x': the offsets point past the values");
}

TEST_F(Arrow, ACutFileIsAnErrorOfOpeningOrOfNoWrongValue) {
  const ArrowWriter writer({every_kind(100)});
  constexpr std::size_t kStep = 5;  // coprime to the alignment of buffers
  for (const std::string& whole : {writer.stream(), writer.file()})
    for (std::size_t bytes = whole.size() % kStep; bytes < whole.size(); bytes += kStep) {
      const auto format = opened(whole.substr(0, bytes), kAllFields);
      ASSERT_FALSE(format) << bytes << " of " << whole.size();
      EXPECT_EQ(format.error().where.shard, folder_.path("x.arrow"));
    }
}

// Arrow has no checksums: a changed value cannot be detected, but must not cause a read outside the file.
TEST_F(Arrow, EveryChangedByteIsAnErrorOrReadsInside) {
  const std::string whole = ArrowWriter({every_kind(100)}).stream();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = at % 3 == 0 ? '\x7f' : '\xff';  // period 3: both values at all positions of numbers
    const auto format = opened(changed, kAllFields);
    refused += !format;
    for (std::uint64_t i = 0; format && i < std::min<std::uint64_t>((*format)->size(), 4); ++i) {
      memory::Record record;
      (void)(*format)->read(i, record);
    }
  }
  EXPECT_GT(refused, whole.size() / 8);
}

TEST_F(Arrow, SourcesAreToldByNameContentAndFolder) {
  const std::string stream = ArrowWriter({{int64_column("n", {1})}}).stream();
  const std::string file = ArrowWriter({{int64_column("n", {1, 2})}}).file();
  EXPECT_EQ((*open_records(folder_.write("a.bin", stream)))->name(), "arrow");
  EXPECT_EQ((*open_records(folder_.write("b", file)))->size(), 2u);
  EXPECT_EQ((*open_records(folder_.path("a.bin") + "::" + folder_.path("b")))->size(), 3u);
  folder_.write("set/train/data-00000-of-00001.arrow", stream);
  folder_.write("set/train/state.json", R"({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]})");
  folder_.write("set/dataset_dict.json", R"({"splits": ["train"]})");
  EXPECT_EQ((*open_records(folder_.path("set")))->size(), 1u);
  folder_.write("set/dataset_dict.json", R"({"splits": ["train", "test"]})");
  EXPECT_CONTAINS(open_records(folder_.path("set")).error().what, "has several splits (train, test)");
  EXPECT_EQ((*open_records(folder_.path("set/train")))->size(), 1u);
  folder_.write("set/train/state.json", R"({"_data_files": [{"filename": "../a.bin"}]})");
  EXPECT_CONTAINS(open_records(folder_.path("set/train")).error().what, "outside the folder");
  folder_.write("set/train/state.json", R"({"_data_files": [], "_indices_data_files": [{"filename": "i"}]})");
  EXPECT_CONTAINS(open_records(folder_.path("set/train")).error().what, "flatten_indices");
  folder_.write("set/train/state.json", "{");
  EXPECT_CONTAINS(open_records(folder_.path("set/train")).error().what, "not valid JSON");
  folder_.write("many/c1.arrow", stream);
  folder_.write("many/c0.arrow", file);
  const auto pattern = open_records(folder_.path("many/c*.arrow"));
  ASSERT_TRUE(pattern) << pattern.error().message();
  EXPECT_EQ((*pattern)->where(0).key, "c0/00000000");
  EXPECT_EQ((*pattern)->size(), 3u);
  EXPECT_CONTAINS(open_records(folder_.path("many/d*.arrow")).error().what, "no file matches");
}

TEST_F(Arrow, ASchemaThatChangesBetweenFilesIsNamed) {
  folder_.write("s0.arrow", ArrowWriter({{int64_column("n", {1})}}).stream());
  folder_.write("s1.arrow", ArrowWriter({{float_column("n", {1})}}).stream());
  folder_.write("s2.arrow", ArrowWriter({{int64_column("m", {1})}}).stream());
  const auto why = [&](const std::string& names) { return open_records(folder_.path(names)).error().message(); };
  EXPECT_CONTAINS(why("s{0,1}.arrow"), "the column 'n' holds float32 in this file, but int64 in others");
  EXPECT_CONTAINS(why("s{0,1}.arrow"), "s1.arrow");
  EXPECT_CONTAINS(why("s{0,2}.arrow"), "the file has no column 'n'");
  EXPECT_EQ(inspected(folder_.path("s{0,1,2}.arrow")), "schema_differs:error schema_differs:error unread_column:note");
}

}  // namespace
}  // namespace feedline::format
