// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "format/columnar/parquet/deltas.h"
#include "format/columnar/parquet/parquet_table.h"
#include "format/columnar/parquet/parquet_writer.h"
#include "format/columnar/parquet/runs.h"
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
    R"({"info": {"features": {"image": {"_type": "Image"}, "label": {"names": ["a", "b"], "_type": "ClassLabel"}}}})";

std::vector<MadeLeaf> leaves_of(const std::vector<StoredSample>& samples, std::size_t in_group, std::size_t in_page) {
  MadeLeaf bytes{{node_of("image", 1, {}, 2), node_of("bytes", 1, ParquetType::kBytes)}, ParquetType::kBytes};
  MadeLeaf path{{node_of("path", 1, ParquetType::kBytes, 0, 0)}, ParquetType::kBytes};
  MadeLeaf label{{node_of("label", 1, ParquetType::kInt64)}, ParquetType::kInt64};
  for (std::size_t group = 0; group < samples.size(); group += in_group) {
    for (MadeLeaf* leaf : {&bytes, &path, &label}) leaf->groups.emplace_back();
    for (std::size_t page = group; page < std::min(group + in_group, samples.size()); page += in_page) {
      std::vector<std::string> images;
      std::vector<std::int64_t> labels;
      for (std::size_t i = page; i < std::min({page + in_page, group + in_group, samples.size()}); ++i) {
        images.push_back(samples[i].image);
        labels.push_back(samples[i].label);
      }
      const auto count = static_cast<std::int64_t>(images.size());
      const std::string two = varint_text(2 * images.size()) + '\2', one = varint_text(2 * images.size()) + '\1';
      bytes.groups.back().push_back({count, count, {}, two, plain_bytes(images)});
      path.groups.back().push_back({count, count, {}, one, ""});
      label.groups.back().push_back({count, count, {}, one, plain_text(labels)});
    }
  }
  return {bytes, path, label};
}

std::string written(const std::vector<StoredSample>& samples, ParquetWriter::Options options) {
  options.children = 2;
  options.features = kFeatures;
  std::vector<std::int64_t> rows;
  for (std::size_t begin = 0; begin < samples.size(); begin += 10)
    rows.push_back(static_cast<std::int64_t>(std::min<std::size_t>(10, samples.size() - begin)));
  return ParquetWriter::write(leaves_of(samples, 10, 3), rows, options);
}

ParquetWriter::Options packed(int codec, Compression kind) {
  return {codec, [kind](const std::string& plain) { return compressed(kind, plain); }};
}

std::string store_plain(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  return folder.write("data.parquet", written(samples, {}));
}
std::string store_indexed(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  return folder.write("data.parquet", written(samples, {.has_index = true}));
}
// The file has no checksums, so that large images can be read individually.
std::string store_unchecked(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  std::vector<MadeLeaf> leaves = leaves_of(samples, samples.size(), 3);
  for (MadeLeaf& leaf : leaves)
    for (MadePage& page : leaf.groups.front()) page.has_crc = false;
  const auto rows = static_cast<std::int64_t>(samples.size());
  return folder.write("data.parquet", ParquetWriter::write(leaves, {rows}, {.features = kFeatures, .children = 2}));
}
std::string store_split(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  const auto half = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  folder.write("set/data/train-00000-of-00002.parquet", written({samples.begin(), half}, {}));
  folder.write("set/data/train-00001-of-00002.parquet", written({half, samples.end()}, {}));
  return folder.path("set");
}

std::string key_of_one(std::size_t i) { return "data/" + std::string(i < 10 ? 7 : 6, '0') + std::to_string(i); }

// Returns a file with an image in an uncompressed page.
FormatUnderTest under_test(const std::string& name, decltype(store_plain)* store,
                           std::function<std::shared_ptr<const storage::Storage>()> storage) {
  const bool is_split = store == store_split;
  return {name,
          "parquet",
          store,
          std::move(storage),
          {},
          "image",
          is_split ? [](std::size_t) { return std::string(); } : std::function<std::string(std::size_t)>(key_of_one),
          20'000,
          true};
}

