// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/voc/voc_format.h"

#include <gtest/gtest.h>

#include "format/annotations/annotated_fixture.h"
#include "format/annotations/voc/voc_annotation.h"

namespace feedline::format {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

const std::string kBox = "<bndbox><xmax>30</xmax><xmin>1.5</xmin><ymin>2</ymin><ymax>40</ymax></bndbox>";

TEST(VocAnnotation, ReadsObjectsAndNotTheirParts) {
  const auto read = read_voc_annotation(
      "<annotation><size><width>9</width></size><object><name> dog </name><pose>Left</pose><truncated>1</truncated>"
      "<difficult>1</difficult><part><name>head</name><bndbox><xmin>7</xmin></bndbox></part>" +
      kBox + "</object><object><name>cat</name>" + kBox + "</object></annotation>");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->names, (std::vector<std::string>{"dog", "cat"}));
  EXPECT_EQ(read->objects[0].box, (std::array<float, 4>{1.5F, 2, 30, 40}));
  EXPECT_EQ(read->objects[0].pose, "Left");
  EXPECT_EQ(read->objects[0].truncated + 10 * read->objects[0].difficult, 11);
  EXPECT_EQ(read->objects[1].pose, "Unspecified");
  EXPECT_EQ(read->objects[1].truncated + 10 * read->objects[1].difficult, 0);
}

TEST(VocAnnotation, SaysWhichObjectIsWrong) {
  const auto why = [](const std::string& object) {
    const auto read = read_voc_annotation("<annotation><object><name>a</name>" + kBox + "</object><object>" + object +
                                          "</object></annotation>");
    return read ? std::string("read") : read.error().what;
  };
  EXPECT_EQ(why("<name>a</name>" + kBox), "read");
  EXPECT_CONTAINS(why(kBox), "object 1 has no name");
  EXPECT_CONTAINS(why("<name>a</name>"), "object 1 has a bndbox whose xmin is missing");
  EXPECT_CONTAINS(why("<name>a</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>1</xmax></bndbox>"),
                  "has a bndbox whose ymax is missing");
  EXPECT_CONTAINS(why("<name>a</name><bndbox><xmin>1x</xmin></bndbox>"), "a corner that is not a number, '1x'");
  EXPECT_CONTAINS(why("<name>a</name><bndbox><xmin>nan</xmin></bndbox>"), "a corner that is not a number");
  EXPECT_CONTAINS(why("<name>a</name><difficult>yes</difficult>" + kBox), "a flag that is not an integer, 'yes'");
  EXPECT_CONTAINS(read_voc_annotation("<x/>").error().what, "the XML's root element is 'x', not 'annotation'");
}

class Voc : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const RecordFormat>> opened(const std::vector<std::string>& fields = {},
                                                     const std::string& split = "") const {
    OpenOptions options;
    options.fields = fields;
    options.format = "voc";
    options.annotations.split = split;
    return open_records(folder_.path(), options);
  }
  void write(const std::string& key, const std::string& name = "dog") const {
    folder_.write("JPEGImages/" + key + ".jpg", "jpeg " + key);
    folder_.write("Annotations/" + key + ".xml", "<annotation><object><name>" + name +
                                                     "</name><pose>a \"b\"</pose><difficult>1</difficult>" + kBox +
                                                     "</object></annotation>");
  }
  static std::string text_of_field(const memory::Record::Field& field) {
    return {reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size()};
  }

  storage::TemporaryFolder folder_;
};

TEST_F(Voc, ListsAreSplits) {
  for (const char* key : {"a", "b", "c"}) write(key);
  folder_.write("ImageSets/Main/train.txt", "c\r\na\n\n");
  folder_.write("ImageSets/Main/val.txt", "b");
  folder_.write("ImageSets/Main/dog_val.txt", "b  1\n");
  folder_.write("ImageSets/Main/empty.txt", "\n");
  const auto train = opened(), val = opened({}, "val");
  ASSERT_TRUE(train && val);
  EXPECT_EQ((*train)->where(0).key + (*train)->where(1).key, "ca") << "in the order of the list";
  EXPECT_EQ((*train)->size(), 2u);
  EXPECT_CONTAINS((*train)->summary(), "ImageSets/Main/train.txt");
  EXPECT_EQ((*val)->where(0).key, "b");
  EXPECT_CONTAINS(opened({}, "test").error().what, "split: there is no list");
  EXPECT_CONTAINS(opened({}, "../Main/val").error().what, "is not a valid list name");
  EXPECT_CONTAINS(opened({}, "empty").error().what, "is empty");
  const auto lines = opened({}, "dog_val");
  EXPECT_CONTAINS(lines.error().what, "line 1 of the list is not the name of a sample");
  EXPECT_TRUE(lines.error().where.shard.ends_with("dog_val.txt"));
}

