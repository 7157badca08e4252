// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/feature_files.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "decode/audio/audio_reader.h"
#include "decode/image_formats.h"
#include "format/field_kind.h"
#include "format/shards/member_files.h"
#include "format/tfrecord/example.h"
#include "format/tfrecord/number_file.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using File = SampleFiles::File;

struct Named {
  std::string name;
  Feature feature;
  std::optional<FeatureList> list;
  const FeatureChoice* field = nullptr;  // the field that uses it
};

// Returns the field that uses a feature.
const FeatureChoice* field_of(const std::string& name, const std::vector<FeatureChoice>& fields) {
  const auto takes = [&](const FeatureChoice& field) { return std::ranges::count(field.alternatives, name) > 0; };
  const auto found = std::ranges::find_if(fields, takes);
  return found == fields.end() ? nullptr : &*found;
}

// Returns the features ordered by field, then by name.
std::optional<std::vector<Named>> features_of(Bytes record, const std::vector<FeatureChoice>& fields) {
  std::map<std::string, Named> found, lists;
  const auto feature = [&](std::string_view name, const Feature& one) {
    return found.insert_or_assign(std::string(name), Named{std::string(name), one, {}}), true;
  };
  const auto list = [&](std::string_view name, const FeatureList& one) {
    return lists.insert_or_assign(std::string(name), Named{std::string(name), {}, one}), true;
  };
  if (!walk_example(record, feature, list)) return {};
  found.merge(lists);
  std::vector<Named> sorted;
  for (auto& [name, one] : found) {
    one.field = field_of(name, fields);
    if (one.list || one.feature.kind() != ValueKind::kNone) sorted.push_back(std::move(one));
  }
  const auto rank = [&](const Named& one) {
    return one.field == nullptr ? static_cast<std::ptrdiff_t>(fields.size()) : one.field - fields.data();
  };
  std::ranges::stable_sort(sorted, {}, rank);
  return sorted;
}

class FileWriter {
 public:
  bool add(const Named& one) {
    if (!one.list) return one.feature.kind() == ValueKind::kBytes ? add_bytes(one) : add_numbers(one);
    ValueKind kind = ValueKind::kNone;
    one.list->each([&](const Feature& step) { return kind = step.kind(), kind == ValueKind::kNone; });
    return kind == ValueKind::kBytes ? add_bytes(one) : kind == ValueKind::kNone || add_steps(one, kind);
  }
  std::vector<File> take() { return files_.take(); }

 private:
  static std::string_view end_of_bytes(const Named& one, Bytes bytes) {
    if (const std::string_view image = decode::image_extension(bytes); !image.empty()) return image;
    const auto kind = one.field != nullptr ? one.field->description.kind
                                           : usual_kind("", plain_name(one.name.substr(one.name.rfind('/') + 1)));
    if (kind == FieldKind::kText) return "txt";
    if (kind == FieldKind::kJson) return "json";
    if (one.field == nullptr) return "bin";
    if (kind == FieldKind::kArray) return "npy";
    if (kind == FieldKind::kInteger) return "cls";
    if (kind == FieldKind::kAudio) return decode::audio_extension_to_store(bytes);
    return kind == FieldKind::kImage || kind == FieldKind::kMask ? decode::extension_to_store(bytes) : "bin";
  }

  bool add_bytes(const Named& one) {
    std::vector<Bytes> values;
    const auto keep = [&](const Feature& feature) {
      return feature.kind() == ValueKind::kBytes &&
             feature.each_bytes([&](Bytes value) { return values.push_back(value), true; });
    };
    if (!(one.list ? one.list->each(keep) : keep(one.feature))) return false;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string end(end_of_bytes(one, values[i]));
      const std::string number = values.size() > 1 ? "." + std::to_string(i) : "";
      const bool is_image = one.field != nullptr && one.field->description.kind == FieldKind::kImage;
      files_.add(plain_name(one.name) + number + "." + end, is_image && number.empty() ? end : "",
                 {values[i].begin(), values[i].end()});
    }
    return true;
  }

  bool add_numbers(const Named& one) {
    const auto count = one.feature.count();
    if (!count) return false;
    const bool is_field = one.field != nullptr && one.field->description.kind == FieldKind::kInteger;
    if (one.feature.kind() == ValueKind::kInts && *count == 1 && (is_field || one.field == nullptr)) {
      std::int64_t value = 0;
      one.feature.write_numbers(reinterpret_cast<std::byte*>(&value));
      const std::string text = std::to_string(value);
      const Bytes bytes = std::as_bytes(std::span(text));
      files_.add(plain_name(one.name) + ".cls", is_field ? "cls" : "", {bytes.begin(), bytes.end()});
      return true;
    }
    NumberShape shape{one.feature.kind(), 1, *count, 1};
    if (one.field != nullptr && one.field->is_scalar && *count == 1) shape.dims = 0;
    const std::uint64_t columns = one.field == nullptr ? 0 : one.field->columns;
    if (columns > 0 && *count % columns == 0) shape = {one.feature.kind(), 2, *count / columns, columns};
    std::vector<std::byte> file(shape.file_bytes());
    write_number_header(shape, file.data());
    one.feature.write_numbers(file.data() + kNumberHeaderBytes);
    files_.add(plain_name(one.name) + ".npy", "", std::move(file));
    return true;
  }

  bool add_steps(const Named& one, ValueKind kind) {
    std::optional<std::uint64_t> columns;
    std::uint64_t steps = 0;
    const bool are_equal = one.list->each([&](const Feature& step) {
      const auto count = step.count();
      if (step.kind() != kind || !count || columns.value_or(*count) != *count) return false;
      columns = count;
      return ++steps > 0;
    });
    if (!are_equal || !columns) return false;
    const NumberShape shape{kind, *columns == 1 ? std::size_t{1} : 2, steps, *columns};
    std::vector<std::byte> file(shape.file_bytes());
    write_number_header(shape, file.data());
    std::byte* out = file.data() + kNumberHeaderBytes;
    one.list->each([&](const Feature& step) {
      step.write_numbers(out);
      out += shape.data_bytes() / steps;
      return true;
    });
    files_.add(plain_name(one.name) + ".npy", "", std::move(file));
    return true;
  }

  MemberFiles files_;
};

}  // namespace

Result<std::vector<File>> files_of(Bytes record, const std::vector<FeatureChoice>& fields) {
  const auto features = features_of(record, fields);
  if (!features) return data_error("the record is not a tf.train.Example", "format");
  FileWriter writer;
  for (const Named& one : *features)
    if (!writer.add(one))
      return data_error("the feature '" + one.name + "' cannot be written as a file: the values of its steps have " +
                            "different kinds or numbers, or are damaged",
                        "format");
  auto files = writer.take();
  if (files.empty()) return data_error("the record has no feature with values", "format");
  return files;
}

}  // namespace feedline::format
