// SPDX-License-Identifier: Apache-2.0
#include "format/annotations/yolo/yolo_format.h"

#include <map>
#include <utility>

#include "format/annotations/image_folder.h"
#include "format/annotations/image_size.h"
#include "format/annotations/inspected_samples.h"
#include "format/annotations/object_rows.h"
#include "format/shards/finding.h"

namespace feedline::format {

Result<std::shared_ptr<const Format>> YoloFormat::open(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(YoloSet set, list_yolo(source, options));
  return std::shared_ptr<const Format>(new YoloFormat(std::move(set), options));
}

YoloFormat::YoloFormat(YoloSet set, OpenOptions options)
    : AnnotationFormat(set.root, std::move(options), set.fields), set_(std::move(set)) {
  classes_ = set_.classes;
  fingerprint_ = compute_fingerprint();
}

std::uint64_t YoloFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  add_parts(fingerprint);
  for (std::uint64_t i = 0; i < size(); ++i) {
    fingerprint.add(set_.keys[i]);
    fingerprint.add(std::uint64_t{set_.labels[i].empty()});
  }
  for (const std::string& one : classes_) fingerprint.add(one);
  return fingerprint.value();
}

Result<std::vector<std::string>> YoloFormat::paths(std::uint64_t index) const {
  std::vector<std::string> paths{set_.images[index]};
  if (!set_.labels[index].empty()) paths.push_back(set_.labels[index]);
  return paths;
}

// Reads only the label file, which does not need the image's size for labels.
Result<bool> YoloFormat::fill_field(std::uint64_t index, std::size_t field, memory::Record& record,
                                    std::string& file) const {
  if (parts_[field].part != Part::kLabels) return false;
  std::span<const std::byte> text;
  file = set_.labels[index];
  if (!file.empty()) {
    const auto bytes = options_.storage->read_all(file, record.storage, record.most_bytes);
    if (!bytes) return std::unexpected(bytes.error());
    text = *bytes;
  }
  record.bytes_read = text.size();
  constexpr ImageSize kAnySize{1, 1};
  FEEDLINE_TRY(const ImageObjects objects,
               read_yolo_labels({reinterpret_cast<const char*>(text.data()), text.size()}, set_.lines, kAnySize));
  FEEDLINE_CHECK_OK(fill_objects(objects, std::span(parts_).subspan(field, 1), 0, record));
  return true;
}

Result<void> YoloFormat::fill(std::uint64_t /*index*/, std::span<const std::span<const std::byte>> pieces,
                              memory::Record& record, std::size_t& piece) const {
  FEEDLINE_CHECK_OK(take_image(parts_, pieces[0], record));
  FEEDLINE_TRY(memory::ImageFrame frame, read_frame(pieces[0]));
  frame.is_turned = true;  // labels are fractions of the rotated image, as in Ultralytics
  piece = 1;
  const auto text = pieces.size() > 1 ? pieces[1] : std::span<const std::byte>();
  record.bytes_read += text.size();
  FEEDLINE_TRY(const ImageObjects objects, read_yolo_labels({reinterpret_cast<const char*>(text.data()), text.size()},
                                                            set_.lines, turned_size(frame)));
  FEEDLINE_CHECK_OK(fill_objects(objects, parts_, kPieces, record));
  set_frame(parts_, frame, record);
  return {};
}

std::string YoloFormat::summary() const {
  if (set_.unlabeled == 0) return {};
  return std::to_string(set_.unlabeled) + " images have no label file and thus no objects";
}

Result<Inspection> YoloFormat::inspect(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto set, list_yolo(source, options));
  const YoloFormat format(std::move(set), options);
  Inspection inspection;
  Findings findings;
  const auto image_bytes = [&](std::uint64_t index, const memory::Record&) {
    const auto stat = options.storage->stat(format.set_.images[index]);
    return stat ? stat->bytes : 0;
  };
  inspect_samples(format, format.set_.keys, image_bytes, inspection, findings);
  std::map<std::string, std::uint64_t> extensions;
  for (const std::string& image : format.set_.images) ++extensions[extension_of(image)];
  if (format.set_.unlabeled > 0) findings.add({"unlabeled_image", Severity::kNote, source, "", {}, format.summary()});
  for (const auto& [extension, count] : extensions) inspection.extensions.push_back({extension, count});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
