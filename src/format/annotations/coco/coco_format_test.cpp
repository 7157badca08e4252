// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/coco/coco_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "format/annotations/annotated_fixture.h"
#include "format/annotations/coco/coco_scan.h"
#include "format/annotations/coco/coco_source.h"

namespace feedline::format {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

class Coco : public ::testing::Test {
 protected:
  // Writes the images "ID.jpg" with 6 x 4 pixels.
  static std::string images_of(const std::vector<int>& ids) {
    std::string text;
    for (const int id : ids)
      text += (text.empty() ? "" : ",") + std::string("{\"id\":") + std::to_string(id) + ",\"file_name\":\"" +
              std::to_string(id) + ".jpg\",\"width\":6,\"height\":4}";
    return "\"images\":[" + text + "]";
  }
  std::string write(const std::string& annotations, const std::vector<int>& ids = {1},
                    const std::string& categories = R"("categories":[{"id":3,"name":"c"},{"id":1,"name":"a"}])") const {
    for (const int id : ids) folder_.write("images/" + std::to_string(id) + ".jpg", "jpeg " + std::to_string(id));
    return folder_.write("x.json", "{" + images_of(ids) + ",\"annotations\":[" + annotations + "]," + categories + "}");
  }
  static std::string object(const std::string& rest, int image = 1) {
    return R"({"id":5,"category_id":3,"iscrowd":0,"image_id":)" + std::to_string(image) + "," + rest + "}";
  }
  Result<std::shared_ptr<const RecordFormat>> opened(const std::string& source,
                                                     const std::vector<std::string>& fields = {},
                                                     const std::string& crowd = "") const {
    OpenOptions options;
    options.fields = fields;
    options.annotations.crowd = crowd;
    return open_records(source, options);
  }
  // Returns a sample's fields as text, in order.
  static std::string shown(const RecordFormat& format, std::uint64_t index) {
    memory::Record record;
    if (const auto read = format.read(index, record); !read) return "error: " + read.error().message();
    std::string text;
    for (const memory::Record::Field& field : record.fields) text += (text.empty() ? "" : " ") + shown(field);
    return text;
  }
  static std::string shown(const memory::Record::Field& field) {
    std::string text;
    if (field.pixels.data != nullptr) {
      for (int i = 0; i < field.pixels.width * field.pixels.height; ++i)
        text += std::to_string(field.pixels.data[i * field.pixels.channels]) +
                (i + 1 < field.pixels.width * field.pixels.height ? "," : "");
      return text;
    }
    if (!field.array)
      return field.bytes.empty() ? std::to_string(field.value)
                                 : std::string(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
    text = field.array->shape.to_string() + ":";
    if (field.array->dtype == DType::kFloat32)
      for (const float value : numbers_of<float>(field)) text += std::to_string(static_cast<int>(value * 10)) + ",";
    if (field.array->dtype == DType::kInt64)
      for (const std::int64_t value : numbers_of<std::int64_t>(field)) text += std::to_string(value) + ",";
    if (field.array->dtype == DType::kUint8)
      for (const std::uint8_t value : numbers_of<std::uint8_t>(field)) text += static_cast<char>('0' + value);
    return text;
  }
  std::string show(const std::string& source, const std::vector<std::string>& fields, std::uint64_t index = 0,
                   const std::string& crowd = "") const {
    const auto format = opened(source, fields, crowd);
    return format ? shown(**format, index) : "closed: " + format.error().message();
  }

  storage::TemporaryFolder folder_;
};

const std::string kSquare = R"("bbox":[1,1,2,2],"area":4,"segmentation":[[1,1,3,1,3,3,1,3]])";

TEST_F(Coco, SamplesComeByTheIdsOfTheirImages) {
  const std::string source = write(object(R"("bbox":[1,2,3,4.5])", 30) + "," + object(R"("bbox":[0,0,1,1])", 2) + "," +
                                       R"({"id":6,"category_id":1,"image_id":30,"bbox":[5,5,1,1]})",
                                   {30, 2, 10});
  const auto format = opened(source);
  ASSERT_TRUE(format) << format.error().message();
  ASSERT_EQ((*format)->size(), 3u);
  EXPECT_EQ((*format)->where(0).key, "2.jpg");
  EXPECT_EQ(shown(**format, 0), "jpeg 2 (1, 4):0,0,10,10, (1,):1,");
  EXPECT_EQ(shown(**format, 1), "jpeg 10 (0, 4): (0,):") << "an image without annotations is included";
  EXPECT_EQ(shown(**format, 2), "jpeg 30 (2, 4):10,20,40,65,50,50,60,60, (2,):1,0,");
  EXPECT_EQ((*format)->classes(), (std::vector<std::string>{"a", "c"})) << "by their ids";
}

TEST_F(Coco, EveryPartOfAnAnnotationIsAField) {
  const std::string source = write(object(kSquare + R"(,"keypoints":[1,2,2,0,0,0])") + "," +
                                   object(R"("bbox":[2,2,2,1],"area":1.5,"segmentation":[[2,2,4,2,4,3,2,3]])"));
  EXPECT_EQ(show(source, {"category_ids", "annotation_ids", "area", "iscrowd", "image_id"}),
            "(2,):3,3, (2,):5,5, (2,):40,15, (2,):0,0, 1");
  EXPECT_EQ(show(source, {"keypoints", "visibility"}), "(2, 2, 2):10,20,0,0,0,0,0,0, (2, 2):2,0,0,0,")
      << "keypoints of an object without any are not visible";
  EXPECT_EQ(show(source, {"masks"}), "(2, 4, 6):000000011000011000000000000000000000001100000000");
  EXPECT_EQ(show(source, {"mask"}), "0,0,0,0,0,0,0,2,2,0,0,0,0,2,255,2,0,0,0,0,0,0,0,0")
      << "labels plus 1; 255 where objects overlap";
  EXPECT_EQ(show(source, {"a=boxes", "b=boxes"}), "(2, 4):10,10,30,30,20,20,40,30, (2, 4):10,10,30,30,20,20,40,30,");
}

TEST_F(Coco, CrowdsAreLeftOutUnlessTheyAreAskedFor) {
  const std::string crowd =
      R"({"id":9,"category_id":1,"iscrowd":1,"image_id":1,"bbox":[0,0,6,1],"area":3,"segmentation":{"size":[4,6],"counts":[0,1,3,1,19]}})";
  const std::string source = write(crowd + "," + object(kSquare));
  const auto skips = opened(source, {"boxes", "annotation_ids", "crowd_mask"});
  ASSERT_TRUE(skips) << skips.error().message();
  EXPECT_EQ(shown(**skips, 0), "(1, 4):10,10,30,30, (1,):5, 1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0");
  EXPECT_CONTAINS((*skips)->summary(), "1 crowd annotations were skipped");
  const auto keeps = opened(source, {"annotation_ids", "iscrowd", "masks"}, "keep");
  ASSERT_TRUE(keeps) << keeps.error().message();
  EXPECT_EQ(shown(**keeps, 0), "(2,):9,5, (2,):1,0, (2, 4, 6):110000000000000000000000000000011000011000000000");
  EXPECT_NE((*opened(source))->fingerprint(), (*opened(source, {}, "keep"))->fingerprint());
  EXPECT_CONTAINS(opened(source, {}, "separate").error().what, "crowd must be");
}

TEST_F(Coco, CaptionsAreAListOrTheFirst) {
  const std::string source = write(
      R"({"id":1,"image_id":1,"caption":"a \"dog\"\n"},{"id":2,"image_id":1,"caption":"b\u00e9"})", {1, 2}, "\"x\":0");
  EXPECT_EQ(show(source, {}), R"(jpeg 1 ["a \"dog\"\n", "b\u00e9"])") << "default fields of a captions file";
  EXPECT_EQ(show(source, {"caption"}), "a \"dog\"\n");
  EXPECT_EQ(show(source, {"captions"}, 1), "[]");
  EXPECT_CONTAINS(show(source, {"caption"}, 1), "error: the image has no caption");
  EXPECT_CONTAINS(show(source, {"labels"}), "no annotation in the file has a category");
}