INSTANTIATE_TEST_SUITE_P(Parquet, FormatContract,
                         ::testing::Values(under_test("parquet", store_plain, storage::local_storage),
                                           under_test("parquet_mapped", store_plain, storage::mapped_storage),
                                           under_test("parquet_short_reads", store_plain, storage::short_reads_storage),
                                           under_test("parquet_indexed", store_indexed, storage::local_storage),
                                           under_test("parquet_unchecked", store_unchecked, storage::local_storage),
                                           under_test("parquet_unchecked_mapped", store_unchecked,
                                                      storage::mapped_storage),
                                           under_test("parquet_split", store_split, storage::local_storage)),
                         name_of_format);

class Parquet : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const RecordFormat>> opened(const std::string& bytes,
                                                     const std::vector<std::string>& fields = {},
                                                     Missing missing = Missing::kError) const {
    OpenOptions options;
    options.fields = fields;
    options.missing = missing;
    options.format = "parquet";
    return open_records(folder_.write("x.parquet", bytes), options);
  }
  std::string all(const std::string& bytes, const std::vector<std::string>& fields, Missing missing = Missing::kError) {
    return shown_samples(opened(bytes, fields, missing));
  }
  // Returns a file with one required column "x" in one page.
  std::string one(ParquetType type, ParquetEncoding encoding, std::int64_t values, const std::string& data,
                  std::optional<std::int64_t> converted = {}, std::int64_t type_bytes = 0) {
    MadeLeaf leaf{
        {node_of("x", 0, type, 0, converted, type_bytes)}, type, {{{values, values, {}, {}, data, encoding}}}};
    return all(ParquetWriter::write({leaf}, {values}), {"x"});
  }

  TemporaryFolder folder_;
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

using Encoding = ParquetEncoding;

TEST_F(Parquet, PlainValuesOfEveryType) {
  EXPECT_EQ(one(ParquetType::kInt64, Encoding::kPlain, 2, plain_text<std::int64_t>({-5, 1LL << 40})),
            "-5|1099511627776");
  EXPECT_EQ(one(ParquetType::kInt32, Encoding::kPlain, 2, plain_text<std::int32_t>({-5, 7})), "-5|7");
  EXPECT_EQ(one(ParquetType::kFloat, Encoding::kPlain, 2, plain_text<float>({0.5F, -1})), "():5|():-10");
  EXPECT_EQ(one(ParquetType::kDouble, Encoding::kPlain, 1, plain_text<double>({2.5})), "():25");
  EXPECT_EQ(one(ParquetType::kBool, Encoding::kPlain, 9, "\x05\x01"), "1|0|1|0|0|0|0|0|1");
  EXPECT_EQ(one(ParquetType::kBytes, Encoding::kPlain, 2, plain_bytes({"a", ""})), "a|");
  EXPECT_EQ(one(ParquetType::kFixedBytes, Encoding::kPlain, 2, "abcdef", {}, 3), "abc|def");
  constexpr std::int64_t kUint8 = 11, kInt8 = 15, kUint64 = 14, kDecimal = 5;
  EXPECT_EQ(one(ParquetType::kInt32, Encoding::kPlain, 2, plain_text<std::int32_t>({200, 7}), kUint8), "200|7");
  EXPECT_EQ(one(ParquetType::kInt32, Encoding::kPlain, 2, plain_text<std::int32_t>({-3, 7}), kInt8), "-3|7");
  EXPECT_CONTAINS(one(ParquetType::kInt64, Encoding::kPlain, 1, plain_text<std::int64_t>({-1}), kUint64),
                  "64-bit integer");
  MadeLeaf narrow{{node_of("x", 0, ParquetType::kInt32, 0, kInt8)}, ParquetType::kInt32};
  narrow.groups = {{{2, 2, {}, {}, plain_text<std::int32_t>({100, 7})}}};
  EXPECT_EQ(all(ParquetWriter::write({narrow}, {2}), {"x:array"}), "():100|():7") << "of a byte, as their type says";
  EXPECT_CONTAINS(one(ParquetType::kInt64, Encoding::kPlain, 1, plain_text<std::int64_t>({1}), kDecimal),
                  "holds decimals, which this version cannot read as a field");
  EXPECT_CONTAINS(one(ParquetType::kInt96, Encoding::kPlain, 1, std::string(12, '\0')), "INT96");
}