TEST_F(Voc, WithoutListsAllAnnotationsAreTakenAndSayTheClasses) {
  write("b", "dog");
  write("a", "cat");
  const auto format = opened();
  ASSERT_TRUE(format) << format.error().message();
  EXPECT_EQ((*format)->where(0).key + (*format)->where(1).key, "ab");
  EXPECT_EQ((*format)->classes(), (std::vector<std::string>{"cat", "dog"}));
  memory::Record record;
  ASSERT_TRUE((*format)->read(1, record));
  EXPECT_EQ(numbers_of<std::int64_t>(record.fields[2]), std::vector<std::int64_t>{1});
  folder_.write("Annotations/c.xml", "<annotation>");
  EXPECT_EQ(opened().error().code, ErrorCode::kData);
  EXPECT_TRUE(opened().error().where.shard.ends_with("Annotations/c.xml"));
}

TEST_F(Voc, AClassThatHasNoListIsAnErrorOfItsSample) {
  write("a", "cat");
  write("b", "dog");
  folder_.write("ImageSets/Main/train.txt", "a\nb\n");
  folder_.write("ImageSets/Main/cat_train.txt", "");
  folder_.write("ImageSets/Main/zebra_train.txt", "");  // the next sample
  const auto format = opened();
  memory::Record record;
  EXPECT_TRUE((*format)->read(0, record));
  const auto read = (*format)->read(1, record);
  ASSERT_FALSE(read);
  EXPECT_CONTAINS(read.error().what, "object 0 is a 'dog', which is not among the classes");
  EXPECT_TRUE(read.error().where.shard.ends_with("Annotations/b.xml")) << read.error().where.shard;
}

TEST_F(Voc, EveryPartIsAField) {
  write("a");
  folder_.write("ImageSets/Main/train.txt", "a\n");
  const auto format = opened({"difficult", "truncated", "poses", "image"});
  ASSERT_TRUE(format) << format.error().message();
  memory::Record record;
  ASSERT_TRUE((*format)->read(0, record));
  EXPECT_EQ(numbers_of<std::int64_t>(record.fields[0]), std::vector<std::int64_t>{1});
  EXPECT_EQ(numbers_of<std::int64_t>(record.fields[1]), std::vector<std::int64_t>{0});
  EXPECT_EQ(text_of_field(record.fields[2]), R"(["a \"b\""])");
  EXPECT_EQ(text_of_field(record.fields[3]), "jpeg a");
}

TEST_F(Voc, MasksHaveListsOfTheirOwn) {
  for (const char* key : {"a", "b"}) write(key);
  folder_.write("ImageSets/Main/train.txt", "a\nb\n");
  folder_.write("ImageSets/Segmentation/train.txt", "b\n");
  folder_.write("SegmentationClass/b.png", "classes");
  folder_.write("SegmentationObject/b.png", "objects");
  const auto format = opened({"object_mask", "image", "mask"});
  ASSERT_TRUE(format) << format.error().message();
  ASSERT_EQ((*format)->size(), 1u);
  EXPECT_EQ((*format)->most_pieces(), 3u);
  memory::Record record;
  ASSERT_TRUE((*format)->read(0, record));
  EXPECT_EQ(text_of_field(record.fields[0]) + text_of_field(record.fields[1]) + text_of_field(record.fields[2]),
            "objectsjpeg bclasses");
  folder_.write("SegmentationObject/b.png", "");
  const auto empty = (*format)->read(0, record);
  ASSERT_FALSE(empty);
  EXPECT_TRUE(empty.error().where.shard.ends_with("SegmentationObject/b.png")) << empty.error().where.shard;
}

TEST_F(Voc, ASampleWithoutAnImageIsAnErrorOfThatSample) {
  write("a");
  folder_.write("ImageSets/Main/train.txt", "x\na\n");
  folder_.write("ImageSets/Main/dog_train.txt", "");
  const auto format = opened();
  ASSERT_TRUE(format) << format.error().message();
  memory::Record record;
  EXPECT_CONTAINS((*format)->read(0, record).error().what, "there is no image 'x' in JPEGImages");
  EXPECT_TRUE((*format)->read(1, record));
}

}  // namespace
}  // namespace feedline::format