struct Wrong {
  std::string annotation, field, why;
};

TEST_F(Coco, WhatAnAnnotationLacksIsAnErrorOfItsSampleAlone) {
  const std::vector<Wrong> all{
      {R"("bbox":[1,2,3])", "boxes", "the bbox is not a list of four numbers"},
      {R"("bbox":[1,2,3,"4"])", "boxes", "the bbox is not a list of four numbers"},
      {R"("bbox":"x")", "boxes", "the bbox is not a list of four numbers"},
      {R"("x":1)", "boxes", "the annotation has no bbox"},
      {R"("area":"1")", "area", "the area is not a number"},
      {R"("x":1)", "area", "the annotation has no area"},
      {R"("segmentation":[[1,1,3,1,3]])", "masks", "has an odd number of coordinates, 5"},
      {R"("segmentation":[[1,1,3,1]])", "masks", "has fewer than three points"},
      {R"("segmentation":[[1,1,3,1,1e9,2]])", "masks", "a coordinate far outside any image"},
      {R"("segmentation":[[1,1,3,1,NaN,2]])", "masks", "a coordinate far outside any image"},
      {R"("segmentation":[1,1,3,1,4,2])", "masks", "polygon 0 of its segmentation is not a list of numbers"},
      {R"("segmentation":[])", "masks", "the annotation has no segmentation"},
      {R"("segmentation":"x")", "masks", "neither a list of polygons nor an RLE object"},
      {R"("segmentation":{"size":[4,6],"counts":[0,1,30]})", "masks", "the runs cover 31 pixels"},
      {R"("segmentation":{"size":[4,6],"counts":[0,1]})", "masks", "the runs cover 1 pixels"},
      {R"("segmentation":{"size":[4,6],"counts":[-1,25]})", "masks", "negative, too large or not an integer"},
      {R"("segmentation":{"size":[4,6],"counts":"0 "})", "masks", "an invalid character"},
      {R"("segmentation":{"counts":[24]})", "masks", "a size of two integers"},
      {R"("segmentation":{"size":[6,4],"counts":[24]})", "masks",
       "encode a mask of 4 x 6 pixels, but its image has 6 x 4"},
      {R"("keypoints":[1,2])", "keypoints", "not a list of three numbers per point"},
      {R"("keypoints":[1,2,2,3,4,2])", "keypoints",
       "the annotation has 2 keypoints, but the first object in the file has 1"}};
  for (const Wrong& one : all) {
    const std::string bad = R"({"id":77,"category_id":3,"image_id":2,)" + one.annotation + "}";
    const std::string source = write(object(kSquare + R"(,"keypoints":[1,2,2])") + "," + bad, {1, 2});
    const auto format = opened(source, {one.field});
    ASSERT_TRUE(format) << one.annotation << format.error().message();
    EXPECT_FALSE(shown(**format, 0).starts_with("error")) << shown(**format, 0);
    memory::Record record;
    const auto read = (*format)->read(1, record);
    ASSERT_FALSE(read) << one.annotation;
    EXPECT_CONTAINS(read.error().what, one.why);
    EXPECT_CONTAINS(read.error().what, "annotation 77");
    EXPECT_EQ(read.error().code, ErrorCode::kData);
    EXPECT_EQ(read.error().where.shard, source);
    EXPECT_EQ(read.error().where.record, 1u);
    EXPECT_EQ(read.error().where.key, "2.jpg");
    EXPECT_EQ(read.error().where.offset, storage::TemporaryFolder::read(source).find(bad));
    EXPECT_FALSE(show(source, {"image_id"}, 1).starts_with("error")) << "no field needs it";
  }
}