TEST_F(Parquet, EveryEncoding) {
  // The header specifies blocks of 128 values in 4 parts, 3 values, and 7 as the first value. The values 9 and 6
  // follow, so the smallest difference is -3, and the other difference is 5 above the smallest.
  const std::string deltas = varint_text(128) + varint_text(4) + varint_text(3) + zigzag_text(7) + zigzag_text(-3) +
                             std::string("\x03\x00\x00\x00", 4) + std::string("\x05", 1) + std::string(11, '\0');
  EXPECT_EQ(one(ParquetType::kInt64, Encoding::kDelta, 3, deltas), "7|9|6");
  EXPECT_EQ(one(ParquetType::kInt32, Encoding::kDelta, 3, deltas), "7|9|6");
  const auto lengths = [](std::vector<int> all) {
    std::string text = varint_text(128) + varint_text(4) + varint_text(all.size()) + zigzag_text(all[0]);
    if (all.size() == 1) return text;
    int least = 100;
    for (std::size_t i = 1; i < all.size(); ++i) least = std::min(least, all[i] - all[i - 1]);
    text += zigzag_text(least) + std::string("\x08\x00\x00\x00", 4);
    std::string part(32, '\0');
    for (std::size_t i = 1; i < all.size(); ++i) part[i - 1] = static_cast<char>(all[i] - all[i - 1] - least);
    return text + part;
  };
  EXPECT_EQ(one(ParquetType::kBytes, Encoding::kDeltaLength, 3, lengths({1, 0, 3}) + "abcd"), "a||bcd");
  EXPECT_EQ(one(ParquetType::kBytes, Encoding::kDeltaBytes, 3, lengths({0, 2, 1}) + lengths({3, 1, 2}) + "abcdxy"),
            "abc|abd|axy");
  EXPECT_EQ(one(ParquetType::kFixedBytes, Encoding::kDeltaBytes, 2, lengths({0, 2}) + lengths({3, 1}) + "abcd", {}, 3),
            "abc|abd");
  EXPECT_EQ(one(ParquetType::kFloat, Encoding::kStreams, 2, std::string("\0\0\0\0\0\x80\x3f\x3f", 8)), "():5|():10");
  EXPECT_EQ(one(ParquetType::kBool, Encoding::kRuns, 5, ParquetWriter::u32(2) + "\x03\x15"), "1|0|1|0|1");
  EXPECT_CONTAINS(one(ParquetType::kBool, Encoding::kBits, 5, "\x15"), "the encoding 4, which this version does not");
  MadeLeaf leaf{{node_of("x", 0, ParquetType::kBytes)}, ParquetType::kBytes};
  leaf.groups = {{{.values = 2, .data = plain_bytes({"zero", "one"}), .is_dictionary = true},
                  {4, 4, {}, {}, std::string("\x01\x03\x06", 3), Encoding::kDictionary},
                  {2, 2, {}, {}, plain_bytes({"plain", "too"})}}};
  EXPECT_EQ(all(ParquetWriter::write({leaf}, {6}), {"x"}), "zero|one|one|zero|plain|too");
  EXPECT_EQ(all(ParquetWriter::write({leaf}, {6}, {.has_index = true}), {"x"}), "zero|one|one|zero|plain|too");
  EXPECT_EQ(all(ParquetWriter::write({leaf}, {6}, packed(6, Compression::kZstd)), {"x"}),
            "zero|one|one|zero|plain|too");
  leaf.groups[0][1].data[2] = '\x02';
  leaf.groups[0][0].values = 1;
  leaf.groups[0][0].data = plain_bytes({"zero"});
  EXPECT_CONTAINS(all(ParquetWriter::write({leaf}, {6}), {"x"}), "exceed the page's size");
  leaf.groups[0].erase(leaf.groups[0].begin());
  EXPECT_CONTAINS(all(ParquetWriter::write({leaf}, {6}), {"x"}), "refer to a dictionary that is missing");
}

