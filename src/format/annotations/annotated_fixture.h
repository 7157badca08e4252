// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: writes the same samples as a COCO file, a VOC folder and a YOLO set.

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "format/inspected.h"
#include "storage/temporary_folder.h"

namespace feedline::format {

struct AnnotatedSample {
  std::string key;
  std::string image;                        // a PNG header followed by arbitrary bytes
  std::vector<std::array<float, 4>> boxes;  // left, top, right, bottom
  std::vector<std::int64_t> labels;
};

inline constexpr int kSampleWidth = 64, kSampleHeight = 32;  // powers of two, so that fractions are exact

inline std::string png_start(int width, int height) {
  std::string image("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  for (const int side : {width, height})
    for (int shift = 24; shift >= 0; shift -= 8) image += static_cast<char>(side >> shift);
  return image;
}

inline std::vector<AnnotatedSample> some_annotated(std::size_t count = 9) {
  std::vector<AnnotatedSample> samples;
  for (std::size_t i = 0; i < count; ++i) {
    AnnotatedSample sample{"key" + std::to_string(100 + i), png_start(kSampleWidth, kSampleHeight), {}, {}};
    for (std::size_t b = 0; b < 1 + i * 1709 % 5000; ++b) sample.image += static_cast<char>((b * 31 + i * 7) >> 2);
    for (std::size_t k = 0; k < i % 4; ++k) {
      const auto left = static_cast<float>(k * 8), top = static_cast<float>(i % 20);
      sample.boxes.push_back({left, top, left + 8, top + 4});
      sample.labels.push_back(static_cast<std::int64_t>((i + k) % 3));
    }
    samples.push_back(sample);
  }
  return samples;
}

inline std::string text_of(float number) {
  const std::string text = std::to_string(number);
  return text.substr(0, text.find_last_not_of('0') + 1) + "0";
}

inline std::string store_coco(const storage::TemporaryFolder& folder, const std::vector<AnnotatedSample>& samples) {
  std::string images, annotations;
  std::size_t id = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    folder.write("train/" + samples[i].key + ".png", samples[i].image);
    images += (i == 0 ? "" : ", ") + std::string(R"({"id": )") + std::to_string(i * 10) + R"(, "file_name": ")" +
              samples[i].key + R"(.png", "width": 64, "height": 32})";
    for (std::size_t k = 0; k < samples[i].boxes.size(); ++k) {
      const auto& box = samples[i].boxes[k];
      annotations += (id == 0 ? "" : ", ") + std::string(R"({"id": )") + std::to_string(id) + R"(, "image_id": )" +
                     std::to_string(i * 10) + R"(, "category_id": )" + std::to_string(samples[i].labels[k] * 7 + 1) +
                     R"(, "iscrowd": 0, "area": 32.5, "bbox": [)" + text_of(box[0]) + ", " + text_of(box[1]) + ", " +
                     text_of(box[2] - box[0]) + ", " + text_of(box[3] - box[1]) + "]}";
      ++id;
    }
  }
  const std::string categories = R"([{"id": 15, "name": "cow"}, {"id": 1, "name": "ant"}, {"id": 8, "name": "bee"}])";
  return folder.write("annotations/instances_train.json", R"({"images": [)" + images + R"(], "annotations": [)" +
                                                              annotations + R"(], "categories": )" + categories + "}");
}

inline std::string store_voc(const storage::TemporaryFolder& folder, const std::vector<AnnotatedSample>& samples) {
  const std::array<std::string, 3> names{"ant", "bee", "cow"};
  std::string list;
  for (const AnnotatedSample& sample : samples) {
    folder.write("JPEGImages/" + sample.key + ".png", sample.image);
    std::string xml = "<annotation><filename>x</filename>";
    for (std::size_t k = 0; k < sample.boxes.size(); ++k) {
      const auto& box = sample.boxes[k];
      xml += "<object><name>" + names[static_cast<std::size_t>(sample.labels[k])] + "</name><bndbox><xmin>" +
             text_of(box[0]) + "</xmin><ymin>" + text_of(box[1]) + "</ymin><xmax>" + text_of(box[2]) + "</xmax><ymax>" +
             text_of(box[3]) + "</ymax></bndbox></object>";
    }
    folder.write("Annotations/" + sample.key + ".xml", xml + "</annotation>");
    list += sample.key + "\n";
  }
  folder.write("ImageSets/Main/train.txt", list);
  for (const std::string& name : names) folder.write("ImageSets/Main/" + name + "_train.txt", "");
  return folder.path();
}

inline std::string store_yolo(const storage::TemporaryFolder& folder, const std::vector<AnnotatedSample>& samples) {
  for (const AnnotatedSample& sample : samples) {
    folder.write("images/train/" + sample.key + ".png", sample.image);
    std::string text;
    for (std::size_t k = 0; k < sample.boxes.size(); ++k) {
      const auto& box = sample.boxes[k];
      text += std::to_string(sample.labels[k]);
      for (const float share : {(box[0] + box[2]) / 2 / kSampleWidth, (box[1] + box[3]) / 2 / kSampleHeight,
                                (box[2] - box[0]) / kSampleWidth, (box[3] - box[1]) / kSampleHeight})
        text += " " + std::to_string(share);
      text += "\n";
    }
    folder.write("labels/train/" + sample.key + ".txt", text);
  }
  return folder.write("data.yaml", "path: .\ntrain: images/train\nnames: [ant, bee, cow]\n");
}

template <typename Number>
std::vector<Number> numbers_of(const memory::Record::Field& field) {
  std::vector<Number> numbers(field.bytes.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), field.bytes.data(), field.bytes.size());
  return numbers;
}

}  // namespace feedline::format