TEST_F(Coco, ACategoryThatIsNotThereIsAnErrorOfItsSample) {
  const std::string source = write(R"({"id":7,"image_id":1,"category_id":2,"bbox":[0,0,1,1]})");
  EXPECT_CONTAINS(show(source, {"labels"}), "the category_id is not among the file's categories");
  EXPECT_CONTAINS(show(source, {"boxes"}), "(1, 4)");
  EXPECT_CONTAINS(show(write(R"({"id":7,"image_id":1,"category_id":"3","bbox":[0,0,1,1]})"), {"category_ids"}),
                  "the category_id is not an integer");
}

TEST_F(Coco, MasksNeedTheSizeOfTheirImage) {
  folder_.write("images/1.jpg", "x");
  const std::string source = folder_.write("x.json", R"({"images":[{"id":1,"file_name":"1.jpg"}],"annotations":[)" +
                                                         object(kSquare) + R"(],"categories":[{"id":3}]})");
  EXPECT_CONTAINS(show(source, {"masks"}), "has no valid width and height, which masks require");
  EXPECT_CONTAINS(show(source, {"boxes"}), "(1, 4)");
}

TEST_F(Coco, MasksTakeNoMoreThanARecordMay) {
  const auto format = opened(write(object(kSquare) + "," + object(kSquare)), {"image", "masks"});
  ASSERT_TRUE(format) << format.error().message();
  memory::Record record;
  record.most_bytes = 6 + 2 * 24;
  EXPECT_TRUE((*format)->read(0, record)) << "the image and two masks";
  record.most_bytes -= 1;
  const auto read = (*format)->read(0, record);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kData);
  EXPECT_EQ(read.error().where.record, 0u);
}