TEST_F(Parquet, EveryCodecInPagesOfBothVersions) {
  const std::string line = std::string(kBrotliLine);
  const std::string value = repeated(line, 40);
  for (const auto& [codec, kind] : {std::pair(1, Compression::kSnappy), std::pair(2, Compression::kGzip),
                                    std::pair(6, Compression::kZstd), std::pair(7, Compression::kLz4)})
    for (const bool is_v2 : {false, true}) {
      MadeLeaf leaf{{node_of("x", 1, ParquetType::kBytes)}, ParquetType::kBytes};
      leaf.groups = {{{3, 3, {}, runs_text({1, 0, 1}), plain_bytes({value, "b"}), Encoding::kPlain, is_v2}}};
      EXPECT_EQ(all(ParquetWriter::write({leaf}, {3}, packed(codec, kind)), {"x"}, Missing::kNone), value + "|-|b")
          << codec;
    }
  // A page of fixed-size byte strings stores no lengths, so it consists only of copies of the line.
  MadeLeaf leaf{{node_of("x", 0, ParquetType::kFixedBytes, 0, {}, static_cast<std::int64_t>(line.size()))},
                ParquetType::kFixedBytes};
  leaf.groups = {{{40, 40, {}, {}, value}}};
  EXPECT_EQ(all(ParquetWriter::write({leaf}, {40}, packed(4, Compression::kBrotli)), {"x"}).substr(0, line.size() + 1),
            line + "|");
  leaf.groups = {{{40, 40, {}, {}, value}}};
  EXPECT_CONTAINS(all(ParquetWriter::write({leaf}, {40}, packed(5, Compression::kLz4)), {"x"}), "Hadoop's frames");
  EXPECT_CONTAINS(all(ParquetWriter::write({leaf}, {40}, packed(3, Compression::kLz4)), {"x"}), "LZO");
}

TEST_F(Parquet, NullsAreErrorsSkippedOrAbsent) {
  MadeLeaf leaf{{node_of("n", 1, ParquetType::kInt64)}, ParquetType::kInt64};
  leaf.groups = {{{4, 4, {}, runs_text({1, 0, 1, 0}), plain_text<std::int64_t>({5, 6})}}};
  const std::string file = ParquetWriter::write({leaf}, {4});
  EXPECT_CONTAINS(all(file, {"n"}), "5|error: field 'n': the row has no value in the column 'n'");
  EXPECT_EQ(all(file, {"n"}, Missing::kNone), "5|-|6|-");
  EXPECT_EQ(all(file, {"n"}, Missing::kSkip), "5|6");
  leaf.groups = {{{2, 2, {}, runs_text({1, 1}), plain_text<std::int64_t>({5, 6})}}};
  leaf.nulls = 0;
  EXPECT_FALSE(opened(ParquetWriter::write({leaf}, {2}), {"n"}, Missing::kNone).value()->fields()[0].may_be_absent);
}

MadeLeaf list_leaf(const std::string& name = "ids") {
  constexpr std::int64_t kList = 3;
  return {{node_of(name, 1, {}, 1, kList), node_of("list", 2, {}, 1), node_of("element", 1, ParquetType::kInt64)},
          ParquetType::kInt64};
}

