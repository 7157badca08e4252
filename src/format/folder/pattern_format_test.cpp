// SPDX-License-Identifier: Apache-2.0
#include "format/folder/pattern_format.h"

#include <gtest/gtest.h>

#include <set>

#include "format/format_contract.h"
#include "format/inspected.h"
#include "storage/short_reads_storage.h"
#include "storage/temporary_folder.h"

namespace feedline::format {
namespace {

using storage::TemporaryFolder;

std::string store_files(const TemporaryFolder& folder, const std::vector<StoredSample>& samples) {
  for (const StoredSample& sample : samples) {
    folder.write("data/" + sample.key + ".jpg", sample.image);
    folder.write("data/" + sample.key + ".cls", std::to_string(sample.label));
  }
  return folder.path("data");
}

const std::vector<std::string> kImageAndLabel{"image={key}.jpg", "label={key}.cls"};

INSTANTIATE_TEST_SUITE_P(Pattern, FormatContract,
                         ::testing::Values(FormatUnderTest{"pattern", "folder", store_files, storage::local_storage,
                                                           kImageAndLabel},
                                           FormatUnderTest{"pattern_short_reads", "folder", store_files,
                                                           storage::short_reads_storage, kImageAndLabel}),
                         name_of_format);

std::string text_of(const memory::Record& record, std::size_t field) {
  const auto bytes = record.fields[field].bytes;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<FieldPattern> parsed(const std::string& spec) {
  FEEDLINE_TRY(auto patterns, parse_patterns({spec}));
  return patterns[0];
}

TEST(FieldPattern, IsNamedAfterItsFolderAndKnowsItsKeys) {
  const auto mask = parsed("train/masks/{key}_label.PNG");
  ASSERT_TRUE(mask) << mask.error().message();
  EXPECT_EQ(mask->description.name, "masks");
  EXPECT_EQ(mask->description.kind, FieldKind::kMask);
  EXPECT_EQ(mask->folder, "train/masks");
  EXPECT_EQ(mask->key_of("a/b_label.PNG"), "a/b");
  EXPECT_FALSE(mask->key_of("_label.PNG")) << "a key has a name";
  EXPECT_FALSE(mask->key_of("a.PNG"));
  EXPECT_EQ(mask->path_of("a/b"), "train/masks/a/b_label.PNG");
  EXPECT_EQ(parsed("{key}.jpg")->description.name, "jpg");
  EXPECT_EQ(parsed("label=labels/{key}.txt:value")->description.name, "label");
  EXPECT_EQ(parsed("label=labels/{key}.txt:value")->description.kind, FieldKind::kInteger);
  EXPECT_EQ(parsed("x_{key}/image.jpg")->key_of("x_1/image.jpg"), "1");
}

TEST(FieldPattern, RefusesWhatIsNone) {
  for (const char* spec :
       {"jpg", "images/*.jpg", "{key}/{key}.jpg", "/images/{key}.jpg", "=a/{key}.jpg", "{key}", "a/{key}.jpg:photo"})
    EXPECT_FALSE(parsed(spec)) << spec;
  EXPECT_FALSE(parse_patterns({"images/{key}.jpg", "images/{key}.png"}));
  EXPECT_TRUE(parse_patterns({"images/{key}.jpg", "right=images/{key}.png"}));
}

class PatternFormatTest : public testing::Test {
 protected:
  PatternFormatTest() {
    for (const char* key : {"a", "b/1", "b/2", "c"}) {
      const std::string name(key);
      folder_.write("data/images/" + name + ".jpg", "image of " + name);
      if (name != "b/2") folder_.write("data/labels/" + name + ".txt", name == "c" ? "cat" : " 7\n");
    }
    folder_.write("data/images/notes.md", "no image");
  }
  std::shared_ptr<const RecordFormat> opened(Missing missing, std::shared_ptr<const storage::Storage> storage = {}) {
    const auto format = open_records(folder_.path("data/"), options(missing, std::move(storage)));
    EXPECT_TRUE(format) << format.error().message();
    return format ? *format : nullptr;
  }
  static OpenOptions options(Missing missing, std::shared_ptr<const storage::Storage> storage = {}) {
    return {
        .fields = {"images/{key}.jpg", "labels/{key}.txt:value"}, .storage = std::move(storage), .missing = missing};
  }
  TemporaryFolder folder_;
};

TEST_F(PatternFormatTest, ReadsAllFilesOfASample) {
  for (const auto& storage : {storage::local_storage(), storage::short_reads_storage()}) {
    const auto format = opened(Missing::kError, storage);
    ASSERT_EQ(format->size(), 4u);
    EXPECT_EQ(format->name(), "folder");
    memory::Record record;
    for (const std::uint64_t index : {1u, 0u}) {
      ASSERT_TRUE(format->read(index, record));
      EXPECT_EQ(text_of(record, 0), index == 1 ? "image of b/1" : "image of a");
      EXPECT_EQ(record.fields[1].value, 7);
    }
    EXPECT_EQ(format->where(1).key, "b/1");
    EXPECT_EQ(format->where(1).shard, folder_.path("data/images/b/1.jpg"));
  }
}

TEST_F(PatternFormatTest, FilesAreCalledAfterTheirFields) {
  const auto extensions = [](const std::vector<std::string>& specs) {
    std::string text;
    for (const std::string& spec : specs) text += parsed(spec)->member_extension() + " ";
    return text;
  };
  EXPECT_EQ(extensions({"images/{key}.JPG", "train/masks/{key}_x.png", "label=labels/{key}.cls", "{key}.jpg"}),
            "images.jpg masks.png label.cls jpg ");
  EXPECT_EQ(extensions({"{key}.mask.png", "{key}/left/eye.jpg", "raw=raw/{key}_bin"}), "mask.png left_eye.jpg raw ");
  const auto files = opened(Missing::kNone)->files(2);
  ASSERT_TRUE(files) << files.error().message();
  EXPECT_EQ(files->key, "b/2");
  EXPECT_FALSE(files->label);
  ASSERT_EQ(files->files.size(), 1u) << "it has no label";
  EXPECT_EQ(files->files[0].extension, "images.jpg");
  EXPECT_FALSE(opened(Missing::kError)->files(2));
}

TEST_F(PatternFormatTest, ASampleIsTooLargeByAllOfItsFiles) {
  const auto format = opened(Missing::kError);
  memory::Record record;
  record.most_bytes = 11 + 3;  // "image of b/1" has 12 bytes, " 7\n" has 3
  const auto read = format->read(1, record);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kData);
  EXPECT_EQ(read.error().where.key, "b/1");
  record.most_bytes = 15;
  EXPECT_TRUE(format->read(1, record));
}

TEST_F(PatternFormatTest, ErrorsNameTheFieldAndItsFile) {
  const auto format = opened(Missing::kError);
  memory::Record record;
  const auto lacks = format->read(2, record);
  ASSERT_FALSE(lacks);
  EXPECT_EQ(lacks.error().code, ErrorCode::kData);
  EXPECT_NE(lacks.error().what.find("field 'labels'"), std::string::npos);
  EXPECT_EQ(lacks.error().where.key, "b/2");
  const auto wrong = format->read(3, record);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().what.find("not an integer"), std::string::npos);
  EXPECT_EQ(wrong.error().where.shard, folder_.path("data/labels/c.txt"));
}

TEST_F(PatternFormatTest, MissingSaysWhatBecomesOfThem) {
  const auto skip = opened(Missing::kSkip);
  EXPECT_EQ(skip->size(), 3u);
  EXPECT_NE(skip->summary().find("1 samples were omitted"), std::string::npos);
  const auto none = opened(Missing::kNone);
  EXPECT_EQ(none->size(), 4u);
  memory::Record record;
  ASSERT_TRUE(none->read(2, record));
  EXPECT_TRUE(record.fields[1].absent);
  EXPECT_FALSE(record.fields[0].absent);
  EXPECT_TRUE(none->fields()[1].may_be_absent);
  EXPECT_EQ((std::set<std::uint64_t>{opened(Missing::kError)->fingerprint(), skip->fingerprint(), none->fingerprint()})
                .size(),
            3u);
  EXPECT_EQ(inspected(folder_.path("data"), options(Missing::kError)), "missing_field:error");
  EXPECT_EQ(inspected(folder_.path("data"), options(Missing::kSkip)), "missing_field:warning");
}

TEST_F(PatternFormatTest, AFieldWithoutAFileIsAConfigError) {
  const auto none = open(folder_.path("data"), {.fields = {"images/{key}.jpg", "masks/{key}.png"}});
  ASSERT_FALSE(none);
  const auto wrong = open(folder_.path("data"), {.fields = {"images/{key}.png"}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kConfig);
  EXPECT_NE(wrong.error().what.find("images/{key}.png"), std::string::npos);
}

}  // namespace
}  // namespace feedline::format