TEST_F(Coco, AMaskOfManyCategoriesHasSixteenBits) {
  std::string categories;
  for (int i = 0; i < 255; ++i) categories += (i == 0 ? "" : ",") + std::string("{\"id\":") + std::to_string(i) + "}";
  const std::string annotation =
      R"({"id":1,"image_id":1,"category_id":254,"segmentation":[[0,0,6,0,6,4,0,4]]},{"id":1,"image_id":1,"category_id":0,"segmentation":[[0,0,1,0,1,4,0,4]]})";
  const auto format = opened(write(annotation, {1}, "\"categories\":[" + categories + "]"), {"mask"});
  ASSERT_TRUE(format) << format.error().message();
  memory::Record record;
  ASSERT_TRUE((*format)->read(0, record));
  const memory::PixelView& mask = record.fields[0].pixels;
  ASSERT_EQ(mask.channels, 2);
  const auto at = [&](int x) { return mask.data[2 * x] + 256 * mask.data[2 * x + 1]; };
  EXPECT_EQ(at(0), 65535);
  EXPECT_EQ(at(1), 255);
}

TEST_F(Coco, AnnotationsOfNoImageAreLeftOutAndSaid) {
  const std::string source = write(object(kSquare, 9) + "," + object(kSquare));
  const auto format = opened(source);
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_CONTAINS(shown(**format, 0), "(1, 4)");
  EXPECT_CONTAINS((*format)->summary(), "1 annotations were skipped: their images are not in the file");
  EXPECT_EQ(inspected(source), "annotation_without_image:warning");
}