TEST_F(Parquet, ListsBecomeArraysAlsoAcrossPages) {
  // null, empty, [1, 2], [3, ... and on the second and third page 4, 5], [6]; the last list contains a null
  const auto pages = [](bool is_v2) {
    return std::vector<MadePage>{
        {5, 4, runs_text({0, 0, 0, 1, 0}), runs_text({0, 1, 3, 3, 3}), plain_text<std::int64_t>({1, 2, 3}),
         Encoding::kPlain, is_v2},
        {1, 0, runs_text({1}), runs_text({3}), plain_text<std::int64_t>({4}), Encoding::kPlain, is_v2},
        {2, 1, runs_text({1, 0}), runs_text({3, 3}), plain_text<std::int64_t>({5, 6}), Encoding::kPlain, is_v2}};
  };
  MadeLeaf leaf = list_leaf();
  leaf.groups = {pages(false)};
  EXPECT_EQ(all(ParquetWriter::write({leaf}, {5}), {"ids"}, Missing::kNone), "-|(0,):|(2,):1,2|(3,):3,4,5|(1,):6");
  EXPECT_EQ(all(ParquetWriter::write({leaf}, {5}), {"ids"}, Missing::kSkip), "(0,):|(2,):1,2|(3,):3,4,5|(1,):6");
  leaf.groups[0][2].definition = runs_text({2, 3});
  leaf.groups[0][2].data = plain_text<std::int64_t>({6});
  EXPECT_CONTAINS(all(ParquetWriter::write({leaf}, {5}), {"ids"}, Missing::kNone),
                  "(2,):1,2|error: field 'ids': the column 'ids': a list contains a null value");
  leaf.groups = {{{3, 2, runs_text({0, 1, 0}), runs_text({3, 3, 3}), plain_text<std::int64_t>({1, 2, 3}),
                   Encoding::kPlain, true}}};
  EXPECT_EQ(all(ParquetWriter::write({leaf}, {2}), {"ids"}), "(2,):1,2|(1,):3");
  EXPECT_EQ(all(ParquetWriter::write({leaf}, {2}, {.has_index = true}), {"ids"}), "(2,):1,2|(1,):3");
  leaf.groups[0][0].rows = 3;
  EXPECT_CONTAINS(all(ParquetWriter::write({leaf}, {2}), {"ids"}), "have 3 rows of 2");
}

TEST_F(Parquet, ListsOfListsAreArrays) {
  constexpr std::int64_t kList = 3;
  MadeLeaf deep{{node_of("deep", 1, {}, 1, kList), node_of("list", 2, {}, 1), node_of("element", 1, {}, 1, kList),
                 node_of("list", 2, {}, 1), node_of("element", 1, ParquetType::kInt64)},
                ParquetType::kInt64,
                {{}}};
  const auto rows_of = [&](const std::vector<std::uint32_t>& repetitions, const std::vector<std::uint32_t>& definitions,
                           const std::vector<std::int64_t>& values, std::int64_t rows) {
    deep.groups = {{{std::ssize(repetitions), rows, runs_text(repetitions), runs_text(definitions),
                     plain_text<std::int64_t>(values), Encoding::kPlain, true}}};
    return all(ParquetWriter::write({deep}, {rows}), {"deep"});
  };
  EXPECT_EQ(rows_of({0, 2, 1, 2, 0, 0}, {5, 5, 5, 5, 1, 5}, {1, 2, 3, 4, 5}, 3), "(2, 2):1,2,3,4|(0, 0):|(1, 1):5");
  EXPECT_CONTAINS(rows_of({0, 2, 1}, {5, 5, 5}, {1, 2, 3}, 1), "inner lists differ in length");
  EXPECT_CONTAINS(rows_of({0, 1}, {5, 2}, {1}, 1), "field 'deep': the column 'deep': a list contains a null value");
  EXPECT_CONTAINS(rows_of({0, 2}, {1, 5}, {1}, 1), "inner lists differ in length") << "levels that no list has";
}

TEST_F(Parquet, SetsAreListsOfStructs) {
  constexpr std::int64_t kMap = 1;
  MadeLeaf keys{
      {node_of("map", 1, {}, 1, kMap), node_of("key_value", 2, {}, 1), node_of("key", 0, ParquetType::kInt64)},
      ParquetType::kInt64,
      {{}}};
  EXPECT_CONTAINS(all(ParquetWriter::write({keys}, {0}), {"map"}), "map.key_value (list of structs)");
}

