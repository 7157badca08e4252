// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/tfrecord_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "format/deflated_fixture.h"
#include "format/format_contract.h"
#include "format/inspected.h"
#include "format/shards/record_keys.h"
#include "format/tfrecord/example_writer.h"
#include "storage/mapped_storage.h"
#include "storage/short_reads_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

std::string records_of(const std::vector<StoredSample>& samples) {
  std::vector<std::string> data;
  for (const StoredSample& sample : samples)
    data.push_back(example(
        {{"image/class/label", ints_feature({sample.label})}, {"image/encoded", bytes_feature({sample.image})}}));
  return records_of_all(data);
}

std::string store_one(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  return folder.write("data.tfrecord", records_of(samples));
}

// Writes three shards, the middle one without samples, with names like those from TensorFlow's tools.
std::string store_list(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  const auto half = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  folder.write("data-00000-of-00003", records_of({samples.begin(), half}));
  folder.write("data-00001-of-00003", "");
  folder.write("data-00002-of-00003", records_of({half, samples.end()}));
  return folder.path("data-{00000..00002}-of-00003");
}

// The key is the shard's name, followed by the number of the record in it.
std::string key_of_one(std::size_t i) { return "data/" + std::string(i < 10 ? 7 : 6, '0') + std::to_string(i); }
constexpr std::size_t kBefore = 128;  // an image in its record

FormatUnderTest under_test(const std::string& name, std::function<std::shared_ptr<const storage::Storage>()> storage) {
  return {name, "tfrecord", store_one, std::move(storage), {}, "image/encoded", key_of_one, kBefore, false, true};
}

INSTANTIATE_TEST_SUITE_P(Tfrecord, FormatContract,
                         ::testing::Values(under_test("tfrecord", storage::local_storage),
                                           under_test("tfrecord_mapped", storage::mapped_storage),
                                           under_test("tfrecord_short_reads", storage::short_reads_storage),
                                           FormatUnderTest{"tfrecord_list",
                                                           "tfrecord",
                                                           store_list,
                                                           storage::local_storage,
                                                           {},
                                                           "image/encoded",
                                                           [](std::size_t) { return std::string(); },
                                                           kBefore,
                                                           false,
                                                           true}),
                         name_of_format);

std::string index_of(const std::string& shard) {
  const std::size_t name = shard.rfind('/') + 1;
  return shard.substr(0, name) + ".feedline/" + shard.substr(name) + ".feedline-index";
}