TEST_F(Coco, FilesThatCannotBeAreRefusedWithTheByte) {
  const auto why = [&](const std::string& text) {
    const auto format = opened(folder_.write("bad.json", text));
    if (format) return std::string("opened");
    EXPECT_EQ(format.error().where.shard.empty(), format.error().code == ErrorCode::kConfig);
    return format.error().message();
  };
  EXPECT_CONTAINS(why(R"({"images":[{"id":1,"file_name":"a"},{"id":1,"file_name":"b"}]})"),
                  "an image with the id 1, which is already used (at byte 11), at byte 36");
  EXPECT_CONTAINS(why(R"({"images":[],"categories":[{"id":1},{"id":1}]})"), "a category with the id 1");
  EXPECT_CONTAINS(why(R"({"images":[{"id":"1","file_name":"a"}]})"), "without an integer id at byte 11");
  EXPECT_CONTAINS(why(R"({"images":[{"id":1}]})"), "without a file_name");
  for (const char* name : {"../a", "/etc/passwd", "a/../../b", "", "a\\u0000b"})
    EXPECT_CONTAINS(why(std::string(R"({"images":[{"id":1,"file_name":")") + name + "\"}]}"),
                    "points outside the folder");
  EXPECT_CONTAINS(why(R"({"annotations":[{"id":1}],"images":[]})"), "without an integer image_id");
  EXPECT_CONTAINS(why(R"({"images":[{"id":1,"id":2}]})"), "the key 'id' appears twice in an object");
  EXPECT_CONTAINS(why(R"({"a":[]})"), "no list \"images\"");
  EXPECT_CONTAINS(why(R"({"images":[]})"), "lists no image");
  EXPECT_CONTAINS(why(R"({"images":[{"id":1,"file_name":"no-such-image"}]})"), "not in any of the usual folders");
  EXPECT_CONTAINS(why(R"({"images":[{"id":1,"file_name":"a"}],)"), "the text ends; expected a key in double quotes");
}

TEST_F(Coco, EveryCutOfAFileIsAnError) {
  const std::string source = write(object(kSquare) + "," + object(R"("bbox":[0,0,1,1],"caption":"x")"));
  const std::string text = storage::TemporaryFolder::read(source);
  for (std::size_t size = 1; size < text.size(); ++size) {
    const auto format = opened(folder_.write("cut.json", text.substr(0, size)), {"boxes"});
    ASSERT_FALSE(format) << size;
    EXPECT_EQ(format.error().code, ErrorCode::kData) << size << format.error().message();
  }
}

TEST_F(Coco, FindsTheFolderOfItsImages) {
  const std::string json = "{" + images_of({1}) + "}";
  for (const char* location :
       {"coco/val2017", "coco/annotations/val2017", "coco/images/val2017", "coco/annotations/images/val2017",
        "coco/images", "coco/annotations/images", "coco/annotations", "coco"}) {
    const storage::TemporaryFolder folder;
    folder.write(std::string(location) + "/1.jpg", "here");
    const std::string source = folder.write("coco/annotations/instances_val2017.json", json);
    const auto format = opened(source, {"image"});
    ASSERT_TRUE(format) << location << format.error().message();
    EXPECT_EQ(shown(**format, 0), "here");
    EXPECT_TRUE(std::filesystem::equivalent(std::filesystem::path((*format)->where(0).shard).parent_path(),
                                            folder.path(location)));
  }
  folder_.write("far/away/1.jpg", "there");
  OpenOptions options;
  options.fields = {"image"};
  options.annotations.images = folder_.path("far/away");
  const auto format = open_records(folder_.write("y.json", json), options);
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ(shown(**format, 0), "there");
  options.annotations.images = folder_.path("nowhere");
  EXPECT_FALSE(open_records(folder_.path("y.json"), options));
}

class PersistedCoco : public Coco {
 protected:
  // Opens the source with an index directory, and returns the path of the stored table, or an empty string if there is
  // none.
  std::string table_path(const std::string& source) const {
    OpenOptions options;
    options.fields = {"boxes", "masks"};
    options.index_directory = folder_.path("kept");
    const auto format = open_records(source, options);
    EXPECT_TRUE(format) << format.error().message();
    if (!format) return {};
    text_ = shown(**format, 0);
    std::string path;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path("kept"))) path = entry.path();
    return path;
  }
  Result<CocoTable> table_of(const std::string& source) const {
    OpenOptions options;
    options.storage = storage::local_storage();
    options.index_directory = folder_.path("kept");
    return open_coco_table(source, options);
  }

  mutable std::string text_;
};