TEST_F(Parquet, WithoutFieldsAnImageAndALabel) {
  const auto format = opened(written(some_samples(), {}));
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ((*format)->classes(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(inspected(folder_.path("x.parquet")), "");
}

TEST_F(Parquet, EveryFlippedBitOfAPageWithAChecksumIsSeen) {
  MadeLeaf leaf{{node_of("x", 1, ParquetType::kBytes)}, ParquetType::kBytes};
  leaf.groups = {{{2, 2, {}, runs_text({1, 1}), plain_bytes({"first", "second"})}}};
  const std::string file = ParquetWriter::write({leaf}, {2});
  const std::size_t data = file.find("first"), begin = data - 12;
  for (std::size_t bit = 8 * begin; bit < 8 * (data + 15); ++bit) {
    std::string flipped = file;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_CONTAINS(all(flipped, {"x"}), "checksum is wrong");
  }
}

TEST_F(Parquet, NoChangedByteReadsOutsideOrGivesTooManyRows) {
  MadeLeaf ids = list_leaf();
  ids.groups = {{{3, 2, runs_text({0, 1, 0}), runs_text({3, 3, 3}), plain_text<std::int64_t>({1, 2, 3})}}};
  MadeLeaf words{{node_of("x", 1, ParquetType::kBytes)}, ParquetType::kBytes};
  words.groups = {{{.values = 2, .data = plain_bytes({"zero", "one"}), .is_dictionary = true, .has_crc = false},
                   {2, 2, {}, runs_text({1, 1}), std::string("\x01\x03\x02", 3), Encoding::kDictionary}}};
  for (MadeLeaf* leaf : {&ids, &words})
    for (MadePage& page : leaf->groups[0]) page.has_crc = false;
  std::size_t refused = 0;
  for (const bool has_index : {false, true}) {
    const std::string whole = ParquetWriter::write({ids, words}, {2}, {.has_index = has_index});
    for (std::size_t at = 0; at < whole.size(); ++at)
      for (const char value : {'\x00', '\x7f', '\xff'}) {
        std::string changed = whole;
        changed[at] = value;
        const auto format = opened(changed, {"ids", "x"});
        refused += !format;
        for (std::uint64_t i = 0; format && i < std::min<std::uint64_t>((*format)->size(), 4); ++i) {
          memory::Record record;
          (void)(*format)->read(i, record);
        }
      }
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      const auto cut = opened(whole.substr(0, bytes), {"ids", "x"});
      ASSERT_FALSE(cut) << bytes;
      EXPECT_EQ(cut.error().where.shard, folder_.path("x.parquet"));
    }
  }
  EXPECT_GT(refused, 100u);
}

// `datasets` stores many photos in each page. The whole page must be read only once.
TEST_F(Parquet, LargePlainValuesAreReadByThemselvesOnceTheirPageIsKnown) {
  const std::string first(5000, 'a'), third(3000, 'c');
  const std::string levels = varint_text(2) + '\1' + varint_text(2) + std::string(1, '\0') + varint_text(2) + '\1';
  const auto place_after_reading = [&](const std::string& value, bool has_crc, bool is_v2) {
    MadePage page{.values = 3, .rows = 3, .definition = levels, .data = plain_bytes({first, value})};
    page.has_crc = has_crc;
    page.is_v2 = is_v2;
    page.nulls = 1;
    const MadeLeaf leaf{{node_of("x", 1, ParquetType::kBytes)}, ParquetType::kBytes, {{page}}};
    const std::string bytes = ParquetWriter::write({leaf}, {3});
    const auto storage = storage::local_storage();
    const std::string path = folder_.write("x.parquet", bytes);
    const std::shared_ptr<const storage::Reader> reader = storage->open(path, storage::Access::kRead).value();
    const auto cache = std::make_shared<BlockCache>(1 << 20);
    auto table = ParquetTable::open({path, path, storage, reader->version().value()}, *reader, cache).value();
    EXPECT_TRUE(table->choose(*reader, {0}));
    EXPECT_EQ(table->location(2, 0)->in, CellLocation::In::kPacked);
    std::shared_ptr<const void> pin;
    EXPECT_TRUE(std::ranges::equal(table->unpack(*reader, 2, 0, pin)->bytes, std::as_bytes(std::span(value))));
    const CellLocation location = table->location(2, 0).value();
    const bool is_known = location.in == CellLocation::In::kFile;
    EXPECT_EQ(is_known, cache->bytes() == 0);
    std::vector<FileRange> blocks;
    table->find_blocks(2, 0, blocks);
    EXPECT_EQ(blocks.empty(), !is_known);
    if (!is_known) return std::string("packed");
    EXPECT_EQ(table->location(1, 0)->in, CellLocation::In::kNull);
    return bytes.substr(location.offset, location.bytes);
  };
  EXPECT_EQ(place_after_reading(third, false, false), third);
  EXPECT_EQ(place_after_reading(third, false, true), third);
  EXPECT_EQ(place_after_reading("", false, false), "");
  EXPECT_EQ(place_after_reading(third, true, false), "packed") << "its checksum is of the whole page";
}

// Reads local files as if they were remote.
class FarFiles final : public storage::Storage {
 public:
  Result<std::unique_ptr<storage::Reader>> open(const std::string& path, storage::Access access) const override {
    return files_->open(path, access);
  }
  Result<std::span<const std::byte>> read_all(const std::string& path, memory::ByteBuffer& buffer,
                                              std::uint64_t most) const override {
    return files_->read_all(path, buffer, most);
  }
  Result<std::vector<storage::Entry>> list(const std::string& folder) const override { return files_->list(folder); }
  Result<storage::ObjectStat> stat(const std::string& path) const override { return files_->stat(path); }
  Result<bool> is_directory(const std::string& path) const override { return files_->is_directory(path); }
  bool is_remote() const override { return true; }

 private:
  const std::shared_ptr<const storage::Storage> files_ = storage::local_storage();
};

// Counts reads of a file.
class CountedReader final : public storage::Reader {
 public:
  explicit CountedReader(std::shared_ptr<const storage::Reader> file) : file_(std::move(file)) {}
  Result<storage::ObjectStat> stat() const override { return file_->stat(); }
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    ++reads;
    return file_->read_at(offset, out);
  }
  Result<std::optional<std::span<const std::byte>>> view(std::uint64_t offset, std::size_t bytes) const override {
    return file_->view(offset, bytes);
  }
  const std::string& name() const override { return file_->name(); }

  mutable int reads = 0;

 private:
  const std::shared_ptr<const storage::Reader> file_;
};