class Tfrecord : public ::testing::Test {
 protected:
  std::string write(const std::vector<std::string>& data, const std::string& name = "x.tfrecord") const {
    return folder_.write(name, records_of_all(data));
  }
  Result<std::shared_ptr<const RecordFormat>> opened(const std::string& source,
                                                     const std::vector<std::string>& fields = {},
                                                     Missing missing = Missing::kError) const {
    OpenOptions options;
    options.fields = fields;
    options.missing = missing;
    options.notes = notes_;
    return open_records(source, options);
  }
  // Returns a sample's fields as text: numbers and bytes, and for arrays the header before the bytes.
  static std::string shown(const RecordFormat& format, std::uint64_t index) {
    memory::Record record;
    if (const auto read = format.read(index, record); !read) return "error: " + read.error().message();
    std::string text;
    for (std::size_t i = 0; i < record.fields.size(); ++i) {
      const auto kind = format.fields()[i].kind;
      const memory::Record::Field& field = record.fields[i];
      const std::string bytes(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
      text += text.empty() ? "" : " ";
      if (field.absent)
        text += "-";
      else if (kind == FieldKind::kInteger)
        text += std::to_string(field.value);
      else if (bytes.starts_with("\x93NUMPY"))
        text += numbers(bytes);
      else
        text += bytes;
    }
    return text;
  }
  static std::string numbers(const std::string& file) {
    const std::size_t begin = file.find('(');
    std::string text = file.substr(begin, file.find(')') - begin + 1) + ":";
    const std::string data = file.substr(128);
    const bool is_float = file.find("<f4") != std::string::npos;
    const std::size_t size = is_float ? 4 : 8;
    for (std::size_t at = 0; at + size <= data.size(); at += size) {
      float real = 0;
      std::int64_t whole = 0;
      std::memcpy(is_float ? static_cast<void*>(&real) : static_cast<void*>(&whole), data.data() + at, size);
      text += (at == 0 ? "" : ",") + std::to_string(is_float ? static_cast<std::int64_t>(real * 10) : whole);
    }
    return text;
  }

  TemporaryFolder folder_;
  std::shared_ptr<cache::Notes> notes_ = std::make_shared<cache::Notes>();
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(Tfrecord, FeaturesBecomeFieldsOfEveryKind) {
  const auto sample = [](std::int64_t label, const std::vector<float>& boxes, std::string_view text, bool packed) {
    return example({{"label", ints_feature({label}, packed)},
                    {"boxes", floats_feature(boxes, packed)},
                    {"weight", floats_feature({0.5F}, packed)},
                    {"tokens", ints_feature({label, -label, 1000 * label}, packed)},
                    {"text", bytes_feature({text})},
                    {"blob", bytes_feature({""})}});
  };
  const std::string source =
      write({sample(3, {1, 2, 3, 4}, "one", true), sample(4, {5, 6, 7, 8, 9, 10, 11, 12}, "two", false)});
  const auto format = opened(source, {"label", "boxes:boxes", "weight", "tokens", "text", "raw=blob", "b=boxes"});
  ASSERT_TRUE(format) << format.error().message();
  std::string kinds;
  for (const auto& field : (*format)->fields()) kinds += field.name + ":" + std::string(name_of(field.kind)) + " ";
  EXPECT_EQ(kinds, "label:value boxes:boxes weight:array tokens:array text:text raw:bytes b:array ");
  EXPECT_EQ(shown(**format, 0), "3 (1, 4):10,20,30,40 ():5 (3,):3,-3,3000 one  (4,):10,20,30,40");
  EXPECT_EQ(shown(**format, 1),
            "4 (2, 4):50,60,70,80,90,100,110,120 ():5 (3,):4,-4,4000 two  (8,):50,60,70,80,90,100,110,120");
}

TEST_F(Tfrecord, StepsBecomeRows) {
  const auto sample = [](std::vector<std::string> steps) {
    return sequence_example({{"id", ints_feature({7})}},
                            {{"x", std::move(steps)}, {"y", {ints_feature({1}), ints_feature({2})}}});
  };
  const auto two = [](float a, float b) { return floats_feature({a, b}); };
  const std::string source = write(
      {sample({two(1, 2), two(3, 4)}), sample({two(5, 6)}), sample({}), sample({two(1, 2), floats_feature({3})})});
  const auto format = opened(source, {"id", "x", "y"});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(shown(**format, 0), "7 (2, 2):10,20,30,40 (2,):1,2");
  EXPECT_EQ(shown(**format, 1), "7 (1, 2):50,60 (2,):1,2");
  EXPECT_EQ(shown(**format, 2), "7 (0, 2): (2,):1,2");
  EXPECT_CONTAINS(shown(**format, 3), "has 1 values at step 1, but 2 in the first records");
}

TEST_F(Tfrecord, TellsImagesAndLabelsByNameAndContent) {
  const std::string jpeg = "\xff\xd8\xff\xe0 and so on";
  const auto kinds = [&](const NamedFeatures& features) {
    const auto format = opened(write({example(features)}));
    if (!format) return format.error().what;
    std::string text;
    for (const auto& field : (*format)->fields()) text += field.name + ":" + std::string(name_of(field.kind)) + " ";
    return text + shown(**format, 0);
  };
  EXPECT_EQ(kinds({{"photo", bytes_feature({jpeg})}, {"label", ints_feature({2})}}),
            "image:image label:value " + jpeg + " 2");
  EXPECT_EQ(kinds({{"jpg", bytes_feature({"x"})}, {"mask", bytes_feature({jpeg})}}), "image:image x");
  EXPECT_EQ(kinds({{"image", bytes_feature({"i"})}, {"image/encoded", bytes_feature({"e"})}}), "image:image e");
  EXPECT_CONTAINS(kinds({{"a", bytes_feature({jpeg})}, {"b", bytes_feature({jpeg})}}), "not exactly one feature");
  EXPECT_CONTAINS(kinds({{"x", floats_feature({1})}}), "the features are x (float)");
}

TEST_F(Tfrecord, AFieldIsANumberWhereAllFirstRecordsHaveOne) {
  const auto kind = [&](const std::vector<std::vector<std::int64_t>>& lists) {
    std::vector<std::string> data;
    for (const auto& list : lists) data.push_back(example({{"n", ints_feature(list)}}));
    return opened(write(data), {"n"}).value()->fields()[0].kind;
  };
  EXPECT_EQ(kind({{1}, {2}}), FieldKind::kInteger);
  EXPECT_EQ(kind({{1}, {2, 3}}), FieldKind::kArray);
  EXPECT_EQ(kind({{1}, {}}), FieldKind::kArray);
  EXPECT_EQ(kind({{2, 3}, {1}}), FieldKind::kArray);
}

TEST_F(Tfrecord, AlternativesStandInForEachOther) {
  const std::string source = write({example({{"a", ints_feature({1})}}), example({{"b", ints_feature({2})}}),
                                    example({{"b", ints_feature({3})}, {"a", ints_feature({4})}})});
  const auto format = opened(source, {"n=a;b"});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(shown(**format, 0) + shown(**format, 1) + shown(**format, 2), "124");
}

TEST_F(Tfrecord, OfOneNameTheLastFeatureCounts) {
  const std::string source = write({example({{"n", ints_feature({1})}, {"n", ints_feature({2})}}),
                                    example({{"n", ints_feature({3})}, {"n", ""}}),
                                    sequence_example({{"n", ints_feature({4})}}, {{"n", {ints_feature({5})}}})});
  const auto format = opened(source, {"n"});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(shown(**format, 0), "2");
  EXPECT_CONTAINS(shown(**format, 1), "the record has no feature 'n'");
  EXPECT_EQ(shown(**format, 2), "4") << "before a list of the name";
}

TEST_F(Tfrecord, FieldsThatCannotBeAreRefusedBeforeTheFirstRead) {
  const std::string source = write({example({{"i", ints_feature({1, 2})},
                                             {"f", floats_feature({1})},
                                             {"s", bytes_feature({"x", "y"})},
                                             {"t", bytes_feature({"x"})}})});
  const auto why = [&](const std::vector<std::string>& fields) {
    const auto format = opened(source, fields);
    EXPECT_FALSE(format);
    if (!format) {
      EXPECT_EQ(format.error().code, ErrorCode::kConfig);
    }
    return format ? std::string("opened") : format.error().what;
  };
  EXPECT_CONTAINS(why({"nothing"}), "no sample has the field 'nothing' (nothing) among the 1 examined records");
  EXPECT_CONTAINS(why({"nothing"}), "f (float), i (int64), s (bytes), t (bytes)");
  EXPECT_CONTAINS(why({"i:image"}), "holds int64 values, so the field 'i' cannot be of kind image");
  EXPECT_CONTAINS(why({"s"}), "up to 2 byte strings");
  EXPECT_CONTAINS(why({"f;i"}), "mixes float and int64 values");
  EXPECT_CONTAINS(why({"f", "f:array"}), "two fields are called 'f'");
  EXPECT_CONTAINS(why({"=f"}), "an empty name");
  EXPECT_CONTAINS(why({"f;"}), "an empty feature name");
  EXPECT_CONTAINS(why({"f:number"}), "unknown kind");
}

TEST_F(Tfrecord, ARecordThatDiffersIsAnErrorOfThatSampleAlone) {
  std::vector<std::string> data(40, example({{"n", ints_feature({5})}, {"t", bytes_feature({"x"})}}));
  data[33] = example({{"n", ints_feature({5, 6})}, {"t", bytes_feature({"x"})}});
  data[34] = example({{"n", bytes_feature({"5"})}, {"t", bytes_feature({"x"})}});
  data[35] = example({{"t", bytes_feature({"x"})}});
  data[36] = example({{"n", ints_feature({5})}, {"t", bytes_feature({"x", "y"})}});
  data[37] = "no message";
  data[38] = example({{"n", field(3, field(1, "\x80"))}, {"t", bytes_feature({"x"})}});
  const std::string source = write(data);
  const auto format = opened(source, {"n", "t"});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(shown(**format, 32), "5 x");
  EXPECT_EQ(shown(**format, 39), "5 x");
  EXPECT_CONTAINS(shown(**format, 33), "field 'n': the feature 'n' has 2 values, but one was expected");
  EXPECT_CONTAINS(shown(**format, 34), "does not hold int64 values");
  EXPECT_CONTAINS(shown(**format, 35), "field 'n': the record has no feature 'n'");
  EXPECT_CONTAINS(shown(**format, 36), "has 2 byte strings");
  EXPECT_CONTAINS(shown(**format, 37), "not a tf.train.Example");
  EXPECT_CONTAINS(shown(**format, 38), "cannot be read");
  memory::Record record;
  const Where where = (*format)->read(33, record).error().where;
  EXPECT_EQ(where.record, 33u);
  EXPECT_EQ(where.key, "x/00000033");
  EXPECT_EQ(where.shard, source);
  EXPECT_EQ(where.offset, 33 * (data[0].size() + 16));
  OpenOptions options;
  options.fields = {"n", "t"};
  EXPECT_EQ(inspected(source, options),
            "feature_differs:error feature_differs:error missing_field:error feature_differs:error "
            "not_an_example:error feature_differs:error");
}

TEST_F(Tfrecord, MissingFeaturesAreSkippedOrAbsent) {
  std::vector<std::string> data(50, example({{"a", ints_feature({1})}}));
  data[40] = example({{"a", ints_feature({2})}, {"rare", bytes_feature({"r"})}});  // not among the first records
  data[45] = example({{"a", ""}, {"rare", bytes_feature({"s"})}});
  const std::string source = write(data);
  const auto skipped = opened(source, {"a", "rare"}, Missing::kSkip);
  ASSERT_TRUE(skipped) << skipped.error().message();
  ASSERT_EQ((*skipped)->size(), 1u);
  EXPECT_EQ(shown(**skipped, 0), "2 r");
  EXPECT_EQ((*skipped)->where(0).key, "x/00000040");
  EXPECT_EQ((*skipped)->summary(), "49 samples were omitted because they lack a field");
  const auto none = opened(source, {"a", "rare"}, Missing::kNone);
  ASSERT_TRUE(none) << none.error().message();
  ASSERT_EQ((*none)->size(), 50u);
  EXPECT_EQ(shown(**none, 0) + " " + shown(**none, 40) + " " + shown(**none, 45), "1 - 2 r - s");
  EXPECT_TRUE((*none)->fields()[0].may_be_absent);
  EXPECT_FALSE((*opened(source, {"a"}, Missing::kSkip))->fields()[0].may_be_absent);
  EXPECT_CONTAINS(opened(source, {"rare"}).error().what, "no sample has the field 'rare'");
}

TEST_F(Tfrecord, EveryFlippedBitIsAnErrorOrTheSameValue) {
  const std::string data = example({{"n", ints_feature({300})}, {"t", bytes_feature({"text"})}});
  const std::string file = records_of_all({data, data, data});
  std::size_t at_open = 0, at_read = 0;
  for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    std::filesystem::remove(folder_.path(".feedline/x.tfrecord.feedline-index"));
    OpenOptions options;
    options.fields = {"n", "t"};
    options.format = "tfrecord";
    const auto format = open_records(folder_.write("x.tfrecord", flipped), options);
    if (!format) {
      EXPECT_TRUE(format.error().code == ErrorCode::kData) << bit << format.error().message();
      EXPECT_EQ(format.error().where.shard, folder_.path("x.tfrecord"));
      ++at_open;
      continue;
    }
    ASSERT_EQ((*format)->size(), 3u) << bit;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string text = shown(**format, i);
      EXPECT_TRUE(text == "300 text" || text.starts_with("error: record " + std::to_string(i))) << bit << text;
      wrong += text != "300 text";
    }
    EXPECT_EQ(wrong, 1u) << bit;
    ++at_read;
  }
  EXPECT_EQ(at_open, 3 * 8 * 12u);
  EXPECT_EQ(at_read, 8 * file.size() - at_open);
}