TEST_F(PersistedCoco, ATableIsKeptAndMapped) {
  const std::string source = write(object(kSquare));
  EXPECT_FALSE(table_of(source)->is_mapped());
  EXPECT_TRUE(table_of(source)->is_mapped());
  const std::string path = table_path(source);
  ASSERT_FALSE(path.empty());
  const std::string first = text_;
  EXPECT_CONTAINS(first, "(1, 4)");
  table_path(source);
  EXPECT_EQ(text_, first);
  write(object(R"("bbox":[0,0,3,3],"segmentation":[[0,0,3,0,3,3]])"));
  EXPECT_FALSE(table_of(source)->is_mapped()) << "the JSON has another version";
  table_path(source);
  EXPECT_NE(text_, first);
}

TEST_F(PersistedCoco, AMadeUpTableIsNotUsed) {
  const std::string source = write(object(kSquare) + "," + object(kSquare));
  const std::string path = table_path(source), first = text_;
  const std::string bytes = storage::TemporaryFolder::read(path);
  const auto version = storage::local_storage()->stat(source);
  ASSERT_TRUE(version);
  const auto is_taken = [&](const std::string& file) {
    memory::ByteBuffer room;  // aligned like a mapping
    const auto copy = room.resize(file.size());
    std::ranges::copy(std::as_bytes(std::span(file)), copy.begin());
    return CocoTable::parse(copy, nullptr, *version).has_value();
  };
  EXPECT_TRUE(is_taken(bytes));
  for (std::size_t size = 0; size < bytes.size(); size += 3) EXPECT_FALSE(is_taken(bytes.substr(0, size))) << size;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += 5) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(is_taken(flipped)) << bit;
  }
  std::filesystem::remove(path);
  folder_.write(path.substr(folder_.path().size() + 1), "not a table");
  table_path(source);
  EXPECT_EQ(text_, first);
}

// The table has a valid checksum but offsets outside the file.
TEST_F(PersistedCoco, ATableWhoseNumbersLeadOutsideIsNotUsed) {
  const auto parts_of = [] {
    CocoParts parts;
    parts.images = {{.id = 1}};
    parts.names = "a.jpg";
    parts.name_ends = {5};
    parts.annotation_ends = {1};
    parts.annotations = {{.id = 1}};
    parts.details = {std::byte{0}, std::byte{0}};
    return parts;
  };
  const auto is_taken = [](const CocoParts& parts) {
    cache::FrameBuilder builder(kCocoTable, {0, 0, 0, parts.images.size(), parts.annotations.size(), 0,
                                             parts.details.size(), parts.names.size(), 0, 0, 0, 0, 0, 0});
    builder.add(parts.images);
    builder.add(parts.annotation_ends);
    builder.add(parts.annotations);
    builder.add(parts.category_ids);
    builder.add(parts.name_ends);
    builder.add(parts.details);
    builder.add(parts.names);
    memory::ByteBuffer room;
    return CocoTable::parse(builder.write(room), nullptr, {}).has_value();
  };
  EXPECT_TRUE(is_taken(parts_of()));
  const auto refuses = [&](const auto& change) {
    CocoParts parts = parts_of();
    change(parts);
    return !is_taken(parts);
  };
  EXPECT_TRUE(refuses([](CocoParts& parts) { parts.images[0].names = 1; }));
  EXPECT_TRUE(refuses([](CocoParts& parts) { parts.annotation_ends[0] = 2; }));
  EXPECT_TRUE(refuses([](CocoParts& parts) { parts.annotation_ends[0] = 0; }));
  EXPECT_TRUE(refuses([](CocoParts& parts) { parts.annotations[0].category = 0; }));
  EXPECT_TRUE(refuses([](CocoParts& parts) { parts.annotations[0].details = 3; }));
  EXPECT_TRUE(refuses([](CocoParts& parts) { parts.annotations[0].detail_bytes = 3; }));
  EXPECT_TRUE(refuses([](CocoParts& parts) { parts.name_ends[0] = 6; }));
}

}  // namespace
}  // namespace feedline::format