TEST_F(Parquet, AChunkWithoutAnIndexOfARemoteFileIsReadOnce) {
  for (const bool has_index : {false, true}) {
    const auto samples = some_samples();
    const std::string path = folder_.write("x.parquet", written(samples, {.has_index = has_index}));
    const auto storage = std::make_shared<FarFiles>();
    const CountedReader reader(storage->open(path, storage::Access::kRead).value());
    const auto cache = std::make_shared<BlockCache>(1 << 20);
    auto table = ParquetTable::open({path, path, storage, reader.version().value()}, reader, cache).value();
    const int footer = reader.reads;
    ASSERT_TRUE(table->choose(reader, {0}));
    const auto groups = static_cast<int>(table->parts().size());
    EXPECT_EQ(reader.reads - footer, has_index ? groups : 0);
    std::vector<FileRange> blocks;
    table->find_blocks(0, 0, blocks);
    ASSERT_EQ(blocks.size(), 1u);
    const FileRange chunk = blocks.front();
    int before = reader.reads;
    for (std::uint64_t row = 0; row < table->rows(); ++row) {
      std::shared_ptr<const void> pin;
      const auto cell = table->unpack(reader, row, 0, pin);
      ASSERT_TRUE(cell) << cell.error().message();
      EXPECT_TRUE(std::ranges::equal(cell->bytes, std::as_bytes(std::span(samples[row].image)))) << row;
      EXPECT_GE(table->offset_of(row), chunk.offset);
      blocks.clear();
      table->find_blocks(row, 0, blocks);
      EXPECT_TRUE(blocks.empty());
    }
    const int pages = reader.reads - before;
    EXPECT_EQ(pages, has_index ? static_cast<int>(cache->made()) : groups);
  }
}