TEST_F(Tfrecord, CompressedFilesReadTheSame) {
  ::setenv("XDG_CACHE_HOME", folder_.path("cache").c_str(), 1);
  const auto samples = some_samples();
  const std::string plain = records_of(samples);
  const auto reference = opened(folder_.write("plain.tfrecord", plain));
  for (const auto& [name, window] : {std::pair("x.tfrecord.gz", kGzipWindow), std::pair("y.tfrecord", kZlibWindow)}) {
    const std::string file = deflated(plain, window);
    const std::string source = folder_.write(name, file);
    const auto format = opened(source);
    ASSERT_TRUE(format) << format.error().message();
    EXPECT_EQ((*format)->fingerprint(), (*reference)->fingerprint());
    EXPECT_EQ((*format)->where(0).shard, source);
    for (std::size_t i = 0; i < samples.size(); ++i) EXPECT_EQ(shown(**format, i), shown(**reference, i)) << i;
    const auto cut = opened(folder_.write("cut-" + std::string(name), file.substr(0, file.size() - 5)));
    ASSERT_FALSE(cut);
    EXPECT_CONTAINS(cut.error().what, window > 15 ? "damaged gzip data" : "damaged zlib data");
  }
}

// The lengths 35,615 (0x8b1f) and 40,056 (0x9c78) look like the start of gzip and zlib data.
TEST_F(Tfrecord, ALengthIsNotTakenForCompressedData) {
  for (const std::size_t length : {std::size_t{0x8b1f}, std::size_t{0x9c78}}) {
    const std::string around = example({{"t", bytes_feature({std::string(30'000, 'x')})}});
    const std::string data = example({{"t", bytes_feature({std::string(30'000 + length - around.size(), 'x')})}});
    ASSERT_EQ(data.size(), length);
    const auto format = opened(write({data}), {"t"});
    ASSERT_TRUE(format) << format.error().message();
    EXPECT_EQ((*format)->size(), 1u);
  }
}

TEST_F(Tfrecord, IndexesOfOthersAreReadWhereTheyFit) {
  const std::string one = example({{"n", ints_feature({1})}}), two = example({{"n", ints_feature({2, 2})}});
  const std::string source = write({one, one, two}, "set/x.tfrecord");
  const std::string good = "0 " + std::to_string(one.size() + 16) + "\n" + std::to_string(one.size() + 16) + " " +
                           std::to_string(one.size() + 16) + "\n" + std::to_string(2 * one.size() + 32) + " " +
                           std::to_string(two.size() + 16) + "\n";
  for (const char* name :
       {"set/x.tfindex", "set/x.tfrecord.tfindex", "set/x.idx", "set/x.tfrecord.idx", "set/x.index"}) {
    folder_.write(name, good);
    const auto format = opened(source, {"n:array"});
    ASSERT_TRUE(format) << format.error().message();
    EXPECT_EQ(shown(**format, 2), "(2,):2,2");
    EXPECT_FALSE(std::filesystem::exists(index_of(source))) << "our own index is not needed";
    std::filesystem::remove(folder_.path(name));
  }
  EXPECT_EQ(notes_->lines().size(), 0u);
  // an index of another shard: Feedline makes its own, and reports this
  folder_.write("set/x.idx", "0 20\n20 30\n");
  OpenOptions options;
  options.fields = {"n:array"};
  EXPECT_EQ(inspected(source, options), "foreign_index:warning");
  const auto format = opened(source, {"n:array"});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ((*format)->size(), 3u);
  ASSERT_EQ(notes_->lines().size(), 1u);
  EXPECT_CONTAINS(notes_->lines()[0],
                  "x.idx' does not belong to this shard and is not used: the listed records end at byte 50");
}

// The index covers the whole shard. Some of the indexed records are compared when the shard is opened.
TEST_F(Tfrecord, AnIndexOfOtherRecordsIsSeenWhenAShardIsOpened) {
  const std::string one = example({{"n", ints_feature({1})}});
  const std::uint64_t bytes = one.size() + 16;
  const std::string source = write({one, one});
  for (const std::uint64_t first : {bytes - 1, bytes + 1, 2 * bytes - 16}) {
    folder_.write("x.idx", "0 " + std::to_string(first) + "\n" + std::to_string(first) + " " +
                               std::to_string(2 * bytes - first) + "\n");
    const auto format = opened(source, {"n"});
    ASSERT_TRUE(format) << format.error().message();
    EXPECT_EQ(shown(**format, 0) + shown(**format, 1), "11") << first;
    EXPECT_CONTAINS(notes_->lines().front(), "the shard does not have record 0 at byte 0");
    std::filesystem::remove(index_of(source));
  }
}

// The first and last offsets are correct, but those between them are wrong. In a long index, not all records are
// compared on opening.
TEST_F(Tfrecord, AnIndexThatLiesInBetweenNeverGivesAWrongSample) {
  const std::string data = example({{"n", ints_feature({1})}});
  const std::uint64_t bytes = data.size() + 16;
  const std::string source = write(std::vector<std::string>(1'000, data));
  std::string text;
  for (std::uint64_t i = 0, begin = 0; i < 1'000; ++i) {
    const std::uint64_t length = i == 501 ? bytes + 1 : i == 502 ? bytes - 1 : bytes;
    text += std::to_string(begin) + " " + std::to_string(length) + "\n";
    begin += length;
  }
  folder_.write("x.idx", text);
  const auto format = opened(source, {"n"});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(shown(**format, 500), "1");
  EXPECT_EQ(shown(**format, 503), "1");
  EXPECT_CONTAINS(shown(**format, 501),
                  "record 501 of the shard: the shard does not have this record at the position in the index '" +
                      folder_.path("x.idx"));
  EXPECT_CONTAINS(shown(**format, 502), "one of them is damaged");
  OpenOptions options;
  options.fields = {"n"};
  EXPECT_EQ(inspected(source, options), "foreign_index:error");
}

TEST_F(Tfrecord, AShardThatChangesIsNoticed) {
  const std::string data = example({{"n", ints_feature({1})}});
  const std::string source = write({data, data});
  const auto format = opened(source, {"n"});
  ASSERT_TRUE(format);
  EXPECT_EQ(shown(**format, 0), "1");
  folder_.write("x.tfrecord", records_of_all({data, data, data}));
  (*format)->notice_changes();
  EXPECT_TRUE(shown(**format, 0).starts_with("error: ")) << shown(**format, 0);
  EXPECT_EQ((*opened(source, {"n"}))->size(), 3u) << "a stale index is rebuilt";
}

TEST_F(Tfrecord, SourcesAreToldByNameAndContent) {
  const std::string data = example({{"n", ints_feature({1})}});
  for (const char* name : {"a", "b.bin", "c.tfrecords", "d-00000-of-00002", "e.tfrec", "f.tfrecord-00000-of-00001"}) {
    const auto format = opened(write({data}, name), {"n"});
    EXPECT_TRUE(format) << name << format.error().message();
  }
  // damaged or missing: the format is recognised by the name
  EXPECT_EQ(opened(folder_.write("g.tfrecord", "nothing of the kind"), {"n"}).error().code, ErrorCode::kData);
  EXPECT_CONTAINS(opened(folder_.path("h.tfrecord")).error().message(), "h.tfrecord");
  EXPECT_CONTAINS(opened(folder_.write("empty.tfrecord", "")).error().what, "the TFRecord files have no records");
  EXPECT_EQ(inspected(folder_.path("empty.tfrecord")), "no_field:error no_samples:warning");
  const auto list = opened(folder_.path("a") + "::" + folder_.path("{b.bin,c.tfrecords}"), {"n"});
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ((*list)->size(), 3u);
  EXPECT_EQ((*list)->where(2).key, "c/00000000");
}

TEST_F(Tfrecord, KeysAreApartThoughShardsAreCalledTheSame) {
  EXPECT_EQ(stems_of({"a/x.tfrecord", "b/x.tfrecord", "b/y.tfrecord.gz"}),
            (std::vector<std::string>{"x-0", "x-1", "y"}));
  EXPECT_EQ(stems_of({"v1.2-00000-of-00002", "t.tfrecord-00001-of-00002", "t.tfrecord-00000-of-00002"}),
            (std::vector<std::string>{"v1_2-00000-of-00002", "t-00001-of-00002", "t-00000-of-00002"}));
  EXPECT_EQ(record_key("x", 12), "x/00000012");
  EXPECT_EQ(record_key("x", 1'234'567'890), "x/1234567890");
}

TEST_F(Tfrecord, GivesEveryFeatureAsAFile) {
  const std::string png = "\x89PNG\r\n\x1a\n and so on";
  const auto format = opened(write({sequence_example({{"image/encoded", bytes_feature({png})},
                                                      {"image/class/label", ints_feature({7})},
                                                      {"image/Height", ints_feature({32})},
                                                      {"many", ints_feature({1, 2})},
                                                      {"image/class/text", bytes_feature({"cat"})},
                                                      {"parts", bytes_feature({"a", "b"})},
                                                      {"none", ""}},
                                                     {{"steps", {floats_feature({1, 2}), floats_feature({3, 4})}}})}));
  ASSERT_TRUE(format) << format.error().message();
  const auto stored = (*format)->files(0);
  ASSERT_TRUE(stored) << stored.error().message();
  std::string text;
  for (const auto& file : stored->files) {
    const std::string bytes(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
    text += file.extension + "=" + (bytes.starts_with("\x93NUMPY") ? numbers(bytes) : bytes) + "|";
  }
  EXPECT_EQ(text, "png=" + png + "|cls=7|image_height.cls=32|image_class_text.txt=cat|many.npy=(2,):1,2|" +
                      "parts.0.bin=a|parts.1.bin=b|steps.npy=(2, 2):10,20,30,40|");
  const auto sizes = (*format)->file_sizes(0);
  ASSERT_TRUE(sizes);
  for (std::size_t i = 0; i < stored->files.size(); ++i)
    EXPECT_EQ(sizes->files[i].bytes, stored->files[i].bytes.size()) << i;
}

TEST_F(Tfrecord, NumbersThatAreNoRowsAreThatSamplesError) {
  const auto format =
      opened(write({example({{"b", floats_feature({1, 2, 3, 4})}}), example({{"b", floats_feature({1, 2, 3, 4, 5})}}),
                    example({{"b", floats_feature({})}})}),
             {"b:boxes", "p=b:keypoints"});
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(shown(**format, 0), "(1, 4):10,20,30,40 (2, 2):10,20,30,40");
  EXPECT_CONTAINS(shown(**format, 1), "field 'b': the feature 'b' has 5 values, which do not form rows of 4");
  EXPECT_EQ(shown(**format, 2), "(0, 4): (0, 2):");
}

TEST_F(Tfrecord, ASampleOverTheLimitIsRefusedByItsLength) {
  const auto format =
      opened(write({example({{"t", bytes_feature({std::string(1'000, 'x')})}}),
                    example({{"n", ints_feature(std::vector<std::int64_t>(500, 1))}, {"t", bytes_feature({"y"})}})}),
             {"t"});
  ASSERT_TRUE(format);
  memory::Record record;
  record.most_bytes = 900;
  const auto read = (*format)->read(0, record);
  ASSERT_FALSE(read);
  EXPECT_CONTAINS(read.error().what, "over the limit of 900");
  EXPECT_TRUE((*format)->read(1, record));
  OpenOptions mapped;
  mapped.fields = {"t"};
  mapped.storage = storage::mapped_storage();
  EXPECT_FALSE((*open_records(folder_.path("x.tfrecord"), mapped))->read(0, record)) << "its pages would be brought in";
  // 500 one-byte numbers are delivered as 4,000 bytes
  const auto numbers = opened(folder_.path("x.tfrecord"), {"n;t2:array"}, Missing::kNone);
  ASSERT_TRUE(numbers) << numbers.error().message();
  const auto large = (*numbers)->read(1, record);
  ASSERT_FALSE(large);
  EXPECT_CONTAINS(large.error().what, "over the limit of 900");
}

}  // namespace
}  // namespace feedline::format
