// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/yolo/yolo_format.h"

#include <gtest/gtest.h>

#include "format/annotations/annotated_fixture.h"
#include "format/annotations/image_size.h"
#include "format/annotations/yolo/yaml_reader.h"
#include "format/annotations/yolo/yolo_labels.h"

namespace feedline::format {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string yaml_of(std::string_view text) {
  const auto yaml = read_yaml(text);
  if (!yaml) return "error: " + yaml.error().what;
  std::string shown;
  for (const auto& [key, value] : *yaml) {
    shown += key + "=";
    if (value.kind == YamlValue::Kind::kText) shown += "'" + value.text + "'";
    if (value.kind == YamlValue::Kind::kUnread) shown += "?" + value.text;
    for (const std::string& one : value.list) shown += one + ",";
    for (const auto& [name, of] : value.map) shown += name + ":" + of + ",";
    shown += " ";
  }
  return shown;
}

TEST(YamlReader, ReadsWhatDescribesASet) {
  EXPECT_EQ(yaml_of("# comment\n---\npath: ../x # here\ntrain: 'a # b'\nval:\ntest: \"c: d\"\nnc: 2\n"),
            "nc='2' path='../x' test='c: d' train='a # b' val= ");
  EXPECT_EQ(yaml_of("names: [a, 'b, c', \"d\",]\nx: []\n"), "names=a,b, c,d, x= ");
  EXPECT_EQ(yaml_of("names:\n- a\n-  b # x\nother: 1"), "names=a,b, other='1' ");
  EXPECT_EQ(yaml_of("names:\n  - a\n  - b\n"), "names=a,b, ");
  EXPECT_EQ(yaml_of("names:\n  0: person\n  1: 'traffic light'\n"), "names=0:person,1:traffic light, ");
  EXPECT_EQ(yaml_of("names: {0: a, 1: b}\n"), "names=0:a,1:b, ");
  EXPECT_EQ(yaml_of("names: ['a', 'b',\n  'c']\nz: 1\n"), "names=a,b,c, z='1' ");
  EXPECT_EQ(yaml_of("names: [a,\nb]\r\nz: 1\r\n"), "names=a,b, z='1' ");
}

TEST(YamlReader, ReadsTextsAsPythonPrintsThem) {
  EXPECT_EQ(yaml_of("names: [cat, 'jack-o''-lantern', \"19\\\" rack\", \"caf\\xe9\"]\n"),
            "names=cat,jack-o'-lantern,19\" rack,caf\xc3\xa9, ");
  EXPECT_EQ(yaml_of("names: {0: yes, 1: 'no', 2: 010, 3: '010', 4: 0x1f, 5: 1_000, 6: ~}\n"),
            "names=0:True,1:no,2:8,3:010,4:31,5:1000,6:None, ");
  EXPECT_EQ(yaml_of("a: &x 1\nb: *x\n"), "a='1' b='1' ") << "an anchor and its alias";
  EXPECT_EQ(yaml_of("\xef\xbb\xbf"
                    "a: >\n  one\n  two\n"),
            "a='one two\n' ");
  EXPECT_EQ(yaml_of("? [1, 2]\n: x\na: 1\n"), "a='1' ") << "a key that is not a string is ignored";
  EXPECT_EQ(yaml_of(""), "");
}

TEST(YamlReader, NotesValuesThatAreMoreThanTexts) {
  EXPECT_EQ(yaml_of("kpt_names:\n  0:\n    - nose\ntrain: t\n"),
            "kpt_names=?a mapping of values that are not strings train='t' ");
  EXPECT_EQ(yaml_of("a: [[1]]"), "a=?a list of values that are not strings ");
  EXPECT_EQ(yaml_of("augment:\n  - flip: 0.5\n    scale: 1\n"), "augment=?a list of values that are not strings ");
}

TEST(YamlReader, NamesTheLineOfAnError) {
  EXPECT_CONTAINS(yaml_of("a: 1\na: 2"), "the key 'a' is repeated in line 2");
  EXPECT_CONTAINS(yaml_of("- a\n"), "not a mapping of keys to values in line 1");
  EXPECT_CONTAINS(yaml_of("a: [1,\n2"), "in line");
  EXPECT_CONTAINS(yaml_of("a: 1\nb\n"), "in line");
  EXPECT_CONTAINS(yaml_of("a: 1\n- x\n"), "in line 2");
  EXPECT_CONTAINS(yaml_of("a: *x\n"), "in line 1");
  EXPECT_CONTAINS(yaml_of("a: \xff\n"), "error: ");
  EXPECT_CONTAINS(yaml_of("a: " + std::string(100'000, '[')), "error: ") << "deep nesting ends";
}

std::string sizes_of_bytes(const std::string& bytes) {
  const auto size = read_frame(std::as_bytes(std::span(bytes)));
  return size ? std::to_string(size->width) + "x" + std::to_string(size->height) : "none";
}

TEST(ImageSize, IsReadFromTheFirstBytes) {
  EXPECT_EQ(sizes_of_bytes(png_start(640, 3)), "640x3");
  const std::string frame("\xff\xc2\x00\x11\x08\x01\x02\x03\x04\x03\x01", 11);
  EXPECT_EQ(sizes_of_bytes(std::string("\xff\xd8\xff\xe0\x00\x04xx", 8) + frame), "772x258");
  EXPECT_EQ(sizes_of_bytes(std::string("\xff\xd8\xff\xff\xff\xd0\xff\xc4\x00\x02", 10) + frame), "772x258")
      << "past filling, a marker without a length and a table";
  EXPECT_EQ(sizes_of_bytes(std::string("\xff\xd8\xff\xda\x00\x02", 6) + frame), "none") << "a scan before any frame";
  EXPECT_EQ(sizes_of_bytes(std::string("\xff\xd8\xff\xe0\x00\x01", 6) + frame), "none") << "an invalid length";
  EXPECT_EQ(sizes_of_bytes(std::string("\xff\xd8\xff\xe0\xff\xff", 6) + frame), "none") << "after the end";
  const auto webp = [](const std::string& rest) { return "RIFF....WEBP" + rest + std::string(20, '\0'); };
  EXPECT_EQ(sizes_of_bytes(webp(std::string("VP8X\x0a\0\0\0\0\0\0\0\x2b\x01\0\x63\0\0", 18))), "300x100");
  EXPECT_EQ(sizes_of_bytes(webp(std::string("VP8L\x0a\0\0\0\x2f\x2b\xc1\x18\0", 13))), "300x100");
  EXPECT_EQ(sizes_of_bytes(webp(std::string("VP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\x2c\x01\x64\0", 18))), "300x100");
  EXPECT_EQ(sizes_of_bytes("GIF89a"), "none");
  EXPECT_EQ(sizes_of_bytes(""), "none");
  for (std::size_t size = 0; size < 24; ++size) EXPECT_EQ(sizes_of_bytes(png_start(9, 9).substr(0, size)), "none");
}

std::string labels_of(std::string_view text, const YoloLines& lines = {.classes = 3}) {
  const auto read = read_yolo_labels(text, lines, {200, 100});
  if (!read) return "error: " + read.error().what;
  std::string shown;
  for (const ImageObject& object : read->objects) {
    shown += std::to_string(object.label) + ":";
    for (const float number : object.box) shown += std::to_string(static_cast<int>(number * 10)) + ",";
    for (const double number : object.polygon) shown += " p" + std::to_string(static_cast<int>(number));
    for (const float number : object.keypoints) shown += " k" + std::to_string(static_cast<int>(number));
    for (const std::int64_t number : object.visibility) shown += " v" + std::to_string(number);
    shown += ";";
  }
  return shown;
}

TEST(YoloLabels, AreBoxesPolygonsOrKeypoints) {
  EXPECT_EQ(labels_of("0 0.5 0.5 0.25 0.5\r\n\n2  .5 5e-1 1 1"), "0:750,250,1250,750,;2:0,0,2000,1000,;");
  EXPECT_EQ(labels_of("1.0 0.1 0.2 0.5 0.2 0.5 0.75"), "1:200,200,1000,750, p20 p20 p100 p20 p100 p75;");
  EXPECT_EQ(labels_of("0 .5 .5 .1 .1 .25 .5 2 0 0 0", {.classes = 1, .points = 2}),
            "0:900,450,1100,550, k50 k50 k0 k0 v2 v0;");
  EXPECT_EQ(labels_of("0 .5 .5 .1 .1 .25 .5", {.classes = 1, .points = 1, .dimensions = 2}),
            "0:900,450,1100,550, k50 k50 v1;");
  EXPECT_EQ(labels_of(""), "");
  EXPECT_EQ(labels_of("900 .5 .5 1 1", {}).substr(0, 4), "900:") << "the number of classes is unknown";
}

TEST(YoloLabels, LinesThatCannotBeAreNamed) {
  EXPECT_CONTAINS(labels_of("0 .5 .5 1 1\n3 .5 .5 1 1"),
                  "line 2 of the labels: class 3 is out of range: the number of classes is 3");
  EXPECT_CONTAINS(labels_of("-1 .5 .5 1 1"), "a class that is not an integer of at least 0");
  EXPECT_CONTAINS(labels_of("0.5 .5 .5 1 1"), "a class that is not an integer of at least 0");
  EXPECT_CONTAINS(labels_of("0 .5 .5 1"), "4 numbers instead of");
  EXPECT_CONTAINS(labels_of("0 .5 .5 1 1 1"), "6 numbers instead of");
  EXPECT_CONTAINS(labels_of("0 .5 .5 1 1 1 1 1"), "8 numbers instead of");
  EXPECT_CONTAINS(labels_of("0 50 50 100 100"), "fractions of the image's size, from 0 to 1");
  EXPECT_CONTAINS(labels_of("0 .5 .5 1 -.2"), "fractions of the image's size");
  EXPECT_CONTAINS(labels_of("0 x .5 1 1"), "a value that is not a number");
  EXPECT_CONTAINS(labels_of("0 nan .5 1 1"), "a value that is not a number");
  EXPECT_CONTAINS(labels_of("0 .5 .5 1 1", {.classes = 1, .points = 2}), "instead of a class, a box and keypoints");
}

class Yolo : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const RecordFormat>> opened(const std::string& source, const std::string& split = "",
                                                     const std::vector<std::string>& fields = {}) const {
    OpenOptions options;
    options.fields = fields;
    options.format = "yolo";
    options.annotations.split = split;
    return open_records(source, options);
  }
  void write(const std::string& path, const std::string& labels) const {
    folder_.write(path + ".png", png_start(10, 10));
    std::string text = path;
    if (const std::size_t at = text.rfind("images/"); at != text.npos) text.replace(at, 7, "labels/");
    folder_.write(text + ".txt", labels);
  }
  std::string why(const std::string& yaml, const std::string& split = "") const {
    const auto format = opened(folder_.write("data.yaml", yaml), split);
    return format ? std::string("opened") : format.error().message();
  }

  storage::TemporaryFolder folder_;
};

TEST_F(Yolo, FindsSplitsWhereToolsPutThem) {
  write("images/train/b", "0 .5 .5 1 1");
  write("images/train/sub/a", "0 .5 .5 1 1");
  write("valid/images/c", "0 .5 .5 1 1");
  const std::string names = "names: [x]\n";
  const auto keys = [&](const std::string& yaml, const std::string& split = "") {
    const auto format = opened(folder_.write("data.yaml", yaml), split);
    if (!format) return format.error().message();
    std::string text;
    memory::Record record;
    for (std::uint64_t i = 0; i < (*format)->size(); ++i) {
      EXPECT_TRUE((*format)->read(i, record));
      EXPECT_EQ(record.fields[2].bytes.size(), 8u) << "one object";
      text += (*format)->where(i).key + " ";
    }
    return text;
  };
  EXPECT_EQ(keys(names + "train: images/train\n"), "b.png sub/a.png ");
  EXPECT_EQ(keys(names + "train: ./images/train/\n"), "b.png sub/a.png ");
  EXPECT_EQ(keys(names + "train: " + folder_.path("images/train")), "b.png sub/a.png ");
  EXPECT_EQ(keys(names + "val: ../valid/images\n", "val"), "c.png ") << "Roboflow's";
  EXPECT_EQ(keys(names + "path: .\ntrain: [images/train, valid/images]\n"), "b.png sub/a.png c.png ");
  EXPECT_EQ(keys(names + "path: nowhere\ntrain: images/train\n"), "b.png sub/a.png ");
  folder_.write("list.txt", "./valid/images/c.png\nimages/train/b.png\n");
  EXPECT_EQ(keys(names + "train: list.txt\n"), "images/train/b.png valid/images/c.png ");
  EXPECT_CONTAINS(keys(names + "train: images/none\n"), "'images/none' does not exist in");
  EXPECT_CONTAINS(keys(names + "train: images/train\n", "test"), "the YAML file has no split 'test'");
  EXPECT_CONTAINS(keys(names + "train: |\n  x\n"), "split: 'x");
  const auto folder = opened(folder_.path(), "", {"image"});
  EXPECT_FALSE(folder) << "by its data.yaml";
  OpenOptions options;
  folder_.write("data.yaml", names + "train: images/train\n");
  EXPECT_EQ(open_records(folder_.path(), options).value()->name(), "yolo");
}

TEST_F(Yolo, AnImageWithoutALabelFileHasNoObjects) {
  write("images/train/a", "0 .5 .5 1 1\n0 .5 .5 1 1");
  folder_.write("images/train/b.png", png_start(10, 10));
  const auto format = opened(folder_.write("data.yaml", "names: [x]\ntrain: images/train\n"));
  ASSERT_TRUE(format) << format.error().message();
  memory::Record record;
  ASSERT_TRUE((*format)->read(1, record));
  EXPECT_EQ(record.fields[1].array->shape.to_string(), "(0, 4)");
  EXPECT_EQ((*format)->summary(), "1 images have no label file and thus no objects");
  std::vector<storage::Piece> pieces;
  ASSERT_TRUE((*format)->find_pieces(1, pieces));
  EXPECT_EQ(pieces.size(), 1u);
  std::filesystem::remove_all(folder_.path("labels"));
  EXPECT_CONTAINS(why("names: [x]\ntrain: images/train\n"), "no image has a label file");
}

TEST_F(Yolo, WrongLabelsAndImagesAreNamedWithTheirFile) {
  write("images/train/a", "0 .5 .5 1 1\n1 .5 .5 1 1");
  write("images/train/b", "0 .5 .5 1 1");
  folder_.write("images/train/b.png", "no image");
  const auto format = opened(folder_.write("data.yaml", "names: [x]\ntrain: images/train\n"));
  ASSERT_TRUE(format) << format.error().message();
  memory::Record record;
  const auto labels = (*format)->read(0, record), image = (*format)->read(1, record);
  EXPECT_CONTAINS(labels.error().what, "line 2 of the labels: class 1 is out of range");
  EXPECT_TRUE(labels.error().where.shard.ends_with("labels/train/a.txt"));
  EXPECT_CONTAINS(image.error().what, "the size of the image");
  EXPECT_TRUE(image.error().where.shard.ends_with("images/train/b.png"));
}

TEST_F(Yolo, NamesThatDoNotFitAreRefused) {
  write("images/train/a", "0 .5 .5 1 1");
  const std::string train = "train: images/train\n";
  EXPECT_EQ(why(train + "names: {0: a, 1: b}"), "opened");
  EXPECT_CONTAINS(why(train + "names: {0: a, 2: b}"),
                  "not numbered consecutively from 0: the first missing number is 1");
  EXPECT_CONTAINS(why(train + "names: {x: a}"), "the YAML key 'names' holds an unexpected value");
  EXPECT_CONTAINS(why(train + "names: [a]\nnc: 2"), "nc in the YAML file is 2, but the file has 1 names");
  EXPECT_CONTAINS(why(train + "nc: x"), "the YAML key 'nc'");
  EXPECT_CONTAINS(why(train + "names: [a]\nkpt_shape: [17]"), "the YAML key 'kpt_shape'");
  EXPECT_CONTAINS(why("names: [a]\nnames: [b]"), "the key 'names' is repeated");
  const auto points = opened(folder_.write("data.yaml", train + "names: [a]"), "", {"keypoints"});
  EXPECT_CONTAINS(points.error().what, "require kpt_shape");
}

TEST_F(Yolo, PolygonsAreMasks) {
  write("images/train/a", "0 .2 .2 .6 .2 .6 .4 .2 .4");
  write("images/train/b", "0 .5 .5 1 1");
  const auto format =
      opened(folder_.write("data.yaml", "names: [x]\ntrain: images/train\n"), "", {"image", "masks", "boxes"});
  ASSERT_TRUE(format) << format.error().message();
  memory::Record record;
  ASSERT_TRUE((*format)->read(0, record));
  EXPECT_EQ(record.fields[1].array->shape.to_string(), "(1, 10, 10)");
  const auto mask = numbers_of<std::uint8_t>(record.fields[1]);
  std::string text;
  for (const std::uint8_t one : mask) text += static_cast<char>('0' + one);
  EXPECT_EQ(text.substr(0, 50), std::string(20, '0') + "0011110000" + "0011110000" + std::string(10, '0'));
  EXPECT_CONTAINS((*format)->read(1, record).error().what, "object 0 has a box but no polygon");
}

}  // namespace
}  // namespace feedline::format