TEST_F(Parquet, SmallPlainValuesStayInTheirPage) {
  MadeLeaf leaf{{node_of("x", 0, ParquetType::kBytes)},
                ParquetType::kBytes,
                {{{.values = 2, .rows = 2, .data = plain_bytes({"a", "b"}), .has_crc = false}}}};
  const auto format = opened(ParquetWriter::write({leaf}, {2}), {"x:text"});
  EXPECT_EQ(shown_samples(format), "a|b");
  EXPECT_NE((*format)->summary().find("1 blocks decompressed, 50 % of 2"), std::string::npos) << (*format)->summary();
}

TEST_F(Parquet, SourcesAreToldByNameContentAndFolder) {
  MadeLeaf leaf{
      {node_of("n", 0, ParquetType::kInt64)}, ParquetType::kInt64, {{{1, 1, {}, {}, plain_text<std::int64_t>({7})}}}};
  const std::string file = ParquetWriter::write({leaf}, {1});
  EXPECT_EQ((*open_records(folder_.write("a.bin", file)))->name(), "parquet");
  folder_.write("set/train-00000-of-00002.parquet", file);
  EXPECT_CONTAINS(open_records(folder_.path("set")).error().what, "has 1 files, but their names specify 2");
  folder_.write("set/train-00001-of-00002.parquet", file);
  EXPECT_EQ((*open_records(folder_.path("set")))->size(), 2u);
  folder_.write("set/test-00000-of-00001.parquet", file);
  EXPECT_CONTAINS(open_records(folder_.path("set")).error().what, "several splits (test, train); open one of them: ");
  EXPECT_EQ((*open_records(folder_.path("set/train-*.parquet")))->size(), 2u);
  EXPECT_EQ((*open_records(folder_.path("set/train-{00000,00001}-of-00002.parquet")))->size(), 2u);
  std::string encrypted = file;
  encrypted.replace(encrypted.size() - 4, 4, "PARE");
  EXPECT_CONTAINS(opened(encrypted).error().what, "the footer is encrypted");
}

// The key and value types of this map take no bytes, so a reader could loop without consuming input.
TEST_F(Parquet, AMapWithoutEndInAHeaderIsNone) {
  const std::string map = "\x1b" + varint_text(std::uint64_t{1} << 62) + std::string("\0and more", 9);
  EXPECT_FALSE(parse_page_header(std::as_bytes(std::span(map))));
  EXPECT_FALSE(parse_parquet_metadata(std::as_bytes(std::span(map))));
}

TEST_F(Parquet, PackedNumbersOfAnyWidth) {
  for (unsigned bits = 1; bits <= 64; ++bits) {
    std::vector<std::byte> packed(8 * bits + 9);
    const std::uint64_t most = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    for (std::uint64_t i = 0; i < 64; ++i)
      for (unsigned bit = 0; bit < bits; ++bit)
        if (((most - i * 977) & most) >> bit & 1) packed[(i * bits + bit) / 8] |= std::byte{1} << (i * bits + bit) % 8;
    for (std::uint64_t i = 0; i < 64; ++i)
      EXPECT_EQ(packed_at(std::span(packed).first(8 * bits), i, bits), (most - i * 977) & most) << bits;
  }
  // the difference of the two 64-bit limits wraps around
  const std::string ends = varint_text(128) + varint_text(4) + varint_text(2) +
                           zigzag_text(std::numeric_limits<std::int64_t>::max()) + zigzag_text(1) +
                           std::string(4, '\0');
  auto bytes = std::as_bytes(std::span(ends));
  const auto values = take_deltas(bytes, 2);
  ASSERT_TRUE(values);
  EXPECT_EQ(static_cast<std::int64_t>((*values)[1]), std::numeric_limits<std::int64_t>::min());
}

}  // namespace
}  // namespace feedline::format
